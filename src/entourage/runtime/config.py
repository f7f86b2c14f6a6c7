"""Settings of a system: one frozen dataclass, whose fields a TOML file and command-line flags set alike.

An unknown setting is an error, and so is a value of the wrong type: a typo must not cost a night of training.
"""

import os
import sys
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from entourage.errors import FileError, InputError
from entourage.runtime.declared import described, fits

if sys.version_info >= (3, 11):
    import tomllib
else:  # where the same parser is installed under its first name
    import tomli as tomllib

__all__ = [
    "check_known",
    "check_name",
    "check_options",
    "check_types",
    "closest",
    "from_pairs",
    "from_toml",
    "merged",
    "read_toml",
    "to_dict",
]

Settings = TypeVar("Settings")


def from_toml(
    cls: type[Settings],
    path: str | os.PathLike[str] | None = None,
    overrides: dict[str, Any] | None = None,
    *,
    preset: dict[str, Any] | None = None,
) -> Settings:
    """Read settings from a TOML file and from overrides, which win.

    Parameters
    ----------
    cls : type
        The frozen dataclass of the settings.
    path : str or path-like, optional
        A TOML file that sets some of the fields.
    overrides : dict, optional
        Values by field, as `from_pairs` gives them. Of a field that is a table, such as loss_options, only the entries
        named here are replaced.
    preset : dict, optional
        Values by field that take the place of the defaults of `cls`.

    Returns
    -------
    cls
        The settings; fields set nowhere have their defaults.

    Raises
    ------
    InputError
        If a field does not exist or its value cannot be used.
    FileError
        If the file cannot be read.

    Examples
    --------
    >>> from entourage.systems.baseline.settings import BaselineSettings
    >>> from_toml(BaselineSettings, overrides={"loss": "margin", "epochs": 3}).loss
    'margin'
    """
    values = {} if path is None else read_toml(Path(path))
    known = sorted(setting.name for setting in fields(cls))  # type: ignore[arg-type]  # any dataclass
    for names, where in ((values, f"in {path}"), (overrides or {}, "")):
        for name in names:
            check_name(name, known, "setting", where)
    try:
        return cls(**_tuples(cls, merged(merged(preset or {}, values), overrides or {})))
    except InputError as error:
        where = f" (set in {path} or by a flag)" if path is not None else ""
        raise InputError(f"{error}{where}") from error


def from_pairs(pairs: Iterable[str]) -> dict[str, Any]:
    """Turn texts such as `epochs=3` into a table.

    Parameters
    ----------
    pairs : iterable of str
        `name=value`, or `table.name=value` for an entry of a table; the value as TOML writes it, or a bare word.

    Returns
    -------
    dict
        Values by name, nested for tables.

    Examples
    --------
    >>> from_pairs(["epochs=3", "loss=margin", "loss_options.beta=1.1", "step_after=[3, 5]"])
    {'epochs': 3, 'loss': 'margin', 'loss_options': {'beta': 1.1}, 'step_after': [3, 5]}
    """
    values: dict[str, Any] = {}
    for pair in pairs:
        name, given, value = pair.partition("=")
        if not given or not name.strip():
            raise InputError(f"a setting is given as {pair!r}; wanted name=value, such as epochs=3")
        *tables, field = name.strip().split(".")
        entry = {field: _toml_value(value)}
        for table in reversed(tables):
            entry = {table: entry}
        values = merged(values, entry)
    return values


