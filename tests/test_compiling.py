"""Compiled functions, and where they cannot be kept."""

import numba

from entourage.compiling import compiled


def test_a_function_is_compiled_where_no_cache_can_be_written(monkeypatch):
    def refuse(*args, cache=False, **kwargs):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: ("compiled", kwargs)

    monkeypatch.setattr(numba, "njit", refuse)
    assert compiled(lambda: None) == ("compiled", {"nogil": True})
    assert compiled(fastmath=True)(lambda: None) == ("compiled", {"nogil": True, "fastmath": True})


def test_what_is_compiled_computes_the_same():
    @compiled
    def double(x):
        return 2 * x

    assert double(21) == double.py_func(21) == 42
