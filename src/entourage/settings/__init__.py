"""Settings of the systems: a frozen dataclass each, set by TOML and flags alike."""

from entourage.settings.cross_image import CrossImageSettings
from entourage.settings.encoder import EncoderSettings, TrainSettings
from entourage.settings.reading import check_types, from_pairs, from_toml, to_dict

__all__ = [
    "CrossImageSettings",
    "EncoderSettings",
    "TrainSettings",
    "check_types",
    "from_pairs",
    "from_toml",
    "to_dict",
]
