"""What a fit leaves of a refiner, and how it is saved and loaded.

d dimensions.
"""

from abc import ABC, abstractmethod
from typing import Annotated, Any, TypedDict, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from entourage.errors import ModelError, NotFittedError
from entourage.refiner.encoder_profile import checked_profile
from entourage.refiner.protocol import RefiningNetwork
from entourage.refiner.settings import MOST_NEIGHBORS, MOST_STEPS
from entourage.runtime.warnings import warn_caller
from entourage.stores import model_config, new_folder, read_model, usable_model, write_model
from entourage.stores.hub import fetched, pushed
from entourage.stores.model_card import LIMITS_OF_REFINERS, ModelCard, write_card
from entourage.values import Embeddings, FloatArray

__all__ = ["REFINERS", "RefinerConfig", "SavedRefiner"]

Refiner = TypeVar("Refiner", bound="SavedRefiner")

REFINERS = {"context_refiner": "ContextRefiner", "paper_refiner": "PaperRefiner"}
"""The estimator that each `system` of a model folder is opened by."""

_PROFILE = "encoder_profile"


class _Report(TypedDict):
    protocol: dict[str, Any]
    metrics: dict[str, float | None]
    warnings: list[str]


class RefinerConfig(TypedDict):
    """What config.json holds of a refiner."""

    settings: dict[str, Any]
    dim: Annotated[int, range(1, 2**20)]
    columns: list[str] | None
    neighbors: Annotated[int, range(1, MOST_NEIGHBORS + 1)]
    steps: Annotated[int, range(1, MOST_STEPS + 1)]
    report: _Report


