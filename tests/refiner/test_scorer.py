"""The scorer: the same function as the network that torch trains, whatever the shape of what it is given."""

import numpy as np
import pytest
import torch
from tests.refiner.samples import clusters

from entourage.refiner.graph import build_graph
from entourage.refiner.relations import RELATIONS
from entourage.refiner.scorer import RelationScorer, estimated_purity, trust, trust_of_queries
from entourage.refiner.scorer_training import fit_scorer, new_scorer
from entourage.refiner.universal import universal_network
from entourage.values import Embeddings

N_RELATIONS = len(RELATIONS)


@pytest.fixture(params=[1, 2])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield
    torch.set_num_threads(before)


def edges(scorer: RelationScorer, shape: tuple, seed: int = 0) -> np.ndarray:
    """Relations as wide as those the scorer was made for."""
    normal = np.random.default_rng(seed).normal(size=(*shape, N_RELATIONS))
    return (1.5 * normal * scorer.spread + scorer.centre).astype(np.float32)


def probabilities_in_double(scorer: RelationScorer, relations: np.ndarray) -> np.ndarray:
    """The perceptron as it is written, by torch's own layers."""
    x = (torch.tensor(relations).double() - torch.tensor(scorer.centre)) / torch.tensor(scorer.spread)
    *hidden, last = zip(scorer.weights, scorer.biases, strict=True)
    for weight, bias in hidden:
        x = torch.nn.functional.silu(x @ torch.tensor(weight).double() + torch.tensor(bias))
    return (x @ torch.tensor(last[0]).double() + torch.tensor(last[1])).sigmoid().squeeze(-1).numpy()


# ---- probabilities -----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("shape", [(1,), (7, 1), (300, 12), (4096,), (4097,), (1000, 9)])
def test_probabilities_are_those_of_the_perceptron(shape):
    scorer = universal_network().scorer
    relations = edges(scorer, shape)
    found = scorer.probabilities(relations)
    assert found.dtype == np.float32 and found.shape == shape
    np.testing.assert_allclose(found, probabilities_in_double(scorer, relations), atol=5e-6)


@pytest.mark.parametrize("shape", [(0,), (0, 12), (3, 0)])
def test_no_edges_have_no_probabilities(shape):
    assert universal_network().scorer.probabilities(np.empty((*shape, N_RELATIONS), np.float32)).shape == shape


def test_the_scorer_of_similarity_reads_nothing_else():
    scorer = RelationScorer.of_similarity()
    relations = edges(scorer, (300, 12))
    expected = 1 / (1 + np.exp(-relations[..., RELATIONS.index("similarity")].astype(float)))
    np.testing.assert_allclose(scorer.probabilities(relations), expected, atol=1e-6)


def test_far_from_all_it_has_seen_a_probability_is_still_one():
    scorer = universal_network().scorer
    relations = np.random.default_rng(0).normal(size=(500, N_RELATIONS)).astype(np.float32) * np.float32(1e6)
    found = scorer.probabilities(relations)
    assert ((found >= 0) & (found <= 1)).all() and found.min() == 0 and found.max() == 1


def test_what_is_given_stays_as_it_is():
    scorer = universal_network().scorer
    relations = edges(scorer, (50,))
    before = relations.copy()
    scorer.probabilities(relations)
    np.testing.assert_array_equal(relations, before)


# ---- trust and purity --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def graph():
    return build_graph(Embeddings.from_vectors(clusters(seed=3)[0]), 12)


def test_trust_counts_the_neighbours_view_where_there_is_one(graph):
    scorer = universal_network().scorer
    p, rows, found = scorer.probabilities(graph.relations), graph.neighbors.rows, trust(scorer, graph)
    for i in (0, 17, 200):
        for rank, j in enumerate(rows[i]):
            back = p[j][rows[j] == i].sum()
            assert found[i, rank] == pytest.approx(0.85 * p[i, rank] + 0.15 * back, abs=1e-6)


def test_a_query_is_trusted_as_if_mutual_neighbours_thought_the_same(graph):
    scorer = universal_network().scorer
    p, mutual = scorer.probabilities(graph.relations), graph.relations[..., RELATIONS.index("mutual")]
    assert 0 < mutual.mean() < 1
    np.testing.assert_allclose(trust_of_queries(scorer, graph.relations), np.where(mutual, p, 0.85 * p), atol=1e-6)


