"""Make the universal scorer that the package ships: `make universal`, about ten minutes on two cores.

    python benchmarks/make_universal.py [--views 600] [--out FILE]

Everything it learns from is built in or drawn here, and nothing is downloaded:
- characters of the built-in glyphs' training scripts, by encoders that have seen other characters: trained little,
  well, and to overfitting; by an untrained one, and as pixels;
- scikit-learn's handwritten digits, as pixels;
- mixtures with classes inside super-classes, several modes, uneven sizes and spectra, drawn at random.
Each view of a source takes some classes, some items of each, and adds noise or a random projection, so that class
sizes, dimensions and purity vary widely. The scorer learns from the edges of the views. Scored afterwards: views of
the glyphs' test scripts, of which neither an encoder nor the scorer has seen a character, and newly drawn mixtures.
Writes the scorer into the package and what was measured to benchmarks/results/universal.json.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from entourage import data
from entourage.data.arrays import ImageArray
from entourage.encoders import SmallResNet
from entourage.encoders.embedding import embed
from entourage.evaluation import evaluate_embeddings
from entourage.refiner.graph import build_graph
from entourage.refiner.network import RelationalNetwork
from entourage.refiner.scorer import RelationScorer
from entourage.refiner.scorer_training import fit_scorer, new_scorer
from entourage.refiner.universal import UNIVERSAL_FILE
from entourage.runtime.progress import terminal_progress
from entourage.runtime.randomness import seeded_weights
from entourage.systems.baseline.settings import BaselineSettings
from entourage.systems.baseline.training import train_baseline
from entourage.values import Embeddings, label_codes

RESULTS = Path(__file__).parent / "results" / "universal.json"
SEED = 0
N_NEIGHBORS, N_STEPS = 12, 5
LENGTHS = (8, 12, 16, 16, 24, 32, 32, 48)  # of neighbour lists; one for each view
ENCODERS = (  # (classes, epochs): from hardly trained to overfitted; the other classes are for the scorer
    (80, 2),
    (80, 8),
    (80, 25),
    (30, 60),
    (80, 60),
    (120, 40),
)
SCORED_VIEWS = 60
EDGES_OF_A_VIEW = 16_000
MOST_ITEMS = 6000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--views", type=int, default=600, help="how many views to draw")
    parser.add_argument("--out", type=Path, default=UNIVERSAL_FILE, help="where to write the scorer")
    options = parser.parse_args()
    with terminal_progress() as progress:
        glyphs, unseen_glyphs = glyph_sources(progress)
        rng = np.random.default_rng(SEED)
        sources = {"glyphs": glyphs, "digits": digit_sources(), "mixture": None}
        kinds = ("glyphs", "glyphs", "digits", "mixture")
        views = [draw(rng, kinds[n % len(kinds)], sources) for n in range(options.views)]
        scorer = learn(views, rng, progress)
    network = RelationalNetwork(scorer, n_neighbors=N_NEIGHBORS)
    save_file(network.to_arrays(), options.out)
    sources = {"glyphs": unseen_glyphs, "mixture": None}
    rows = []
    for kind in ("glyphs", "mixture") * (SCORED_VIEWS // 2):
        rows.append(score(network, kind, draw(rng, kind, sources)))
    summary = {
        "views": len(views),
        "parameters": scorer.n_parameters,
        "unseen": rows,
        "mean": {
            name: float(np.mean([row[name] for row in rows]))
            for name in ("recall@1_raw", "recall@1", "map@r_raw", "map@r")
        },
    }
    RESULTS.write_text(json.dumps(summary, indent=2) + "\n")
    print(json.dumps(summary["mean"], indent=2))


def learn(views: list[Embeddings], rng: np.random.Generator, progress) -> RelationScorer:
    """A scorer trained on a like number of edges of every view."""
    relations, same_class = [], []
    for number, items in enumerate(views):
        graph = build_graph(items, int(rng.choice(LENGTHS)))
        codes = label_codes(graph.items.labels)
        rows = rng.permutation(len(codes))[: EDGES_OF_A_VIEW // graph.neighbors.k]
        relations.append(graph.relations[rows].reshape(-1, graph.relations.shape[-1]))
        same_class.append((codes[graph.neighbors.rows[rows]] == codes[rows, None]).ravel())
        progress("relating views", number + 1, len(views))
    relations, same_class = np.concatenate(relations), np.concatenate(same_class)
    scorer = new_scorer(relations, SEED)
    return fit_scorer(scorer, relations, same_class, epochs=5, seed=SEED, progress=progress)


def score(network: RelationalNetwork, kind: str, items: Embeddings) -> dict:
    """A view before and after refinement, and what the scorer says about it without labels."""
    *_, (refined, _, _) = network.refine(items, items, N_NEIGHBORS, N_STEPS)
    before, after = (evaluate_embeddings(e, nmi=False).metrics for e in (items, items.replace_vectors(refined)))
    graph = build_graph(items, N_NEIGHBORS)
    codes = label_codes(graph.items.labels)
    return {
        "kind": kind,
        "items": len(items),
        "classes": len(np.unique(codes)),
        "purity": float((codes[graph.neighbors.rows[:, :8]] == codes[:, None]).mean()),
        "estimated_purity": float(network.scorer.probabilities(graph.relations[:, :8]).mean()),
        **{f"{name}_raw": before[name] for name in ("recall@1", "map@r")},
        **{name: after[name] for name in ("recall@1", "map@r")},
    }


# ---- sources -------------------------------------------------------------------------------------------------------


def draw(rng, kind: str, sources: dict) -> Embeddings:
    """A view of one of the sources of a kind, or a mixture, of enough items to have a neighbourhood."""
    while True:
        x, codes = mixture(rng) if kind == "mixture" else view(rng, *sources[kind][rng.integers(len(sources[kind]))])
        if len(x) > 2 * N_NEIGHBORS:
            return Embeddings.from_vectors(x, labels=codes)


def glyph_sources(progress) -> tuple[list, list]:
    """Vectors and labels of the training scripts and of the test scripts, by encoders that have not seen them."""
    train = data.load("glyphs", "train", per_class=60, seed=1, progress=progress)
    test = data.load("glyphs", "test", per_class=60, seed=1, progress=progress)
    codes = label_codes(train.labels)
    learned_from, unseen = [], []
    for seed, (n_classes, epochs) in enumerate(ENCODERS):
        seen = np.isin(codes, np.random.default_rng(seed).permutation(codes.max() + 1)[:n_classes])
        few = seen & (np.arange(len(codes)) % 60 < 12)  # of 60 pictures a class
        by = BaselineSettings(epochs=epochs, seed=seed, validation_share=0.0)
        encoder, _, _ = train_baseline(ImageArray(train.pixels[few], train.labels[few]), by, progress=progress)
        learned_from.append((embed(encoder, train.pixels[~seen]), label_codes(train.labels[~seen])))
        unseen.append((embed(encoder, test.pixels), label_codes(test.labels)))
    for images, sources in ((train, learned_from), (test, unseen)):
        codes = label_codes(images.labels)
        pixels = images.pixels.reshape(len(codes), -1).astype(np.float32)
        sources.append((embed(seeded_weights(5, SmallResNet), images.pixels), codes))
        sources.append((PCA(64, random_state=SEED).fit(pixels[::7]).transform(pixels), codes))
    return learned_from, unseen


def digit_sources() -> list[tuple[np.ndarray, np.ndarray]]:
    pixels, codes = load_digits(return_X_y=True)
    return [(pixels, codes), (pixels - pixels.mean(axis=0), codes)]


def view(rng, vectors: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Some classes, some items of each, half the time noise, sometimes a random projection."""
    classes = rng.permutation(codes.max() + 1)
    classes = classes[: max(3, int(log_uniform(rng, min(8, len(classes)), len(classes) + 1)))]
    size = log_uniform(rng, 2, 150)
    rows = [rng.permutation(np.flatnonzero(codes == c))[: max(2, int(size * rng.lognormal(0, 0.4)))] for c in classes]
    while sum(map(len, rows)) > MOST_ITEMS:
        rows = rows[: len(rows) // 2]
    rows = np.concatenate(rows)
    x = vectors[rows].astype(np.float64)
    if rng.random() < 0.5:
        lengths = np.linalg.norm(x, axis=1, keepdims=True)
        x = x + rng.uniform(0, 1) * lengths * rng.normal(size=x.shape) / np.sqrt(x.shape[1])
    if rng.random() < 0.3:
        x = x @ rng.normal(size=(x.shape[1], int(rng.integers(16, min(128, x.shape[1]) + 1))))
    return x, codes[rows]


def mixture(rng) -> tuple[np.ndarray, np.ndarray]:
    """Classes around super-classes, each of a few modes and mostly of low rank, under a decaying spectrum."""
    sizes = log_uniform(rng, 2, 100) * rng.lognormal(0, rng.uniform(0, 0.7), int(log_uniform(rng, 15, 400)))
    sizes = np.clip(sizes.astype(int), 2, 300)
    while sizes.sum() > MOST_ITEMS:
        sizes = sizes[: len(sizes) // 2]
    dim, n_classes = int(log_uniform(rng, 32, 512)), len(sizes)
    spectrum = np.arange(1, dim + 1) ** -rng.uniform(0, 0.8)
    families = rng.normal(size=(max(2, int(n_classes / rng.uniform(2, 10))), dim))
    centres = families[rng.integers(len(families), size=n_classes)] * rng.uniform(0, 1.5)
    centres = centres + rng.normal(size=(n_classes, dim))
    noise, rank = rng.uniform(0.6, 2.2), int(rng.integers(2, 12))
    x = []
    for centre, size, scale in zip(centres, sizes, noise * rng.lognormal(0, 0.35, n_classes), strict=True):
        modes = rng.normal(size=(int(rng.integers(1, 4)), dim)) * rng.uniform(0, 1) * noise
        own = rng.normal(size=(size, rank)) @ rng.normal(size=(rank, dim)) / np.sqrt(rank)
        share = rng.uniform(0.2, 0.8)
        around = np.sqrt(share) * rng.normal(size=(size, dim)) + np.sqrt(1 - share) * own
        around *= scale * rng.lognormal(0, 0.3, (size, 1))
        x.append(centre + modes[rng.integers(len(modes), size=size)] + around)
    x = np.concatenate(x)
    if rng.random() < 0.5:  # encoders seldom centre what they give
        x = x + rng.uniform(0, 1.5) * rng.normal(size=dim)
    return x * spectrum, np.repeat(np.arange(n_classes), sizes)


def log_uniform(rng, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


if __name__ == "__main__":
    main()
