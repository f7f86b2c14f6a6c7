"""The page of a kept refinement."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from entourage.figures.retrieval import choose_queries
from entourage.report.blocks import Beside, Facts, Heading, Paragraph, ScoreTable, Table, Tally, Warnings
from entourage.report.classes import means_by_class
from entourage.report.page import Page, Section
from entourage.report.rankings import SHOWN, Ranking, cells_of
from entourage.report.templates import Block
from entourage.report.wording import change_mark, flattened, footer, in_sentence, without_repeats
from entourage.runs.figures import applicable
from entourage.runs.figures.matches import moved_matches
from entourage.runs.figures.refinement import changed_queries, rankings
from entourage.runs.refinement_run import RefinementRun

__all__ = ["refinement_page"]

WHEN = ("before", "after")
_EACH = 4  # wins and losses shown
_CLASSES = 6  # classes listed that gained, and that lost
_UNCHANGED = 1e-9
_HEADLINE = ("recall@1", "map@r")  # metrics


def refinement_page(run: RefinementRun, figures: Sequence[Block]) -> Page:
    """Compose the page of a refinement; figures: blocks with its pictures."""
    return Page(
        title=f"{run.folder.absolute().name} · refinement",
        headline=_headline(run),
        lede=_lede(run),
        sections=[
            Section("Scores", _scores(run)),
            Section("Figures", figures),
            Section("Wins and losses" if run.labelled else "What changed most", _wins_and_losses(run, bool(figures))),
            Section("Protocol", [Facts("How this was measured.", without_repeats(run.document["protocol"]))]),
            Section("Settings", [Facts("What decided the result.", _settings(run))]),
            Section("Versions", [Facts("What it was made with.", run.run.get("versions", {}))]),
        ],
        footer=_footer(run),
    )


def _headline(run: RefinementRun) -> str:
    """What changed beyond its interval, without numbers: the table below has them."""
    rose, fell = _clear_changes(run)
    if not run.document["metrics"]:
        return (
            f"{len(run.items):,} vectors were refined. Without labels there are no scores to show whether they became "
            "better, but what changed can be seen below."
        )
    main = [[name for name in names if name in _HEADLINE] for names in (rose, fell)]
    rose, fell = main if any(main) else (rose, fell)
    clauses = [f"{verb} {_enumerated(names)}" for verb, names in (("raised", rose), ("lowered", fell)) if names]
    return f"Refinement {' and '.join(clauses) if clauses else 'changed no score clearly'}."


def _lede(run: RefinementRun) -> str:
    fell = [name for name in _clear_changes(run)[1] if name not in _HEADLINE]
    movement = _movement(run.document.get("movement", {}))
    named = {name for names in _clear_changes(run) for name in names}
    if not fell or not named & set(_HEADLINE):  # then the headline says it
        return movement
    said = _enumerated(fell)
    return f"{said[:1].upper()}{said[1:]} fell. {movement}".strip()


def _clear_changes(run: RefinementRun) -> tuple[list[str], list[str]]:
    """Names of the metrics that rose, and of those that fell, as the table marks them: not those it calls unclear."""
    before, after, intervals = (run.document[name] for name in ("metrics_before", "metrics", "intervals"))
    marks = {name: change_mark(after[name] - before[name], intervals.get(name))[0] for name in after}
    rose, fell = ([name for name, mark in marks.items() if mark in which] for which in ("▲△", "▼▽"))
    return rose, fell


def _movement(movement: dict[str, float]) -> str:
    """Say how far the vectors moved, where that was measured."""
    clauses = []
    if "mean_cosine_to_input" in movement:
        between = movement.get("mean_cosine_of_two_inputs")
        beside = "" if between is None else f" (two different vectors had {between:.3f})"
        clauses.append(f"has a cosine of {movement['mean_cosine_to_input']:.3f} to what it was before{beside}")
    for name, share in movement.items():
        if name.startswith("share_of_"):
            count = name.removeprefix("share_of_").split("_")[0]
            clauses.append(f"keeps {100 * share:.0f} % of its {count} nearest neighbours")
    return f"On average a vector {' and '.join(clauses)}." if clauses else ""


def _scores(run: RefinementRun) -> list[Block]:
    document = run.document
    blocks: list[Block] = [Warnings(document["warnings"])] if document.get("warnings") else []
    if not document["metrics"]:
        return blocks
    caption = "In percent. ▲ better and ▼ worse at 95 %; ≈ no clear change; △ ▽ higher and lower, without an interval."
    return [*blocks, ScoreTable(caption, document["metrics"], document["metrics_before"], document["intervals"])]


def _settings(run: RefinementRun) -> dict[str, Any]:
    """Settings that the protocol does not say: it has the steps, the neighbours and, of the demo, the seed."""
    settings = flattened(run.run.get("settings", {}))
    settings |= {"seed": run.run.get("seed"), "seconds": run.run.get("seconds")}
    protocol = run.document["protocol"]
    said = {"refiner.steps", "refiner.n_steps"} | ({"seed"} & protocol.keys())
    if settings.get("refiner.random_state") == settings["seed"]:
        said.add("refiner.random_state")
    if f"{settings.get('refiner.n_neighbors')} neighbours" in str(protocol.get("context")):
        said.add("refiner.n_neighbors")
    return {name: value for name, value in settings.items() if name not in said}


def _footer(run: RefinementRun) -> str:
    # Runs that were kept before classes were resampled do not say how their intervals were made.
    made = run.document["protocol"].get("intervals", "95 %, paired bootstrap over queries")
    return footer(run.folder, made if run.document["intervals"] else None)


# ---- wins and losses ---------------------------------------------------------------------------------------------


def _wins_and_losses(run: RefinementRun, drawn: bool) -> list[Block]:
    """Queries and classes that won and lost most; drawn: whether the query that won most is among the figures."""
    scores, labels = run.per_query, run.items.labels
    if scores is None or labels is None:
        return _most_changed(run)
    before, after = (scores[when]["map@r"] for when in WHEN)
    gains = after - before
    won, lost = int((gains > _UNCHANGED).sum()), int((gains < -_UNCHANGED).sum())
    blocks: list[Block] = [
        Paragraph("Queries by average precision at R, before and after:"),
        Tally((won, "got better"), (lost, "got worse"), (len(gains) - won - lost, "unchanged")),
        Beside(_class_tables(labels, before, after)),
    ]
    shown_above = int(changed_queries(run, 2)[0]) if drawn and "query" in applicable(run) else -1
    chosen = [row for row in choose_queries(gains, _EACH + 1, _EACH + 1, labels).tolist() if row != shown_above]
    for title, mark, sign in (("Biggest wins", "▲", 1), ("Biggest losses", "▼", -1)):
        rows = [row for row in chosen if sign * gains[row] > 0][:_EACH]
        notes = [f"{mark} average precision {100 * before[row]:.0f} → {100 * after[row]:.0f} %" for row in rows]
        besides = " besides the query above" if sign * gains[shown_above] > 0 and shown_above >= 0 else ""
        blocks += [Heading(f"{title}{besides}")] if rows else []
        blocks += [_ranking(run, row, note) for row, note in zip(rows, notes, strict=True)]
    return blocks


def _most_changed(run: RefinementRun) -> list[Block]:
    """Without labels: the queries that keep the fewest of their nearest items."""
    before, after = rankings(run, SHOWN)
    kept, rows = before.kept_in(after), changed_queries(run, 2 * _EACH)
    return [
        Paragraph("Without labels it is not known which items are right."),
        Heading("Queries whose nearest items changed most"),
        *(_ranking(run, row, f"{kept[row]} of the {before.k} nearest stayed") for row in rows),
    ]


def _ranking(run: RefinementRun, row: int, note: str) -> Ranking:
    queries, gallery = run.appearance, run.gallery_appearance
    (query, before), (_, after) = (cells_of(queries, row, gallery, run.neighbors[when].rows[row]) for when in WHEN)
    return Ranking(queries.name(row), str(queries.ids[row]), note, query, after, before, moved_matches(run, row))


def _class_tables(labels: ArrayLike, before: np.ndarray, after: np.ndarray) -> list[Block]:
    """The classes of labels (N,) that gained and those that lost most, by average precision (N,)."""
    names, sizes, means = means_by_class(labels, before, after)
    gained = means[1] - means[0]
    tables: list[Block] = []
    for word, sign in (("gained", 1), ("lost", -1)):
        order = np.lexsort((-sizes, -sign * gained))  # of equals the most frequent, not the first of the alphabet
        rows = [row for row in order if sign * gained[row] > _UNCHANGED]
        caption = f"{len(rows):,} of {len(names):,} classes {word}, these the most. MAP@R in percent."
        cells = [(names[row], f"{sizes[row]:,}", *(f"{100 * mean[row]:.1f}" for mean in means)) for row in rows]
        table = Table(caption, ("class", "queries", *WHEN), cells[:_CLASSES])
        tables.append(table if cells else Paragraph(f"No class {word}."))
    return tables


def _enumerated(names: list[str]) -> str:
    titles = [in_sentence(name) for name in names]
    return titles[0] if len(titles) == 1 else f"{', '.join(titles[:-1])} and {titles[-1]}"