def to_dict(settings: Any) -> dict[str, Any]:
    """Every field of a settings dataclass by name, as plain values that JSON and TOML can hold."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(settings).items()}


def check_known(name: object, known: Iterable[str], what: str, *, otherwise: str = "") -> None:
    """Refuse a choice by name that is not among the known ones, and suggest the closest of them.

    Every value that is one of a few names is checked by this one function: systems, losses, datasets, ...; names of
    what something has (options, splits, figures) by `check_name`.

    Parameters
    ----------
    name : object
        The name that was given.
    known : iterable of str
        The known names, in the order in which they are listed.
    what : str
        What is being named, as the subject of the message.
    otherwise : str
        What else is accepted besides those names.

    >>> check_known("margni", ["ms", "margin"], "the loss")
    Traceback (most recent call last):
    entourage.errors.InputError: the loss is 'margni'; wanted one of ms, margin (did you mean margin?)
    """
    known = list(known)
    if name not in known:
        raise InputError(f"{what} is {name!r}; wanted {_wanted(name, known, otherwise)}")


def check_name(name: object, known: Iterable[str], what: str, of: str = "") -> None:
    """Refuse the name of an option, a split, a figure, ... that is not there, and suggest the closest that is.

    Parameters
    ----------
    name : object
        The name that was given.
    known : iterable of str
        The known names, in the order in which they are listed.
    what : str
        What it would be the name of, in the singular.
    of : str
        Where it would be found, as "of the loss ms" or "in settings.toml".

    >>> check_name("qurey", ["drift", "query"], "figure", "of my-run")
    Traceback (most recent call last):
    entourage.errors.InputError: unknown figure 'qurey' of my-run; wanted one of drift, query (did you mean query?)
    """
    known = list(known)
    if name not in known:
        raise InputError(f"unknown {what} {name!r}{f' {of}' if of else ''}; wanted {_wanted(name, known)}")


def _wanted(name: object, known: list[str], otherwise: str = "") -> str:
    if not known and not otherwise:
        return "none, as there are none to choose from: leave it out"
    wanted = " or ".join(filter(None, [f"one of {', '.join(known)}" if known else "", otherwise]))
    near = closest(str(name), known)
    return f"{wanted}{f' (did you mean {near}?)' if near else ''}"


def closest(name: str, known: Iterable[str] | Mapping[str, str]) -> str | None:
    """The known name that is most like a mistyped one, or what a mapping has for it; None if none is near.

    >>> closest("smal-rgb", ["small", "small-rgb", "linear"])
    'small-rgb'
    """
    found = get_close_matches(name, list(known), 1)
    if not found:
        return None
    return known[found[0]] if isinstance(known, Mapping) else found[0]


def check_types(settings: object) -> None:
    """Raise InputError for a field of a settings dataclass whose value is not of its declared type.

    A whole number is accepted where a float is declared.

    Examples
    --------
    >>> from entourage.systems.baseline.settings import BaselineSettings
    >>> check_types(BaselineSettings(epochs="ten"))
    Traceback (most recent call last):
    entourage.errors.InputError: epochs is 'ten'; wanted a whole number
    """
    for name, kind in typing.get_type_hints(type(settings)).items():
        value = getattr(settings, name)
        if not fits(value, kind):
            raise InputError(f"{name} is {value!r}; wanted {described(kind)}")


def check_options(function: Callable[..., Any], options: dict[str, Any]) -> None:
    """Raise InputError for an option that is not of the type that the function declares for that argument.

    numpy's numbers are accepted for Python's, and lists for tuples.

    Parameters
    ----------
    function : callable
        A function with type annotations.
    options : dict
        Keyword arguments for it.

    Examples
    --------
    >>> def load(share: float = 0.5): ...
    >>> check_options(load, {"share": "half"})
    Traceback (most recent call last):
    entourage.errors.InputError: share is 'half'; wanted a number
    """
    kinds = typing.get_type_hints(function)
    for name, value in options.items():
        kind = kinds.get(name, Any)
        plain = tuple(value) if isinstance(value, list) else value.item() if hasattr(value, "item") else value
        if not fits(plain, kind):
            raise InputError(f"{name} is {value!r}; wanted {described(kind)}")


# ---- reading -----------------------------------------------------------------------------------------------------


def _toml_value(text: str) -> Any:
    """A value as TOML writes it; what TOML cannot read is text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # of thousands of digits or brackets, too
        return text.strip()


def merged(values: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Both together, the second winning; tables are merged entry by entry.

    >>> merged({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}})
    {'a': {'b': 3, 'c': 2}}
    """
    both = dict(values)
    for name, value in overrides.items():
        tables = isinstance(value, Mapping) and isinstance(both.get(name), Mapping)
        both[name] = merged(both[name], value) if tables else value
    return both


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file as it is written."""
    if path.exists() and not path.is_file():  # to read from a pipe or a device may never end
        raise FileError(f"the settings {path} are no regular file; wanted a TOML file")
    try:
        content: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        return content
    except (OSError, ValueError, RecursionError) as error:  # a file nested thousands deep recurses as deep
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"the settings {path} cannot be read ({reason}); wanted a TOML file") from error


def _tuples(cls: type, values: dict[str, Any]) -> dict[str, Any]:
    """The values with tuples for the lists of TOML, where the dataclass declares tuples."""
    kinds = typing.get_type_hints(cls)
    wanted = {name for name in values if typing.get_origin(kinds[name]) is tuple}
    return {name: tuple(v) if name in wanted and isinstance(v, list) else v for name, v in values.items()}
