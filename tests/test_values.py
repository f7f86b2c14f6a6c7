"""The values of the pipeline: normalised right, frozen, and refused at birth where they cannot be used."""

import dataclasses
import doctest

import numpy as np
import pytest

from entourage import values
from entourage.data.arrays import ImageArray
from entourage.errors import InputError
from entourage.values import (
    Attention,
    Embeddings,
    Neighbors,
    Trajectory,
    columns,
    embeddings,
    label_codes,
    labels_of,
    neighbors,
    shared_codes,
)

SQUARE = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]


@pytest.fixture
def raw():
    return np.random.default_rng(0).normal(size=(60, 8))


# ---- normalising -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble", "int8", "int64", "uint8"])
def test_any_number_type_becomes_unit_float32(raw, dtype):
    given = (np.abs(raw) * 10 + 1).astype(dtype)
    expected = given.astype(np.float64) / np.linalg.norm(given.astype(np.float64), axis=1, keepdims=True)
    vectors = Embeddings.from_vectors(given).vectors
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected, atol=1e-7)


@pytest.mark.parametrize(
    ("dtype", "scale"),
    [
        ("float16", 2e4),
        ("float16", 6e-8),
        ("float32", 1e38),
        ("float32", 1e-44),
        ("float64", 1.7e308),
        ("float64", 5e-324),
    ],
)
def test_huge_and_tiny_magnitudes_keep_their_direction(dtype, scale):
    given = np.array([[1, 0], [1, 1], [0, -1]], dtype) * np.array(scale, dtype)
    half = np.sqrt(0.5)
    np.testing.assert_allclose(Embeddings.from_vectors(given).vectors, [[1, 0], [half, half], [0, -1]], atol=1e-6)


def test_a_row_may_mix_huge_and_tiny_values():
    given = np.array([[1e300, 1e-300], [1e-300, -1e-300]])
    np.testing.assert_allclose(Embeddings.from_vectors(given).vectors, [[1, 0], [0.5**0.5, -(0.5**0.5)]], atol=1e-7)


def test_normalising_works_beyond_one_block_of_rows():
    given = np.random.default_rng(0).normal(size=(5000, 3)) * 7
    lengths = np.linalg.norm(Embeddings.from_vectors(given).vectors, axis=1)
    np.testing.assert_allclose(lengths, 1, atol=1e-6)


@pytest.mark.parametrize(
    "view",
    [
        pytest.param(lambda x: x[::2], id="strided"),
        pytest.param(lambda x: x[::-1], id="reversed"),
        pytest.param(lambda x: np.hstack([x, x])[:, :8], id="columns of a wider table"),
        pytest.param(np.asfortranarray, id="fortran"),
        pytest.param(lambda x: np.broadcast_to(x[0], (5, 8)), id="broadcast"),
        pytest.param(lambda x: x.astype(">f8"), id="big-endian"),
        pytest.param(lambda x: x.tolist(), id="list"),
    ],
)
@pytest.mark.parametrize("make", [Embeddings.from_vectors, Embeddings], ids=["from_vectors", "Embeddings"])
def test_any_memory_layout_becomes_contiguous_float32(raw, view, make):
    unit = raw / np.linalg.norm(raw, axis=1, keepdims=True)
    vectors = make(view(unit)).vectors
    assert vectors.dtype == np.float32 and vectors.flags.c_contiguous
    np.testing.assert_allclose(vectors, np.array(view(unit)), atol=1e-7)


def test_the_input_is_not_changed(raw):
    before = raw.copy()
    Embeddings.from_vectors(raw)
    np.testing.assert_array_equal(raw, before)
    assert raw.flags.writeable


def test_minus_zero_becomes_zero_so_that_equal_vectors_are_equal_to_the_bit():
    vectors = Embeddings.from_vectors([[-0.0, 2.0], [0.0, 2.0]]).vectors
    assert vectors[0].tobytes() == vectors[1].tobytes()


