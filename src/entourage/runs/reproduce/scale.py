"""On what data a table is made, and with which settings: as printed, or small."""

from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from entourage.errors import InputError
from entourage.runs.reproduce.tables import Recipe, Table, read_papers
from entourage.runtime.config import check_name, from_toml, merged
from entourage.systems import SYSTEMS, system_named
from entourage.systems.settings import EncoderSettings

__all__ = ["Scale", "data_name"]

_REFINER = "refiner"  # what --set refiner.NAME=VALUE begins with


def data_name(dataset: str) -> str:
    """What data are called in tables and file names: a folder or file by the last part of its path.

    >>> data_name("glyphs"), data_name("/data/shop/images"), data_name("vectors/clinc.npz")
    ('glyphs', 'shop', 'clinc')
    """
    path = Path(dataset)
    return path.parent.name if path.name == "images" and path.parent.name else path.stem


@dataclass(frozen=True)
class Scale:
    """The papers' datasets and recipes ("full"), or one small set and small encoders ("small", "quick")."""

    name: str = "full"
    data: str | None = None
    """The set that small tables are made on; of full ones, the one dataset that is made. None: papers.toml decides."""
    root: Path | None = None
    """The folder of datasets."""
    data_options: dict[str, Any] = field(default_factory=dict)
    """Options of the datasets, besides those of the scale."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings that win over presets and the scale's, but not over what a row varies: of trainings by name, of refiners
    under "refiner"."""
    seeds: int | None = None
    """How many seeds, from 0. None: papers.toml decides."""

    def __post_init__(self) -> None:
        known = {each.name for system in SYSTEMS.values() for each in fields(system.settings)}
        for name in self.settings.keys() - {_REFINER}:
            check_name(name, sorted(known | {_REFINER}), "setting", "of any system")
        if self.seeds is not None and self.seeds < 1:
            raise InputError(f"seeds is {self.seeds}; wanted 1 or more")

    @property
    def is_small(self) -> bool:
        return self.name != "full"

    @property
    def values(self) -> dict[str, Any]:
        """What papers.toml says of this scale."""
        written = read_papers()
        return merged(written["small"], written["quick"]) if self.name == "quick" else written[self.name]

    def seed_range(self) -> range:
        return range(self.values["seeds"] if self.seeds is None else self.seeds)

    # ---- data ----------------------------------------------------------------------------------------------------

    def datasets(self, table: Table) -> tuple[str, ...]:
        """The datasets that a table is made on."""
        if self.is_small:
            return (self.data or self.values["data"],)
        if self.data is None:
            return table.datasets
        check_name(self.data, table.datasets, "dataset", f"of {table.id}")
        return (self.data,)

    def options(self) -> dict[str, Any]:
        """Options of the data."""
        limit = self.values.get("max_classes")
        return ({} if limit is None else {"max_classes": limit}) | self.data_options

    def metrics(self, table: Table, dataset: str) -> tuple[str, ...]:
        """What is shown of a dataset."""
        if self.is_small:
            return tuple(table.small.get("metrics", table.metrics[table.datasets[0]]))
        return table.metrics[dataset]

    def printed_for(self, table: Table, dataset: str) -> str:
        """The dataset of the paper whose figures stand beside those of this one."""
        return table.datasets[0] if self.is_small else dataset

    # ---- settings ------------------------------------------------------------------------------------------------

    def recipe(self, recipe: Recipe) -> Recipe:
        """A recipe as it is followed at this scale."""
        if not self.is_small or not recipe.small:
            return recipe
        changed: dict[str, Any] = {name: merged(getattr(recipe, name), value) for name, value in recipe.small.items()}
        return replace(recipe, **changed, small={})

    def training(self, recipe: Recipe, dataset: str, seed: int, **given: Any) -> EncoderSettings:
        """The settings of a recipe's training; given: those that other runs decide, such as a teacher."""
        system = system_named(recipe.system)
        start = {} if self.is_small else system.preset(recipe.preset.format(dataset=dataset) or None)
        if self.is_small:
            start = merged(self.values["set"], self.values.get("systems", {}).get(recipe.system, {}))
        known = {each.name for each in fields(system.settings)}
        wanted = {name: value for name, value in self.settings.items() if name in known}
        settings: EncoderSettings = from_toml(
            system.settings, None, merged(merged(wanted, recipe.set), given) | {"seed": seed}, preset=start
        )
        return settings

    def refining(self, recipe: Recipe) -> dict[str, Any]:
        """The options of what is done with the embeddings, without its name."""
        options = {name: value for name, value in recipe.refine.items() if name != "by" and value != "auto"}
        return options

    def refiner(self, recipe: Recipe) -> dict[str, Any]:
        """The same for what is trained: with the scale's settings, and those given."""
        return self.values.get(_REFINER, {}) | self.settings.get(_REFINER, {}) | self.refining(recipe)
