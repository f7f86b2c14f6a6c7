import numpy as np
import pytest
from tests.runs.samples import items

from entourage.evaluation.movement import cosines
from entourage.values import Embeddings


def test_cosines_are_those_of_plain_loops():
    given = items()
    x, moved = given.vectors, items().vectors[::-1]
    count = len(x)
    between = [x[i] @ x[j] for i in range(count) for j in range(count) if i != j]
    assert cosines(given, moved) == {
        "mean_cosine_to_input": pytest.approx(np.mean([a @ b for a, b in zip(x, moved, strict=True)]), abs=1e-6),
        "mean_cosine_of_two_inputs": pytest.approx(np.mean(between), abs=1e-6),
    }


def test_there_are_none_in_another_space_and_no_two_of_one():
    assert cosines(items(), items().vectors[:, :3]) == {}
    alone = Embeddings.from_vectors([[3.0, 4.0]])
    assert cosines(alone, alone.vectors) == {"mean_cosine_to_input": pytest.approx(1)}
