"""Attend to Context: refine embeddings by letting each look at its nearest neighbours.

"Attend to Context for Refining Embeddings in Deep Metric Learning", main paper and supplement. For an item q
with initial embedding e_q^0 and the context C_q of its k nearest neighbours by e^0 (never q itself):

    e_q^t = normalise(e_q^{t-1} + CA^t(e_q^{t-1}, C_q, C_q)),   t = 1..T        (Eq. 2 and 3)

C_q keeps the initial embeddings in every block. The blocks are trained with the multi-similarity loss (Eq. 4) on
e^T over class-balanced batches; the stopping point is chosen on training classes held out for the purpose.

N items, M context items, k neighbours, T blocks, d dimensions.
"""

import hashlib
import json
import math
from dataclasses import asdict
from numbers import Integral, Real

import numpy as np
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from torch import Tensor, nn
from torch.nn import functional as F

from entourage.attention import CrossAttention, glorot_linear
from entourage.errors import InputError, ModelError, NotFittedError
from entourage.evaluation import mean_average_precision_at_r
from entourage.losses import multi_similarity
from entourage.neighbors import search
from entourage.sampling import check_usable_classes, class_balanced_batches, hold_out_classes
from entourage.store import read_model, usable_model, write_model
from entourage.training import History, fit_model, seeded
from entourage.values import Attention, Embeddings, Neighbors, Trajectory, label_codes

__all__ = ["ContextRefiner"]

_ITEMS_AT_ONCE = 1024
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


class RefinerNetwork(nn.Module):
    """T cross-attention blocks and, for another size of embedding, a linear head (d -> out_dim)."""

    def __init__(self, dim: int, n_blocks: int, out_dim: int | None = None):
        super().__init__()
        self.blocks = nn.ModuleList(CrossAttention(dim) for _ in range(n_blocks))
        self.head = glorot_linear(dim, out_dim) if out_dim else nn.Identity()

    def forward(self, e: Tensor, context: Tensor) -> Tensor:
        """e^T (b, out) of e^0 (b, d) with each one's context (b, k, d): the form used in training."""
        for block in self.blocks:
            e = F.normalize(e + block(e, *block.prepare(context))[0], dim=1)
        return self.finish(e)

    def finish(self, e: Tensor) -> Tensor:
        """What leaves the network: the head's output, of length 1, or e as it is without a head."""
        return e if isinstance(self.head, nn.Identity) else F.normalize(self.head(e), dim=1)

    @torch.no_grad()
    def steps(self, e: Tensor, gallery: Tensor, rows: Tensor, n_steps: int):
        """Yield (e^t, weights^t) for t = 1..n_steps; e (N, d), gallery (M, d), rows (N, k) of the gallery.

        The same as `forward`, arranged for whole sets: keys and values depend on the gallery item alone, so
        each block prepares every item once instead of once per item that has it for a neighbour.
        """
        for block in self.blocks[:n_steps]:
            keys, values = (
                torch.cat(parts) for parts in zip(*map(block.prepare, gallery.split(_ITEMS_AT_ONCE)), strict=True)
            )
            updated, weights = torch.empty_like(e), torch.empty(rows.shape, dtype=e.dtype)
            for part in torch.arange(len(e)).split(_ITEMS_AT_ONCE):
                update, weights[part] = block(e[part], keys[rows[part]], values[rows[part]])
                updated[part] = F.normalize(e[part] + update, dim=1)
            e = updated
            yield e, weights


