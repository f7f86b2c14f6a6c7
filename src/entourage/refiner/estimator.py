"""The context refiner: refine embeddings by letting each look at its nearest neighbours.

One estimator, two recipes. "relational" weighs neighbours by how they sit in the neighbourhood graph
(relational.py), as learned from labels (learning.py) in rehearsals (rehearsal.py) or, without labels, by a scorer that
comes with the package (universal.py). "paper" is Attend to Context as it was published (paper.py).

N items, M context items, k neighbours, T steps, d dimensions.
"""

import copy
import hashlib
import json
import math
import warnings
from collections.abc import Iterator
from dataclasses import asdict
from inspect import signature
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from entourage.errors import EntourageWarning, InputError, ModelError, NotFittedError
from entourage.refiner.learning import fit_relational
from entourage.refiner.network import RelationalNetwork
from entourage.refiner.paper.network import PaperNetwork, fit_paper
from entourage.refiner.serving import ServedGallery
from entourage.refiner.universal import fit_universal
from entourage.stores import read_model, usable_model, write_model
from entourage.training.history import History
from entourage.values import Attention, Embeddings, Trajectory

__all__ = ["ContextRefiner"]

RECIPES = ("relational", "paper")
_DEPTH = {"relational": 5, "paper": 8}
_PAPER_NEIGHBORS = 8
# The least each whole-numbered setting can be; a batch needs two classes and two items of each to compare.
_LEAST = {
    "n_neighbors": 1,
    "n_blocks": 1,
    "out_dim": 1,
    "batch_classes": 2,
    "batch_per_class": 2,
    "epochs": 1,
    "patience": 1,
    "seed": 0,
}
_MAY_BE_NONE = ("n_neighbors", "n_blocks", "out_dim")
_FOR_BOTH = ("recipe", "n_neighbors", "n_blocks", "seed")


