"""Functions compiled by numba, kept on disk from one process to the next."""

import numba

__all__ = ["compiled"]


def compiled(function=None, **options):
    """A decorator: compiled on first use, the interpreter's lock released, and kept on disk.

    Where no folder can be written to, as in some containers, it is compiled in every process instead.
    """
    if function is None:
        return lambda function: compiled(function, **options)
    try:
        return numba.njit(nogil=True, cache=True, **options)(function)
    except RuntimeError:
        return numba.njit(nogil=True, **options)(function)