# ---- vectors that are refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        pytest.param([[1, 0], [np.nan, 1]], r"row 1 of the vectors contains NaN \(1 such row\)", id="NaN"),
        pytest.param([[np.inf, 0], [-np.inf, 1]], r"row 0 of the vectors contains inf \(2 such rows\)", id="Inf"),
        pytest.param([[0.0, 0.0], [1, 1]], r"row 0 of the vectors is all zeros \(1 such row\)", id="zero vector"),
        pytest.param(
            [1.0, 2.0], r"table of numbers \(N, d\), .* not of shape \(2,\). .* reshape\(1, -1\)", id="one vector"
        ),
        pytest.param(np.ones((2, 2, 2)), r"shape \(2, 2, 2\)", id="three axes"),
        pytest.param(np.ones((0, 4)), r"at least one row and one column, but the shape is \(0, 4\)", id="no rows"),
        pytest.param(np.ones((4, 0)), r"the shape is \(4, 0\)", id="no columns"),
        pytest.param([["a", "b"]], "not text such as 'a': turn it into vectors first", id="text"),
        pytest.param([[True, False]], "not values of type bool: convert them", id="truth values"),
        pytest.param([[1j, 0]], "Complex data not supported: vectors must be", id="complex"),
        pytest.param(np.array([[None, 1]]), "row 0 of the vectors contains NaN", id="objects"),
    ],
)
def test_vectors_without_a_direction_are_refused(vectors, message):
    with pytest.raises(InputError, match=message):
        Embeddings.from_vectors(vectors)


@pytest.mark.parametrize("length", [0.9, 1.1, 0.0, np.nan])
def test_the_plain_constructor_takes_unit_vectors_only(length):
    with pytest.raises(InputError, match=r"row 1 has length .* use Embeddings.from_vectors"):
        Embeddings([[1.0, 0.0], [length, 0.0]])


def test_unit_vectors_rounded_to_half_precision_are_unit_vectors(raw):
    half = Embeddings.from_vectors(raw).vectors.astype(np.float16)
    np.testing.assert_array_equal(Embeddings(half).vectors, half.astype(np.float32))


# ---- ids and labels ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "kept"),
    [
        pytest.param(["b", "a", "ü", "d"], ["b", "a", "ü", "d"], id="text"),
        pytest.param(np.array(["b", "a", "c", "d"], object), ["b", "a", "c", "d"], id="text as objects"),
        pytest.param([3, 1, 2, -7], [3, 1, 2, -7], id="integers"),
        pytest.param([3.0, 1.0, 2.0, 0.0], [3, 1, 2, 0], id="whole floats"),
        pytest.param(np.array([2**63, 1, 2, 3], np.uint64), [2**63, 1, 2, 3], id="large unsigned"),
    ],
)
@pytest.mark.parametrize("field", ["ids", "labels"])
def test_ids_and_labels_may_be_integers_or_text(field, column, kept):
    assert getattr(Embeddings(SQUARE, **{field: column}), field).tolist() == kept