class SavedRefiner(BaseEstimator, ABC):
    """An estimator whose fit leaves a network, which a model folder can hold.

    `fit` sets network_, items_, n_neighbors_, n_steps_, n_features_in_, encoder_profile_ and the report.
    """

    recipe: str
    """What the command line and reports call it."""
    system: str
    """What config.json calls it."""
    config: type = RefinerConfig
    """What config.json holds."""
    network_: RefiningNetwork
    items_: Embeddings | None
    """The items of fit, among which `transform` finds neighbours too; None in a refiner that was loaded."""
    encoder_profile_: FloatArray | None = None
    """(d,) by which vectors of another encoder are known; None where nothing was learned of the encoder, or it cannot
    be told."""
    n_neighbors_: int
    n_steps_: int
    n_features_in_: int
    _report: dict[str, Any]

    def report(self) -> dict[str, Any]:
        """Report how the fit went.

        Returns
        -------
        dict
            "protocol", "metrics" and "warnings"; for a PaperRefiner also "curve".
        """
        self._check_fitted()
        return self._report

    @property
    def n_parameters_(self) -> int:
        """How many numbers were learned."""
        self._check_fitted()
        return int(self.network_.n_parameters)

    def settings(self) -> dict[str, Any]:
        """Return the parameters as JSON can hold them: numpy numbers, as set by a grid search, become Python numbers.

        Returns
        -------
        dict
            Parameters by name.
        """
        return {
            name: value.item() if isinstance(value, np.generic) else value for name, value in self.get_params().items()
        }

    def _warn(self) -> None:
        for warning in self._report["warnings"]:
            warn_caller(warning)

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            name = type(self).__name__
            raise NotFittedError(f"this {name} is not fitted yet: call fit(X, y) or load(folder)")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "network_")

    # ---- on disk -----------------------------------------------------------------------------------------------

    def save(self, folder: Any, *, overwrite: bool = False) -> None:
        """Write config.json and model.safetensors into a new folder, whole or not at all, without the items of fit.

        Parameters
        ----------
        folder : path
        overwrite : bool
            Whether an existing model may be replaced.
        """
        self._check_fitted()
        arrays = self.network_.to_arrays()
        if self.encoder_profile_ is not None:
            arrays |= {_PROFILE: self.encoder_profile_}
        write_model(folder, self.system, self._config(), arrays, overwrite=overwrite)

    @classmethod
    def load(cls: type[Refiner], folder: Any) -> Refiner:
        """Load a refiner written by `save`.

        Parameters
        ----------
        folder : path
            The model folder; `load_refiner` loads a refiner of any kind.

        Returns
        -------
        ContextRefiner or PaperRefiner
            The fitted refiner, of the class this is called on.
        """
        system = model_config(folder, *REFINERS)["system"]
        if system != cls.system:
            other = REFINERS[system]
            raise ModelError(
                f"the model in {folder} is a {other}, not a {cls.__name__}; open it with {other}.load or load_refiner"
            )
        config, arrays = read_model(folder, system, cls.config)
        with usable_model(folder):
            refiner = cls(**config["settings"])
            refiner._check_settings()
            refiner._restore(config, arrays)
        return refiner

    # ---- on the Hugging Face hub -------------------------------------------------------------------------------

    def save_pretrained(self, folder: Any, *, overwrite: bool = False) -> None:
        """Write what `save` writes, and a model card, README.md: data, protocol, scores and limits.

        Parameters
        ----------
        folder : path
        overwrite : bool
            Whether an existing model may be replaced.
        """
        self._check_fitted()
        with new_folder(folder, overwrite=overwrite) as filling:
            self.save(filling, overwrite=True)
            write_card(filling, self.model_card())

    @classmethod
    def from_pretrained(cls: type[Refiner], name: Any, **options: Any) -> Refiner:
        """Load a refiner from a folder or from the Hugging Face hub.

        Parameters
        ----------
        name : str or path
            A folder, or owner/name of a repository on the hub.
        **options
            Of the hub: revision, token, cache_dir, local_files_only.

        Returns
        -------
        ContextRefiner or PaperRefiner
            The fitted refiner, of the class this is called on.
        """
        return cls.load(fetched(name, **options))

    def push_to_hub(self, repo_id: str, **options: Any) -> str:
        """Write the refiner and its card to a repository of the Hugging Face hub, which is created if need be.

        Parameters
        ----------
        repo_id : str
            owner/name.
        **options
            Of the hub: private, token, revision, commit_message.

        Returns
        -------
        str
            The address of the commit.
        """
        return pushed(self.save_pretrained, repo_id, **options)

    def model_card(self) -> ModelCard:
        """What there is to say of the refiner to those who find it on the hub.

        Returns
        -------
        ModelCard
        """
        report, name = self.report(), type(self).__name__
        data = {"dimensions of a vector": self.n_features_in_, "numbers learned": self.n_parameters_}
        protocol = report["protocol"]
        data |= {key: protocol[key] for key in ("items", "classes", "labels") if key in protocol}
        return ModelCard(
            title=name,
            summary="Refines embeddings by letting every vector look at its neighbours. It takes vectors of the "
            f"encoder that it was fitted on, {self.n_features_in_} numbers each, and gives vectors of the same kind.",
            usage=f'from entourage import {name}\n\nrefiner = {name}.from_pretrained("REPOSITORY")\n'
            "refined_queries, refined_gallery = refiner.transform_both(queries, gallery)",
            data=data,
            protocol=protocol,
            scores={"": {key: value for key, value in report["metrics"].items() if value is not None}},
            limits=(*LIMITS_OF_REFINERS, *report["warnings"]),
        )

    def _config(self) -> dict[str, Any]:
        columns = getattr(self, "feature_names_in_", None)
        return {
            "settings": self.settings(),
            "dim": int(self.n_features_in_),
            "columns": None if columns is None else columns.tolist(),
            "neighbors": self.n_neighbors_,
            "steps": self.n_steps_,
            "report": self._report,
        }

    def _restore(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Set what fit would have set."""
        self.n_features_in_, self._report = config["dim"], config["report"]
        if config["columns"] is not None:
            if len(config["columns"]) != config["dim"]:
                raise ValueError(f"columns has {len(config['columns'])} names; wanted {config['dim']}, as dim says")
            self.feature_names_in_ = np.array(config["columns"], dtype=object)
        self.n_neighbors_, self.n_steps_ = config["neighbors"], config["steps"]
        weights = {name: array for name, array in arrays.items() if name != _PROFILE}
        self.network_, self.items_ = self._network(weights), None
        self.encoder_profile_ = checked_profile(arrays.get(_PROFILE), self.n_features_in_)

    @abstractmethod
    def _network(self, arrays: dict[str, np.ndarray]) -> RefiningNetwork:
        """The network that was saved as these arrays."""

    @abstractmethod
    def _check_settings(self) -> object:
        """The settings as fit uses them; an InputError names a parameter whose value is not possible."""