@pytest.mark.parametrize("k", [4, 12, 50])
def test_estimated_purity_is_the_mean_over_the_eight_nearest(graph, k):
    scorer = universal_network().scorer
    nearest = scorer.probabilities(graph.with_neighbors(k).relations)[:, :8]
    assert estimated_purity(scorer, graph, k) == pytest.approx(nearest.mean(), abs=1e-6)


def test_where_nobody_has_a_neighbour_purity_is_zero():
    alone = build_graph(Embeddings.from_vectors(np.ones((5, 3))), 12)
    assert estimated_purity(universal_network().scorer, alone, 12) == 0


# ---- arrays ------------------------------------------------------------------------------------------------------


def test_a_scorer_comes_back_from_its_arrays():
    scorer = universal_network().scorer
    arrays, again = scorer.to_arrays(), RelationScorer.from_arrays(scorer.to_arrays())
    for name, array in again.to_arrays().items():
        np.testing.assert_array_equal(array, arrays[name], name)
    relations = edges(scorer, (40, 12))
    np.testing.assert_array_equal(again.probabilities(relations), scorer.probabilities(relations))
    assert scorer.n_parameters == 1825


@pytest.mark.parametrize("name", ["centre", "layers.2.bias", "layers.4.weight"])
def test_arrays_that_are_missing_unknown_or_of_another_shape_are_refused(name):
    arrays = universal_network().scorer.to_arrays()
    with pytest.raises(ValueError, match=f"missing or unknown: {name}"):
        RelationScorer.from_arrays({other: array for other, array in arrays.items() if other != name})
    with pytest.raises(ValueError, match="missing or unknown: something"):
        RelationScorer.from_arrays(arrays | {"something": arrays[name]})
    with pytest.raises(ValueError, match="wanted"):
        RelationScorer.from_arrays(arrays | {name: arrays[name][..., :-1]})


# ---- training ----------------------------------------------------------------------------------------------------


def labelled_edges(seed: int, n: int = 6000) -> tuple[np.ndarray, np.ndarray]:
    """Edges whose ends are of one class if two of their relations say so together."""
    relations = np.random.default_rng(seed).normal(size=(n, N_RELATIONS)).astype(np.float32)
    return relations, relations[:, 0] + relations[:, 7] > 0


@pytest.mark.usefixtures("one_thread")
def test_a_new_scorer_learns_and_the_one_it_started_from_stays():
    relations, same_class = labelled_edges(0)
    start = new_scorer(relations, seed=0)
    before = start.probabilities(relations)
    np.testing.assert_allclose(start.centre, relations.mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(start.spread, relations.std(axis=0), atol=1e-5)
    shown = []
    taught = fit_scorer(start, relations, same_class, epochs=40, seed=0, progress=lambda *step: shown.append(step))
    np.testing.assert_array_equal(start.probabilities(relations), before)
    unseen, unseen_class = labelled_edges(1)
    assert ((start.probabilities(unseen) > 0.5) == unseen_class).mean() < 0.7
    assert ((taught.probabilities(unseen) > 0.5) == unseen_class).mean() > 0.95
    assert shown == [("learning which neighbours belong", done, 40) for done in range(1, 41)]


@pytest.mark.usefixtures("one_thread")
def test_the_same_seed_teaches_the_same_and_no_edges_teach_nothing():
    relations, same_class = labelled_edges(2, n=3000)
    start = universal_network().scorer
    one, other = (fit_scorer(start, relations, same_class, epochs=1, seed=5) for _ in range(2))
    for name, array in one.to_arrays().items():
        np.testing.assert_array_equal(array, other.to_arrays()[name], name)
    assert fit_scorer(start, relations[:0], same_class[:0], epochs=1, seed=5) is start


@pytest.mark.parametrize("name", ["centre", "layers.0.weight", "layers.2.bias", "layers.4.weight"])
def test_numbers_beyond_float32_are_left_to_the_check_of_the_vectors(name):
    scorer = universal_network().scorer
    arrays = scorer.to_arrays()
    arrays[name] = np.full_like(arrays[name], 3e38)
    found = RelationScorer.from_arrays(arrays).probabilities(edges(scorer, (5,)))  # a warning would be an error
    assert found.shape == (5,) and not ((found > 0) & (found < 1)).any()  # 0, 1 or NaN
