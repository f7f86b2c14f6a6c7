"""Settings that cannot be used, refused by their name."""

import math
from numbers import Integral, Real
from typing import Any

from entourage.errors import InputError

__all__ = ["check_finite", "check_flag", "check_not_negative", "check_positive", "check_share", "check_whole"]


def check_whole(name: str, value: Any, least: int, most: int | None = None, *, none: bool = False) -> None:
    """Refuse what is not a whole number from `least` to `most`, if there is a most; with `none`, None is allowed too.

    >>> check_whole("epochs", 0, least=1)
    Traceback (most recent call last):
    entourage.errors.InputError: epochs is 0; wanted a whole number, at least 1
    """
    if value is None and none:
        return
    whole = isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least
    if not whole or (most is not None and int(value) > most):
        wanted = f"at most {most:,}" if whole else f"at least {least}"
        raise InputError(f"{name} is {value!r}; wanted a whole number, {wanted}")


def check_share(name: str, value: Any, *, below_one: bool = False) -> None:
    """Refuse what is not a number from 0 to 1; with `below_one`, 1 too."""
    if not (isinstance(value, Real) and 0 <= float(value) <= 1) or (below_one and value == 1):
        raise InputError(f"{name} is {value!r}; wanted 0 ≤ {name} {'<' if below_one else '≤'} 1")


def check_not_negative(name: str, value: Any) -> None:
    """Refuse what is not a finite number of at least 0."""
    if not (isinstance(value, Real) and 0 <= float(value) < math.inf):
        raise InputError(f"{name} is {value!r}; wanted a finite number, at least 0")


def check_positive(name: str, value: Any) -> None:
    """Refuse what is not a finite number above 0."""
    if not (isinstance(value, Real) and 0 < float(value) < math.inf):
        raise InputError(f"{name} is {value!r}; wanted a number above 0")


def check_finite(name: str, value: Any) -> None:
    """Refuse what is not a finite number."""
    if not (isinstance(value, Real) and math.isfinite(value)):
        raise InputError(f"{name} is {value!r}; wanted a finite number")


def check_flag(name: str, value: Any) -> None:
    """Refuse what is neither True nor False, of Python or numpy."""
    if type(value).__name__ not in ("bool", "bool_"):
        raise InputError(f"{name} is {value!r}; wanted True or False")
