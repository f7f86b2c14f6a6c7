"""The compiled passes over neighbours against the arrays they spare."""

import numpy as np
import pytest
import torch

from entourage.refiner import gathering
from entourage.refiner.gathering import attend, gather_step, unit_sum

N, M, D = 700, 900, 13  # enough rows to be shared out among threads


@pytest.fixture(params=[1, 2])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield
    torch.set_num_threads(before)


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def attend_simply(asked, offered, rows, scale) -> tuple[np.ndarray, np.ndarray]:
    keys, values = np.split(offered[rows].astype(np.float64), 2, axis=2)
    logits = np.einsum("nd,nkd->nk", asked.astype(np.float64), keys) * scale
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return np.einsum("nk,nkd->nd", weights, values), weights


def gather_step_simply(z, context, rows, weights) -> np.ndarray:
    return unit(z.astype(np.float64) + np.einsum("nk,nkd->nd", weights.astype(np.float64), context[rows]))


def sample(k: int, dtype=np.float32, n=N, m=M) -> tuple:
    rng = np.random.default_rng(k)
    asked, offered = rng.normal(size=(n, D)).astype(dtype), rng.normal(size=(m, 2 * D)).astype(dtype)
    weights = rng.random((n, k)).astype(dtype)
    return asked, offered, rng.integers(0, m, (n, k)), weights


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 8, 13, 899])
def test_each_pass_is_what_the_arrays_give(k):
    n = N if k < 100 else 30
    asked, offered, rows, weights = sample(k, n=n)
    for got, wanted in zip(attend(asked, offered, rows, 0.3), attend_simply(asked, offered, rows, 0.3), strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-5)
    context = offered[:, :D].copy()
    wanted = gather_step_simply(asked, context, rows, weights)
    np.testing.assert_allclose(gather_step(asked, context, rows, weights), wanted, atol=1e-5)
    moved = 0.3 * asked + 0.7 * context[:n]
    np.testing.assert_allclose(unit_sum(0.3, asked, 0.7, context[:n]), unit(moved), atol=1e-6)


@pytest.mark.parametrize(("dtype", "wanted_dtype", "atol"), [
    (np.float16, np.float32, 1e-5), (np.float32, np.float32, 1e-5), (np.float64, np.float64, 1e-12),
])  # fmt: skip
def test_any_float_and_any_layout_will_do(dtype, wanted_dtype, atol):
    asked, offered, rows, weights = sample(5, dtype)
    strided = [np.asfortranarray(asked), np.repeat(offered, 2, axis=0)[::2], np.asfortranarray(rows)]
    mixed, shares = attend(*strided, 0.3)
    assert mixed.dtype == shares.dtype == wanted_dtype
    for got, wanted in zip((mixed, shares), attend_simply(asked, offered, rows, 0.3), strict=True):
        np.testing.assert_allclose(got, wanted, atol=atol)
    context = offered[:, :D]
    got = gather_step(strided[0], context, strided[2], np.asfortranarray(weights))
    np.testing.assert_allclose(got, gather_step_simply(asked, context, rows, weights), atol=atol)


def test_equal_logits_share_evenly_and_large_ones_do_not_overflow():
    offered = np.ones((4, 2 * D), np.float32)
    rows = np.array([[0, 1, 1, 3]])
    mixed, weights = attend(np.full((1, D), 1e4, np.float32), offered, rows, 1.0)
    np.testing.assert_array_equal(weights, np.full((1, 4), 0.25))
    np.testing.assert_array_equal(mixed, np.ones((1, D)))
    offered[3, :D] = 2
    np.testing.assert_array_equal(attend(np.full((1, D), 1e4, np.float32), offered, rows, 1.0)[1], [[0, 0, 0, 1]])


def test_a_row_does_not_depend_on_its_company_or_on_the_number_of_threads():
    asked, offered, rows, weights = sample(8)
    whole = attend(asked, offered, rows, 0.3)[0], gather_step(asked, offered[:, :D], rows, weights)
    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        shared = attend(asked, offered, rows, 0.3)[0], gather_step(asked, offered[:, :D], rows, weights)
    finally:
        torch.set_num_threads(threads)
    some = slice(400, 410)
    alone = attend(asked[some], offered, rows[some], 0.3)[0]
    for one, other in zip(whole, shared, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(alone, whole[0][some])


def test_a_place_for_the_result_is_used_and_inputs_are_left_alone():
    asked, offered, rows, weights = sample(3)
    inputs = asked.copy(), offered.copy(), rows.copy(), weights.copy()
    context, place = offered[:, :D].copy(), np.empty_like(asked)
    for result in (
        attend(asked, offered, rows, 0.3, out=place)[0],
        gather_step(asked, context, rows, weights, out=place),
        unit_sum(1, asked, 1, context[:N], out=place),
    ):
        assert result is place
    for before, after in zip(inputs, (asked, offered, rows, weights), strict=True):
        np.testing.assert_array_equal(before, after)


def test_nobody_at_all_is_no_trouble():
    asked, offered, rows, weights = sample(4, n=0)
    assert attend(asked, offered, rows, 0.3)[0].shape == (0, D)
    assert gather_step(asked, offered[:, :D], rows, weights).shape == (0, D)
    nothing = np.zeros((2, D), np.float32)
    np.testing.assert_array_equal(unit_sum(1, nothing, 1, nothing), nothing)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_scaled_to_length_one_in_their_place_and_zeros_stay(dtype):
    x = np.random.default_rng(0).normal(size=(700, D)).astype(dtype)
    x[5] = 0
    wanted = unit(np.where(x.any(axis=1, keepdims=True), x, 1).astype(np.float64))
    assert gathering.normalise(x) is x
    assert not x[5].any()
    np.testing.assert_allclose(np.delete(x, 5, axis=0), np.delete(wanted, 5, axis=0), atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_silu_is_the_function_it_says(dtype):
    random = np.random.default_rng(0)
    x, bias = 10 * random.standard_normal((700, 37)).astype(dtype), random.standard_normal(37).astype(dtype)
    y = (x + bias).astype(np.float64)
    place = x.copy()
    assert gathering.silu(place, bias) is place
    np.testing.assert_allclose(place, y / (1 + np.exp(-y)), rtol=5e-6 if dtype == np.float32 else 1e-14)


def test_silu_of_half_steps_of_large_numbers_and_of_none():
    """Where the exponent is rounded either way, where it does not fit, and at zero."""
    halves = -np.arange(-9, 9, 0.5, np.float32) / np.float32(1.442695041)
    x = np.concatenate([halves, np.array([0, -0.0, 80, 500, 1e30, -80, -500, -1e30, np.inf, np.nan], np.float32)])[None]
    found = gathering.silu(x.copy(), np.zeros(x.shape[1], np.float32))[0]
    wanted = torch.nn.functional.silu(torch.from_numpy(x[0]).double()).numpy()
    np.testing.assert_allclose(found[:-1], wanted[:-1], rtol=2e-6, atol=1e-6)
    assert np.isnan(found[-1])


@pytest.mark.parametrize("rows", [[[0, 3]], [[-1, 0]]])
def test_rows_the_table_does_not_have_are_refused(rows):
    """A kernel would read whatever lies there."""
    x, table, rows = np.ones((1, 2), np.float32), np.ones((3, 4), np.float32), np.array(rows)
    with pytest.raises(IndexError, match="wanted 0 to 2, as in the table"):
        attend(x, table, rows, 1.0)
    with pytest.raises(IndexError, match="wanted 0 to 2, as in the table"):
        gather_step(x, table[:, :2], rows, np.ones((1, 2), np.float32))
