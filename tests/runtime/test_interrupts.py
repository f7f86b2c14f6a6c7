import signal
import threading
from contextlib import contextmanager

import pytest

from entourage.runtime.interrupts import without_interruption


@contextmanager
def once():
    with without_interruption():
        yield


@contextmanager
def one_within_another():
    with without_interruption(), without_interruption():
        yield


@pytest.fixture(autouse=True)
def interrupted_as_in_a_terminal():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_comes_at_the_end_of_the_block():
    done = []
    with pytest.raises(KeyboardInterrupt), without_interruption():
        signal.raise_signal(signal.SIGINT)
        done.append("in the block")
    assert done == ["in the block"]
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("held_back", [once, one_within_another])
def test_a_second_ctrl_c_comes_at_once(held_back):
    done = []
    with pytest.raises(KeyboardInterrupt), held_back():
        signal.raise_signal(signal.SIGINT)
        done.append("after the first")
        signal.raise_signal(signal.SIGINT)
        done.append("after the second")
    assert done == ["after the first"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_one_block_within_another():
    done = []
    with pytest.raises(KeyboardInterrupt), without_interruption():
        with without_interruption():
            signal.raise_signal(signal.SIGINT)
        done.append("after the inner block")
    assert done == ["after the inner block"]


def test_an_error_of_the_block_is_the_context_of_the_interruption():
    with pytest.raises(KeyboardInterrupt) as caught, without_interruption():
        signal.raise_signal(signal.SIGINT)
        raise ValueError("wrong")
    assert isinstance(caught.value.__context__, ValueError)


def test_a_program_that_ignores_ctrl_c_goes_on_ignoring_it():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with without_interruption():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_other_threads_run_the_block_as_it_is():
    ran = []

    def run():
        with without_interruption():
            ran.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert ran == [signal.default_int_handler]
