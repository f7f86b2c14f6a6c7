"""Settings of the systems: a frozen dataclass each, set by TOML and flags alike."""

from entourage.settings.cross_image import CrossImageSettings
from entourage.settings.divide_and_conquer import DivideSettings
from entourage.settings.encoder import EncoderSettings, TrainSettings
from entourage.settings.intra_batch import IntraBatchSettings, StudentSettings
from entourage.settings.reading import check_types, from_pairs, from_toml, to_dict

__all__ = [
    "CrossImageSettings",
    "DivideSettings",
    "EncoderSettings",
    "IntraBatchSettings",
    "StudentSettings",
    "TrainSettings",
    "check_types",
    "from_pairs",
    "from_toml",
    "to_dict",
]
