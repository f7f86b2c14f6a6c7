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
    """The settings of a system by name.

    Parameters
    ----------
    system : how the encoder is trained.
    preset : a table of the system's authors to start from, by name.
    config : a TOML file, which wins over the preset.
    flags : settings by name, which win over the file; those that are None were not given.
    pairs : texts such as `epochs=3`, for settings that are no flags; the same setting must not be given twice.
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
