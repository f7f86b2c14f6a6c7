"""Items in the plane: the places are minima of the function the docstring gives, and what does not change stays."""

import numpy as np
import pytest
from scipy.optimize import minimize

from entourage.errors import InputError
from entourage.figures.projection import follow, landmark_rows, lay_out
from entourage.figures.projection.affinities import affinities_of
from entourage.figures.projection.fitting import Repulsion, fit
from entourage.neighbors import search
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")


def blobs(n=90, classes=6, spread=0.5, seed=0) -> Embeddings:
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % classes
    vectors = rng.normal(size=(classes, 16))[labels] + spread * rng.normal(size=(n, 16))
    return Embeddings.from_vectors(vectors, labels=labels)


@pytest.fixture(scope="module")
def items():
    return blobs()


@pytest.fixture(scope="module")
def positions(items):
    return lay_out(items, k=30)


# ---- the definitions, one number at a time -----------------------------------------------------------------------


def plain_conditional(item, others, k) -> np.ndarray:
    """p_j|i by a fine search of b: those beyond the k nearest get 0."""
    distances = np.array([np.sum((item.astype(float) - other) ** 2) for other in others])
    nearest = np.argsort(distances)[:k]

    def weights(b):
        values = np.exp(-b * (distances[nearest] - distances[nearest].min()))
        return values / values.sum()

    low, high = 1e-4, 1e6
    for _ in range(100):
        b = np.sqrt(low * high)
        entropy = -np.sum([p * np.log(p) for p in weights(b) if p > 0])
        low, high = (b, high) if entropy > np.log(k / 3) else (low, b)
    result = np.zeros(len(others))
    result[nearest] = weights(b)
    return result


def plain_affinities(vectors, fixed, k) -> np.ndarray:
    """p_ij of all items to all landmarks, (N, A)."""
    count, result = len(fixed), np.zeros((len(vectors), len(fixed)))
    for place, row in enumerate(fixed):
        without = [other for other in range(count) if other != place]
        conditional = plain_conditional(vectors[row], vectors[fixed[without]], k)
        for other, p in zip(without, conditional, strict=True):
            result[row, other] += p / (2 * count)
            result[fixed[other], place] += p / (2 * count)
    for row in set(range(len(vectors))) - set(fixed.tolist()):
        result[row] = plain_conditional(vectors[row], vectors[fixed], k) / count
    return result


def plain_objective(p, fixed, own):
    """F_i of the docstring, as a function of the place."""
    others = [j for j in range(len(fixed)) if j != own]
    z = sum(1 / (1 + np.sum((fixed[a] - fixed[b]) ** 2)) for a in others for b in others if a != b)

    def objective(place) -> float:
        distances = np.sum((place - fixed[others]) ** 2, axis=1)
        return np.sum(p[others] * np.log(1 + distances)) + np.log(z + 2 * np.sum(1 / (1 + distances))) / 2

    return objective


@pytest.mark.parametrize("landmarks", [24, 15])
def test_affinities_are_its_definition(landmarks):
    items = blobs(24, 3)
    fixed, moving = landmark_rows(24, landmarks), np.array([5, 0, 17, 23, 8])
    affinities, nearest = affinities_of(items.vectors, fixed, moving, 9)
    np.testing.assert_allclose(affinities.toarray(), plain_affinities(items.vectors, fixed, 9)[moving], atol=2e-6)
    for row, place in zip(moving, nearest, strict=True):
        similarities = items.vectors[fixed] @ items.vectors[row] - 9 * (fixed == row)
        assert place == similarities.argmax()


def test_a_perplexity_is_a_third_of_the_neighbours(items):
    affinities, _ = affinities_of(items.vectors, np.arange(60), np.arange(60, 90), 30)
    p = affinities.toarray() * 60
    np.testing.assert_allclose(p.sum(axis=1), 1)
    logs = np.log(p, where=p > 0, out=np.zeros_like(p))
    np.testing.assert_allclose(np.exp(-(p * logs).sum(axis=1)), 10, rtol=1e-3)


@pytest.mark.parametrize("landmarks", [90, 40])
def test_places_are_minima_of_the_function_found_by_a_library(items, positions, landmarks):
    fixed = landmark_rows(len(items), landmarks)
    moving = np.array([3, 50, 77])
    p, _ = affinities_of(items.vectors, fixed, moving, 30)
    own = [int(np.flatnonzero(fixed == row)[0]) if row in fixed else -1 for row in moving]
    starts = positions[moving] + [1.5, -1.0]
    places = fit(starts, p, Repulsion(positions[fixed]), np.array(own))
    for start, place, weights, which in zip(starts, places, p.toarray(), own, strict=True):
        objective = plain_objective(weights, positions[fixed].astype(float), which)
        best = minimize(objective, place, method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-12})
        assert np.linalg.norm(place - best.x) < 0.1  # of a picture some 50 wide
        assert objective(place) < objective(start)


