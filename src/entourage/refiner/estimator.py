"""The context refiner: embeddings refined by the neighbours that a relation scorer judges to be of the same class."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from entourage.errors import InputError
from entourage.neighbors.given import given_neighbors
from entourage.refiner.conversion import Table, as_table
from entourage.refiner.encoder_profile import learn_profile
from entourage.refiner.graph import Graph, build_graph
from entourage.refiner.memory import Among
from entourage.refiner.network import RelationalNetwork
from entourage.refiner.refining import RefiningEstimator
from entourage.refiner.settings import MOST_NEIGHBORS, MOST_STEPS, RefinerSettings, check_protected
from entourage.refiner.universal import fit_universal, neighbors_needed, universal_network
from entourage.refiner.voting import Votes, left_as_they_are
from entourage.runtime.checks import check_whole
from entourage.runtime.devices import on_device
from entourage.runtime.extras import needs_training
from entourage.runtime.progress import Progress, ShowProgress, shows_progress
from entourage.runtime.warnings import warn_caller
from entourage.values import Embeddings

__all__ = ["ContextRefiner"]


class ContextRefiner(RefiningEstimator):
    """Refine embeddings from any encoder by attending to their nearest neighbours.

    Neighbours are weighed by how they sit in the neighbourhood graph: by a scorer that comes with the package or, given
    labels, by what is learned from them.

    **transform depends on what is there: items are refined among those they are given with and the items of fit.** The
    same item in another set becomes another vector. Refine a set of its own, such as classes that fit has not seen, by
    `transform(X, context=X)`, and queries against a gallery by `transform_both`, or by `serve`.

    With labels, `fit` also rehearses how new items of the same classes are classified by their nearest neighbours.
    Unless refined neighbours clearly do better, by one standard error, `fit_transform`, and `transform` without a
    context, return vectors as they are, with a warning: a pipeline with such a classifier should not fall below raw
    vectors.

    Parameters
    ----------
    n_neighbors : int, optional
        k, how many neighbours each item attends to. Default: 12; with labels, chosen on training classes.
    n_steps : int, optional
        T, how many steps of refinement follow one another. Default: 5; with labels, chosen on training classes.
    random_state : int
        Seed of everything that is drawn at random.

    Attributes
    ----------
    network_ : object
        What refines.
    items_ : Embeddings
        The items of fit, among which `transform` finds neighbours too; they are not saved.
    encoder_profile_ : ndarray of shape (d,) or None
        If there were labels: by which vectors of another encoder are known, of which `transform` warns.
    votes_ : Votes or None
        How new items of the classes of fit were classified in a rehearsal, if there were labels.
    n_neighbors_, n_steps_ : int
        k and T as they are used.
    n_features_in_ : int
        d, the size of the vectors.
    feature_names_in_ : ndarray of str
        The columns, if fitted on a DataFrame with names.
    n_parameters_ : int
        How many numbers the scorer and the base map have.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> ContextRefiner().fit_transform(X).shape           # no labels: the universal scorer
    (1797, 64)
    >>> seen = y < 6
    >>> refiner = ContextRefiner().fit(X[seen], y[seen])  # learned from six digits, for the other four
    >>> refiner.transform(X[~seen], context=X[~seen]).shape
    (714, 64)
    """

    recipe = "relational"
    system = "context_refiner"
    network_: RelationalNetwork
    votes_: Votes | None = None

    def __init__(self, n_neighbors: int | None = None, n_steps: int | None = None, random_state: int = 0) -> None:
        self.n_neighbors = n_neighbors
        self.n_steps = n_steps
        self.random_state = random_state

    @shows_progress
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        protect: str | Iterable[str] | None = None,
        neighbors: Any = None,
        device: str = "auto",
        progress: ShowProgress = None,
    ) -> "ContextRefiner":
        """Learn from labels; without labels, use the universal scorer if it is expected to help.

        Parameters
        ----------
        X : Embeddings, array, DataFrame or tensor of shape (N, d)
            Embeddings may carry their own labels.
        y : array-like of shape (N,), optional
            Labels, integers or text.
        protect : str or iterable of str, optional
            With labels: metrics that must not fall, such as "recall@10". No setting is chosen that in the rehearsals
            lowers one of them by more than 0.2 points (LOSS_ALLOWED), as R@1 is always guarded.
        neighbors : (ids, scores), ids or Neighbors, optional
            What an index of yours found for each row of X, of which exact similarities choose; see `search`. 24
            or more of each are best.
            Without labels alone: rehearsals search classes of their own.
        device : str
            Where neighbours are searched: auto, cpu, cuda or cuda:1; auto takes CUDA if there is any. What learns is
            small, and learns on the processor.
        progress : bool or callable, optional
            True shows progress on standard error; a callable is called as progress(title, done, total).

        Returns
        -------
        ContextRefiner
            This refiner. Each of report()["warnings"] is also issued as an EntourageWarning.
        """
        with on_device(device):
            self._learn(X, y, progress, protect, neighbors)
        self._warn()
        return self

    @shows_progress
    def fit_transform(
        self,
        X: Any,
        y: Any = None,
        *,
        protect: str | Iterable[str] | None = None,
        steps: int | None = None,
        neighbors: Any = None,
        progress: ShowProgress = None,
    ) -> Any:
        """Fit and refine the same vectors; without labels the neighbourhood graph is built once for both.

        Parameters
        ----------
        X : Embeddings, array, DataFrame or tensor of shape (N, d)
            Embeddings may carry their own labels.
        y : array-like of shape (N,), optional
            Labels, integers or text.
        protect : str or iterable of str, optional
            As in `fit`.
        steps : int, optional
            Stop after this many steps; all by default.
        neighbors : (ids, scores), ids or Neighbors, optional
            As in `fit`.
        progress : bool or callable, optional
            True shows progress on standard error; a callable is called as progress(title, done, total).

        Returns
        -------
        the kind of X, of shape (N, d)
            What `transform(X)` returns.
        """
        table, items, graph = self._learn(X, y, progress, protect, neighbors)
        self._warn()
        among = Among(table, items, items, items.ids, self._network_of_known())
        return self._same_kind(table, self._last_state(among, self._n_steps(steps), progress, graph=graph))

    @shows_progress
    def fit_transform_both(
        self,
        queries: Any,
        gallery: Any,
        *,
        steps: int | None = None,
        neighbors: Any = None,
        gallery_neighbors: Any = None,
        progress: ShowProgress = None,
    ) -> tuple[Any, Any]:
        """Fit on a gallery, and refine queries and gallery; without labels the gallery's graph is built once for both.

        Parameters
        ----------
        queries : Embeddings, array, DataFrame or tensor of shape (N, d)
        gallery : Embeddings, array, DataFrame or tensor of shape (M, d)
            Embeddings may carry their own labels.
        steps : int, optional
            Stop after this many steps; all by default.
        neighbors, gallery_neighbors : (ids, scores), ids or Neighbors, optional
            As in `transform_both`.
        progress : bool or callable, optional
            True shows progress on standard error; a callable is called as progress(title, done, total).

        Returns
        -------
        tuple
            What `fit(gallery).transform_both(queries, gallery)` returns.
        """
        *_, graph = self._learn(gallery, None, progress, neighbors=gallery_neighbors)
        self._warn()
        return self._transform_both(queries, gallery, steps, progress, neighbors, gallery_neighbors, graph=graph)

    def _learn(
        self,
        X: Any,
        y: Any,
        progress: Progress | None,
        protect: str | Iterable[str] | None = None,
        neighbors: Any = None,
    ) -> tuple[Table, Embeddings, Graph | None]:
        """Fit; (X as a table, as Embeddings, and its neighbourhood graph if one was built)."""
        labelled = y is not None or getattr(X, "labels", None) is not None
        table = as_table(self, X, reset=True, least=(2 if labelled else 1, 1))
        items = table.embeddings(y)
        settings = replace(self._check_settings(), protect=check_protected(protect))
        if settings.protect and items.labels is None:
            raise InputError(
                f"protect is {', '.join(settings.protect)}, but there are no labels to rehearse with; give y, or leave "
                "protect out"
            )
        if neighbors is not None and items.labels is not None:
            raise InputError(
                "neighbors were given to fit with labels, whose rehearsals search classes of their own; leave them out "
                "here, and give them to transform"
            )
        votes, graph = None, None
        if neighbors is not None:
            needed = neighbors_needed(universal_network(settings.n_neighbors))
            graph = build_graph(items, needed, progress, given_neighbors(neighbors, items, items))
        if items.labels is None:
            network, report, graph = fit_universal(settings, items, progress=progress, graph=graph)
        else:
            network, report, votes = _fit_relational(settings, items, progress)
        self.network_, self._report, self.items_, self.votes_ = network, report, items, votes
        self.encoder_profile_ = None if items.labels is None else learn_profile(items)
        self.n_neighbors_, self.n_steps_ = network.n_neighbors, report["protocol"]["steps"]
        return table, items, graph

    def _network_of_known(self) -> RelationalNetwork:
        """One that leaves vectors as they are, unless refined neighbours clearly classify better; see voting.py."""
        labelled = self.items_ is not None and self.items_.labels is not None
        if not labelled or (self.votes_ and self.votes_.clearly_better):
            return self.network_
        warn_caller(left_as_they_are(self.votes_))
        return replace(self.network_, base_map=None, blend=1.0, fallback=None)

    def _network(self, arrays: dict[str, np.ndarray]) -> RelationalNetwork:
        network = RelationalNetwork.from_arrays(arrays)
        size = None if network.base_map is None else len(network.base_map)
        if size not in (None, self.n_features_in_):
            raise ValueError(f"the base map is for {size} dimensions; wanted {self.n_features_in_}, which dim names")
        return network

    def _check_settings(self) -> RefinerSettings:
        check_whole("n_neighbors", self.n_neighbors, 1, MOST_NEIGHBORS, none=True)
        check_whole("n_steps", self.n_steps, 1, MOST_STEPS, none=True)
        check_whole("random_state", self.random_state, 0)
        n_neighbors = None if self.n_neighbors is None else int(self.n_neighbors)
        seed = int(self.random_state)
        if self.n_steps is None:
            return RefinerSettings(n_neighbors, random_state=seed)
        return RefinerSettings(n_neighbors, int(self.n_steps), steps_asked_for=True, random_state=seed)


def _fit_relational(
    settings: RefinerSettings, items: Embeddings, progress: Progress | None
) -> tuple[RelationalNetwork, dict[str, Any], Votes | None]:
    with needs_training("learning a refiner from labels"):
        from entourage.refiner.learning import fit_relational

        return fit_relational(settings, items, progress=progress)
