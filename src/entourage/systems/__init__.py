"""What trains an encoder, by name: the baseline and three systems of the literature, each a package of its own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from entourage.runtime.config import check_known, check_name
from entourage.stores.filenames import CROSS_IMAGE as CROSS_IMAGE_FOLDER
from entourage.stores.filenames import NETWORK
from entourage.systems.baseline.settings import BaselineSettings
from entourage.systems.cross_image.settings import CrossImageSettings
from entourage.systems.divide_and_conquer.settings import DivideSettings
from entourage.systems.intra_batch.settings import IntraBatchSettings, StudentSettings
from entourage.systems.presets import BASELINE, CROSS_IMAGE, DIVIDE, INTRA_BATCH, STUDENT
from entourage.systems.trained import TrainedEncoder

__all__ = ["SYSTEMS", "System", "system_named"]


@dataclass(frozen=True)
class System:
    """A way to train encoders: its settings, and where its function is."""

    settings: type
    """The dataclass of its settings, an EncoderSettings."""
    function: str
    """ "module:name" of the function train(images, settings, **run): it takes trained.RunOptions, keeps its checkpoint
    and its log in the run folder, and returns a trained.TrainedEncoder."""
    keeps: tuple[str, ...] = ()
    """Folders it leaves in the run folder that are wanted later."""
    presets: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    """Tables of settings by name, to start from instead of the defaults."""

    @property
    def train(self) -> Callable[..., TrainedEncoder]:
        """The function itself, imported when it is needed: torch takes seconds."""
        module, name = self.function.split(":")
        return getattr(import_module(module), name)

    def preset(self, name: str | None) -> dict[str, Any]:
        """The settings of a preset.

        Parameters
        ----------
        name : str or None
            One of `presets`; None for the defaults.

        Returns
        -------
        dict
            Settings by name; an empty one without a name.
        """
        if name is None:
            return {}
        check_name(name, self.presets, "preset", "of this system")
        return self.presets[name]


SYSTEMS = {
    "baseline": System(BaselineSettings, "entourage.systems.baseline.training:train_baseline", presets=BASELINE),
    "cross-image": System(
        CrossImageSettings,
        "entourage.systems.cross_image.training:train_cross_image",
        keeps=(CROSS_IMAGE_FOLDER,),
        presets=CROSS_IMAGE,
    ),
    "divide": System(DivideSettings, "entourage.systems.divide_and_conquer.training:train_divided", presets=DIVIDE),
    "intra-batch": System(
        IntraBatchSettings,
        "entourage.systems.intra_batch.training:train_intra_batch",
        keeps=(NETWORK,),
        presets=INTRA_BATCH,
    ),
    "student": System(StudentSettings, "entourage.systems.intra_batch.student:train_student", presets=STUDENT),
}


def system_named(name: str) -> System:
    """The system of a name.

    Parameters
    ----------
    name : str
        One of `SYSTEMS`.

    Returns
    -------
    System
        Its settings and its function.
    """
    check_known(name, SYSTEMS, "the system")
    return SYSTEMS[name]