@pytest.mark.parametrize(
    ("column", "message"),
    [
        pytest.param([1, 2, 3], "3 {field} for 4 vectors; wanted one per vector", id="too few"),
        pytest.param(list("abcde"), "5 {field} for 4 vectors", id="too many"),
        pytest.param([[1], [2], [3], [4]], r"{field} of shape \(4, 1\) for 4 vectors", id="two axes"),
        pytest.param([0.5, 1, 2, 3], "{field} are float64 and not whole", id="fractions"),
        pytest.param([np.nan, 1, 2, 3], r"{field} contain missing values \(1 in all, the first in row 0\)", id="NaN"),
        pytest.param([1e300, 1, 2, 3], "{field} are float64 and not whole", id="beyond integers"),
        pytest.param(["a", None, "b", "c"], "{field} contain missing values", id="None"),
        pytest.param(np.array(["a", np.nan, "b", "c"], object), "{field} contain missing values", id="NaN in text"),
        pytest.param(np.arange(4).astype("datetime64[D]"), r"{field} are of type datetime64\[D\]", id="dates"),
        pytest.param([b"a", b"b", b"c", b"d"], r"{field} are of type \|S1; wanted integers or text", id="bytes"),
    ],
)
@pytest.mark.parametrize("field", ["ids", "labels"])
def test_ids_and_labels_that_cannot_be_used_are_refused(field, column, message):
    with pytest.raises(InputError, match=message.format(field=field)):
        Embeddings(SQUARE, **{field: column})


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["a", "b", "a", "a"], r"id 'a' appears 3 times \(1 id repeated\); ids must be unique: remove or rename"),
        ([7, 7, 9, 9], r"id 7 appears 2 times \(2 ids repeated\)"),
    ],
)
def test_repeated_ids_are_refused_by_name(ids, message):
    with pytest.raises(InputError, match=message):
        Embeddings(SQUARE, ids)


def test_without_ids_rows_are_numbered_and_the_numbers_are_no_names():
    items = Embeddings(SQUARE)
    assert items.ids.tolist() == [0, 1, 2, 3]
    assert not items.named
    assert Embeddings(SQUARE, [0, 1, 2, 3]).named


def test_taking_rows_and_replacing_vectors_keep_each_item_whole():
    items = Embeddings(SQUARE, ids=list("abcd"), labels=[10, 11, 12, 13])
    taken = items.take([3, 1])
    assert (taken.ids.tolist(), taken.labels.tolist(), taken.named) == (["d", "b"], [13, 11], True)
    np.testing.assert_array_equal(taken.vectors, [[0, -1], [0, 1]])
    turned = items.replace_vectors(items.vectors[:, ::-1])
    assert (turned.ids.tolist(), turned.labels.tolist(), len(turned), turned.dim) == (
        list("abcd"),
        [10, 11, 12, 13],
        4,
        2,
    )
    assert not Embeddings(SQUARE).take([0, 1]).named


@pytest.mark.parametrize("ids", [None, list("abcd")])
def test_without_labels_vectors_and_ids_are_all_that_is_left(ids):
    known = {name: [1, 1, 2, 2] for name in ("labels", "cameras", "sequences")}
    bare = Embeddings(SQUARE, ids, **known).without_labels()
    assert bare.labels is bare.cameras is bare.sequences is None
    wanted = Embeddings(SQUARE, ids)
    assert (bare.ids.tolist(), bare.named) == (wanted.ids.tolist(), wanted.named)
    np.testing.assert_array_equal(bare.vectors, wanted.vectors)


def test_items_without_labels_are_named_where_some_are_wanted():
    assert labels_of(Embeddings(SQUARE, labels=list("aabb"))).tolist() == list("aabb")
    with pytest.raises(InputError, match=r"^the test items have no labels; wanted one per item: add them$"):
        labels_of(Embeddings(SQUARE), "test items")


