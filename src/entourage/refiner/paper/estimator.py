"""Attend to Context as an estimator: the published recipe with its own settings."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
from sklearn.utils import Tags

from entourage.errors import InputError
from entourage.refiner.conversion import as_table
from entourage.refiner.encoder_profile import learn_profile
from entourage.refiner.paper.settings import PaperSettings
from entourage.refiner.refining import RefiningEstimator
from entourage.refiner.saving import RefinerConfig
from entourage.runtime.devices import on_device
from entourage.runtime.extras import needs_training
from entourage.runtime.progress import ShowProgress, shows_progress
from entourage.runtime.warnings import warn_caller
from entourage.training.history import History

if TYPE_CHECKING:
    from entourage.refiner.paper.network import PaperNetwork

__all__ = ["PaperRefiner"]


class _Epoch(TypedDict):
    epoch: int
    loss: float | None
    score: float | None


class _History(TypedDict):
    curve: list[_Epoch]
    best_epoch: int


class PaperConfig(RefinerConfig):
    """What config.json holds of this recipe."""

    history: _History


_NOT_REHEARSED = (
    "how new items of the classes of fit are classified is not rehearsed with PaperRefiner: a nearest-neighbour "
    "classifier may do worse than with raw vectors; compare both, or use ContextRefiner, which rehearses it"
)


class PaperRefiner(RefiningEstimator):
    """Refine embeddings by cross-attention blocks over their nearest neighbours, trained as published.

    "Attend to Context for Refining Embeddings in Deep Metric Learning". It learns from labels alone, and with torch:
    pip install 'entourage[train]'.

    **transform depends on the whole batch: items are refined among those they are given with.** The same item in
    another set becomes another vector, and a set needs more than n_neighbors items. Refine queries against a gallery
    by `transform_both`, or by `serve`.

    Parameters
    ----------
    n_neighbors : int
        k, how many neighbours each item attends to.
    n_blocks : int
        T, how many cross-attention blocks follow one another.
    out_dim : int, optional
        Size of the refined vectors, if not that of the input; adds a linear head.
    alpha, beta, threshold : float
        Parameters of the multi-similarity loss, Eq. 4.
    loss_form : {"usual", "printed"}
        How that loss is written; see `entourage.training.losses.multi_similarity`.
    learning_rate : float
        Learning rate of Adam.
    batch_classes, batch_per_class : int
        A batch holds this many classes with this many items of each.
    epochs : int
        At most this many passes over the training items.
    patience : int
        Stop after this many epochs without a better score on the held-out classes.
    validation_share : float
        Share of the training classes held out to choose the stopping point; 0 trains on all for all epochs.
    refit : bool
        Whether new blocks are then trained on all classes for as many epochs.
    random_state : int
        Seed of everything that is drawn at random.

    Attributes
    ----------
    network_ : PaperNetwork
        What refines.
    items_ : Embeddings
        The items of fit, among which `transform` finds neighbours too; they are not saved.
    history_ : History
        The curve of MAP@R on the held-out classes, and the epoch that was kept.
    n_neighbors_, n_steps_ : int
        k and T.
    n_features_in_ : int
        d, the size of the vectors.
    feature_names_in_ : ndarray of str
        The columns, if fitted on a DataFrame with names.
    n_parameters_ : int
        How many numbers the blocks and the head have.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> seen = y < 6
    >>> refiner = PaperRefiner(n_neighbors=4, n_blocks=2, epochs=1).fit(X[seen], y[seen])
    >>> refiner.transform(X[~seen], context=X[~seen]).shape
    (714, 64)
    """

    recipe = "paper"
    system = "paper_refiner"
    config = PaperConfig
    network_: "PaperNetwork"
    history_: History

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
        refit: bool = False,
        random_state: int = 0,
    ) -> None:
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
        self.refit = refit
        self.random_state = random_state

    @shows_progress
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        checkpoint: Any = None,
        resume: bool = False,
        device: str = "auto",
        progress: ShowProgress = None,
    ) -> "PaperRefiner":
        """Train the blocks.

        Parameters
        ----------
        X : Embeddings, array, DataFrame or tensor of shape (N, d)
            Embeddings may carry their own labels.
        y : array-like of shape (N,)
            Labels, integers or text.
        checkpoint : path, optional
            A file that is replaced after every epoch. It is left in place; delete it once the fitted refiner is saved.
        resume : bool
            Whether to resume from the checkpoint of an interrupted fit with the same data and settings.
        device : str
            auto, cpu, cuda or cuda:1; auto takes CUDA if there is any. The blocks stay there, a saved refiner is loaded
            on the processor.
        progress : bool or callable, optional
            True shows progress on standard error; a callable is called as progress(title, done, total).

        Returns
        -------
        PaperRefiner
            This refiner. Each of report()["warnings"] is also issued as an EntourageWarning.
        """
        items = as_table(self, X, reset=True, least=(2, 1)).embeddings(y)
        settings = self._check_settings()
        if items.labels is None:
            raise InputError(
                "PaperRefiner requires y to be passed, but the target y is None: there are no labels to learn from; "
                "call fit(X, y) with one per vector"
            )
        with needs_training("the published recipe"):
            from entourage.refiner.paper.learning import fit_paper
        kept = {"checkpoint": checkpoint, "resume": resume}
        with on_device(device):
            self.network_, self.history_, self._report = fit_paper(settings, items, **kept, progress=progress)
        self.items_, self.n_neighbors_, self.n_steps_ = items, settings.n_neighbors, settings.n_blocks
        self.encoder_profile_ = learn_profile(items)
        self._warn()
        return self

    def _network_of_known(self) -> "PaperNetwork":
        """The network itself, with a warning: training it again to rehearse votes would take as long as the fit."""
        warn_caller(_NOT_REHEARSED)
        return self.network_

    @property
    def _n_features_out(self) -> int:
        return self.out_dim or self.n_features_in_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _check_settings(self) -> PaperSettings:
        return PaperSettings(**self.settings())

    # ---- on disk -----------------------------------------------------------------------------------------------

    def _config(self) -> dict[str, Any]:
        return super()._config() | {"history": asdict(self.history_)}

    def _restore(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        super()._restore(config, arrays)
        self.history_ = History(**config["history"])

    def _network(self, arrays: dict[str, np.ndarray]) -> "PaperNetwork":
        with needs_training("the published recipe"):
            from entourage.refiner.paper.network import PaperNetwork
        if self.n_steps_ != self.n_blocks:
            raise ValueError(f"steps is {self.n_steps_}; wanted {self.n_blocks}, which n_blocks of the settings names")
        return PaperNetwork.from_arrays(arrays, self.n_features_in_, self.n_blocks, self.out_dim)
