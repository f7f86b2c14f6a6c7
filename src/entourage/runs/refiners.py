"""What refines vectors, behind one interface: the universal refiner, a fitted one, or the network of a training run.

N items, M items of a gallery, d dimensions.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from entourage.errors import FileError, InputError
from entourage.neighbors import automatic_method, check_same_encoder, own_gallery_rows
from entourage.neighbors.choice import EXACT
from entourage.runs.encoders import check_made_by
from entourage.runs.layout import ENCODER, NETWORK
from entourage.runs.refine_request import RefineRequest
from entourage.runtime.config import check_known
from entourage.runtime.extras import require
from entourage.runtime.progress import Progress
from entourage.values import Embeddings, FloatArray, brief

if TYPE_CHECKING:
    from entourage.refiner import ContextRefiner, PaperRefiner
    from entourage.systems.intra_batch.contexts import Contexts
    from entourage.systems.intra_batch.saving import TrainedNetwork

__all__ = ["FittedRefiner", "NetworkRefiner", "Refinement", "Refiner", "RunRecord", "UniversalRefiner", "open_refiner"]

_UNIVERSAL = "universal, no labels"
_WANTED = "wanted a folder written by `entourage fit`, or a run of `entourage train --system intra-batch`"
_ONE_FILE = "whose network refines vectors among themselves; put queries and gallery into one file"


@dataclass(frozen=True)
class RunRecord:
    """What a refinement run records about the refiner."""

    protocol: dict
    """For metrics.json: context, steps and the refiner."""
    settings: dict
    """For run.json: what decided the result."""
    warnings: tuple[str, ...] = ()
    """Warnings issued when the refiner was fitted."""
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Refinement:
    """The result of a refiner: refined vectors, and how they were made."""

    vectors: FloatArray
    """(N, d) refined items."""
    context_vectors: FloatArray | None
    """(M, d) the refined gallery, where it was asked for."""
    protocol: dict
    """How it was done, as `entourage refine` prints it."""
    record: RunRecord
    metrics: dict = field(default_factory=dict)
    """What the refiner measured of the items, without labels."""
    model: "ContextRefiner | PaperRefiner | None" = None
    """The fitted refiner, to be saved in a run; None for a network, which its own run keeps."""

    __repr__ = brief


class Refiner(Protocol):
    """Anything that gives items new vectors by attending to their neighbours."""

    def refine(
        self,
        items: Embeddings,
        context: Embeddings | None = None,
        *,
        both: bool = False,
        progress: Progress | None = None,
    ) -> Refinement:
        """Refine N items.

        Parameters
        ----------
        items : Embeddings
            The items, without labels.
        context : Embeddings, optional
            M items of a gallery to find neighbours in; by default the items themselves.
        both : bool
            Whether to refine the gallery too.
        progress : callable, optional
            Called as progress(title, done, total).

        Returns
        -------
        Refinement
            The refined vectors, and how they were made.
        """
        ...


@dataclass(frozen=True, eq=False)
class FittedRefiner:
    """A fitted ContextRefiner or PaperRefiner."""

    estimator: "ContextRefiner | PaperRefiner"
    name: str | None = None
    """What the protocol calls it."""
    steps: int | None = None
    """Stop after this many steps. None: all."""

    def refine(
        self,
        items: Embeddings,
        context: Embeddings | None = None,
        *,
        both: bool = False,
        progress: Progress | None = None,
    ) -> Refinement:
        if context is None or not both:
            among = items if context is None else context
            vectors = self.estimator.transform(items, among, steps=self.steps, progress=progress).vectors
            return self.described(items, context, vectors, vectors if both else None)
        refined, gallery = self.estimator.transform_both(items, context, steps=self.steps, progress=progress)
        return self.described(items, context, refined.vectors, gallery.vectors)

    def described(
        self,
        items: Embeddings,
        context: Embeddings | None,
        vectors: FloatArray,
        context_vectors: FloatArray | None = None,
    ) -> Refinement:
        """The refinement, with its protocol and what a run records of it."""
        protocol = {
            "items": len(items),
            "model": self.name,
            "context": "transductive: the vectors themselves" if context is None else f"gallery: {len(context)} items",
            "neighbors": f"{self._neighbors(items, context)}, {self._method(items, context)}, ties by id",
            "own_item": _own_item(items, context),
            "steps": self._steps_taken,
        }
        return Refinement(vectors, context_vectors, protocol, self._record(items, context), model=self.estimator)

    @property
    def _steps_taken(self) -> int:
        return int(self.estimator.n_steps_) if self.steps is None else self.steps

    def _neighbors(self, items: Embeddings, context: Embeddings | None) -> str:
        """How many are used: of few distinct items fewer than asked for."""
        from entourage.refiner.graph import most_neighbors

        asked, among = self.estimator.n_neighbors_, len(items if context is None else context)
        distinct = self.estimator.report()["protocol"]["distinct_items"] if self.name == _UNIVERSAL else None
        most = most_neighbors(among if distinct is None else distinct)
        if self.estimator.recipe != "relational" or asked <= most:
            return f"{asked}"
        bound = "at most " if distinct is None else ""  # whether there are copies is not known
        return f"{bound}{most} (a quarter of the distinct items, instead of {asked})"

    def _method(self, items: Embeddings, context: Embeddings | None) -> str:
        """How neighbours were found: as the universal refiner reports it, else as `search` chooses it."""
        if self.name == _UNIVERSAL:
            return str(self.estimator.report()["protocol"]["context"]).partition(" neighbours ")[0]
        among = len(items if context is None else context)
        by = automatic_method(among, among, items.dim, one_set=True)
        return by if by == EXACT else f"approximate ({by})"

    def _record(self, items: Embeddings, context: Embeddings | None) -> RunRecord:
        count = self._neighbors(items, context)
        among = f"transductive: {count} neighbours among the items"
        if context is not None:
            among = f"gallery: {count} neighbours of {len(context)} items"
        protocol = {"items": len(items), "context": f"{among}, labels unused", "steps": self._steps_taken}
        protocol |= {} if self.name is None else {"refiner": self.name}
        warnings = tuple(self.estimator.report()["warnings"])
        return RunRecord(protocol, {"refiner": self._settings()}, warnings, self.estimator.random_state)

    def _settings(self) -> dict:
        chosen = {"recipe": self.estimator.recipe} | self.estimator.settings()
        learned = {"n_neighbors": int(self.estimator.n_neighbors_), "n_steps": int(self.estimator.n_steps_)}
        scorer = self.estimator.report()["protocol"].get("scorer")  # "universal", where nothing was learned from labels
        return chosen | ({"scorer": scorer} if scorer else {}) | learned | {"steps": self._steps_taken}


@dataclass(frozen=True)
class UniversalRefiner:
    """The refiner that needs no labels, fitted to the gallery, or to the items where there is none."""

    n_neighbors: int | None = None
    """Number of neighbours an item attends to. None: 12."""
    steps: int | None = None
    """Stop after this many steps. None: all."""

    def refine(
        self,
        items: Embeddings,
        context: Embeddings | None = None,
        *,
        both: bool = False,
        progress: Progress | None = None,
    ) -> Refinement:
        from dataclasses import replace

        from entourage.refiner.estimator import ContextRefiner

        estimator = ContextRefiner(self.n_neighbors)
        if context is None:  # in either case one graph for the forecast and for the refinement
            vectors = gallery = estimator.fit_transform(items, steps=self.steps, progress=progress).vectors
        else:
            check_same_encoder(items, context)
            refined = estimator.fit_transform_both(items, context, steps=self.steps, progress=progress)
            vectors, gallery = (each.vectors for each in refined)
        fitted = FittedRefiner(estimator, _UNIVERSAL, self.steps)
        done = fitted.described(items, context, vectors, gallery if both else None)
        return replace(done, metrics=dict(estimator.report()["metrics"]))


@dataclass(frozen=True, eq=False)
class NetworkRefiner:
    """The message-passing network of a run of the system intra-batch, among the items themselves."""

    run: str
    """The folder of the run, as it was named."""
    trained: "TrainedNetwork"
    groups: dict
    """How contexts are found: options of `find_contexts`, "by" at least."""

    def refine(
        self,
        items: Embeddings,
        context: Embeddings | None = None,
        *,
        both: bool = False,
        progress: Progress | None = None,
    ) -> Refinement:
        from entourage.systems.intra_batch.inference import contexts_for, refine_in_contexts

        if context is not None:
            raise InputError(f"there is a gallery with the run '{self.run}', {_ONE_FILE}")
        contexts = contexts_for(self.trained, items, **self.groups)
        vectors = refine_in_contexts(self.trained.network, items.vectors, contexts, progress=progress)
        protocol = self._protocol(items, contexts)
        return Refinement(vectors, vectors if both else None, protocol, self._record(protocol))

    def _protocol(self, items: Embeddings, contexts: "Contexts") -> dict:
        from entourage.systems.intra_batch.clusters import NUMBERED, number_of_clusters
        from entourage.systems.intra_batch.contexts import K1

        by, count = self.groups["by"], len(items)
        k1 = {"k1": min(self.groups.get("k1", K1), count - 1)} if by == "reciprocal" else {}
        asked = number_of_clusters(count, self.groups.get("n_clusters"))
        return {
            "items": len(items),
            "model": self.run,
            "context": f"transductive: groups by {self.groups['by']}",
            "groups": len(contexts.groups),
            "group_size": contexts.groups.shape[1],
            **k1,
            **({"n_clusters": asked} if by in NUMBERED else {}),
            "steps": len(self.trained.network.steps),
        }

    def _record(self, protocol: dict) -> RunRecord:
        """What lies between the vectors before and after counts as one step: nothing else is known of the way."""
        steps = protocol["steps"]
        record = {
            "items": protocol["items"],
            "steps": 1,
            "context": f"{protocol['context']}, labels unused",
            "refiner": f"network of {self.run}, {steps} message-passing step{'s' * (steps > 1)}",
        }
        record |= {name: protocol[name] for name in ("groups", "group_size", "k1", "n_clusters") if name in protocol}
        return RunRecord(record, {"network": {"run": self.run, **self.groups}})


def open_refiner(request: RefineRequest) -> Refiner:
    """Open the refiner that a request names: the universal one, a fitted one, or the network of a training run.

    Options of another kind of refiner are refused, and so is a folder that is neither.
    """
    if request.model is not None and (request.model / NETWORK).is_dir():
        return _network_of(request, request.model)
    for option, value in ({"--context-by": request.context_by} | _of_contexts(request)).items():
        if value is not None:
            raise InputError(f"{option} is {value} without a run of the system intra-batch; leave it out")
    if request.model is None:
        return UniversalRefiner(request.neighbors, request.steps)
    _check_model(request.model)
    from entourage.refiner import load_refiner

    return FittedRefiner(load_refiner(request.model), str(request.model), request.steps)


def _network_of(request: RefineRequest, run: Path) -> NetworkRefiner:
    takes_its_own = "whose network takes the steps it was trained with; leave it out"
    refused = {"--context": (request.context, _ONE_FILE), "--context-out": (request.context_out, _ONE_FILE)}
    for option, (value, reason) in (refused | {"--steps": (request.steps, takes_its_own)}).items():
        if value is not None:
            raise InputError(f"{option} is {value} with the run '{run}', {reason}")
    require("torch", "refining by the network of a run")
    from entourage.systems.intra_batch.saving import load_network

    trained = load_network(run)
    check_made_by(request.vectors, run)
    return NetworkRefiner(str(run), trained, _groups(request))


def _of_contexts(request: RefineRequest) -> dict[str, int | None]:
    """The options that say how large the contexts of a network are."""
    return {"--context-size": request.context_size, "--k1": request.k1, "--n-clusters": request.n_clusters}


def _groups(request: RefineRequest) -> dict:
    """How contexts are found, as options of `find_contexts`; an option that would do nothing is refused."""
    from entourage.systems.intra_batch.clusters import NUMBERED
    from entourage.systems.intra_batch.contexts import CONTEXTS

    by = request.context_by or "reciprocal"
    check_known(by, CONTEXTS, "--context-by")
    used = {"--context-size": ("reciprocal", "nearest"), "--k1": ("reciprocal",), "--n-clusters": NUMBERED}
    given = {option: value for option, value in _of_contexts(request).items() if value is not None}
    for option, value in given.items():
        if by not in used[option]:
            raise InputError(
                f"{option} is {value} but contexts are found by {by}; it is for {', '.join(used[option])}: leave it "
                "out or change --context-by"
            )
    names = {"--context-size": "size", "--k1": "k1", "--n-clusters": "n_clusters"}
    return {"by": by} | {names[option]: value for option, value in given.items()}


def _check_model(model: Path) -> None:
    """Say what a folder is instead of a refiner; what is wrong inside one says its reader."""
    if not model.is_dir():
        raise FileError(f"there is no folder '{model}'; {_WANTED}")
    if model.name == NETWORK and (model.parent / ENCODER).is_dir():
        raise InputError(f"'{model}' is a part of a run; give the run itself, '{model.parent}'")
    if (model / ENCODER).is_dir():
        raise InputError(f"'{model}' is a run without a network to refine with; {_WANTED}")


def _own_item(items: Embeddings, context: Embeddings | None) -> str:
    """How an item is kept out of its own context."""
    if context is None:
        return "left out of its own context"
    if not (items.named and context.named):
        return "cannot be recognised in the gallery: no ids in both files"
    return f"left out by id, {(own_gallery_rows(items, context) >= 0).sum()} times"