class ContextRefiner(TransformerMixin, BaseEstimator):
    """Refine embeddings from any encoder by attending to their nearest neighbours.

    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> seen = y < 5
    >>> refiner = ContextRefiner(n_blocks=2, epochs=2).fit(X[seen], y[seen])
    >>> refiner.transform(X[~seen]).shape
    (896, 64)

    Parameters (defaults are the paper's, which leaves open when to stop)
    n_neighbors: k, how many neighbours each item looks at.
    n_blocks: T, how many cross-attention blocks, applied one after the other.
    out_dim: size of the refined vectors, if not the input's; adds a linear head.
    alpha, beta, threshold, loss_form: of the multi-similarity loss, Eq. 4; see losses.multi_similarity.
    learning_rate: of Adam.
    batch_classes, batch_per_class: a batch holds this many classes with this many items of each.
    epochs: at most this many passes over the training items.
    patience: stop after this many epochs without a better score on the held-out classes.
    validation_share: share of the training classes held out to choose the stopping point.
    seed: decides the held-out classes, the initial weights and the batches.

    Learned by fit
    history_: the curve of MAP@R on the held-out classes and the epoch that was kept; raw_score_: the same before
    any refinement (None without held-out classes); n_features_in_: d; network_: the blocks; data_: counts of items
    and classes, among them classes_with_one_item, which have no pair to learn from and serve as context only.
    """

    def __init__(
        self,
        n_neighbors: int = 8,
        n_blocks: int = 8,
        *,
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

    # ---- learning ------------------------------------------------------------------------------------------

    def fit(self, X, y=None, *, checkpoint=None, resume: bool = False, progress=None) -> "ContextRefiner":
        """Learn from vectors X (N, d), or Embeddings, and labels y (N,) of any kind.

        checkpoint: a file replaced after every epoch, from which `resume=True` goes on; it is left in place, and
        is of no use once the fitted refiner is saved. progress: called as progress(title, done, total).
        """
        items = _embeddings(X, y)
        self._check_settings()
        self._check_items(items)
        codes = label_codes(items.labels)
        held_out = hold_out_classes(codes, self.validation_share, self.seed)
        training_rows = np.flatnonzero(~held_out)
        validation = items.take(held_out) if held_out.any() else None
        network = seeded(self.seed, lambda: RefinerNetwork(items.dim, self.n_blocks, self.out_dim))
        history = fit_model(
            network,
            torch.optim.Adam(network.parameters(), self.learning_rate, fused=True),
            batches=lambda epoch: class_balanced_batches(
                codes[training_rows], self.batch_classes, self.batch_per_class, seed=self.seed, epoch=epoch
            ),
            loss=self._batch_loss(network, items, codes, training_rows, progress),
            evaluate=validation and self._validator(network, validation),
            epochs=self.epochs,
            patience=self.patience,
            checkpoint=checkpoint,
            fingerprint=self._fingerprint(items, codes) if checkpoint else "",
            resume=resume,
            title="training the refiner",
            progress=progress,
        )
        self.network_, self.history_ = network, history
        self.raw_score_ = validation and mean_average_precision_at_r(validation)
        self.n_features_in_ = items.dim
        self.data_ = {
            "items": len(items),
            "classes": int(codes.max()) + 1,
            "classes_held_out": len(np.unique(codes[held_out])),
            "classes_with_one_item": int((np.bincount(codes) == 1).sum()),
            "neighbors": min(self.n_neighbors, len(training_rows) - 1),
        }
        return self

    def report(self) -> dict:
        """How the fit went: what was learned from, and MAP@R on the held-out classes before and after."""
        self._check_fitted()
        refined = self.history_.best_score
        protocol = {
            **self.data_,
            "blocks": self.n_blocks,
            "context": "exact neighbours within the training classes, ties by id, never the item itself",
            "score": "MAP@R (divided by R) of the held-out classes among themselves; without a match: 0",
            "stopping_point": "the last epoch, unchecked" if refined is None else "best score on the held-out classes",
            "epochs": self.history_.epoch,
            "kept_epoch": self.history_.best_epoch,
            "seed": self.seed,
        }
        metrics = {"held_out_map@r_raw": self.raw_score_, "held_out_map@r_refined": refined}
        return {"protocol": protocol, "metrics": metrics, "curve": self.history_.curve, "warnings": self._doubts()}

    def _doubts(self) -> list[str]:
        """What a user should know before relying on this fit."""
        refined, doubts = self.history_.best_score, []
        if refined is None:
            doubts.append("too few classes to hold any out: nothing checked whether refinement helps")
        elif refined <= self.raw_score_:
            doubts.append("on the held-out classes the refined vectors are no better than the raw ones: keep those")
        elif self.history_.best_epoch == 0:
            doubts.append("training did not improve on the untrained blocks, which were kept")
        if self.data_["neighbors"] < self.n_neighbors:
            doubts.append(f"only {self.data_['neighbors']} neighbours of {self.n_neighbors} could be had in training")
        return doubts

    def _batch_loss(self, network, items: Embeddings, codes, training_rows, progress):
        """The loss of a batch, given as positions in training_rows (n,).

        Neighbours are found once, among the training rows; their vectors are gathered batch by batch from the one
        copy of all vectors.
        """
        context = training_rows[self._context_within(items.take(training_rows), progress).rows]  # (n, k)
        vectors = torch.from_dlpack(items.vectors)

        def loss(batch) -> Tensor:
            rows = training_rows[batch]
            return multi_similarity(
                network(vectors[rows], vectors[context[batch]]),
                torch.from_numpy(codes[rows]),
                alpha=self.alpha,
                beta=self.beta,
                threshold=self.threshold,
                form=self.loss_form,
            )

        return loss

    def _validator(self, network, validation: Embeddings):
        """MAP@R of the refined held-out classes, searched among themselves as test classes will be."""
        context = self._context_within(validation)

        def score() -> float:
            *_, (e, _) = network.steps(*_tensors(validation, validation, context), self.n_blocks)
            return mean_average_precision_at_r(validation.replace_vectors(network.finish(e).numpy(force=True)))

        return score

    def _context_within(self, items: Embeddings, progress=None) -> Neighbors:
        """The context of the training or the held-out items; holding out may leave fewer than k + 1 of them."""
        return search(items, k=min(self.n_neighbors, len(items) - 1), progress=progress)

    # ---- refining ------------------------------------------------------------------------------------------

    def transform(self, X, context=None, *, steps: int | None = None, progress=None) -> np.ndarray:
        """Refined vectors (N, d or out_dim) float32 of X (N, d), in the order of X.

        The context of each item is found in X itself or, for queries against a gallery, in `context` (M, d): the
        gallery's raw vectors. Refine the gallery too, and compare refined with refined. steps: exit after that
        many blocks instead of all.
        """
        n_steps = self.n_blocks if steps is None else steps
        if not isinstance(n_steps, Integral) or not 0 <= n_steps <= self.n_blocks:
            raise InputError(f"steps is {n_steps}; wanted 0 ≤ steps ≤ {self.n_blocks}, the number of blocks")
        items, gallery, found = self._prepare(X, context, progress)
        for e, _ in self._states(items, gallery, found, n_steps, progress):
            last = e
        return self._finished(last)

    def trajectory(self, X, context=None, *, progress=None) -> Trajectory:
        """Every step e^0..e^T: trajectory(X)[t] is transform(X, steps=t)."""
        items, gallery, found = self._prepare(X, context, progress)
        states = self._states(items, gallery, found, self.n_blocks, progress)
        return Trajectory(np.stack([self._finished(e) for e, _ in states]), items.ids)

    def attention(self, X, context=None, *, progress=None) -> Attention:
        """How much each item looks at each of its neighbours in each block, with the neighbours' ids."""
        items, gallery, found = self._prepare(X, context, progress)
        states = self._states(items, gallery, found, self.n_blocks, progress)
        weights = np.stack([weights.numpy() for _, weights in states if weights is not None])
        return Attention(weights, items.ids, gallery.ids[found.rows])

    def _prepare(self, X, context, progress) -> tuple[Embeddings, Embeddings, Neighbors]:
        self._check_fitted()
        items = _embeddings(X)
        gallery = items if context is None or context is X else _embeddings(context)
        for name, given in (("vectors", items), ("context vectors", gallery)):
            if given.dim != self.n_features_in_:
                raise ModelError(
                    f"the {name} have {given.dim} dimensions but the model was trained on {self.n_features_in_}; "
                    "use vectors of the encoder it was trained on, or fit a model for these"
                )
        needed = self.n_neighbors + (gallery is items)  # in its own set an item cannot be its own neighbour
        if len(gallery) < needed:
            raise InputError(
                f"{len(gallery)} vectors to find k = {self.n_neighbors} neighbours in; wanted at least "
                f"{needed}: give a larger gallery as context, or fit a model with fewer neighbours"
            )
        return items, gallery, search(items, gallery, self.n_neighbors, progress=progress)

    def _states(self, items, gallery, found, n_steps: int, progress):
        """(e^t, weights^t) for t = 0..n_steps; nothing is weighed at t = 0."""
        e, *rest = _tensors(items, gallery, found)
        yield e, None
        for t, state in enumerate(self.network_.steps(e, *rest, n_steps), start=1):
            yield state
            if progress:
                progress("refining", t, n_steps)

    @torch.no_grad()
    def _finished(self, e: Tensor) -> np.ndarray:
        return self.network_.finish(e).numpy()

    # ---- on disk -------------------------------------------------------------------------------------------

    def save(self, folder, *, overwrite: bool = False) -> None:
        """Write config.json and model.safetensors into a new folder, whole or not at all."""
        self._check_fitted()
        config = {
            "settings": self._settings(),
            "dim": self.n_features_in_,
            "data": self.data_,
            "raw_score": self.raw_score_,
            "history": asdict(self.history_),
        }
        write_model(folder, "context_refiner", config, self.network_.state_dict(), overwrite=overwrite)

    @classmethod
    def load(cls, folder) -> "ContextRefiner":
        """A refiner as it was saved."""
        config, weights = read_model(folder, "context_refiner")
        with usable_model(folder):
            refiner = cls(**config["settings"])
            refiner._check_settings()
            refiner.n_features_in_, refiner.data_ = config["dim"], config["data"]
            refiner.raw_score_, refiner.history_ = config["raw_score"], History(**config["history"])
            refiner.network_ = RefinerNetwork(refiner.n_features_in_, refiner.n_blocks, refiner.out_dim).eval()
            refiner.network_.load_state_dict(weights)
        return refiner

    # ---- checks --------------------------------------------------------------------------------------------

    def _check_settings(self) -> None:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if not (isinstance(value, Integral) and value >= least) and not (name == "out_dim" and value is None):
                raise InputError(f"{name} is {value!r}; wanted a whole number, at least {least}")
        for name in ("alpha", "beta", "learning_rate"):
            value = getattr(self, name)
            if not (isinstance(value, Real) and 0 < value < math.inf):
                raise InputError(f"{name} is {value!r}; wanted a number above 0")
        if not (isinstance(self.threshold, Real) and math.isfinite(self.threshold)):
            raise InputError(f"threshold is {self.threshold!r}; wanted a finite number")
        if not isinstance(self.validation_share, Real) or not 0 <= self.validation_share < 1:
            raise InputError(f"validation_share is {self.validation_share}; wanted 0 ≤ share < 1")

    def _check_items(self, items: Embeddings) -> None:
        if items.labels is None:
            raise InputError("fit was given no labels; wanted one per vector: fit(X, y)")
        if self.n_neighbors >= len(items):
            raise InputError(
                f"n_neighbors is {self.n_neighbors} but there are only {len(items)} vectors; "
                f"wanted fewer neighbours than vectors: use at most {len(items) - 1}"
            )
        check_usable_classes(items.labels)

    def _check_fitted(self) -> None:
        if not hasattr(self, "network_"):
            raise NotFittedError("this ContextRefiner has not learned anything yet: call fit(X, y) or load(folder)")

    def _settings(self) -> dict:
        """The parameters as JSON can hold them: numpy numbers, as a grid search sets them, become Python's."""
        return {
            name: value.item() if isinstance(value, np.generic) else value for name, value in self.get_params().items()
        }

    def _fingerprint(self, items: Embeddings, codes: np.ndarray) -> str:
        """Settings and data in a few letters, so that a checkpoint is only resumed with the same ones."""
        digest = hashlib.sha256(json.dumps(self._settings(), sort_keys=True).encode())
        for column in (items.vectors, items.ids, codes):
            digest.update(np.ascontiguousarray(column))
        return digest.hexdigest()


def _embeddings(X, y=None) -> Embeddings:
    if isinstance(X, Embeddings):
        return X if y is None else Embeddings(X.vectors, X.ids, y, named=X.named)
    return Embeddings.from_vectors(X, labels=y)


def _tensors(items: Embeddings, gallery: Embeddings, found: Neighbors) -> tuple[Tensor, Tensor, Tensor]:
    """e^0 (N, d), gallery (M, d) and neighbour rows (N, k), sharing memory with the values."""
    return tuple(map(torch.from_dlpack, (items.vectors, gallery.vectors, found.rows)))
