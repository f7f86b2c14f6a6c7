"""Values against the types that a dataclass, a function or a TypedDict declares for them.

Settings, options and the documents read back from disk are all checked by the one function `misfit`. `Annotated` adds a
range to a whole number: Annotated[int, range(1, 10)].
"""

import math
import types
import typing
from pathlib import Path
from typing import Any, is_typeddict

__all__ = ["COUNT", "described", "fits", "misfit"]

COUNT = typing.Annotated[int, range(2**31)]
"""How many there are of something; no file that can be read holds more."""

_NAMES: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "true or false",
    dict: "a table",
    list: "a list",
    Path: "a path",
    Any: "anything",
}
_BEYOND = 2**63  # what arrays can hold
_LONGEST = 60  # characters of a value in a message


def misfit(value: Any, kind: Any, name: str = "") -> str | None:
    """Say which part of a value is not of the declared type.

    Parameters
    ----------
    value : object
        What was given or read.
    kind : type
        A class, a union, dict, list or tuple of types, Annotated[int, range(...)], or a TypedDict, whose fields
        are checked one by one; fields that it does not know are left alone.
    name : str
        What the value is called.

    Returns
    -------
    str or None
        The name of the first part that does not fit, its value and what was wanted; None if all is well.

    Examples
    --------
    >>> misfit({"epochs": 3, "rates": [0.1, "fast"]}, dict[str, int | list[float]], "settings")
    "settings.rates is [0.1, 'fast']; wanted a whole number or a list, each a number"
    >>> misfit(0, typing.Annotated[int, range(1, 10)], "steps")
    'steps is 0; wanted a whole number from 1 to 9'
    """
    inside = typing.get_args(kind)
    if is_typeddict(kind) and isinstance(value, dict):
        return _misfit_of_fields(value, kind, name)
    if typing.get_origin(kind) is dict and isinstance(value, dict):
        found = (misfit(each, inside[1], _joined(name, key)) for key, each in value.items())
        return next((sentence for sentence in found if sentence), None)
    if fits(value, kind):
        return None
    seen = repr(value)
    return f"{name} is {seen if len(seen) <= _LONGEST else seen[:_LONGEST] + '…'}; wanted {described(kind)}"


def _misfit_of_fields(value: dict[str, Any], kind: Any, name: str) -> str | None:
    for field, declared in typing.get_type_hints(kind, include_extras=True).items():
        if field not in value:
            if field in kind.__required_keys__:
                return f"{_joined(name, field)} is missing; wanted {described(declared)}"
            continue
        sentence = misfit(value[field], declared, _joined(name, field))
        if sentence:
            return sentence
    return None


def _joined(name: str, field: str) -> str:
    return f"{name}.{field}" if name else field


def fits(value: Any, kind: Any) -> bool:
    """Whether a value is of a type, as `misfit` takes them.

    A whole number will do for a float, a bool for neither; NaN, infinities and what no array can hold are no numbers.
    """
    if kind is Any:
        return True
    if kind in (int, float):
        if isinstance(value, float):
            return kind is float and math.isfinite(value)
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) < _BEYOND
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return fits(value, inside[0]) and value in inside[1]
    if origin in (types.UnionType, typing.Union):
        return any(fits(value, each) for each in inside)
    if origin in (tuple, list):
        return isinstance(value, origin) and all(fits(each, inside[0]) for each in value)
    if origin is dict:
        return isinstance(value, dict) and all(fits(each, inside[1]) for each in value.values())
    if is_typeddict(kind):
        return isinstance(value, dict) and _misfit_of_fields(value, kind, "") is None
    return isinstance(value, kind)


def described(kind: Any) -> str:
    """What a type is called in a message."""
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        allowed = inside[1]
        return f"{described(inside[0])} from {allowed[0]} to {allowed[-1]}"
    if origin in (types.UnionType, typing.Union):
        named = " or ".join(described(each) for each in inside if each is not type(None))
        return f"{named}, or nothing" if type(None) in inside else named
    if origin in (tuple, list):
        return f"a list, each {described(inside[0])}"
    if is_typeddict(kind):
        return f"a table with {', '.join(sorted(kind.__required_keys__))}"
    return _NAMES.get(origin or kind, str(kind))
