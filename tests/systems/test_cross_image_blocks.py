"""Conditional embeddings against loops over pairs and places, what is symmetric in them, and what they cost."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from entourage.errors import FileError, InputError, ModelError
from entourage.runtime.randomness import seeded_weights
from entourage.systems.cross_image.blocks import CrossImageBlocks, load_blocks, save_blocks

pytestmark = pytest.mark.usefixtures("one_thread")

B, C, H, W, D, N = 5, 7, 2, 3, 6, 3


def blocks(n_blocks=N, dim=D, channels=C, seed=0) -> CrossImageBlocks:
    """With weights as after some training: values that are not 0, and biases."""

    def build():
        built = CrossImageBlocks(dim, channels, n_blocks).double()
        for parameter in built.parameters():
            if not parameter.any() or parameter.ndim == 1:
                torch.nn.init.normal_(parameter, std=0.3)
        return built

    return seeded_weights(seed, build)


def batch(count=B, seed=0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    vectors = F.normalize(torch.randn(count, D, generator=generator, dtype=torch.float64), dim=1)
    return vectors, torch.randn(count, C, H, W, generator=generator, dtype=torch.float64)


def linear(layer, x: np.ndarray) -> np.ndarray:
    weight = layer.weight.detach().numpy()
    bias = np.zeros(len(weight)) if layer.bias is None else layer.bias.detach().numpy()
    return np.array([sum(w * value for w, value in zip(row, x, strict=True)) for row in weight]) + bias


def projection(module, x: np.ndarray) -> np.ndarray:
    return linear(module.outer, np.array([value / (1 + math.exp(-value)) for value in linear(module.inner, x)]))


def place(module, feature: np.ndarray) -> np.ndarray:
    """A place of a map as the blocks see it: projected, then layer norm."""
    x, norm = linear(module.places[0], feature), module.places[1]
    scaled = (x - x.mean()) / math.sqrt(((x - x.mean()) ** 2).mean() + norm.eps)
    return scaled * norm.weight.detach().numpy() + norm.bias.detach().numpy()


def conditional(module, e: np.ndarray, features: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """phi_N of one embedding given one map (c, h, w), and the attention of every block, by loops over its places."""
    phi, attention = e, []
    context = [place(module, features[:, y, x]) for y in range(H) for x in range(W)]
    for block in module.blocks:
        query = math.sqrt(D) * phi
        asked = query + projection(block.query, query)
        exponentials = [math.exp(asked @ projection(block.key, c) / math.sqrt(D)) for c in context]
        weights = np.array(exponentials) / sum(exponentials)
        phi = phi + sum(w * projection(block.value, c) for w, c in zip(weights, context, strict=True))
        phi = phi / math.sqrt((phi**2).sum())
        attention.append(weights)
    return phi, attention


def by_loops(module, vectors, maps) -> np.ndarray:
    """s(i, j) = phi_N(i|j) . phi_N(j|i), pair by pair."""
    e, features = vectors.numpy(), maps.numpy()
    values = np.empty((len(e), len(e)))
    for i in range(len(e)):
        for j in range(len(e)):
            values[i, j] = conditional(module, e[i], features[j])[0] @ conditional(module, e[j], features[i])[0]
    return values


@pytest.mark.parametrize("pairs_at_once", [1, 7, 10_000])
@pytest.mark.parametrize("recompute", [False, True])
def test_similarities_of_all_pairs_are_those_of_plain_loops(pairs_at_once, recompute):
    module, (vectors, maps) = blocks(), batch()
    found = module(vectors, module.context(maps), pairs_at_once=pairs_at_once, recompute=recompute)
    np.testing.assert_allclose(found.detach(), by_loops(module, vectors, maps), rtol=1e-10)


def test_attention_is_that_of_plain_loops_and_sums_to_1():
    module, (vectors, maps) = blocks(), batch()
    weights = module.attention(vectors[None], module.context(maps[[2]])).detach()  # (N, 1, B, L)
    assert weights.shape == (N, 1, B, H * W)
    wanted = np.array([conditional(module, e, maps[2].numpy())[1] for e in vectors.numpy()])  # (B, N, L)
    np.testing.assert_allclose(weights[:, 0].transpose(0, 1), wanted, rtol=1e-10)
    np.testing.assert_allclose(weights.sum(dim=3), 1, rtol=1e-10)


def test_the_conditional_similarity_is_symmetric_to_the_bit_and_the_embedding_is_not():
    module, (vectors, maps) = blocks(), batch()
    context = module.context(maps)
    similarity = module(vectors, context, pairs_at_once=3)
    assert torch.equal(similarity, similarity.T)
    given = module.given(vectors.expand(B, B, D), context)  # [j, i] is i given j
    assert (given[0, 1] - given[1, 0]).abs().max() > 0.01
    torch.testing.assert_close(given.norm(dim=2), torch.ones(B, B, dtype=torch.float64))


def test_pairs_that_are_not_needed_get_the_least_similarity_and_the_others_what_they_had():
    module, (vectors, maps) = blocks(), batch()
    needed = torch.zeros(B, B, dtype=torch.bool)
    for i, j in [(0, 1), (0, 3), (2, 3), (4, 4)]:
        needed[i, j] = needed[j, i] = True
    context = module.context(maps)
    whole = module(vectors, context)
    for pairs_at_once in (1, 4, 100):
        some = module(vectors, context, needed, pairs_at_once=pairs_at_once)
        torch.testing.assert_close(some[needed], whole[needed], rtol=1e-12, atol=0)
        assert (some[~needed] == -1).all()


def test_recomputing_changes_no_gradient_and_every_weight_has_one():
    gradients = []
    for recompute in (False, True):
        module, (vectors, maps) = blocks(), batch()
        vectors.requires_grad_(), maps.requires_grad_()
        similarity = module(vectors, module.context(maps), pairs_at_once=6, recompute=recompute)
        (similarity * torch.arange(B * B).reshape(B, B)).sum().backward()
        gradients.append([vectors.grad, maps.grad, *(parameter.grad for parameter in module.parameters())])
        assert all(gradient.abs().sum() > 0 for gradient in gradients[-1])
    for held, again in zip(*gradients, strict=True):
        torch.testing.assert_close(held, again, rtol=1e-12, atol=1e-14)


def test_before_training_the_conditional_embedding_is_the_unconditional_one():
    module = seeded_weights(0, lambda: CrossImageBlocks(D, C, N)).double()
    vectors, maps = batch()
    torch.testing.assert_close(module(vectors, module.context(maps)), vectors @ vectors.T, rtol=1e-12, atol=1e-12)


# ---- memory ------------------------------------------------------------------------------------------------------


def held(module, vectors, maps, **options) -> int:
    """Bytes that the graph of a batch holds until its gradient is due, each storage once."""
    storages = {}

    def pack(tensor):
        storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        similarity = module(vectors, module.context(maps), **options)
    assert similarity.requires_grad
    return sum(storages.values())


def test_a_large_batch_fits_into_4_gb():
    """128 images, 7 x 7 places, d = 512, 6 blocks; measured at a quarter of the images and of the dimensions.

    What is held grows with b^2 (L + d): the activations of a quarter of the images and dimensions are at least a
    64th of the whole ones. Recomputed, one group's activations are added to the conditional embeddings of all pairs.
    """
    b, dim, channels, places = 32, 128, 512, 49
    module = seeded_weights(0, lambda: CrossImageBlocks(dim, channels, 6))
    vectors, maps = F.normalize(torch.randn(b, dim), dim=1), torch.randn(b, channels, 7, 7, requires_grad=True)
    whole = held(module, vectors, maps, recompute=False)
    less = held(module, vectors, maps, recompute=True, pairs_at_once=128)
    estimate = module.held_bytes(b * b, places, dim)
    assert 0.5 * estimate < whole < 2 * estimate
    assert 64 * whole < 4e9
    assert less < whole / 3
    one_group = module.held_bytes(2048, 49, 512)
    assert 64 * less + one_group < 2e9


def test_recomputing_is_chosen_where_much_would_be_held(monkeypatch):
    from entourage.systems.cross_image import blocks as file

    module, (vectors, maps) = blocks(), batch()
    maps.requires_grad_()
    plain = held(module, vectors, maps)
    monkeypatch.setattr(file, "_MOST_HELD", 0)
    assert held(module, vectors, maps) < plain


# ---- files -------------------------------------------------------------------------------------------------------


def test_saved_and_loaded_they_are_the_same(tmp_path):
    module = seeded_weights(0, lambda: CrossImageBlocks(D, C, N))
    save_blocks(tmp_path / "blocks", module)
    loaded = load_blocks(tmp_path / "blocks")
    assert loaded.options == module.options == {"dim": D, "channels": C, "n_blocks": N} and len(loaded) == N
    assert all(map(torch.equal, loaded.state_dict().values(), module.state_dict().values()))
    assert not loaded.training
    with pytest.raises(FileError, match="exists already"):
        save_blocks(tmp_path / "blocks", module)


def test_what_is_no_folder_of_blocks_is_refused(tmp_path):
    with pytest.raises(FileError, match=r"has no config\.json"):
        load_blocks(tmp_path)
    save_blocks(tmp_path / "blocks", CrossImageBlocks(D, C, N))
    config = tmp_path / "blocks" / "config.json"
    config.write_text(config.read_text().replace('"dim": 6', '"dim": 8'))
    with pytest.raises(ModelError, match="cannot be used"):
        load_blocks(tmp_path / "blocks")


def test_no_blocks_are_refused():
    with pytest.raises(InputError, match="n_blocks 0; wanted 1 or more"):
        CrossImageBlocks(4, 4, 0)


def test_what_the_blocks_are_given_is_brought_to_where_they_are():
    """An encoder on a GPU with blocks on the processor, or the other way round; here the device of shapes alone."""
    module, (vectors, maps) = blocks().to("meta"), batch()
    context = module.context(maps)
    assert (context.device.type, context.shape) == ("meta", (B, H * W, D))
    i, j = torch.tensor([0, 2, 1]), torch.tensor([1, 1, 0])
    held = torch.zeros(B, H * W, D, dtype=vectors.dtype)
    assert module.attention(vectors[None], held[:1]).device.type == "meta"
    phi = module.pairs(vectors, held, i, j)
    assert (phi.device.type, phi.shape) == ("meta", (3, D))
