"""Where matches stood and stand: ranks as scores rank them, and what is said of them."""

import dataclasses

import numpy as np
import pytest
from tests.runs.samples import COUNT, fitted, halves, items, kept

from entourage.runs.figures.matches import _in_words, match_ranks, moved_matches
from entourage.runs.refine import write_refinement

pytestmark = pytest.mark.usefixtures("one_thread")


def plain_ranks(given, row, others, left_out=()) -> list[int]:
    """Ranks of the matches of a query by a sort of all similarities, without those left out."""
    order = [int(at) for at in np.argsort(-(others.vectors @ given.vectors[row]), kind="stable") if at not in left_out]
    matches = [at for at in range(len(others)) if others.labels[at] == given.labels[row] and at not in left_out]
    return [1 + order.index(at) for at in matches]


def test_ranks_are_those_of_a_plain_sort():
    whole = items()
    for row in (0, 57, 119):
        assert match_ranks(whole, row, whole).tolist() == plain_ranks(whole, row, whole, [row])
    queries, gallery = halves()
    assert match_ranks(queries, 3, gallery).tolist() == plain_ranks(queries, 3, gallery)


def test_what_scores_leave_out_has_no_rank_and_is_not_counted():
    filmed = dataclasses.replace(items(), cameras=np.arange(COUNT) % 2)
    own = [at for at in range(COUNT) if filmed.labels[at] == filmed.labels[8] and at % 2 == 0]
    ranks = match_ranks(filmed, 8, filmed)
    assert ranks.tolist() == plain_ranks(filmed, 8, filmed, own) and len(ranks) == 5
    shots = dataclasses.replace(items(), sequences=np.arange(COUNT) // 3)
    assert match_ranks(shots, 8, shots).tolist() == plain_ranks(shots, 8, shots, [6, 7, 8])


@pytest.mark.parametrize(
    ("before", "after", "rose", "said"),
    [
        ([1, 2, 3, 4], [1, 2, 31, 40], False, "2 of 4 matches fell from ranks 3, 4 to 31, 40"),
        ([1, 2, 3, 4], [3, 1, 40, 2], False, "1 of 4 matches fell from rank 3 to 40"),  # what left counts most
        ([1, 2, 9, 9], [2, 3, 9, 9], False, "2 of 4 matches fell from ranks 1, 2 to 2, 3"),  # all stayed
        ([1], [3], False, "the only match fell from rank 1 to 3"),
        ([9, 1, 7, 8], [2, 1, 3, 8], True, "2 of 4 matches rose from ranks 9, 7 to 2, 3"),
        (
            [1, 2, 3, 4, 5],
            [1234, 9, 8, 7, 6],
            False,
            "5 of 5 matches fell from ranks 1, 2, 3, 4, … to 1234, 9, 8, 7, …",
        ),
    ],
)
def test_what_moved_is_said_with_its_ranks(before, after, rose, said):
    assert _in_words(np.array(before), np.array(after), rose=rose) == said


def test_every_query_whose_precision_changed_says_what_moved(tmp_path):
    queries, gallery = halves()
    for run in (kept(tmp_path / "one", items()), write_refinement(tmp_path / "two", fitted(gallery), queries, gallery)):
        for row, gain in enumerate(run.gains):
            said = moved_matches(run, row)
            assert (said == "") == (gain == 0) and (gain == 0 or ("rose" if gain > 0 else "fell") in said)
            assert not said.startswith("0 of")
