"""The methods to compare, by name: how each is built, and the settings it may choose from.

Every baseline has a budget of at most 24 settings. Stages follow each other, each keeping the best so far: a chain
chooses its first part with the expansion's defaults, then the expansion. Where the end of a range is best, values
beyond it are tried as well. The refiners choose by themselves, in fit, on the training classes alone: the relational
one among 22 settings.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

from sklearn.utils import get_tags

from entourage.baselines import (
    LDA,
    AttentionExpansion,
    BaseMap,
    Chain,
    ContextualSimilarity,
    Diffusion,
    GraphExpansion,
    GraphNetwork,
    KReciprocal,
    LinearHead,
    Method,
    PCAWhitening,
    QueryExpansion,
    QuerySideExpansion,
    Raw,
    SelfAttention,
    SuperGlobal,
    VectorMethod,
    WithinClassWhitening,
)
from entourage.comparison.validation import BASE_SHRINKAGES, BASE_STEPS, LONGEST_TRAINING
from entourage.refiner.graph import most_neighbors
from entourage.refiner.recipes import RECIPES
from entourage.runtime.config import check_name
from entourage.runtime.extras import require
from entourage.values import Embeddings

__all__ = ["BUDGET", "METHODS", "MethodSpec", "Refined", "chosen_in_fit", "select_methods"]

BUDGET = 24
# Settings that a refiner chooses when it is fitted.
CHOSEN = ("base_map", "scorer", "neighbors", "sharpness", "blend")


@dataclass(frozen=True)
class MethodSpec:
    """A method by name, and the settings it may choose from."""

    name: str
    """What tables call it."""
    build: Callable[..., Method]
    """build(**settings) gives the method, unfitted."""
    stages: Sequence[Sequence[dict[str, Any]]] = ()
    """Changes to try, stage by stage; see tuning.choose_settings."""
    beyond: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """How far the range of a setting is extended where its end is best; see tuning.choose_settings."""
    fixed: dict[str, Any] = field(default_factory=dict)
    """Settings that are not tuned, and reported as such."""
    learns_with: str | None = None
    """The library it learns with, if that comes with an extra of the package."""

    @property
    def draws_nothing(self) -> bool:
        """Whether every seed gives the same result: nothing is chosen and nothing learned."""
        return not self.stages and not get_tags(self.build(**self.fixed)).requires_fit

    @property
    def settings_are(self) -> str:
        """How it comes by its settings."""
        if self.stages:
            return "tuned"
        return "chosen in fit" if self.is_trained else "fixed"

    @property
    def is_refiner(self) -> bool:
        """Whether it is one of the refiners of this package."""
        return isinstance(self.build(**self.fixed), Refined)

    @property
    def is_trained(self) -> bool:
        """Whether it learns from labels; one that only chooses its settings by them does not."""
        return self.learns_with is not None or get_tags(self.build(**self.fixed)).target_tags.required


class Refined(VectorMethod):
    """A refiner as one of the methods; `universal` fits it without labels.

    Parameters
    ----------
    recipe : {"relational", "paper"}
    universal : bool
    n_neighbors : int, optional
        How many neighbours are attended to; by default as many as the recipe does.
    random_state : int

    Attributes
    ----------
    refiner_ : ContextRefiner or PaperRefiner
    """

    _learned = "refiner_"

    def __init__(
        self,
        recipe: str = "relational",
        universal: bool = False,
        n_neighbors: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.recipe = recipe
        self.universal = universal
        self.n_neighbors = n_neighbors
        self.random_state = random_state

    @property
    def n_parameters_(self) -> int:
        self._check_fitted()
        return self.refiner_.n_parameters_

    def _learn(self, items: Embeddings) -> None:
        self.refiner_ = self._refiner(items).fit(_without_labels(items) if self.universal else items)

    def _moved(self, items: Embeddings) -> Embeddings:
        if self.universal:  # it learns nothing, and judges by the items themselves whether it would help
            return items.replace_vectors(self._refiner(items).fit_transform(_without_labels(items)).vectors)
        return self.refiner_.transform(items, context=items)

    def _refiner(self, items: Embeddings) -> Any:
        """The refiner of the recipe, unfitted, with no more neighbours than items attend to."""
        own: dict[str, Any] = {}
        if self.n_neighbors is not None:
            own["n_neighbors"] = min(self.n_neighbors, most_neighbors(len(items)))
        return RECIPES[self.recipe](random_state=self.random_state, **own)


def _without_labels(items: Embeddings) -> Embeddings:
    return Embeddings(items.vectors, items.ids, named=items.named)


def chosen_in_fit(method: Method) -> dict[str, Any]:
    """Find the settings that a fitted method chose by itself, on training classes it held out."""
    refiner = getattr(method, "refiner_", method)
    history = getattr(refiner, "history_", None)
    if history is not None:
        return {"kept_epoch": history.best_epoch}
    protocol = refiner.report()["protocol"] if hasattr(refiner, "report") else {}
    return {name: protocol[name] for name in CHOSEN if name in protocol}


def _grid(**values: Sequence[Any]) -> list[dict[str, Any]]:
    """Every combination in the given order, as ties go to the first (scikit-learn's ParameterGrid sorts the names).

    >>> _grid(k=[1, 2], alpha=[0])
    [{'k': 1, 'alpha': 0}, {'k': 2, 'alpha': 0}]
    """
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


def _head_then_expansion(epochs: int = 6, **expansion: Any) -> Chain:
    return Chain(LinearHead(epochs=epochs), QueryExpansion(**expansion))


def _whitening_then_expansion(shrinkage: float = 0.1, **expansion: Any) -> Chain:
    return Chain(WithinClassWhitening(shrinkage=shrinkage), QueryExpansion(**expansion))


def _base_then_expansion(shrinkage: float = 0.5, head_steps: int = 150, **expansion: Any) -> Chain:
    return Chain(BaseMap(shrinkage=shrinkage, steps=head_steps), QueryExpansion(**expansion))


def _base_then_reciprocal(shrinkage: float = 0.5, head_steps: int = 150, **reciprocal: Any) -> Chain:
    return Chain(BaseMap(shrinkage=shrinkage, steps=head_steps), KReciprocal(**reciprocal))


Settings = dict[str, Sequence[Any]]
"""Values by the name of a setting."""

_SHRINKAGE = _grid(shrinkage=[0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.98])
# A first stage names every setting, so that the choice is reported whole.
_EXPANSION = [
    _grid(k=[8, 16, 32, 64], alpha=[1, 3], steps=[1, 2], blend=[0]),
    _grid(blend=[0.15, 0.3, 0.5]),
    _grid(alpha=[0, 2, 5]),
    _grid(k=[4, 128]),
]
_PLAIN_EXPANSION: Settings = {"k": [8], "alpha": [3], "steps": [1], "blend": [0]}
# What remains of the budget after six settings of the first part.
_SECOND_EXPANSION = [
    _grid(k=[8, 16, 32, 64], alpha=[1, 3, 5]),
    [{"steps": 2}],
    _grid(blend=[0.15, 0.3, 0.5]),
    _grid(k=[4, 128]),
]
_RECIPROCAL = [_grid(k1=[8, 12, 20, 30, 40], k2=[3, 6, 10], weight=[0.3]), _grid(weight=[0, 0.1, 0.2, 0.5, 0.7])]
_DIFFUSION = [_grid(k=[5, 10, 20, 30, 50], alpha=[0.7, 0.8, 0.9, 0.95], gamma=[3]), _grid(gamma=[1, 2, 5])]
_GRAPH_NETWORK = [
    _grid(k1=[8, 16, 26, 40, 60], k2=[3, 7, 12], alpha=[2], layers=[2]),
    _grid(layers=[1, 3]),
    _grid(alpha=[1, 3]),
]
_SUPER_GLOBAL = [_grid(candidates=[100], k=[4, 9, 19], beta=[0.15, 0.5, 1.0]), _grid(candidates=[50, 200, 400])]
# Whitening and head are chosen with a plain expansion or re-ranking, as the refiner chooses them with a plain scorer.
_BASE: Settings = {"shrinkage": list(BASE_SHRINKAGES), "head_steps": [0]}
_HEADS = _grid(head_steps=[steps for steps in BASE_STEPS if steps])
_BASE_EXPANSION = [
    _grid(**_BASE, **_PLAIN_EXPANSION),
    _HEADS,
    _grid(k=[8, 16, 32, 64], alpha=[1, 3]),
    [{"steps": 2}],
    _grid(blend=[0.15, 0.3]),
    _grid(k=[4, 128]),
    [{"alpha": 5}],
]
_BASE_RECIPROCAL = [
    _grid(**_BASE, k1=[20], k2=[6], weight=[0.3]),
    _HEADS,
    _grid(k1=[8, 12, 20, 30, 40], k2=[3, 6]),
    _grid(weight=[0, 0.1, 0.2, 0.5]),
    [{"k2": 10}],
]

# How far ranges are extended where their end is best.
_FURTHER_SHRINKAGE: Settings = {
    "shrinkage": (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
}
_FURTHER_EXPANSION: Settings = {
    "k": (1, 2, 4, 8, 16, 32, 64, 128, 256),
    "alpha": (0, 1, 2, 3, 5, 8, 12, 20, 30),
    "steps": (1, 2, 3, 4, 6, 9, 13),
    "blend": (0, 0.15, 0.3, 0.5, 0.7, 0.85),
}
_FURTHER_RECIPROCAL: Settings = {
    "k1": (2, 4, 8, 12, 20, 30, 40, 60, 90, 130),
    "k2": (1, 2, 3, 6, 10, 15, 22, 32),
    "weight": (0, 0.1, 0.2, 0.3, 0.5, 0.7, 0.85, 1),
}
_FURTHER_DIFFUSION: Settings = {
    "k": (2, 3, 5, 10, 20, 30, 50, 80, 120, 200),
    "alpha": (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99),
    "gamma": (0, 1, 2, 3, 5, 8, 12, 20),
}
_FURTHER_GRAPH_NETWORK: Settings = {
    "k1": (1, 2, 4, 8, 16, 26, 40, 60, 90, 130, 200),
    "k2": (1, 2, 3, 7, 12, 18, 26, 40),
    "alpha": (0, 1, 2, 3, 5, 8),
    "layers": (1, 2, 3, 4, 6),
}
_FURTHER_SUPER_GLOBAL: Settings = {
    "candidates": (10, 25, 50, 100, 200, 400, 800),
    "k": (1, 2, 4, 9, 19, 39, 79),
    "beta": (0, 0.05, 0.15, 0.5, 1.0, 2.0, 4.0),
}
_FURTHER_HEAD: Settings = {
    "epochs": (1, 2, 4, 6, 9, 13, 18, 25, 35, 50),
    "learning_rate": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2),
}
_FURTHER_BASE: Settings = {
    "shrinkage": (*_FURTHER_SHRINKAGE["shrinkage"], 1.0),
    "head_steps": (0, 60, 150, 300, 600, 1200),
}

METHODS = {
    spec.name: spec
    for spec in (
        MethodSpec("raw", Raw),
        MethodSpec("pca-whitening", PCAWhitening, [_SHRINKAGE], _FURTHER_SHRINKAGE),
        MethodSpec("within-class-whitening", WithinClassWhitening, [_SHRINKAGE], _FURTHER_SHRINKAGE),
        MethodSpec("lda", LDA, [_SHRINKAGE], _FURTHER_SHRINKAGE),
        MethodSpec(
            "average-qe",
            partial(QueryExpansion, alpha=0),
            [_grid(k=[4, 6, 8, 12, 16, 24, 32, 48, 64, 128])],
            {"k": _FURTHER_EXPANSION["k"]},
        ),
        MethodSpec(
            "alpha-qe-query",
            QuerySideExpansion,
            [_grid(k=[4, 8, 16, 32], alpha=[0, 1, 2, 3, 4, 5])],
            {name: _FURTHER_EXPANSION[name] for name in ("k", "alpha")},
        ),
        MethodSpec("alpha-qe", QueryExpansion, _EXPANSION, _FURTHER_EXPANSION),
        MethodSpec("alpha-qe-8-3", QueryExpansion, fixed={"k": 8, "alpha": 3.0}),
        MethodSpec("k-reciprocal", KReciprocal, _RECIPROCAL, _FURTHER_RECIPROCAL),
        MethodSpec("k-reciprocal-20-6", KReciprocal, fixed={"k1": 20, "k2": 6, "weight": 0.3}),
        MethodSpec("diffusion", Diffusion, _DIFFUSION, _FURTHER_DIFFUSION),
        MethodSpec("diffusion-fixed", Diffusion, fixed={"k": 20, "alpha": 0.9, "gamma": 3.0}),
        MethodSpec("graph-network", GraphNetwork, _GRAPH_NETWORK, _FURTHER_GRAPH_NETWORK),
        MethodSpec("graph-network-fixed", GraphNetwork, fixed={"k1": 26, "k2": 7, "alpha": 2.0, "layers": 2}),
        MethodSpec("super-global", SuperGlobal, _SUPER_GLOBAL, _FURTHER_SUPER_GLOBAL),
        MethodSpec("super-global-fixed", SuperGlobal, fixed={"candidates": 400, "k": 9, "beta": 0.15}),
        MethodSpec(
            "linear-head",
            LinearHead,
            [_grid(learning_rate=[3e-4, 1e-3], epochs=[2, 4, 6, 8, 10, 12, 14, 16, LONGEST_TRAINING])],
            _FURTHER_HEAD,
            learns_with="torch",
        ),
        MethodSpec(
            "head+alpha-qe",
            _head_then_expansion,
            [_grid(epochs=[2, 4, 6, 9, 13, LONGEST_TRAINING], **_PLAIN_EXPANSION), *_SECOND_EXPANSION],
            {"epochs": _FURTHER_HEAD["epochs"]} | _FURTHER_EXPANSION,
            learns_with="torch",
        ),
        MethodSpec(
            "whitening+alpha-qe",
            _whitening_then_expansion,
            [_grid(shrinkage=[0.02, 0.1, 0.3, 0.5, 0.7, 0.9], **_PLAIN_EXPANSION), *_SECOND_EXPANSION],
            _FURTHER_SHRINKAGE | _FURTHER_EXPANSION,
        ),
        MethodSpec(
            "base+alpha-qe",
            _base_then_expansion,
            _BASE_EXPANSION,
            _FURTHER_BASE | _FURTHER_EXPANSION,
            learns_with="torch",
        ),
        MethodSpec(
            "base+k-reciprocal",
            _base_then_reciprocal,
            _BASE_RECIPROCAL,
            _FURTHER_BASE | _FURTHER_RECIPROCAL,
            learns_with="torch",
        ),
        MethodSpec("self-attention", SelfAttention, learns_with="torch"),
        MethodSpec("attention-qe", AttentionExpansion, learns_with="torch"),
        MethodSpec("graph-qe", GraphExpansion, learns_with="torch"),
        MethodSpec("contextual-similarity", ContextualSimilarity, learns_with="torch"),
        MethodSpec("paper", Refined, fixed={"recipe": "paper"}, learns_with="torch"),
        MethodSpec("universal", Refined, fixed={"universal": True}),
        MethodSpec(
            "universal-tuned",
            partial(Refined, universal=True),
            [_grid(n_neighbors=[None, 6, 12, 24, 48])],
            {"n_neighbors": (2, 4, 6, 12, 24, 48, 96, 192)},
        ),
        MethodSpec("relational", Refined, fixed={"recipe": "relational"}, learns_with="torch"),
    )
}


def select_methods(methods: str | Iterable[str | MethodSpec] = "all") -> list[MethodSpec]:
    """Find methods by name; raw, which all are measured against, comes first.

    Parameters
    ----------
    methods : "all", a name from METHODS, or names and MethodSpecs of one's own
        Which methods to compare.

    Returns
    -------
    list of MethodSpec
        Each once.

    >>> [spec.name for spec in select_methods(["lda", "alpha-qe"])]
    ['raw', 'lda', 'alpha-qe']
    """
    wanted = list(METHODS) if isinstance(methods, str) and methods == "all" else methods
    wanted = [wanted] if isinstance(wanted, str) else wanted
    chosen = {"raw": METHODS["raw"]}
    for method in wanted:
        if not isinstance(method, MethodSpec):
            check_name(method, ["all", *METHODS], "method")
        spec = method if isinstance(method, MethodSpec) else METHODS[method]
        chosen.setdefault(spec.name, spec)
    _check_installed(list(chosen.values()))
    return list(chosen.values())


def _check_installed(specs: list[MethodSpec]) -> None:
    """Before any work: a method left out for want of a library would look like one that cannot do it."""
    for library in sorted({spec.learns_with for spec in specs if spec.learns_with}):
        learning = [spec.name for spec in specs if spec.learns_with == library]
        require(library, f"comparing {', '.join(learning)}")
