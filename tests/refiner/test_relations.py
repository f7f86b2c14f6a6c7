"""Relation features against loops written from their definitions, for one set and for queries against a gallery."""

import math

import numpy as np
import pytest

from entourage.neighbors import own_gallery_rows, search
from entourage.refiner.relations import RELATIONS, Surroundings, relation_features
from entourage.values import Embeddings, Neighbors

COLUMN = {name: number for number, name in enumerate(RELATIONS)}


def vectors(seed: int, n: int, d: int = 6) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


def lists(found: Neighbors) -> tuple[list, list]:
    return found.rows.tolist(), found.similarities.tolist()


def counts(rows, similarities, gallery_rows, gallery_similarities, own) -> list[list[dict]]:
    """What is counted of each edge, by sets and membership."""
    k = len(rows[0])
    half, quarter, voters = max(k // 2, 1), max(k // 4, 1), min(8, k)
    counted = []
    for i, mine in enumerate(rows):
        counted.append([])
        for rank, j in enumerate(mine):
            theirs = gallery_rows[j]
            # i in j's list: where it stands or, from outside, where it would stand
            reverse = sum(s > similarities[i][rank] + 1e-6 for s in gallery_similarities[j])
            shared = [(mine.index(c), theirs.index(c)) for c in mine if c in theirs and c != own[i]]
            shared += [(0, reverse)] if reverse < k else []
            counted[-1].append(
                {
                    "reverse": reverse,
                    "all": len(shared) / k,
                    "half": sum(a < half and b < half for a, b in shared) / half,
                    "quarter": sum(a < quarter and b < quarter for a, b in shared) / quarter,
                    "weighted": sum(math.exp(-(a + b) / (k / 4)) for a, b in shared) / (k / 16),
                    "votes": sum(j in gallery_rows[voter] for voter in mine[:voters]) / voters,
                }
            )
    return counted


def to_a_64th(value: float) -> float:
    return round(64 * value) / 64


def by_definition(found: Neighbors, gallery: Neighbors, own) -> np.ndarray:
    """Every feature of every edge, one at a time."""
    (rows, similarities), (gallery_rows, gallery_similarities) = lists(found), lists(gallery)
    n, k, m = len(rows), len(rows[0]), len(gallery_rows)
    every = [s for row in gallery_similarities for s in row]
    centre = sum(every) / len(every)
    spread = math.sqrt(sum((s - centre) ** 2 for s in every) / len(every)) + 1e-6
    spread = 2 ** to_a_64th(math.log2(spread))
    centre = spread * to_a_64th(centre / spread)
    z, z_gallery = (
        [[(s - centre) / spread for s in row] for row in table] for table in (similarities, gallery_similarities)
    )
    counted = counts(rows, similarities, gallery_rows, gallery_similarities, own)
    in_gallery = counts(gallery_rows, gallery_similarities, gallery_rows, gallery_similarities, range(m))
    features = np.empty((n, k, len(RELATIONS)))
    for i in range(n):
        mean_overlap = sum(edge["all"] for edge in counted[i]) / k
        for rank, j in enumerate(rows[i]):
            edge = counted[i][rank]
            listed = sum(row.count(j) for row in gallery_rows)
            told = {
                "similarity": z[i][rank],
                "similarity to the item's first": z[i][rank] - z[i][0],
                "similarity to the item's last": z[i][rank] - z[i][-1],
                "similarity to the neighbour's first": z[i][rank] - z_gallery[j][0],
                "similarity to the neighbour's last": z[i][rank] - z_gallery[j][-1],
                "rank": math.log(1 + rank),
                "rank from the neighbour": math.log(1 + edge["reverse"]),
                "mutual": float(edge["reverse"] < k),
                "overlap of all k": edge["all"],
                "overlap of k / 2": edge["half"],
                "overlap of k / 4": edge["quarter"],
                "overlap weighted by rank": edge["weighted"],
                "votes of the nearest": edge["votes"],
                "overlap above the item's mean": edge["all"] - mean_overlap,
                "mean overlap of the item": mean_overlap,
                "mean overlap of the neighbour": sum(e["all"] for e in in_gallery[j]) / k,
                "density of the item": sum(z[i]) / k,
                "density of the neighbour": sum(z_gallery[j]) / k,
                "mutual share of the item": sum(e["reverse"] < k for e in counted[i]) / k,
                "popularity of the neighbour": math.log(1 + listed / k),
                "size of the gallery": to_a_64th(math.log(m / k)),
                "length of the lists": math.log(k),
            }
            assert list(told) == list(RELATIONS)
            features[i, rank] = list(told.values())
    return features


@pytest.mark.parametrize("k", [1, 2, 3, 5, 9, 39])
def test_one_set_is_as_the_loop_says(k):
    found = search(Embeddings.from_vectors(vectors(0, 40)), k=k)
    features = relation_features(found)
    assert features.dtype == np.float32 and features.shape == (40, k, len(RELATIONS))
    np.testing.assert_allclose(features, by_definition(found, found, range(40)), rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("k", [1, 2, 4, 7, 29])
def test_queries_against_a_gallery_are_as_the_loop_says(k):
    queries, gallery = (Embeddings.from_vectors(vectors(seed, n)) for seed, n in ((1, 12), (2, 30)))
    found, among = search(queries, gallery, k=k), search(gallery, k=k)
    outside = np.full(12, -1)
    features = relation_features(found, Surroundings.of(among), outside)
    np.testing.assert_allclose(features, by_definition(found, among, outside), rtol=1e-5, atol=2e-5)


def test_a_query_left_out_of_the_gallery_by_id_has_the_features_it_has_inside():
    items = Embeddings.from_vectors(vectors(3, 50), ids=[f"{i:02}" for i in range(50)])
    some = items.take(np.arange(0, 50, 3))
    among = search(items, k=6)
    found = search(some, items, k=6)
    features = relation_features(found, Surroundings.of(among), own_gallery_rows(some, items))
    np.testing.assert_array_equal(found.rows, among.rows[::3])
    np.testing.assert_allclose(features, relation_features(among)[::3], rtol=1e-5, atol=1e-5)


def test_a_query_from_outside_looks_much_as_if_it_were_in_the_gallery():
    """Only what counts the whole gallery, or the query in other lists, may change when it is added."""
    gallery, query = vectors(4, 60), vectors(5, 1)
    together = Embeddings.from_vectors(np.vstack([gallery, query]))
    apart = Embeddings.from_vectors(gallery), Embeddings.from_vectors(query)
    found, among = search(apart[1], apart[0], k=8), search(apart[0], k=8)
    outside = relation_features(found, Surroundings.of(among), np.array([-1]))[0]
    inside = relation_features(search(together, k=8))[-1]
    same = ["rank", "rank from the neighbour", "mutual", "mutual share of the item"]
    for name in same:
        np.testing.assert_array_equal(outside[:, COLUMN[name]], inside[:, COLUMN[name]], name)
    for name in ("similarity", "overlap of all k", "density of the item"):
        np.testing.assert_allclose(outside[:, COLUMN[name]], inside[:, COLUMN[name]], atol=0.3, err_msg=name)


def test_mutual_neighbours_are_those_that_list_each_other():
    found = search(Embeddings.from_vectors(vectors(6, 40)), k=5)
    listed = [[i in found.rows[j] for j in row] for i, row in enumerate(found.rows)]
    mutual = relation_features(found)[..., COLUMN["mutual"]]
    np.testing.assert_array_equal(mutual, np.array(listed, float))


def test_ties_and_copies_have_finite_features_as_the_loop_says():
    """Where all similarities are one, what is left of them in standard deviations is rounding: it is not compared."""
    counted = [i for name, i in COLUMN.items() if not name.startswith(("similarity", "density"))]
    copies = np.repeat(vectors(7, 6), 5, axis=0)
    grid = np.array([[a, b, 1.0] for a in (-1, 0, 1) for b in (-1, 0, 1)])
    for table, k in ((copies, 4), (copies, 7), (grid, 3), (np.ones((9, 3)), 4)):
        found = search(Embeddings.from_vectors(table), k=k)
        features = relation_features(found)
        assert np.isfinite(features).all()
        compared = slice(None) if np.ptp(found.similarities) > 1e-3 else counted
        expected = by_definition(found, found, range(len(table)))
        np.testing.assert_allclose(features[..., compared], expected[..., compared], rtol=1e-5, atol=2e-5)


def test_features_do_not_depend_on_how_wide_the_encoders_cone_is():
    """A cone squeezes similarities, not their order: what is counted stays, and similarities are rescaled."""
    directions = Embeddings.from_vectors(vectors(8, 60)).vectors.astype(np.float64)
    narrow = np.hstack([0.2 * directions, np.full((60, 1), math.sqrt(1 - 0.04))])
    wide, squeezed = (relation_features(search(Embeddings.from_vectors(v), k=6)) for v in (directions, narrow))
    measured = [name.startswith(("similarity", "density")) for name in RELATIONS]
    np.testing.assert_allclose(wide[..., ~np.array(measured)], squeezed[..., ~np.array(measured)], atol=1e-6)
    # In each of the two, the centre is off by half a 64th, and the spread by half a 64th of an octave.
    np.testing.assert_allclose(wide[..., measured], squeezed[..., measured], atol=2e-3 + 2 / 128, rtol=2 * 0.0055)


def test_names_are_unique_and_the_input_is_left_alone():
    assert len(set(RELATIONS)) == len(RELATIONS) == 22
    found = search(Embeddings.from_vectors(vectors(9, 20)), k=4)
    before = found.rows.copy(), found.similarities.copy()
    first, second = relation_features(found), relation_features(found)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(found.rows, before[0])
    np.testing.assert_array_equal(found.similarities, before[1])


def test_what_depends_on_the_whole_gallery_stays_put_while_an_item_comes_and_goes():
    items = Embeddings.from_vectors(np.random.default_rng(0).normal(size=(400, 16)))
    surroundings = [Surroundings.of(search(items.take(np.arange(n)), k=8)) for n in range(390, 401)]
    assert len({(each.centre, each.spread) for each in surroundings}) <= 3
