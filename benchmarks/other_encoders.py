"""Whether a fitted refiner knows vectors of another encoder, and is never wrong about those of its own.

    python benchmarks/other_encoders.py [--data FOLDER]

Real sets (folders with vectors.npy and labels.npy): the profile is learned on the first half of the classes. Of the
other half, whole and as small sets of some classes with a hundred items or more, none may be suspected. Suspected
should be what another encoder would give: the other half rotated, or with its dimensions in another order, and other
sets of as many dimensions, which are listed by name, as some are of the same encoder. Writes
benchmarks/results/other_encoders.md, which docs/research.md shows.
"""

import argparse
import os
import warnings
from pathlib import Path

import numpy as np

from entourage import EntourageWarning
from entourage.refiner.encoder_profile import LEAST_ITEMS, learn_profile, warn_of_another_encoder
from entourage.values import Embeddings, FloatArray
from markers import fill

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parent.parent / "docs" / "research.md"
SMALL_SETS, TIMES = 40, 5
HEAD = "set | d | other classes | small sets | rotated | reordered | other sets suspected | other sets not suspected"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("ENTOURAGE_DATA"), help="folder of real sets")
    folders = sorted(path.parent for path in Path(parser.parse_args().data or ".").glob("*/vectors.npy"))
    sets = {folder.name: read(folder) for folder in folders}
    lines = [f"| {HEAD} |", "|" + "---|" * (HEAD.count("|") + 1)]
    for name in sets:
        lines.append(row(name, sets))
        print(lines[-1], flush=True)
    text = "\n".join(lines) + "\n"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "other_encoders.md").write_text(text)
    fill(PAGE, "other_encoders", text)


def read(folder: Path) -> Embeddings:
    vectors = np.load(folder / "vectors.npy").astype(np.float32)
    return Embeddings.from_vectors(vectors, labels=np.load(folder / "labels.npy"))


def row(name: str, sets: dict[str, Embeddings]) -> str:
    items, rng = sets[name], np.random.default_rng(0)
    seen = items.labels < (items.labels.max() + 1) // 2
    profile, others = learn_profile(items.take(seen)), items.take(~seen)
    if profile is None:
        return f"| {name} | {items.dim} | no profile |" + " |" * 5
    small = [small_set(others, rng) for _ in range(SMALL_SETS)]
    rotations = (np.linalg.qr(rng.normal(size=(items.dim, items.dim)))[0] for _ in range(TIMES))
    rotated = [others.vectors @ rotation.astype(np.float32) for rotation in rotations]
    reordered = [others.vectors[:, rng.permutation(items.dim)] for _ in range(TIMES)]
    same_width = {other: each for other, each in sets.items() if other != name and each.dim == items.dim}
    suspects = [other for other, each in same_width.items() if suspected(each.vectors, profile)]
    cells = [counted(each, profile) for each in ([others.vectors], small, rotated, reordered)]
    cells += [", ".join(suspects), ", ".join(other for other in same_width if other not in suspects)]
    return f"| {' | '.join([name, str(items.dim), *cells])} |"


def small_set(items: Embeddings, rng: np.random.Generator) -> FloatArray:
    """Vectors of as few classes, drawn at random, as have a hundred items."""
    drawn = rng.permutation(np.unique(items.labels))
    sizes = np.cumsum([(items.labels == label).sum() for label in drawn])
    return items.vectors[np.isin(items.labels, drawn[: 1 + np.searchsorted(sizes, LEAST_ITEMS)])]


def suspected(vectors: FloatArray, profile: FloatArray) -> bool:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", EntourageWarning)
        warn_of_another_encoder(Embeddings.from_vectors(vectors), profile, "the vectors")
    return bool(seen)


def counted(sets: list[FloatArray], profile: FloatArray) -> str:
    return f"{sum(suspected(vectors, profile) for vectors in sets)} of {len(sets)}"


if __name__ == "__main__":
    main()