class ContextRefiner(TransformerMixin, BaseEstimator):
    """Refine embeddings from any encoder by attending to their nearest neighbours.

    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> ContextRefiner().fit_transform(X).shape           # no labels: the universal scorer
    (1797, 64)
    >>> seen = y < 6
    >>> refiner = ContextRefiner().fit(X[seen], y[seen])  # learned from six digits, for the other four
    >>> refiner.transform(X[~seen]).shape
    (714, 64)

    Parameters
    n_neighbors: k, how many neighbours each item looks at. None: what the recipe chooses (paper: 8).
    n_blocks: T, how many steps or blocks, one after the other. None: 5 (relational) or 8 (paper).
    recipe: "relational" or "paper".
    seed: decides everything random.

    Of the paper's recipe only (defaults are the paper's, which leaves open when to stop)
    out_dim: size of the refined vectors, if not the input's; adds a linear head.
    alpha, beta, threshold, loss_form: of the multi-similarity loss, Eq. 4; see losses.multi_similarity.
    learning_rate: of Adam.
    batch_classes, batch_per_class: a batch holds this many classes with this many items of each.
    epochs: at most this many passes over the training items.
    patience: stop after this many epochs without a better score on the held-out classes.
    validation_share: share of the training classes held out to choose the stopping point.

    Learned by fit
    network_: what refines; n_features_in_: d; n_neighbors_, n_blocks_: k and T; n_parameters_: how
    many numbers were learned; history_: the paper's recipe's curve of MAP@R on the held-out classes and the epoch
    that was kept, None otherwise. `report()` tells how it went.
    """

    def __init__(
        self,
        n_neighbors: int | None = None,
        n_blocks: int | None = None,
        *,
        recipe: str = "relational",
        out_dim: int | None = None,
        alpha: float = 2.0,
        beta: float = 40.0,
        threshold: float = 0.5,
        loss_form: str = "usual",
        learning_rate: float = 1e-4,
        batch_classes: int = 64,
        batch_per_class: int = 2,
        epochs: int = 30,
        patience: int = 5,
        validation_share: float = 0.2,
        seed: int = 0,
    ):
        self.n_neighbors = n_neighbors
        self.n_blocks = n_blocks
        self.recipe = recipe
        self.out_dim = out_dim
        self.alpha = alpha
        self.beta = beta
        self.threshold = threshold
        self.loss_form = loss_form
        self.learning_rate = learning_rate
        self.batch_classes = batch_classes
        self.batch_per_class = batch_per_class
        self.epochs = epochs
        self.patience = patience
        self.validation_share = validation_share
        self.seed = seed

    def settings(self) -> dict:
        """The parameters as JSON can hold them: numpy numbers, as a grid search sets them, become Python's."""
        return {
            name: value.item() if isinstance(value, np.generic) else value for name, value in self.get_params().items()
        }

    # ---- learning ------------------------------------------------------------------------------------------

    def fit(self, X, y=None, *, checkpoint=None, resume: bool = False, progress=None) -> "ContextRefiner":
        """Learn from vectors X (N, d), or Embeddings, and labels y (N,) of any kind.

        Without labels the relational recipe takes the universal scorer, after a look at X whether it would help.
        checkpoint (paper's recipe): a file replaced after every epoch, from which `resume=True` goes on; it is left
        in place, and is of no use once the fitted refiner is saved. progress: called as progress(title, done, total).
        What report()["warnings"] holds is also given as an EntourageWarning.
        """
        items = _embeddings(X, y)
        self._check_settings()
        self._learn(items, checkpoint, resume, progress)
        for warning in self._report["warnings"]:
            warnings.warn(warning, EntourageWarning, stacklevel=2)
        return self

    def _learn(self, items: Embeddings, checkpoint, resume: bool, progress) -> None:
        self.n_blocks_ = int(self.n_blocks or _DEPTH[self.recipe])
        self.n_features_in_, self.history_ = items.dim, None
        if self.recipe == "paper":
            if items.labels is None:
                raise InputError("fit was given no labels; the paper's recipe wants one per vector: fit(X, y)")
            self.n_neighbors_ = int(self.n_neighbors or _PAPER_NEIGHBORS)
            fingerprint = self._fingerprint(items) if checkpoint else ""
            kept = {"fingerprint": fingerprint, "checkpoint": checkpoint, "resume": resume}
            self.network_, self.history_, self._report = fit_paper(self, items, **kept, progress=progress)
            return
        if checkpoint or resume:
            raise InputError("the relational recipe keeps no checkpoint; leave checkpoint and resume out")
        fit_recipe = fit_universal if items.labels is None else fit_relational
        self.network_, self._report = fit_recipe(self, items, progress=progress)
        self.n_neighbors_ = int(self.network_.n_neighbors)

    def report(self) -> dict:
        """How the fit went: {"protocol", "metrics", "warnings"}, and with the paper's recipe the "curve"."""
        self._check_fitted()
        return self._report

    @property
    def n_parameters_(self) -> int:
        """How many numbers were learned: the scorer's, the base map's or the blocks'."""
        self._check_fitted()
        base = getattr(self.network_, "base", None)
        learned = (p.numel() for name, p in self.network_.named_parameters() if not name.startswith("cautious."))
        return sum(learned) + (0 if base is None else base.numel())

    # ---- refining ------------------------------------------------------------------------------------------

    def transform(self, X, context=None, *, steps: int | None = None, progress=None) -> np.ndarray:
        """Refined vectors (N, d or out_dim) float32 of X (N, d), in the order of X.

        The context of each item is found in X itself or, for queries against a gallery, in `context` (M, d): the
        gallery's raw vectors. Refine the gallery too, and compare refined with refined: `transform_both` does it in
        one go. steps: exit after that many steps instead of all.
        """
        items, gallery = self._prepare(X, context)
        *_, (last, _, _) = self._states(items, gallery, self._n_steps(steps), progress, last_only=True)
        return last.copy() if not last.flags.writeable else last

    def transform_both(
        self, queries, gallery, *, steps: int | None = None, progress=None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Refined queries (N, d) and the refined gallery (M, d) to search them in; either is of less use without the
        other. steps: exit after that many steps instead of all."""
        items, among = self._prepare(queries, gallery)
        both = self.network_.refine_both(items, among, self.n_neighbors_, self._n_steps(steps), progress)
        return tuple(refined.copy() if not refined.flags.writeable else refined for refined in both)

    def serve(self, gallery, *, progress=None) -> ServedGallery:
        """The gallery (M, d), prepared once for queries that keep coming.

        `serve(gallery).transform(queries)` is `transform(queries, gallery)` without the part of the work that is the
        gallery's own, and `serve(gallery).refined_gallery` is `transform(gallery)`.
        """
        _, items = self._prepare(gallery, None)
        prepared = self.network_.prepare(items, self.n_neighbors_, self.n_blocks_, progress)
        return ServedGallery(prepared, lambda queries: self._prepare(queries, None)[0])

    def trajectory(self, X, context=None, *, progress=None) -> Trajectory:
        """Every step e^0..e^T: trajectory(X)[t] is transform(X, steps=t)."""
        items = _embeddings(X)
        gallery = items if context is X else context
        return Trajectory(np.stack(list(self.iter_steps(items, gallery, progress=progress))), items.ids)

    def iter_steps(self, X, context=None, *, steps: int | None = None, progress=None) -> Iterator[np.ndarray]:
        """The steps of `trajectory` one after the other, each (N, d), for whoever does not want to hold them all."""
        items, gallery = self._prepare(X, context)
        for e, _, _ in self._states(items, gallery, self._n_steps(steps), progress):
            yield e

    def attention(self, X, context=None, *, progress=None) -> Attention:
        """How much each item looks at each of its neighbours in each step, with the neighbours' ids."""
        items, gallery = self._prepare(X, context)
        (_, _, rows), *states = self._states(items, gallery, self.n_blocks_, progress)
        return Attention(np.stack([weights for _, weights, _ in states]), items.ids, gallery.ids[rows])

    def with_neighbors(self, n_neighbors: int) -> "ContextRefiner":
        """A copy of this fitted refiner that looks at another number of neighbours; nothing is learned anew."""
        self._check_fitted()
        other = copy.copy(self)
        other.n_neighbors_ = int(n_neighbors)
        return other

    def _n_steps(self, steps: int | None) -> int:
        n_steps = self.n_blocks_ if steps is None else steps
        if not isinstance(n_steps, Integral) or not 0 <= n_steps <= self.n_blocks_:
            raise InputError(f"steps is {n_steps}; wanted 0 ≤ steps ≤ {self.n_blocks_}, the number of steps")
        return int(n_steps)

    def _prepare(self, X, context) -> tuple[Embeddings, Embeddings]:
        self._check_fitted()
        items = _embeddings(X)
        gallery = items if context is None or context is X else _embeddings(context)
        for name, given in (("vectors", items), ("context vectors", gallery)):
            if given.dim != self.n_features_in_:
                raise ModelError(
                    f"the {name} have {given.dim} dimensions but the model was trained on {self.n_features_in_}; "
                    "use vectors of the encoder it was trained on, or fit a model for these"
                )
        return items, gallery

    def _states(self, items, gallery, n_steps: int, progress, **options):
        """(e^t, weights^t, rows) for t = 0..n_steps; nothing is weighed at t = 0."""
        return self.network_.refine(items, gallery, self.n_neighbors_, n_steps, progress, **options)

    # ---- on disk -------------------------------------------------------------------------------------------

    def save(self, folder, *, overwrite: bool = False) -> None:
        """Write config.json and model.safetensors into a new folder, whole or not at all."""
        self._check_fitted()
        config = {
            "settings": self.settings(),
            "dim": self.n_features_in_,
            "neighbors": self.n_neighbors_,
            "blocks": self.n_blocks_,
            "report": self._report,
            "history": self.history_ and asdict(self.history_),
        }
        write_model(folder, "context_refiner", config, self.network_.state_dict(), overwrite=overwrite)

    @classmethod
    def load(cls, folder) -> "ContextRefiner":
        """A refiner as it was saved."""
        config, weights = read_model(folder, "context_refiner")
        with usable_model(folder):
            refiner = cls(**config["settings"])
            refiner._check_settings()
            refiner.n_features_in_, refiner._report = config["dim"], config["report"]
            refiner.n_neighbors_, refiner.n_blocks_ = config["neighbors"], config["blocks"]
            refiner.history_ = config["history"] and History(**config["history"])
            if refiner.recipe == "paper":
                refiner.network_ = PaperNetwork(refiner.n_features_in_, refiner.n_blocks_, refiner.out_dim).eval()
                refiner.network_.load_state_dict(weights)
            else:
                refiner.network_ = RelationalNetwork.from_weights(weights)
        return refiner

    # ---- checks --------------------------------------------------------------------------------------------

    def _check_settings(self) -> None:
        if self.recipe not in RECIPES:
            raise InputError(f'recipe is {self.recipe!r}; wanted "relational" or "paper"')
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if not (isinstance(value, Integral) and value >= least) and not (name in _MAY_BE_NONE and value is None):
                raise InputError(f"{name} is {value!r}; wanted a whole number, at least {least}")
        for name in ("alpha", "beta", "learning_rate"):
            value = getattr(self, name)
            if not (isinstance(value, Real) and 0 < value < math.inf):
                raise InputError(f"{name} is {value!r}; wanted a number above 0")
        if not (isinstance(self.threshold, Real) and math.isfinite(self.threshold)):
            raise InputError(f"threshold is {self.threshold!r}; wanted a finite number")
        if not isinstance(self.validation_share, Real) or not 0 <= self.validation_share < 1:
            raise InputError(f"validation_share is {self.validation_share}; wanted 0 ≤ share < 1")
        if self.recipe == "relational":
            for name, parameter in signature(ContextRefiner).parameters.items():
                if name not in _FOR_BOTH and getattr(self, name) != parameter.default:
                    raise InputError(
                        f'{name} is {getattr(self, name)!r} but only recipe="paper" uses it; leave it out or change '
                        "the recipe"
                    )

    def _check_fitted(self) -> None:
        if not hasattr(self, "network_"):
            raise NotFittedError("this ContextRefiner has not learned anything yet: call fit(X, y) or load(folder)")

    def _fingerprint(self, items: Embeddings) -> str:
        """Settings and data in a few letters, so that a checkpoint is only resumed with the same ones."""
        digest = hashlib.sha256(json.dumps(self.settings(), sort_keys=True).encode())
        for column in (items.vectors, items.ids, items.labels):
            digest.update(np.ascontiguousarray(column))
        return digest.hexdigest()


def _embeddings(X, y=None) -> Embeddings:
    if isinstance(X, Embeddings):
        return X if y is None else Embeddings(X.vectors, X.ids, y, named=X.named)
    return Embeddings.from_vectors(X, labels=y)
