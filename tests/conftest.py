import os

import pytest
import torch

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")  # tests ask nothing of a network

pytest.register_assert_rewrite("tests.cli.shop")  # an assertion that fails there shows its values, as in a test


@pytest.fixture(autouse=True)
def silent_commands(monkeypatch):
    """Commands print no lines of progress, however slow the machine is; tests of these lines undo it."""
    monkeypatch.setattr("entourage.runtime.progress.SILENT_SECONDS", 3600.0)


@pytest.fixture(scope="module")
def one_thread():
    """For small products, which are fastest on one thread and least disturbed by other work on the machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def tolerance_of_float32(monkeypatch):
    """scikit-learn's checks take float64 out for float64 computed, and want 1e-7; ours are sums in float32.

    The order that one of its checks draws is another one each time, so without this it fails now and then.
    """
    from functools import partial

    from sklearn.utils import estimator_checks

    for name in ("assert_allclose", "assert_allclose_dense_sparse"):
        monkeypatch.setattr(estimator_checks, name, partial(_close_in_float32, getattr(estimator_checks, name)))


def _close_in_float32(assert_close, actual, desired, atol=0.0, **others):
    assert_close(actual, desired, atol=max(atol, 1e-6), **others)


@pytest.fixture(scope="module")
def short_rehearsals():
    """Few candidates to choose from: every stage of learning with labels is walked through, in a second."""
    from entourage.refiner import evaluator, learning

    few = {
        "SHRINKAGES": (1.0, 0.5),
        "HEAD_STEPS": (0, 20),
        "NEIGHBORS": (16,),
        "SHARPNESS": (4.0,),
        "BLENDS": (0.2,),
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in few.items():
            patch.setattr(learning, name, value)
        patch.setattr(evaluator, "_SCORER_EPOCHS", 2)
        yield
