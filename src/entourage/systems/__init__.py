"""What trains an encoder, by name: the baseline and three systems of the literature, each a package of its own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module

from entourage.runtime.config import check_known
from entourage.stores.filenames import CROSS_IMAGE, NETWORK
from entourage.systems.baseline.settings import BaselineSettings
from entourage.systems.cross_image.settings import CrossImageSettings
from entourage.systems.divide_and_conquer.settings import DivideSettings
from entourage.systems.intra_batch.settings import PRESETS, IntraBatchSettings, StudentSettings

__all__ = ["SYSTEMS", "System", "system_named"]


@dataclass(frozen=True)
class System:
    """A way to train encoders: its settings, and where its function is.

    The function takes (images, settings, *, run_folder, resume, strict, corrupt, progress), keeps its checkpoint and
    its log in the run folder, and returns (encoder, history).
    """

    settings: type
    function: str
    keeps: tuple[str, ...] = ()
    """Folders it leaves in the run folder that are wanted later."""
    presets: Mapping[str, dict] = field(default_factory=dict)
    """Tables of settings by name, to start from instead of the defaults."""

    @property
    def train(self) -> Callable:
        """Imported when it is needed: torch takes seconds."""
        module, name = self.function.split(":")
        return getattr(import_module(module), name)

    def preset(self, name: str | None) -> dict:
        """The table of that name; an empty one if there is no name."""
        if name is None:
            return {}
        check_known(name, self.presets, "the preset of this system")
        return self.presets[name]


SYSTEMS = {
    "baseline": System(BaselineSettings, "entourage.systems.baseline.training:train_baseline"),
    "cross-image": System(
        CrossImageSettings, "entourage.systems.cross_image.training:train_cross_image", keeps=(CROSS_IMAGE,)
    ),
    "divide": System(DivideSettings, "entourage.systems.divide_and_conquer.training:train_divided"),
    "intra-batch": System(
        IntraBatchSettings,
        "entourage.systems.intra_batch.training:train_intra_batch",
        keeps=(NETWORK,),
        presets=PRESETS,
    ),
    "student": System(StudentSettings, "entourage.systems.intra_batch.student:train_student"),
}


def system_named(name: str) -> System:
    check_known(name, SYSTEMS, "the system")
    return SYSTEMS[name]
