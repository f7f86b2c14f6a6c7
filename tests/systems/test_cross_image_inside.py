"""Looking inside: attention of triples, parts through the key space, ranking anew; each against plain loops."""

import numpy as np
import pytest
import torch
from tests.systems.stripes import stripes
from torch.nn import functional as F

from entourage.encoders import SmallResNet, VectorEncoder
from entourage.errors import CorruptImage, InputError
from entourage.runtime.randomness import seeded_weights
from entourage.systems.cross_image.blocks import CrossImageBlocks
from entourage.systems.cross_image.encoding import EncodedImages, encode
from entourage.systems.cross_image.maps import attention_maps, best_triples
from entourage.systems.cross_image.parts import KeySpace, find_parts, key_space
from entourage.systems.cross_image.reranking import conditional_similarity, rerank
from entourage.values import Embeddings

pytestmark = pytest.mark.usefixtures("one_thread")

IMAGES = stripes(n_classes=4, per_class=5)
N, D, T = len(IMAGES), 8, 3


def built(dim=D):
    encoder = SmallResNet(dim=dim, width=4, last_stride=1).eval()
    blocks = CrossImageBlocks(dim, 16, T)
    for block in blocks.blocks:
        torch.nn.init.normal_(block.value.outer.weight, std=0.3)
    return encoder, blocks.eval()


@pytest.fixture(scope="module")
def model():
    pair = []
    seeded_weights(0, lambda: pair.extend(built()) or torch.nn.Identity())
    return tuple(pair)


@pytest.fixture(scope="module")
def encoded(model) -> EncodedImages:
    return encode(*model, IMAGES)


