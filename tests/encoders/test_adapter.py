import numpy as np
import pytest
import torch

from entourage.encoders import CallableEncoder
from entourage.errors import InputError


class Sentences:
    """As sentence-transformers do it."""

    def encode(self, texts):
        return np.array([[len(text), 2.0] for text in texts], np.float64)


@pytest.mark.parametrize(
    "source",
    [Sentences(), Sentences().encode, lambda texts: torch.tensor(Sentences().encode(texts), requires_grad=True)],
    ids=["encode", "function", "tensors"],
)
def test_vectors_become_unit_vectors(source):
    encoder = CallableEncoder(source)
    vectors = encoder.encode(["", "a", "abc"])
    expected = Sentences().encode(["", "a", "abc"])
    np.testing.assert_allclose(vectors, expected / np.linalg.norm(expected, axis=1, keepdims=True), rtol=1e-6)
    assert vectors.dtype == np.float32 and encoder.dim == 2


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([[1.0, 2.0]], r"shape \(1, 2\) for 2 items; wanted \(2, d\)"),
        ([1.0, 2.0], r"shape \(2,\) for 2 items"),
        ([[1.0, 2.0], [0.0, 0.0]], "a vector of length 0.0 for 'b'"),
        ([[np.nan, 2.0], [0.0, 1.0]], "a vector of length nan for 'a'"),
    ],
)
def test_answers_that_cannot_be_used(answer, message):
    with pytest.raises(InputError, match=message):
        CallableEncoder(lambda items: answer).encode(["a", "b"])


def test_the_number_of_dimensions_stays():
    encoder = CallableEncoder(lambda items: np.ones((len(items), len(items))))
    encoder.encode(["a", "b"])
    with pytest.raises(InputError, match="gave 1 dimensions and 2 before"):
        encoder.encode(["a"])


def test_something_that_cannot_be_called():
    with pytest.raises(InputError, match=r"wanted a function of a list, or an object with encode\(\)"):
        CallableEncoder(7)
