"""The relational recipe: attention by how two items sit in the neighbourhood graph.

    x = normalise(e M)                                  a learned base map M, or the vectors as they are
    p_ij = sigmoid(f(relations_ij))                     a small scorer: are i and its neighbour j of one class?
    w_ij = (0.85 p_ij + 0.15 p_ji)^s                    p_ji = 0 where i is not among the neighbours of j
    z_i^t = normalise(z_i^{t-1} + sum_j w_ij z_j^{t-1}),   z^0 = x,   t = 1..T
    e_i^t = normalise(b x_i + (1 - b) z_i^t)

The step is attention over the item itself and its k neighbours: a softmax of the logits 0 for itself and
log w_ij for j, values as they are. Relations (see relations.py) mean the same for any encoder, so a scorer carries
over to classes, and to encoders, that it has not seen. With s large or p small the step does nothing; with w_ij a
power of the similarity it is alpha query expansion.

Context counts distinct vectors: copies share one place in the graph. Queries look at a gallery whose own refinement
goes on at the same pace, so refined queries are compared with the refined gallery.

N items, M gallery items, G distinct ones, k neighbours, T steps, d dimensions.
"""

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from entourage.neighbors import own_gallery_rows, search
from entourage.neighbors.copies import copy_similarity, search_distinct
from entourage.refiner.gathering import gather_step, unit_sum
from entourage.refiner.relations import RELATIONS, Surroundings, relation_features, returned
from entourage.training.loop import seeded
from entourage.values import Embeddings, Neighbors

__all__ = [
    "Graph",
    "PreparedGallery",
    "RelationScorer",
    "RelationalNetwork",
    "blended",
    "build_graph",
    "estimated_purity",
    "fit_scorer",
    "trust",
]

_HIDDEN = 32
_EDGES_AT_ONCE = 2**16
_NEAREST = 8
_MUCH_SPARSER = 0.7
_RETURNED = 0.15  # how much a neighbour's view of the item counts
_MUTUAL = RELATIONS.index("mutual")


class RelationScorer(nn.Module):
    """Whether the two ends of an edge are of one class: features (..., 22) -> logits (...)."""

    def __init__(self):
        super().__init__()
        n = len(RELATIONS)
        self.layers = nn.Sequential(
            nn.Linear(n, _HIDDEN), nn.SiLU(), nn.Linear(_HIDDEN, _HIDDEN), nn.SiLU(), nn.Linear(_HIDDEN, 1)
        )
        self.register_buffer("centre", torch.zeros(n))
        self.register_buffer("spread", torch.ones(n))

    def forward(self, features: Tensor) -> Tensor:
        return self.layers((features - self.centre) / self.spread).squeeze(-1)

    @torch.no_grad()
    def probabilities(self, features: np.ndarray) -> np.ndarray:
        """p (N, k) of features (N, k, 22)."""
        edges = torch.from_numpy(features.reshape(-1, features.shape[-1]))
        parts = [self(part).sigmoid() for part in edges.split(_EDGES_AT_ONCE)]
        return torch.cat(parts).numpy().reshape(features.shape[:-1])


