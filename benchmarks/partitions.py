"""How many partitions have to be searched: recall of the partitioned graph against the share of partitions searched.

    python benchmarks/partitions.py [--items N ...] [--dim D] [--partitions P] [--folder FOLDER]
    python benchmarks/partitions.py --items 10000000 --partitions 153
    python benchmarks/partitions.py --vectors FILE.npy ...      real ones instead, known by the name of their folder

Vectors are drawn, written as Parquet shards, read, clustered and sorted into partitions by the code that does so on a
cluster (src/entourage/engine), here in one process. Then the 16 nearest neighbours of 256 items are found exactly, and
it is counted how many of them lie in the S partitions nearest to the item's own: each partition that is searched is
searched exactly, so this is the recall of the graph. Two kinds of sets: classes of about 16 items around centres that
are spread evenly in 64 dimensions, the hardest case there is for partitions; and the same with centres in groups of
groups, as real sets have them. The table goes into docs/scaling.md; what was measured of other sets stays in it.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

from entourage.engine.cluster import InProcess  # noqa: E402
from entourage.engine.graph import measured_recall  # noqa: E402
from entourage.engine.partitions import Shards, partitioned  # noqa: E402
from entourage.engine.parts import Parts  # noqa: E402
from entourage.stores.databases import open_parquet  # noqa: E402
from markers import fill  # noqa: E402

RESULTS = HERE / "results"
PAGE = HERE.parent / "docs" / "scaling.md"
NEIGHBORS, BLOCK, INNER = 16, 50_000, 64
SEARCHED = (1, 2, 4, 8, 16, 32, 64, 128)
KINDS = {"even": 0.0, "groups": 1.0}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, nargs="+", default=[100_000])
    parser.add_argument("--vectors", type=Path, nargs="+", help="files of real vectors, of unit length or not")
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--partitions", type=int, default=64)
    parser.add_argument("--folder", type=Path, help="where vectors are kept meanwhile; default: a temporary one")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    options = parser.parse_args(arguments)
    if options.vectors:
        asked = [(file.parent.name, [np.load(file).astype(np.float16)]) for file in options.vectors]
    else:
        asked = [(kind, drawn(kind, count, options.dim)) for count in options.items for kind in KINDS]
    for kind, blocks in asked:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            row = measured(Path(folder), kind, blocks, options.partitions)
        print(json.dumps(row), flush=True)
        keep(row, options.out)


def measured(folder: Path, kind: str, blocks: Iterable[np.ndarray], n_partitions: int) -> dict:
    """Recall by the number of partitions searched, of one set."""
    (folder / "x").mkdir()
    (folder / "parts").mkdir()
    for number, vectors in enumerate(blocks):
        dim = vectors.shape[1]
        column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), dim)
        pq.write_table(pa.table({"vector": column}), folder / "x" / f"{number:05}.parquet", compression="none")
    start = time.perf_counter()
    with open_parquet(folder / "x") as store:
        found, _ = partitioned(InProcess(), Parts(folder / "parts"), Shards(store), n_partitions, None)
    sizes = np.diff(found.offsets)[found.numbers]
    recalls = measured_recall(InProcess(), found, NEIGHBORS)
    return {
        "kind": kind,
        "items": int(sizes.sum()),
        "dim": dim,
        "partitions": len(sizes),
        "largest": float(sizes.max() / sizes.mean()),
        "recall": {str(each): float(recalls[each - 1]) for each in SEARCHED if each <= len(sizes)},
        "wanted": int(np.argmax(recalls >= 0.95)) + 1,
        "seconds": time.perf_counter() - start,
    }


def drawn(kind: str, count: int, dim: int) -> Iterator[np.ndarray]:
    """Unit vectors in float16, some at a time."""
    draw = np.random.default_rng(0)
    n_classes = max(count // 16, 2)
    centres = draw.standard_normal((n_classes, INNER), np.float32)
    for size in (64, 4096):  # groups of classes, and groups of these
        groups = draw.standard_normal((-(-n_classes // size), INNER), np.float32)
        centres += KINDS[kind] * groups[np.arange(n_classes) // size]
    spread_over = draw.standard_normal((INNER, dim), np.float32) / 8
    for start in range(0, count, BLOCK):
        n = min(BLOCK, count - start)
        inner = centres[draw.integers(0, n_classes, n)] + 1.1 * draw.standard_normal((n, INNER), np.float32)
        block = inner @ spread_over + 0.3 * draw.standard_normal((n, dim), np.float32)
        yield (block / np.linalg.norm(block, axis=1, keepdims=True)).astype(np.float16)


def keep(row: dict, folder: Path) -> None:
    """Add a row to those that were measured before, in the place of what was measured of the same set."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "partitions.json"
    rows = json.loads(file.read_text()) if file.exists() else []
    rows = sorted([each for each in rows if _set_of(each) != _set_of(row)] + [row], key=_set_of)
    file.write_text(json.dumps(rows, indent=1) + "\n")
    (folder / "partitions.md").write_text(table(rows))
    if folder.resolve() == RESULTS:
        fill(PAGE, "partitions", table(rows))


def _set_of(row: dict) -> tuple:
    return row["items"], row["dim"], row["partitions"], row["kind"]


def table(rows: list[dict]) -> str:
    """A line for each set, a column for each number of partitions."""
    head = ["N x d", "set", "partitions", "largest / mean", *(f"S = {each}" for each in SEARCHED), "S for 0.95"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for row in rows:
        recalls = [f"{row['recall'][str(each)]:.3f}" if str(each) in row["recall"] else "" for each in SEARCHED]
        size = f"{row['items']:,} x {row['dim']}"
        cells = [size, row["kind"], row["partitions"], f"{row['largest']:.1f}", *recalls, row["wanted"]]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
