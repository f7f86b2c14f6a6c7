"""The methods to compare, by name: how each is built, and the settings it may choose from.

Every baseline has a budget of at most 24 settings. Stages follow each other, each keeping the best so far: a chain
chooses its first part with the expansion's defaults, then the expansion. Where the end of a range is best, up to 32
values beyond it are tried as well. The refiners choose by themselves, in fit, on the training classes alone: the
relational one among 54 settings at most.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
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
from entourage.comparison.ranges import (
    BASE_ALONE,
    BASE_EXPANSION,
    BASE_RECIPROCAL,
    DIFFUSION,
    EXPANSION,
    FURTHER_BASE,
    FURTHER_DIFFUSION,
    FURTHER_EXPANSION,
    FURTHER_GRAPH_NETWORK,
    FURTHER_HEAD,
    FURTHER_NEIGHBORS,
    FURTHER_RECIPROCAL,
    FURTHER_SHRINKAGE,
    FURTHER_SUPER_GLOBAL,
    GRAPH_NETWORK,
    PLAIN_EXPANSION,
    RECIPROCAL,
    SECOND_EXPANSION,
    SHRINKAGE,
    SUPER_GLOBAL,
    grid,
)
from entourage.comparison.reranking import RerankedSearch
from entourage.comparison.validation import LONGEST_TRAINING
from entourage.neighbors import SearchIndex
from entourage.refiner.confidence import GalleryConfidence
from entourage.refiner.graph import most_neighbors
from entourage.refiner.recipes import RECIPES
from entourage.runtime.config import check_name
from entourage.runtime.extras import require
from entourage.values import Embeddings, FloatArray

__all__ = ["BUDGET", "METHODS", "MethodSpec", "Refined", "chosen_in_fit", "select_methods"]

BUDGET = 24
# Settings that a refiner chooses when it is fitted.
CHOSEN = ("base_map", "scorer", "neighbors", "steps", "sharpness", "blend", "pull")


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
    on_request: bool = False
    """Whether "all" leaves it out: it takes long, or shows what part of a method does."""

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
        """Whether a refiner of this package is in it, be it to re-rank or after another method; others are rivals."""
        method = self.build(**self.fixed)
        return isinstance(method.second if isinstance(method, Chain) else method, Refined | RerankedSearch)

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
        self.refiner_ = self._refiner(items).fit(items.without_labels() if self.universal else items)

    def _moved(self, items: Embeddings) -> Embeddings:
        if self.universal:  # it learns nothing, and judges by the items themselves whether it would help
            return items.replace_vectors(self._refiner(items).fit_transform(items.without_labels()).vectors)
        return self.refiner_.transform(items, context=items)

    def _moved_both(self, queries: Embeddings, gallery: Embeddings) -> tuple[Embeddings, Embeddings]:
        if self.universal:  # it judges by the gallery alone
            moved = self._refiner(gallery).fit_transform_both(queries, gallery.without_labels())
        else:
            moved = self.refiner_.transform_both(queries, gallery)
        return queries.replace_vectors(moved[0].vectors), gallery.replace_vectors(moved[1].vectors)

    def confidence(self, queries: Embeddings, gallery: Embeddings, best: FloatArray) -> FloatArray:
        """What a served gallery gives beside refined queries: how near they are as they came; `best` does not count."""
        return GalleryConfidence(SearchIndex(gallery)).of(Embeddings(queries.vectors))

    def _refiner(self, items: Embeddings) -> Any:
        """The refiner of the recipe, unfitted, with no more neighbours than items attend to."""
        own: dict[str, Any] = {}
        if self.n_neighbors is not None:
            own["n_neighbors"] = min(self.n_neighbors, most_neighbors(len(items)))
        return RECIPES[self.recipe](random_state=self.random_state, **own)


def chosen_in_fit(method: Method) -> dict[str, Any]:
    """Find the settings that a fitted method chose by itself, on training classes it held out."""
    refiner = getattr(method, "refiner_", method)
    history = getattr(refiner, "history_", None)
    if history is not None:
        return {"kept_epoch": history.best_epoch}
    protocol = refiner.report()["protocol"] if hasattr(refiner, "report") else {}
    return {name: protocol[name] for name in CHOSEN if name in protocol}


def _head_then_expansion(epochs: int = 6, **expansion: Any) -> Chain:
    return Chain(LinearHead(epochs=epochs), QueryExpansion(**expansion))


def _whitening_then_expansion(shrinkage: float = 0.1, **expansion: Any) -> Chain:
    return Chain(WithinClassWhitening(shrinkage=shrinkage), QueryExpansion(**expansion))


def _base_then_expansion(shrinkage: float = 0.5, head_steps: int = 150, **expansion: Any) -> Chain:
    return Chain(BaseMap(shrinkage=shrinkage, steps=head_steps), QueryExpansion(**expansion))


def _base_map(shrinkage: float = 0.5, head_steps: int = 150) -> BaseMap:
    return BaseMap(shrinkage=shrinkage, steps=head_steps)


def _base_then_universal(shrinkage: float = 0.5, head_steps: int = 150, n_neighbors: int | None = None) -> Chain:
    return Chain(BaseMap(shrinkage=shrinkage, steps=head_steps), Refined(universal=True, n_neighbors=n_neighbors))


def _base_then_reciprocal(shrinkage: float = 0.5, head_steps: int = 150, **reciprocal: Any) -> Chain:
    return Chain(BaseMap(shrinkage=shrinkage, steps=head_steps), KReciprocal(**reciprocal))


METHODS = {
    spec.name: spec
    for spec in (
        MethodSpec("raw", Raw),
        MethodSpec("pca-whitening", PCAWhitening, [SHRINKAGE], FURTHER_SHRINKAGE),
        MethodSpec("within-class-whitening", WithinClassWhitening, [SHRINKAGE], FURTHER_SHRINKAGE),
        MethodSpec("lda", LDA, [SHRINKAGE], FURTHER_SHRINKAGE),
        MethodSpec(
            "average-qe",
            partial(QueryExpansion, alpha=0),
            [grid(k=[4, 6, 8, 12, 16, 24, 32, 48, 64, 128])],
            {"k": FURTHER_EXPANSION["k"]},
        ),
        MethodSpec(
            "alpha-qe-query",
            QuerySideExpansion,
            [grid(k=[4, 8, 16, 32], alpha=[0, 1, 2, 3, 4, 5])],
            {name: FURTHER_EXPANSION[name] for name in ("k", "alpha")},
        ),
        MethodSpec("alpha-qe", QueryExpansion, EXPANSION, FURTHER_EXPANSION),
        MethodSpec("alpha-qe-8-3", QueryExpansion, fixed={"k": 8, "alpha": 3.0}),
        MethodSpec("k-reciprocal", KReciprocal, RECIPROCAL, FURTHER_RECIPROCAL),
        MethodSpec("k-reciprocal-20-6", KReciprocal, fixed={"k1": 20, "k2": 6, "weight": 0.3}),
        MethodSpec("diffusion", Diffusion, DIFFUSION, FURTHER_DIFFUSION),
        MethodSpec("diffusion-fixed", Diffusion, fixed={"k": 20, "alpha": 0.9, "gamma": 3.0}),
        MethodSpec("graph-network", GraphNetwork, GRAPH_NETWORK, FURTHER_GRAPH_NETWORK),
        MethodSpec("graph-network-fixed", GraphNetwork, fixed={"k1": 26, "k2": 7, "alpha": 2.0, "layers": 2}),
        MethodSpec("super-global", SuperGlobal, SUPER_GLOBAL, FURTHER_SUPER_GLOBAL),
        MethodSpec("super-global-fixed", SuperGlobal, fixed={"candidates": 400, "k": 9, "beta": 0.15}),
        MethodSpec(
            "linear-head",
            LinearHead,
            [grid(learning_rate=[3e-4, 1e-3], epochs=[2, 4, 6, 8, 10, 12, 14, 16, LONGEST_TRAINING])],
            FURTHER_HEAD,
            learns_with="torch",
        ),
        MethodSpec(
            "head+alpha-qe",
            _head_then_expansion,
            [grid(epochs=[2, 4, 6, 9, 13, LONGEST_TRAINING], **PLAIN_EXPANSION), *SECOND_EXPANSION],
            {"epochs": FURTHER_HEAD["epochs"]} | FURTHER_EXPANSION,
            learns_with="torch",
        ),
        MethodSpec(
            "whitening+alpha-qe",
            _whitening_then_expansion,
            [grid(shrinkage=[0.02, 0.1, 0.3, 0.5, 0.7, 0.9], **PLAIN_EXPANSION), *SECOND_EXPANSION],
            FURTHER_SHRINKAGE | FURTHER_EXPANSION,
        ),
        MethodSpec("base-map", _base_map, BASE_ALONE, FURTHER_BASE, learns_with="torch", on_request=True),
        MethodSpec(
            "base+universal",
            _base_then_universal,
            [*BASE_ALONE, grid(n_neighbors=[6, 12, 24, 48])],
            FURTHER_BASE | FURTHER_NEIGHBORS,
            learns_with="torch",
            on_request=True,
        ),
        MethodSpec(
            "base+alpha-qe",
            _base_then_expansion,
            BASE_EXPANSION,
            FURTHER_BASE | FURTHER_EXPANSION,
            learns_with="torch",
        ),
        MethodSpec(
            "base+k-reciprocal",
            _base_then_reciprocal,
            BASE_RECIPROCAL,
            FURTHER_BASE | FURTHER_RECIPROCAL,
            learns_with="torch",
        ),
        MethodSpec("self-attention", SelfAttention, learns_with="torch"),
        MethodSpec("rerank-100", RerankedSearch, fixed={"candidates": 100, "universal": True}),
        MethodSpec("attention-qe", AttentionExpansion, learns_with="torch"),
        MethodSpec("graph-qe", GraphExpansion, learns_with="torch"),
        MethodSpec("contextual-similarity", ContextualSimilarity, learns_with="torch", on_request=True),
        MethodSpec("paper", Refined, fixed={"recipe": "paper"}, learns_with="torch"),
        MethodSpec("universal", Refined, fixed={"universal": True}),
        MethodSpec(
            "universal-tuned",
            partial(Refined, universal=True),
            [grid(n_neighbors=[None, 6, 12, 24, 48])],
            FURTHER_NEIGHBORS,
        ),
        MethodSpec("relational", Refined, fixed={"recipe": "relational"}, learns_with="torch"),
    )
}


def select_methods(methods: str | Iterable[str | MethodSpec] = "all") -> list[MethodSpec]:
    """Find methods by name; raw, which all are measured against, comes first.

    Parameters
    ----------
    methods : "all", a name from METHODS, or names and MethodSpecs of one's own
        Which methods to compare; "all" leaves out those that are compared on request only.

    Returns
    -------
    list of MethodSpec
        Each once.

    >>> [spec.name for spec in select_methods(["lda", "alpha-qe"])]
    ['raw', 'lda', 'alpha-qe']
    """
    everything = [name for name, spec in METHODS.items() if not spec.on_request]
    wanted = everything if isinstance(methods, str) and methods == "all" else methods
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