# ---- the other values --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(lambda: Neighbors([[0, 1]], [[0.5]]), r"rows have shape \(1, 2\)", id="neighbors of two shapes"),
        pytest.param(lambda: Neighbors([0, 1], [0.5, 0.4]), r"must be \(N, k\)", id="neighbors of one axis"),
        pytest.param(lambda: Neighbors([[0, -1]], [[0.5, 0.4]]), "row -1 is negative", id="negative neighbor"),
        pytest.param(lambda: Neighbors([[0, 1]], [[0.4, 0.5]]), "nearest first", id="neighbors out of order"),
        pytest.param(lambda: Trajectory(SQUARE, list("abcd")), r"wanted \(T \+ 1, N, d\)", id="trajectory of one step"),
        pytest.param(lambda: Trajectory([SQUARE], list("abc")), "3 ids for 4 vectors", id="trajectory short of ids"),
        pytest.param(lambda: Attention([SQUARE], list("abcd"), [[0], [1], [2], [3]]), r"\(T, N, k\)", id="attention"),
        pytest.param(lambda: Attention([SQUARE], [0], np.zeros((4, 2))), "1 ids for 4", id="attention short of ids"),
        pytest.param(lambda: ImageArray(np.zeros((2, 4, 4)), [0, 1]), "float64 .* wanted uint8", id="images of floats"),
        pytest.param(
            lambda: ImageArray(np.zeros((4, 4), np.uint8), [0]), r"wanted uint8 of \(N, H, W\)", id="one image"
        ),
        pytest.param(lambda: ImageArray(np.zeros((2, 4, 4), np.uint8), [0]), "1 labels for 2", id="few labels"),
    ],
)
def test_values_of_bad_shape_are_refused_at_birth(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_neighbors_know_their_size():
    found = Neighbors([[2, 1, 0], [0, 2, 1]], [[0.9, 0.9, 0.1], [0.5, 0.4, 0.3]])
    assert (len(found), found.k) == (2, 3)
    assert (found.rows.dtype, found.similarities.dtype) == (np.int64, np.float32)


def test_images_are_numbered_drawn_and_taken():
    images = ImageArray(np.arange(12, dtype=np.uint8).reshape(3, 2, 2), ["a", "b", "a"])
    assert images.ids.tolist() == ["0", "1", "2"]
    assert images.picture(1).mode == "L"
    assert np.asarray(images.picture(1)).tolist() == [[4, 5], [6, 7]]
    some = images.take([2, 0])
    assert (some.ids.tolist(), some.labels.tolist()) == (["2", "0"], ["a", "a"])
    assert some.pixels[0].tolist() == [[8, 9], [10, 11]]


def test_two_images_of_one_id_are_refused():
    with pytest.raises(InputError, match="'x' appears 2 times"):
        ImageArray(np.zeros((2, 4, 4), np.uint8), [0, 1], ["x", "x"])


def test_a_trajectory_is_indexed_by_step():
    path = Trajectory([SQUARE, SQUARE[::-1], SQUARE], list("abcd"))
    assert len(path) == 3
    assert path[1].tolist() == SQUARE[::-1]


@pytest.mark.parametrize(
    "value",
    [
        Embeddings(SQUARE, list("abcd"), [0, 0, 1, 1]),
        Neighbors([[0, 1]], [[0.5, 0.4]]),
        Trajectory([SQUARE], list("abcd")),
        Attention([SQUARE], list("abcd"), np.zeros((4, 2), int)),
        ImageArray(np.zeros((2, 4, 4), np.uint8), [0, 1]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_are_frozen_down_to_their_arrays(value):
    arrays = [field.name for field in dataclasses.fields(value) if isinstance(getattr(value, field.name), np.ndarray)]
    assert arrays
    for name in arrays:
        with pytest.raises(ValueError, match="read-only"):
            getattr(value, name)[0] = 0
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, name, None)


# ---- codes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [["dog", "cat", "dog", "eel"], [7, 3, 7, 9], [True, False, True, True]])
def test_label_codes_are_equal_exactly_where_labels_are(labels):
    codes = label_codes(labels)
    same = [[a == b for b in labels] for a in labels]
    assert (codes[:, None] == codes).tolist() == same
    assert codes.min() == 0 and codes.dtype == np.int64


def test_shared_codes_match_numbers_with_their_text():
    left, right = shared_codes([7, 9, 11], np.array(["9", "x", "7"]))
    assert (left[:, None] == right).tolist() == [[False, False, True], [True, False, False], [False, False, False]]


def test_public_names_are_sorted_and_the_examples_hold():
    assert values.__all__ == sorted(values.__all__)
    outcomes = [doctest.testmod(module) for module in (columns, embeddings, neighbors)]
    assert all(outcome.failed == 0 and outcome.attempted >= 2 for outcome in outcomes)