def fit_scorer(
    scorer: RelationScorer,
    features: np.ndarray,
    same_class: np.ndarray,
    *,
    epochs: int,
    seed: int,
    learning_rate: float = 4e-3,
    progress=None,
) -> RelationScorer:
    """Train in place on edges (E, 22) by the binary cross-entropy of "same class" (E,); returns the scorer."""
    if not len(features):  # all items are copies of one another
        return scorer.eval()
    features, same_class = torch.from_numpy(features), torch.from_numpy(same_class.astype(np.float32))
    draw = torch.Generator().manual_seed(int(seed))
    batch = 2048
    steps = epochs * -(-len(features) // batch)
    optimizer = torch.optim.Adam(scorer.parameters(), learning_rate, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, learning_rate, total_steps=steps + 1)
    for epoch in range(epochs):
        for rows in torch.randperm(len(features), generator=draw).split(batch):
            loss = F.binary_cross_entropy_with_logits(scorer(features[rows]), same_class[rows])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            schedule.step()
        if progress:
            progress("learning which neighbours belong", epoch + 1, epochs)
    return scorer.eval()


@dataclass(frozen=True)
class Graph:
    """The distinct items of a gallery, their neighbours among themselves and the relations of each pair."""

    items: Embeddings
    """The G distinct items."""
    stands_for: np.ndarray
    """(M,) which of them stands for each gallery item."""
    found: Neighbors
    """(G, k)."""
    relations: np.ndarray
    """(G, k, 22)."""
    copies_from: float
    """The similarity from which on an item is a copy of another."""

    @property
    def gallery_rows(self) -> np.ndarray:
        """(G,) which gallery item each of the distinct ones is."""
        return np.unique(self.stands_for, return_index=True)[1]


def build_graph(gallery: Embeddings, n_neighbors: int, progress=None) -> Graph:
    """The graph of a gallery as it is mapped; of a small one, at most a quarter are neighbours."""
    if len(gallery) == 1:
        rows = stands_for = np.zeros(1, np.int64)
        found = Neighbors(np.empty((1, 0)), np.empty((1, 0)))
    else:
        k = min(n_neighbors, max(len(gallery) // 4, 1))
        rows, stands_for, found = search_distinct(gallery, k, progress=progress)
    items = gallery if len(rows) == len(gallery) else gallery.take(rows)
    quarter = max(len(items) // 4, 1)
    found = Neighbors(found.rows[:, :quarter], found.similarities[:, :quarter])
    relations = relation_features(found) if found.k else np.empty((*found.rows.shape, len(RELATIONS)), np.float32)
    return Graph(items, stands_for, found, relations, copy_similarity(gallery))


def blended(x: np.ndarray, z: np.ndarray, blend: float, *, out: np.ndarray | None = None) -> np.ndarray:
    """normalise(b x + (1 - b) z), each (N, d); out may be z."""
    return x if blend == 1 else unit_sum(blend, x, 1 - blend, z, out=out)


def estimated_purity(scorer: RelationScorer, graph: Graph, n_neighbors: int) -> float:
    """Which share of the 8 nearest the scorer takes for an item's class, looking at lists of that many neighbours."""
    k = min(n_neighbors, graph.found.k)
    if not k:
        return 0.0
    shorter = Neighbors(graph.found.rows[:, :k], graph.found.similarities[:, :k])
    relations = graph.relations if k == graph.found.k else relation_features(shorter)
    return float(scorer.probabilities(np.ascontiguousarray(relations[:, :_NEAREST])).mean())


def trust(scorer: RelationScorer, graph: Graph) -> np.ndarray:
    """How far each item relies on each neighbour, (G, k): (1 - c) p_ij + c p_ji; p_ji is 0 if j does not list i."""
    p = scorer.probabilities(graph.relations)
    return (1 - _RETURNED) * p + _RETURNED * returned(p, graph.found.rows)


def trust_from_outside(scorer: RelationScorer, relations: np.ndarray) -> np.ndarray:
    """The same for items that nobody can list, (N, k) of relations (N, k, 22): p_ij stands for p_ji where j would."""
    return scorer.probabilities(relations) * (1 - _RETURNED + _RETURNED * relations[..., _MUTUAL])


class RelationalNetwork(nn.Module):
    """A base map (d, d), or none; a scorer; how many to look at (k), how sharply to weigh them (s) and how much of
    itself an item keeps (b).

    What was adapted to one density of items can do harm in a much sparser gallery. Where `cautious`, a network that was
    not adapted, finds a gallery far less pure than usual_purity, it takes over.
    """

    def __init__(
        self,
        scorer: RelationScorer,
        base: Tensor | None = None,
        *,
        n_neighbors: int = 12,
        sharpness: float = 3.5,
        blend: float = 0.3,
        cautious: "RelationalNetwork | None" = None,
        usual_purity: float = 0.0,
    ):
        super().__init__()
        self.register_buffer("n_neighbors", torch.tensor(n_neighbors))
        self.scorer = scorer
        self.register_buffer("base", base)
        self.register_buffer("sharpness", torch.tensor(float(sharpness)))
        self.register_buffer("blend", torch.tensor(float(blend)))
        self.cautious = cautious
        self.register_buffer("usual_purity", torch.tensor(float(usual_purity)))

    @classmethod
    def from_weights(cls, weights: dict[str, Tensor]) -> "RelationalNetwork":
        inner = {name.removeprefix("cautious."): w for name, w in weights.items() if name.startswith("cautious.")}
        base = torch.empty_like(weights["base"]) if "base" in weights else None
        network = cls(seeded(0, RelationScorer), base, cautious=cls.from_weights(inner) if inner else None)
        network.load_state_dict(weights)
        return network.eval()

    def _suited_to(self, graph: Graph) -> "RelationalNetwork":
        """This network, or the cautious one where the gallery is far sparser than what this one was adapted to."""
        if self.cautious is None:
            return self
        said = estimated_purity(self.cautious.scorer, graph, int(self.cautious.n_neighbors))
        return self.cautious if said < _MUCH_SPARSER * float(self.usual_purity) else self

    def mapped(self, items: Embeddings) -> Embeddings:
        """normalise(e M)."""
        if self.base is None:
            return items
        with torch.no_grad():
            return items.replace_vectors(F.normalize(torch.from_dlpack(items.vectors) @ self.base, dim=1).numpy())

    def refine(
        self,
        items: Embeddings,
        gallery: Embeddings,
        n_neighbors: int,
        n_steps: int,
        progress=None,
        *,
        last_only: bool = False,
    ) -> Iterator[tuple[np.ndarray, np.ndarray | None, np.ndarray]]:
        """Yield (e^t (N, d), weights (N, k), neighbour rows (N, k)) for t = 0..n_steps; no weights at t = 0.

        Weights sum to 1 over the neighbours; rows are of the gallery. last_only: yield t = n_steps alone.
        """
        x = self.mapped(items)
        mapped = x if gallery is items else self.mapped(gallery)
        company = self.company(build_graph(mapped, n_neighbors, progress), mapped, progress)
        look = company.look_within() if gallery is items else company.look_from(x, own_gallery_rows(items, gallery))
        rows, shares = company.graph.gallery_rows[look.rows], look.shares
        for t, z in enumerate(look.moves(company.moves(n_steps))):
            if t == n_steps or not last_only:
                yield (look.blended(x, z), shares, rows) if t else (x.vectors, None, rows)
            if progress and t:
                progress("refining", t, n_steps)

    def refine_both(self, items: Embeddings, gallery: Embeddings, n_neighbors: int, n_steps: int, progress=None):
        """Refined items (N, d) and the refined gallery (M, d), by the one graph of the gallery."""
        x, mapped = self.mapped(items), self.mapped(gallery)
        if not n_steps:  # as `refine` has it: nothing has been blended yet
            return x.vectors, mapped.vectors
        company = self.company(build_graph(mapped, n_neighbors, progress), mapped, progress)
        look, within = company.look_from(x, own_gallery_rows(items, gallery)), company.look_within()
        for t, z in enumerate(look.moves(company.moves(n_steps))):
            last = z
            if progress and t:
                progress("refining", t, n_steps)
        return look.blended(x, last), within.blended(mapped, (within.start, last[1]))

    def company(self, graph: Graph, mapped: Embeddings, progress=None) -> "Company":
        """The members of a graph as they weigh each other; graph: of the mapped gallery."""
        suited = self._suited_to(graph)
        if suited is not self:
            graph = build_graph(mapped, int(suited.n_neighbors), progress)
        return Company(suited, graph, trust(suited.scorer, graph) ** float(suited.sharpness))

    def prepare(self, gallery: Embeddings, n_neighbors: int, n_steps: int, progress=None) -> "PreparedGallery":
        """The gallery's graph and its members at every step, kept: T + 1 times the size of the gallery."""
        mapped = self.mapped(gallery)
        company = self.company(build_graph(mapped, n_neighbors, progress), mapped, progress)
        moves = []
        for t, z in enumerate(company.moves(n_steps, kept=True)):
            moves.append(z)
            if progress and t:
                progress("refining", t, n_steps)
        return PreparedGallery(self, gallery, mapped, company, moves)


@dataclass(frozen=True)
class Company:
    """The members of a graph and how they weigh each other."""

    network: RelationalNetwork
    """Whose scorer and settings suit the graph."""
    graph: Graph
    weights: np.ndarray
    """(G, k): trust^s."""

    def moves(self, n_steps: int, *, kept: bool = False) -> Iterator[np.ndarray]:
        """z^0..z^T of the members, each (G, d); unless they are kept, each is overwritten after the next."""
        z = self.graph.items.vectors
        yield z
        places = (None, None) if kept else (np.empty_like(z), np.empty_like(z))
        for t in range(n_steps):
            z = gather_step(z, z, self.graph.found.rows, self.weights, out=places[t % 2])
            yield z

    @functools.cached_property
    def surroundings(self) -> Surroundings:
        return Surroundings.of(self.graph.found)

    def look_within(self) -> "_Look":
        """How the gallery's items look at each other."""
        place = self.graph.stands_for
        return _Look(self, place, self.graph.found.rows[place], self.weights[place], self.graph.items.vectors[:0])

    def look_from(self, x: Embeddings, own_rows: np.ndarray) -> "_Look":
        """How mapped items look at the graph; own_rows (N,): which gallery item each is, by its id, or -1."""
        graph = self.graph
        k, own = graph.found.k, graph.stands_for[own_rows]
        # One more than is looked at, as one of them may be the item itself.
        found = search(Embeddings(x.vectors), graph.items, min(k + 1, len(graph.items)))
        place = np.where(found.similarities[:, 0] >= graph.copies_from, found.rows[:, 0], -1)
        # The same id with another vector is another view of the item: it looks from outside, but not at itself.
        alike = np.einsum("nd,nd->n", x.vectors, graph.items.vectors[own]) >= graph.copies_from
        place = np.where((own_rows >= 0) & alike, own, place)
        outside = place < 0
        rows, weights = graph.found.rows[place], self.weights[place]
        if outside.any() and k:
            others = _without(found, np.where(own_rows >= 0, own, -1), k)
            others = Neighbors(others.rows[outside], others.similarities[outside])
            rows[outside] = others.rows
            relations = relation_features(others, self.surroundings, np.full(len(others), -1))
            weights[outside] = trust_from_outside(self.network.scorer, relations) ** float(self.network.sharpness)
        return _Look(self, place, rows, weights, x.vectors[outside])


def _without(found: Neighbors, own: np.ndarray, k: int) -> Neighbors:
    """The first k of each list that are not the item itself; found (N, k + 1), own (N,) rows or -1."""
    kept = np.argsort(found.rows == own[:, None], axis=1, kind="stable")[:, :k]
    return Neighbors(*(np.take_along_axis(table, kept, axis=1) for table in (found.rows, found.similarities)))


@dataclass(frozen=True)
class _Look:
    """How each of N items looks at a company: as one of its members, or from outside.

    An item that is in the gallery, or a copy of something in it, has a place in the graph and moves with it.
    """

    company: Company
    place: np.ndarray
    """(N,) the distinct item that stands for each, -1 for items from outside."""
    rows: np.ndarray
    """(N, k) distinct items it looks at."""
    weights: np.ndarray
    """(N, k)."""
    start: np.ndarray
    """(n, d) the vectors of the n items from outside."""

    @property
    def shares(self) -> np.ndarray:
        """The weights, summing to 1."""
        return self.weights / np.maximum(self.weights.sum(axis=1, keepdims=True), 1e-30)

    def moves(self, members: Iterable[np.ndarray]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """z^0..z^T of the items from outside (n, d), as those of the members (G, d) come; yields both."""
        outside = self.place < 0
        rows, weights = self.rows[outside], self.weights[outside]
        z, before = self.start, None
        for context in members:
            if before is not None and len(z):
                z = gather_step(z, before, rows, weights)
            before = context
            yield z, context

    def blended(self, x: Embeddings, z: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """e^t (N, d) of the items, mapped x, from z^t of those from outside and of the members."""
        outside, members = z
        result = members[self.place]
        result[self.place < 0] = outside
        return blended(x.vectors, result, float(self.company.network.blend), out=result)


@dataclass(frozen=True)
class PreparedGallery:
    """A gallery whose graph and refinement are not made again for each query."""

    network: RelationalNetwork
    gallery: Embeddings
    mapped: Embeddings
    company: Company
    moves: list[np.ndarray]
    """z^0..z^T of its distinct items."""

    def refined(self) -> np.ndarray:
        """The refined gallery (M, d)."""
        look = self.company.look_within()
        return look.blended(self.mapped, (look.start, self.moves[-1]))

    def refine(self, items: Embeddings) -> np.ndarray:
        """Refined items (N, d), as seen from the gallery."""
        x = self.network.mapped(items)
        look = self.company.look_from(x, own_gallery_rows(items, self.gallery))
        *_, last = look.moves(self.moves)
        return look.blended(x, last)
