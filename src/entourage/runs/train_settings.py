"""The settings of a training run: a preset, a TOML file and what was given one by one, each winning over the last."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from entourage.errors import InputError
from entourage.runtime.config import from_pairs, from_toml
from entourage.systems import system_named
from entourage.systems.settings import EncoderSettings

__all__ = ["train_settings"]


def train_settings(
    system: str,
    *,
    preset: str | None = None,
    config: Path | None = None,
    flags: dict[str, Any] | None = None,
    pairs: Iterable[str] = (),
) -> EncoderSettings:
    """Combine the settings of a system from a preset, a file and single values.

    Parameters
    ----------
    system : str
        The system that trains the encoder.
    preset : str, optional
        A table of settings by the system's authors to start from.
    config : Path, optional
        A TOML file, which overrides the preset.
    flags : dict, optional
        Settings by name, which override the file; None means not given.
    pairs : iterable of str
        Texts such as `epochs=3`, for settings without a flag; a setting must not be given twice.

    Returns
    -------
    EncoderSettings
        The settings of the system.
    """
    chosen, paired = system_named(system), from_pairs(pairs)
    flags = {name: value for name, value in (flags or {}).items() if value is not None}
    for name in flags.keys() & paired.keys():
        raise InputError(
            f"{name} is given as {flags[name]} and, by --set, as {paired[name]}; wanted one: leave one out"
        )
    given = paired | flags
    if "loss" in given and not hasattr(chosen.settings, "loss"):
        raise InputError(f"the loss is {given['loss']} but the system {system} has one of its own; leave --loss out")
    settings: EncoderSettings = from_toml(chosen.settings, config, given, preset=chosen.preset(preset))
    return settings