def test_repulsion_on_the_grid_is_the_sum_over_landmarks(positions):
    repulsion = Repulsion(positions)
    rows = np.linspace(5, 500, 20).astype(int)
    for column, row in zip(rows, rows[::-1], strict=True):
        away = repulsion.low + repulsion.step * np.array([column, row]) - positions
        w = 1 / (1 + (away**2).sum(axis=1))
        expected = [w.sum(), *(w[:, None] ** 2 * away).sum(axis=0)]
        np.testing.assert_allclose(repulsion.sums[:, column, row], expected, atol=0.02)


# ---- what comes out ----------------------------------------------------------------------------------------------


def share_with_a_neighbour_of_its_label(places, labels) -> float:
    distances = ((places[:, None] - places[None]) ** 2).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    return (labels[distances.argmin(axis=1)] == labels).mean()


def test_neighbours_lie_beside_each_other(items, positions):
    assert positions.shape == (90, 2) and positions.dtype == np.float32
    assert share_with_a_neighbour_of_its_label(positions, items.labels) > 0.9


def test_items_that_are_no_landmarks_lie_among_their_like(items):
    positions = lay_out(items, landmarks=45, k=15)
    others = np.setdiff1d(np.arange(90), landmark_rows(90, 45))
    fixed = landmark_rows(90, 45)
    distances = ((positions[others][:, None] - positions[fixed][None]) ** 2).sum(axis=2)
    assert (items.labels[fixed][distances.argmin(axis=1)] == items.labels[others]).mean() > 0.85


def test_the_seed_decides_and_progress_is_reported():
    items, told = blobs(40), []
    first = lay_out(items, k=12, seed=3, progress=lambda *report: told.append(report))
    np.testing.assert_array_equal(first, lay_out(items, k=12, seed=3))
    # all are landmarks: nobody is left to place
    assert told == [("laying out items", 0, 1), ("laying out items", 1, 1)]
    assert landmark_rows(50, 20, 3).tolist() != landmark_rows(50, 20, 4).tolist()
    assert landmark_rows(5, 20).tolist() == [0, 1, 2, 3, 4]


def test_what_does_not_change_stays(items, positions):
    places = follow(positions, np.stack([items.vectors] * 3), k=30)
    assert places.shape == (3, 90, 2) and places.dtype == np.float32
    np.testing.assert_array_equal(places[0], positions)
    assert np.linalg.norm(places[2] - places[0], axis=1).max() < 0.01 * np.ptp(positions)


def test_an_item_that_becomes_like_others_goes_to_them(items, positions):
    moved = items.vectors.copy()
    moved[4] = items.vectors[11]  # from class 4 to class 5
    told = []
    places = follow(positions, np.stack([items.vectors, moved]), k=30, progress=lambda *report: told.append(report[1:]))
    lengths = np.linalg.norm(places[1] - places[0], axis=1)
    assert lengths.argmax() == 4
    distances = np.linalg.norm(positions - places[1, 4], axis=1)
    assert items.labels[np.argsort(distances)[:5]].tolist() == [5] * 5
    assert told == [(0, 1), (1, 1)]


def test_only_the_chosen_rows_move_and_each_as_if_all_did(items, positions):
    rng = np.random.default_rng(1)
    moved = Embeddings.from_vectors(items.vectors + 0.2 * rng.normal(size=items.vectors.shape)).vectors
    steps = np.stack([items.vectors, moved])
    every, some = follow(positions, steps, k=30), follow(positions, steps, k=30, rows=[7, 2])
    np.testing.assert_allclose(some[1, [2, 7]], every[1, [2, 7]], atol=1e-5)
    still = np.setdiff1d(np.arange(90), [2, 7])
    np.testing.assert_array_equal(some[1, still], positions[still])
    np.testing.assert_array_equal(follow(positions, steps, rows=[])[1], positions)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7])
def test_few_items_have_places_too(count):
    items = blobs(count, 2)
    positions = lay_out(items)
    assert positions.shape == (count, 2) and np.isfinite(positions).all()
    assert np.isfinite(follow(positions, items.vectors[None].repeat(2, axis=0))).all()


def test_equal_vectors_have_places_too():
    items = Embeddings.from_vectors(np.ones((20, 4)))
    positions = lay_out(items)
    assert np.isfinite(positions).all()
    assert np.isfinite(follow(positions, np.stack([items.vectors] * 2))).all()


def test_positions_and_steps_must_fit():
    with pytest.raises(InputError, match=r"positions have shape \(3, 2\) and steps \(2, 4, 5\); wanted \(N, 2\)"):
        follow(np.zeros((3, 2)), np.ones((2, 4, 5)))


def test_neighbours_are_those_of_the_exact_search(items):
    affinities, _ = affinities_of(items.vectors, np.arange(60), np.arange(60, 90), 7)
    gallery = Embeddings.from_vectors(items.vectors[:60])
    found = search(Embeddings.from_vectors(items.vectors[60:]), gallery, 7)
    assert [set(row.indices) for row in affinities] == [set(row) for row in found.rows.tolist()]
