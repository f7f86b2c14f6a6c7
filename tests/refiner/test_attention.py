"""The refinement block and its network against loops written from Eq. 2 and 3."""

import math

import numpy as np
import pytest
import torch

from entourage.refiner.paper import attention as block_module
from entourage.refiner.paper import attention_cpu as cpu
from entourage.refiner.paper.attention import CrossAttention
from entourage.refiner.paper.network import PaperNetwork
from entourage.runtime.randomness import seeded_weights

N, M, K, D, T = 7, 11, 4, 6, 3


def linear(layer, x: np.ndarray) -> np.ndarray:
    """W x + b in plain loops over the outputs."""
    weight = layer.weight.detach().numpy()
    bias = np.zeros(len(weight)) if layer.bias is None else layer.bias.detach().numpy()
    return np.array([sum(w * value for w, value in zip(row, x, strict=True)) for row in weight]) + bias


def projection(module, x: np.ndarray) -> np.ndarray:
    """Linear - SiLU - Linear, SiLU(x) = x / (1 + exp(-x))."""
    hidden = linear(module.inner, x)
    return linear(module.outer, np.array([value / (1 + math.exp(-value)) for value in hidden]))


def cross_attention(block, q: np.ndarray, context: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eq. 2 for one query: softmax(Q(q) K(c)^T / sqrt(d)) V(c), with the skip around Q; update (d,), weights (k,)."""
    asked = q + projection(block.query, q)
    logits = [np.dot(asked, projection(block.key, c)) / math.sqrt(len(q)) for c in context]
    exponentials = [math.exp(logit) for logit in logits]
    weights = np.array(exponentials) / sum(exponentials)
    return sum(w * projection(block.value, c) for w, c in zip(weights, context, strict=True)), weights


def refine(network, q: np.ndarray, context: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Eq. 3 for one query: (e^t, weights^t) for t = 1..T; the context is that of e^0 in every block."""
    states, e = [], q
    for block in network.blocks:
        update, weights = cross_attention(block, e, context)
        e = (e + update) / np.linalg.norm(e + update)
        states.append((e, weights))
    return states


def network_with_biases(out_dim=None) -> PaperNetwork:
    """In float64, and with biases that are not zero, so that forgetting one shows."""

    def build():
        network = PaperNetwork(D, T, out_dim).double()
        for parameter in network.parameters():
            if parameter.ndim == 1:
                torch.nn.init.normal_(parameter, std=0.5)
        return network

    return seeded_weights(0, build)


@pytest.fixture
def data():
    generator = torch.Generator().manual_seed(1)
    gallery = torch.nn.functional.normalize(torch.randn(M, D, generator=generator, dtype=torch.float64), dim=1)
    queries = torch.nn.functional.normalize(torch.randn(N, D, generator=generator, dtype=torch.float64), dim=1)
    rows = torch.stack([torch.randperm(M, generator=generator)[:K] for _ in range(N)])
    return queries, gallery, rows


# ---- one block ---------------------------------------------------------------------------------------------------


def test_a_block_computes_equation_2(data):
    queries, gallery, rows = data
    block = network_with_biases().blocks[0]
    update, weights = block(queries, *block.prepare(gallery[rows]))
    for i in range(N):
        wanted_update, wanted_weights = cross_attention(block, queries[i].numpy(), gallery[rows[i]].numpy())
        np.testing.assert_allclose(update[i].detach(), wanted_update, rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(weights[i].detach(), wanted_weights, rtol=1e-10)


def test_a_bias_in_the_last_layer_of_k_would_change_nothing(data):
    """Why it was left out: it adds the same number to all logits of a query, which the softmax does not see."""
    queries, gallery, rows = data
    block = network_with_biases().blocks[0]
    q, context = queries[0].numpy(), gallery[rows[0]].numpy()
    _, without = cross_attention(block, q, context)
    block.key.outer.bias = torch.nn.Parameter(torch.randn(D, dtype=torch.float64, generator=torch.manual_seed(2)))
    _, with_bias = cross_attention(block, q, context)
    np.testing.assert_allclose(with_bias, without, rtol=1e-10)


def test_a_block_does_not_see_the_order_of_the_context(data):
    queries, gallery, rows = data
    block = network_with_biases().blocks[0]
    update, weights = block(queries, *block.prepare(gallery[rows]))
    shuffled = [2, 0, 3, 1]
    again, weights_again = block(queries, *block.prepare(gallery[rows[:, shuffled]]))
    torch.testing.assert_close(again, update)
    torch.testing.assert_close(weights_again, weights[:, shuffled])


def test_a_context_of_one_is_taken_whole(data):
    queries, gallery, rows = data
    block = network_with_biases().blocks[0]
    update, weights = block(queries, *block.prepare(gallery[rows[:, :1]]))
    assert weights.tolist() == [[1.0]] * N
    torch.testing.assert_close(update, block.value(gallery[rows[:, 0]]))


@pytest.mark.parametrize("finished", [False, True])
def test_an_offer_and_a_query_give_equation_2_and_3(data, finished):
    queries, gallery, rows = data
    network = network_with_biases()
    block = network.blocks[0]
    offer = block.offer(gallery, finished=finished)
    refined, weights = block.refined(queries, offer, rows)
    for i in range(N):
        update, wanted_weights = cross_attention(block, queries[i].numpy(), gallery[rows[i]].numpy())
        wanted = queries[i].numpy() + update
        np.testing.assert_allclose(refined[i], wanted / np.linalg.norm(wanted), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(weights[i], wanted_weights, rtol=1e-9)


# ---- the network -------------------------------------------------------------------------------------------------


def test_inference_computes_equation_3_step_by_step(data):
    queries, gallery, rows = data
    network = network_with_biases()
    states = list(network.steps(queries, gallery, rows, T))
    assert len(states) == T
    for i in range(N):
        wanted = refine(network, queries[i].numpy(), gallery[rows[i]].numpy())
        for (e, weights), (wanted_e, wanted_weights) in zip(states, wanted, strict=True):
            np.testing.assert_allclose(e[i], wanted_e, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(weights[i], wanted_weights, rtol=1e-9)


@pytest.mark.parametrize("out_dim", [None, 9])
def test_training_form_equals_inference_form(data, out_dim):
    queries, gallery, rows = data
    network = network_with_biases(out_dim)
    *_, (last, _) = network.steps(queries, gallery, rows, T)
    trained = network(queries, gallery, rows)
    assert trained.shape == (N, out_dim or D)
    torch.testing.assert_close(trained, network.finish(last))
    torch.testing.assert_close(trained.norm(dim=1), torch.ones(N, dtype=torch.float64))


def test_parts_of_a_large_set_are_put_together_in_order(data, monkeypatch):
    queries, gallery, rows = data
    network = network_with_biases()
    whole = list(network.steps(queries, gallery, rows, T))
    monkeypatch.setattr(cpu, "ITEMS_AT_ONCE", 3)
    monkeypatch.setattr(cpu, "FEWEST_AT_ONCE", 3)
    for (e, weights), (wanted_e, wanted_weights) in zip(network.steps(queries, gallery, rows, T), whole, strict=True):
        torch.testing.assert_close(e, wanted_e)
        torch.testing.assert_close(weights, wanted_weights)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("finished", [False, True])
def test_the_form_of_other_devices_agrees(data, dtype, finished, monkeypatch):
    """It is plain torch, and runs on the processor as well."""
    monkeypatch.setattr(block_module, "_ITEMS_AT_ONCE", 3)
    queries, gallery, rows = data[0].to(dtype), data[1].to(dtype), data[2]
    first = network_with_biases().to(dtype).blocks[0]
    offer = first.offer(gallery, finished=finished)
    table, result, weights = torch.empty_like(offer.table), torch.empty_like(queries), torch.empty(N, K, dtype=dtype)
    with torch.no_grad():
        block_module._offer(first, gallery, finished, table)
        block_module._refined(first, queries, offer, rows, result, weights)
    torch.testing.assert_close(offer.table, table)
    wanted, wanted_weights = first.refined(queries, offer, rows)
    torch.testing.assert_close(wanted, result)
    torch.testing.assert_close(wanted_weights, weights)


def test_tables_out_of_the_ordinary_give_the_same(data):
    """Not contiguous, of the other precision, or with a gradient."""
    queries, gallery, rows = data
    first = network_with_biases().blocks[0]
    wanted, weights = first.refined(queries, first.offer(gallery), rows)
    strided = queries.repeat_interleave(2, dim=1)[:, ::2], gallery.T.contiguous().T, rows.T.contiguous().T
    learned = queries.clone().requires_grad_(), gallery.clone().requires_grad_(), rows
    for e, context, neighbors in (strided, learned):
        found, shares = first.refined(e, first.offer(context), neighbors)
        torch.testing.assert_close(found, wanted)
        torch.testing.assert_close(shares, weights)


def test_the_number_of_threads_changes_nothing():
    generator = torch.Generator().manual_seed(0)
    e, rows = torch.randn(3000, 16, generator=generator), torch.randint(3000, (3000, 4), generator=generator)
    first, before, refined = seeded_weights(0, lambda: CrossAttention(16)), torch.get_num_threads(), []
    for count in (1, 2, 5):
        torch.set_num_threads(count)
        refined.append(first.refined(e, first.offer(e), rows)[0])
    torch.set_num_threads(before)
    assert torch.equal(refined[0], refined[1]) and torch.equal(refined[0], refined[2])


def test_many_queries_of_few_items_and_few_of_many_agree_with_the_training_form(data):
    """On which side the last layers are applied depends on where there are fewer."""
    queries, gallery, rows = data
    network = network_with_biases()
    for rows_of_all in (rows % 3, torch.arange(N * K).view(N, K) % M):
        *_, (last, _) = network.steps(queries, gallery, rows_of_all, T)
        torch.testing.assert_close(network(queries, gallery, rows_of_all), last)


@pytest.mark.parametrize("n_steps", [1, 2, T])
def test_steps_that_are_not_kept_end_the_same_and_leave_the_input_alone(data, n_steps):
    queries, gallery, rows = data
    network, before = network_with_biases(), queries.clone()
    *_, (wanted, _) = network.steps(queries, gallery, rows, n_steps)
    *_, (last, _) = network.steps(queries, gallery, rows, n_steps, kept=False)
    assert torch.equal(last, wanted) and torch.equal(queries, before)


def test_inference_leaves_its_input_as_it_was_and_keeps_no_gradient(data):
    queries, gallery, rows = data
    copies = [tensor.clone() for tensor in data]
    *_, (last, weights) = network_with_biases().steps(queries, gallery, rows, T)
    assert all(torch.equal(tensor, copy) for tensor, copy in zip(data, copies, strict=True))
    assert not last.requires_grad and not weights.requires_grad


@pytest.mark.parametrize("shared", [False, True])
def test_gradients_are_those_of_the_equations_written_out(shared):
    """Against full keys and values of every neighbour of every item; neighbours may be shared, or one the same."""
    generator = torch.Generator().manual_seed(3)
    e, context = (torch.randn(n, D, generator=generator, dtype=torch.float64) for n in (N, 5 if shared else N * K))
    rows = torch.randint(0, 5, (N, K), generator=generator) if shared else torch.arange(N * K).view(N, K)
    away = torch.randn(N, D, generator=generator, dtype=torch.float64)
    network, naive = network_with_biases(), network_with_biases()
    (network(e, context, rows) * away).sum().backward()
    state = e
    for block in naive.blocks:
        keys, values = block.key(context[rows]), block.value(context[rows])
        logits = torch.einsum("bd,bkd->bk", state + block.query(state), keys) / math.sqrt(D)
        update = torch.einsum("bk,bkd->bd", logits.softmax(dim=1), values)
        state = torch.nn.functional.normalize(state + update, dim=1)
    (state * away).sum().backward()
    for (name, ours), theirs in zip(network.named_parameters(), naive.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-9, atol=1e-11, msg=name)


def test_gradients_are_finite_and_reach_every_parameter(data):
    queries, gallery, rows = data
    network = network_with_biases(out_dim=9)
    network(queries, gallery, rows).square().mul(torch.arange(9)).sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


def test_many_queries_of_a_shared_context_get_what_each_would_get_alone():
    block = seeded_weights(1, lambda: CrossAttention(D)).double()
    queries, context = torch.randn(2, 5, D, dtype=torch.float64), torch.randn(2, K, D, dtype=torch.float64)
    updates, weights = block.among(queries, *block.finished(context))
    for group in range(2):
        for number in range(5):
            update, shares = cross_attention(block, queries[group, number].numpy(), context[group].numpy())
            np.testing.assert_allclose(updates[group, number].detach(), update, rtol=1e-10)
            np.testing.assert_allclose(weights[group, number].detach(), shares, rtol=1e-10)


def test_the_papers_network_has_its_twelve_million_parameters():
    """Per block 6 d^2 weights and 5 d biases: 8 * (6 * 512^2 + 5 * 512) = 12,603,392."""
    with torch.device("meta"):
        network = PaperNetwork(512, 8)
    count = sum(parameter.numel() for parameter in network.parameters())
    assert 12_500_000 < count < 12_700_000
    assert count == 12_603_392


def test_layers_start_as_in_the_papers_framework():
    """Glorot: uniform within ± sqrt(6 / (d + d)); biases zero."""
    block = seeded_weights(3, lambda: CrossAttention(128))
    limit = math.sqrt(6 / 256)
    for name, parameter in block.named_parameters():
        if parameter.ndim == 1:
            assert not parameter.any(), name
        else:
            assert 0.99 * limit < parameter.abs().max() <= limit, name
            assert parameter.std().item() == pytest.approx(limit / math.sqrt(3), rel=0.02), name