def test_images_are_encoded_in_order_whatever_the_batches(model, encoded):
    encoder, blocks = model
    vectors, maps = encoder.with_map(torch.from_numpy(IMAGES.pixels / np.float32(255))[:, None])
    reports = []
    some = encode(encoder, blocks, IMAGES, at_once=7, progress=lambda *report: reports.append(report))
    for found in (encoded, some):
        torch.testing.assert_close(found.vectors, vectors.detach(), rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(found.context, blocks.context(maps).detach(), rtol=1e-4, atol=1e-5)
    assert (encoded.shape, len(encoded)) == ((4, 4), N)
    assert reports[-1] == ("encoding", N, N)


def test_an_encoder_without_a_map_is_refused(model):
    with pytest.raises(InputError, match="the encoder is a VectorEncoder, which has no feature map"):
        encode(VectorEncoder(4, D), model[1], Embeddings.from_vectors(np.eye(4)))


def test_a_picture_that_cannot_be_decoded_raises(model, tmp_path):
    from entourage.data.files import ImageFiles

    (tmp_path / "a.png").write_bytes(b"no picture")
    with pytest.raises(CorruptImage):
        encode(*model, ImageFiles(tmp_path, np.array(["a.png"]), np.array([0])))


# ---- attention ---------------------------------------------------------------------------------------------------


def test_maps_are_the_attention_of_each_image_on_the_anchor_block_by_block(model, encoded):
    _, blocks = model
    maps = attention_maps(blocks, encoded, 3, [5, 9])
    assert maps.shape == (2, T, 4, 4)
    np.testing.assert_allclose(maps.sum(axis=(2, 3)), 1, rtol=1e-5)
    for place, row in enumerate((5, 9)):
        state, context = encoded.vectors[[row]][None], encoded.context[[3]]
        for n, block in enumerate(blocks.blocks):
            state, weights = blocks.step(block, state, *block.finished(context))
            np.testing.assert_allclose(maps[place, n].ravel(), weights[0, 0].detach(), rtol=1e-4)


def test_rows_that_are_not_there_are_refused(model, encoded):
    with pytest.raises(InputError, match=r"rows are 0 and 99; wanted numbers from 0 to 19"):
        attention_maps(model[1], encoded, 0, [99])


def test_triples_are_of_the_class_and_of_the_nearest_other_class(encoded):
    triples = best_triples(encoded, IMAGES.labels, 2)
    assert triples.shape == (2, 3)
    similarity = (encoded.vectors @ encoded.vectors.T).numpy()
    np.fill_diagonal(similarity, -2)
    same = IMAGES.labels[:, None] == IMAGES.labels
    rivals = np.where(same, -2, similarity)
    assert rivals[triples[0, 0]].max() == rivals.max()
    for anchor, mate, rival in triples:
        assert mate == np.where(same[anchor], similarity[anchor], -2).argmax()
        assert rival == rivals[anchor].argmax()
    assert len(set(IMAGES.labels[triples[:, [0, 2]]].ravel())) == 4  # no class twice
    assert best_triples(encoded, np.arange(N), 3).shape == (0, 3)  # nobody has a mate


# ---- parts -------------------------------------------------------------------------------------------------------


def test_parts_are_the_best_place_of_each_other_image_by_loops(model):
    encoder, blocks = model
    space = key_space(encoder, blocks, IMAGES, block=2, at_once=6)
    assert (space.shape, space.places, len(space)) == ((4, 4), 16, N)
    with torch.no_grad():
        maps = encoder.feature_map(torch.from_numpy(IMAGES.pixels / np.float32(255))[:, None])
        keys = F.normalize(blocks.blocks[1].key(blocks.context(maps)), dim=2).numpy()
    chosen = [(0, 1, 2), (0, 1, 2), (13, 3, 0)]  # a place may be asked for twice
    found = find_parts(space, chosen, 4)
    for query, (row, y, x) in enumerate(chosen):
        asked = keys[row, 4 * y + x]
        best = {r: max((float(keys[r, p] @ asked), -p) for p in range(16)) for r in range(N) if r != row}
        wanted = sorted(best, key=lambda r: -best[r][0])[:4]
        assert found.rows[query].tolist() == wanted
        assert [4 * py + px for py, px in found.places[query]] == [-best[r][1] for r in wanted]
        np.testing.assert_allclose(found.similarities[query], [best[r][0] for r in wanted], rtol=1e-5)
    assert found.places.shape == (3, 4, 2)


def test_all_other_images_can_be_asked_for_even_where_one_fills_the_ranking():
    keys = np.zeros((3, 4, 2), np.float32)
    keys[..., 0] = 1
    keys[2] = [0, 1]
    space = KeySpace(Embeddings(keys.reshape(-1, 2)), (2, 2))
    found = find_parts(space, [(0, 0, 0)], 2)
    assert found.rows.tolist() == [[1, 2]] and found.similarities.tolist() == [[1, 0]]


def test_many_places_are_searched_without_a_copy_for_every_query():
    """49 places of 2,000 images; the largest set of the papers has thirty times as many."""
    rng = np.random.default_rng(0)
    keys = rng.normal(size=(2000 * 49, 16)).astype(np.float32)
    keys /= np.linalg.norm(keys, axis=1, keepdims=True)
    space = KeySpace(Embeddings(keys), (7, 7))
    found = find_parts(space, [(5, 3, 3), (1999, 0, 6)], 5)
    for query, place in enumerate((5 * 49 + 24, 1999 * 49 + 6)):
        best = (keys @ keys[place]).reshape(2000, 49).max(axis=1)
        best[place // 49] = -2
        assert found.rows[query].tolist() == np.argsort(-best)[:5].tolist()


@pytest.mark.parametrize(
    ("chosen", "k", "said"),
    [
        ([(20, 0, 0)], 2, r"the places are \[20, 0, 0\]; wanted one or more \(row, y, x\) below"),
        ([(0, 4, 0)], 2, "the places are"),
        ([(0, 0, -1)], 2, "the places are"),
        ([], 2, "one or more"),
        ([(0, 0, 0)], 20, "k is 20 for 20 images; wanted 1 to 19"),
    ],
)
def test_places_that_are_not_there_are_refused(model, chosen, k, said):
    with pytest.raises(InputError, match=said):
        find_parts(key_space(*model, IMAGES), chosen, k)


def test_a_block_that_is_not_there_is_refused(model):
    with pytest.raises(InputError, match="block is 4; wanted 1 to 3"):
        key_space(*model, IMAGES, block=4)


# ---- ranking anew ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pairs_at_once", [3, 1000])
def test_conditional_similarities_of_chosen_pairs_are_those_of_all_pairs(model, encoded, pairs_at_once):
    _, blocks = model
    whole = blocks(encoded.vectors, encoded.context).detach().numpy()
    left, right = np.array([0, 4, 4, 19, 7]), np.array([1, 4, 0, 3, 12])
    found = conditional_similarity(blocks, encoded, encoded, left, right, pairs_at_once=pairs_at_once)
    np.testing.assert_allclose(found, whole[left, right], rtol=1e-4, atol=1e-5)
    turned = conditional_similarity(blocks, encoded, encoded, right, left)
    np.testing.assert_allclose(found, turned, rtol=1e-4, atol=1e-5)
    with pytest.raises(InputError, match=r"rows have shapes \[\(2,\), \(3,\)\]"):
        conditional_similarity(blocks, encoded, encoded, [0, 1], [0, 1, 2])


def test_the_nearest_m_are_put_in_the_order_of_their_conditional_similarity(model, encoded):
    _, blocks = model
    found = rerank(blocks, encoded, m=6)
    whole = blocks(encoded.vectors, encoded.context).detach().numpy()
    plain = (encoded.vectors @ encoded.vectors.T).numpy()
    np.fill_diagonal(plain, -2)
    changed = 0
    for row in range(N):
        nearest = np.argsort(-plain[row], kind="stable")[:6]
        assert set(found.rows[row]) == set(nearest)
        np.testing.assert_allclose(found.similarities[row], np.sort(whole[row, nearest])[::-1], rtol=1e-4, atol=1e-5)
        changed += found.rows[row].tolist() != nearest.tolist()
    assert changed


def test_queries_are_ranked_in_a_gallery_too(model, encoded):
    _, blocks = model
    queries, gallery = (
        EncodedImages(encoded.vectors[rows], encoded.context[rows], encoded.shape)
        for rows in (slice(0, 4), slice(4, N))
    )
    found = rerank(blocks, queries, gallery, m=5)
    whole = blocks(encoded.vectors, encoded.context).detach().numpy()
    assert found.rows.shape == (4, 5)
    np.testing.assert_allclose(found.similarities[2], whole[2, 4 + found.rows[2]], rtol=1e-4, atol=1e-5)


def test_a_query_that_stands_in_the_gallery_too_is_left_out_by_its_id(model):
    """Rows 4 and 7 are in both sets, at other places; by the vectors alone each would find itself first."""
    encoder, blocks = model
    asked, offered = np.array([4, 7, 12]), np.array([9, 7, 0, 4, 15, 18])
    queries, gallery = (encode(encoder, blocks, IMAGES.take(rows)) for rows in (asked, offered))
    assert queries.ids.tolist() == ["4", "7", "12"]
    found = rerank(blocks, queries, gallery, m=5)
    assert set(offered[found.rows[0]]) == {9, 7, 0, 15, 18} and set(offered[found.rows[1]]) == {9, 0, 4, 15, 18}
    unnamed = [EncodedImages(images.vectors, images.context, images.shape) for images in (queries, gallery)]
    assert 3 in rerank(blocks, *unnamed, m=1).rows[0]
    assert np.array_equal(rerank(blocks, unnamed[0], unnamed[0], m=2).rows, rerank(blocks, queries, m=2).rows)


def test_similarities_do_not_depend_on_how_many_pairs_are_held(model, encoded, monkeypatch):
    pairs = np.random.default_rng(0).integers(0, N, (2, 50))
    whole = conditional_similarity(model[1], encoded, encoded, *pairs)
    monkeypatch.setattr("entourage.systems.cross_image.reranking._PAIRS", 7)
    reports = []
    parts = conditional_similarity(model[1], encoded, encoded, *pairs, progress=lambda *r: reports.append(r))
    np.testing.assert_allclose(parts, whole, rtol=1e-5, atol=1e-6)
    assert len(reports) == 8 and reports[-1] == ("conditioning", 50, 50)
    assert conditional_similarity(model[1], encoded, encoded, [], []).shape == (0,)
