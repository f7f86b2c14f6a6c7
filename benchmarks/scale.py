"""Neighbourhood graphs and refinement of large sets: time, peak memory and recall, beside faiss and pynndescent.

    python benchmarks/scale.py [--sizes N ...] [--dimensions D ...] [--only NxD ...] [--works NAME ...] [--again]
    python benchmarks/scale.py --crossover            from how many items on an index is quicker than exact search

Every line of the table is measured in a process of its own and kept as it comes, in benchmarks/results/scale.json; the
table, also the one in docs/scaling.md, is written anew from all that is kept. What is there already is not measured
again, so that whatever ends a run early, the same command goes on with the next line; --again measures once more.
--only 100000x128 takes one set, --works "graph, ours" one kind of line.

Each measurement runs in a process of its own, on vectors of float16 in a file. A graph has the 16 nearest neighbours of
every item; its recall is measured on 256 items against exact search. All are taken at a recall of 0.95 or more, and at
the least effort of those tried that reaches it: faiss by efSearch, which is raised on these 256 items as ours is,
pynndescent by the length of its lists. What is compiled is compiled before; what that takes is told apart: numba keeps
our functions for the next process, pynndescent compiles in each. Memory is the peak of what the process holds by
itself, without files that are mapped into it and that the system can drop at any time. MAP@R is of refined vectors,
where exact search takes minutes at most.
"""

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "speed")]

from markers import fill  # noqa: E402

RESULTS = HERE / "results"
PAGE = HERE.parent / "docs" / "scaling.md"
SIZES, DIMENSIONS = (100_000, 1_000_000), (128, 384)
NEIGHBORS, WANTED, SAMPLE = 16, 0.95, 256
EXACT_UNTIL = 100_000
CROSSOVER = (32_000, 64_000, 128_000, 256_000)
BLOCK = 50_000
LISTS = (28, 40, 56, 80)  # of pynndescent: with more neighbours than are wanted it finds more of those


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", help="numbers of items")
    parser.add_argument("--dimensions", type=int, nargs="+", default=DIMENSIONS)
    parser.add_argument("--only", nargs="+", default=[], metavar="NxD", help="these sets alone, such as 100000x128")
    parser.add_argument("--works", nargs="+", default=[], choices=[*WORK], metavar="NAME", help="these lines alone")
    parser.add_argument("--lists", type=int, nargs="+", help=f"lengths of pynndescent's lists; default {LISTS}")
    parser.add_argument("--again", action="store_true", help="measure also what is there already")
    parser.add_argument("--folder", type=Path, help="where vectors are kept meanwhile; default: a temporary one")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument("--crossover", action="store_true", help="measure around the size from which indexes are used")
    options = parser.parse_args(arguments)
    name = "crossover" if options.crossover else "scale"
    os.environ["LISTS"] = " ".join(map(str, options.lists or ()))  # for the processes that measure
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for n, d, works in asked(options, kept(name, options.out)):
            vectors = write_vectors(Path(folder), n, d)
            for what in works:
                row = {"work": what, "n": n, "d": d, **in_a_child(WORK[what], vectors, Path(folder) / "compiled")}
                print(json.dumps(row), flush=True)
                save(name, [*kept(name, options.out), row], options.out)
            vectors.unlink()
    save(name, kept(name, options.out), options.out)


def asked(options: argparse.Namespace, there: list[dict]) -> Iterator[tuple[int, int, list[str]]]:
    """Sets, each with the works that are still to be measured."""
    works, until = (AROUND, max(CROSSOVER)) if options.crossover else ((*WORK,), EXACT_UNTIL)
    sizes = options.sizes or (CROSSOVER if options.crossover else SIZES)
    sets = [tuple(map(int, each.split("x"))) for each in options.only] or list(product(sizes, options.dimensions))
    done = set() if options.again else {(row["n"], row["d"], row["work"]) for row in there}
    for n, d in sets:
        wanted = [what for what in works if (n <= until or what not in EXACT) and what in (options.works or works)]
        missing = [what for what in wanted if (n, d, what) not in done]
        if missing:
            yield n, d, missing


def write_vectors(folder: Path, n: int, d: int, seed: int = 0) -> Path:
    """Unit vectors (n, d) in float16, in classes of about 16 around centres on a surface of 64 dimensions."""
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, max(n // 16, 2), n)
    centres = draw.standard_normal((labels.max() + 1, 64), np.float32)
    spread_over = draw.standard_normal((64, d), np.float32) / 8
    path = folder / f"{n}x{d}.npy"
    vectors = np.lib.format.open_memmap(path, "w+", np.float16, (n, d))
    for start in range(0, n, BLOCK):
        of_block = labels[start : start + BLOCK]
        inner = centres[of_block] + 1.1 * draw.standard_normal((len(of_block), 64), np.float32)
        block = inner @ spread_over + 0.3 * draw.standard_normal((len(of_block), d), np.float32)
        vectors[start : start + BLOCK] = block / np.linalg.norm(block, axis=1, keepdims=True)
    vectors.flush()
    np.save(path.with_suffix(".labels.npy"), labels)
    return path


# ---- what is measured --------------------------------------------------------------------------------------------


def exact_graph(path: Path) -> dict:
    return _searched(path, "exact")


def our_graph(path: Path) -> dict:
    return _searched(path, "auto")


def graph_by_descent(path: Path) -> dict:
    return _searched(path, "nn-descent")


def graph_by_index(path: Path) -> dict:
    return _searched(path, "HNSW32,SQ8")


def graph_of_faiss(path: Path) -> dict:
    """HNSW of 16 links as faiss has it, searched as widely as the wanted recall takes."""
    import faiss

    from entourage.runtime.threads import thread_count

    faiss.omp_set_num_threads(thread_count())
    vectors = _loaded(path)
    with measured() as cost:
        index = faiss.index_factory(vectors.shape[1], "HNSW16", faiss.METRIC_INNER_PRODUCT)
        index.add(vectors)
    sample = sampled(len(vectors))
    for breadth in (16, 32, 64, 128, 256, 512):
        index.hnsw.efSearch = breadth
        found = np.zeros((len(vectors), NEIGHBORS + 1), np.int64)
        found[sample] = index.search(vectors[sample], NEIGHBORS + 1)[1]
        if recall(vectors, _others(found)) >= WANTED:
            break
    with measured() as search:
        found = index.search(vectors, NEIGHBORS + 1)[1]
    took = {"seconds": cost.seconds + search.seconds, "mb": max(cost.mb, search.mb), "breadth": breadth}
    return took | {"recall": recall(vectors, _others(found))}


def graph_of_pynndescent(path: Path) -> dict:
    from pynndescent import NNDescent

    from entourage.runtime.threads import thread_count

    vectors = _loaded(path)
    options = {"metric": "euclidean", "n_neighbors": NEIGHBORS + 1, "random_state": 0, "n_jobs": thread_count()}
    with measured() as compiling:
        NNDescent(vectors[:5000], **options)
    best: dict = {}
    known = map(int, os.environ.get("LISTS", "").split())
    for length in [*known] or LISTS[len(vectors) // EXACT_UNTIL // 10 :]:  # of a million, short ones find far too few
        with measured() as cost:
            found = NNDescent(vectors, **options | {"n_neighbors": length}).neighbor_graph[0]
        best = {"seconds": cost.seconds, "mb": cost.mb, "recall": recall(vectors, _others(found)), "lists": length}
        if best["recall"] >= WANTED:
            break
    return best | {"compiling": compiling.seconds}


def refine_exactly(path: Path) -> dict:
    return _refined(path, "exact")


def refine(path: Path) -> dict:
    return _refined(path, None)


def refine_folder(path: Path) -> dict:
    """The same vectors from a folder of Parquet files, into another."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        source, vectors = Path(folder) / "x", np.load(path, mmap_mode="r")
        source.mkdir()
        for start in range(0, len(vectors), BLOCK):
            pq.write_table(pa.table({"vector": _lists(vectors[start : start + BLOCK])}), source / f"{start:09}.parquet")
        return _streamed(str(source), Path(folder) / "y")


def refine_lance(path: Path) -> dict:
    """The same vectors from a table of LanceDB, into its twin."""
    import lancedb
    import pyarrow as pa

    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        vectors = np.load(path, mmap_mode="r")
        table = lancedb.connect(folder).create_table("items", pa.table({"vector": _lists(vectors[:BLOCK])}))
        for start in range(BLOCK, len(vectors), BLOCK):
            table.add(pa.table({"vector": _lists(vectors[start : start + BLOCK])}))
        return _streamed(f"lance://{folder}/items", None)


WORK: dict[str, Callable[[Path], dict]] = {
    "graph, exact": exact_graph,
    "graph, ours": our_graph,
    "graph, NN-descent": graph_by_descent,
    "graph, HNSW32,SQ8": graph_by_index,
    "graph, faiss HNSW16": graph_of_faiss,
    "graph, pynndescent": graph_of_pynndescent,
    "refine file, exact": refine_exactly,
    "refine file, ours": refine,
    "refine Parquet folder, ours": refine_folder,
    "refine Lance table, ours": refine_lance,
}
EXACT = ("graph, exact", "graph, NN-descent", "graph, HNSW32,SQ8", "refine file, exact")  # beyond, ours is one of them
AROUND = ("graph, exact", "graph, NN-descent", "graph, HNSW32,SQ8")


def _searched(path: Path, by: str) -> dict:
    from entourage.neighbors import automatic_method, search
    from entourage.values import Embeddings

    items = Embeddings.from_vectors(_loaded(path))
    chosen = automatic_method(len(items), len(items), items.dim, one_set=True) if by == "auto" else by
    with measured() as compiling:
        search(items.take(np.arange(min(len(items), 5000))), k=NEIGHBORS, by=chosen)
    with measured() as cost:
        found = search(items, k=NEIGHBORS, by=by)
    told = {"seconds": cost.seconds, "mb": cost.mb, "recall": recall(items.vectors, found.rows), "by": found.method}
    return told | {"compiling": compiling.seconds}


def _streamed(source: str, out: Path | None, by: str | None = None) -> dict:
    from entourage.runs.streamed.refine import StreamedRequest, refine_streamed

    with measured() as cost:
        result = refine_streamed(StreamedRequest(source, out, search=by, overwrite=True))
    return {"seconds": cost.seconds, "mb": cost.mb, "by": result.protocol["neighbors"]}


def _lists(vectors: np.ndarray) -> Any:
    """A column of vectors, as both kinds of files have them."""
    import pyarrow as pa

    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(vectors).ravel()), vectors.shape[1])


def _refined(path: Path, by: str | None) -> dict:
    out = path.with_suffix(".refined.npy")
    found = _streamed(str(path), out, by)
    if len(np.load(out, mmap_mode="r")) <= EXACT_UNTIL:
        from entourage import evaluate

        labels = np.load(path.with_suffix(".labels.npy"))
        scores = {name: evaluate(np.load(each), labels, nmi=False) for name, each in (("raw", path), ("refined", out))}
        found |= {f"map@r {name}": each.metrics["map@r"] for name, each in scores.items()}
    out.unlink()
    return found


def recall(vectors: np.ndarray, found: np.ndarray) -> float:
    """The share of the exact neighbours of a sample that were found."""
    from entourage.neighbors.reference import nearest_exactly, recall_of

    rows = sampled(len(vectors))
    wanted, _ = nearest_exactly(vectors[rows], vectors, NEIGHBORS, rows, np.arange(len(vectors)))
    return recall_of(wanted, found[rows][:, :NEIGHBORS])


def sampled(n: int) -> np.ndarray:
    """The rows of the items by which recall is measured."""
    return np.sort(np.random.default_rng(0).choice(n, min(SAMPLE, n), replace=False))


def _loaded(path: Path) -> np.ndarray:
    vectors = np.load(path).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _others(found: np.ndarray) -> np.ndarray:
    """Each list without the item itself, which stands first or, by rounding, somewhere else."""
    own = found == np.arange(len(found))[:, None]
    return np.take_along_axis(found, np.argsort(own, axis=1, kind="stable"), axis=1)[:, :NEIGHBORS]


# ---- how it is measured ------------------------------------------------------------------------------------------


class measured:  # noqa: N801  # read as a verb: with measured() as cost
    """Seconds, and the peak of memory that is the process's own, beyond what it held before."""

    def __enter__(self) -> "measured":
        self._held, self.mb, self._stop = own_memory(), 0.0, threading.Event()
        self._watch = threading.Thread(target=self._look)
        self._watch.start()
        self._start = time.perf_counter()
        return self

    def __exit__(self, *error: object) -> None:
        self.seconds = time.perf_counter() - self._start
        self._stop.set()
        self._watch.join()

    def _look(self) -> None:
        while not self._stop.wait(0.02):
            self.mb = max(self.mb, own_memory() - self._held)


def own_memory() -> float:
    """Anonymous resident memory, in MB: not what is mapped from files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:")) / 1024


def in_a_child(work: Callable[[Path], dict], path: Path, compiled: Path) -> dict:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _compiling_into, (str(compiled),)) as child:
        return child.submit(work, path).result()


def _compiling_into(cache: str) -> None:
    os.environ["NUMBA_CACHE_DIR"] = cache  # before numba is imported


# ---- what is written ---------------------------------------------------------------------------------------------


def kept(name: str, folder: Path) -> list[dict]:
    file = folder / f"{name}.json"
    return json.loads(file.read_text()) if file.exists() else []


def save(name: str, rows: list[dict], folder: Path) -> None:
    """Keep results, of each set and work the last one, in the order of the table."""
    latest = {(row["n"], row["d"], row["work"]): row for row in rows}
    rows = sorted(latest.values(), key=lambda row: (row["n"], row["d"], [*WORK].index(row["work"])))
    folder.mkdir(parents=True, exist_ok=True)
    new = folder / f"{name}.json.new"  # a kill leaves what was there
    new.write_text(json.dumps(rows, indent=1) + "\n")
    new.replace(folder / f"{name}.json")
    (folder / f"{name}.md").write_text(table(rows))
    if folder.resolve() == RESULTS:
        fill(PAGE, name, table(rows))


def table(rows: list[dict]) -> str:
    """A line for each kind of work and each set."""
    lines = ["| N x d | work | s | to compile | MB | recall | MAP@R raw / refined |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        quality = f"{100 * row['map@r raw']:.1f} / {100 * row['map@r refined']:.1f}" if "map@r raw" in row else ""
        found = f"{row['recall']:.3f}" if "recall" in row else ""
        compiling = f"{row['compiling']:.1f}" if "compiling" in row else ""
        size, took = f"{row['n']:,} x {row['d']}", f"{row['seconds']:.1f} | {compiling} | {row['mb']:,.0f}"
        lines.append(f"| {size} | {row['work']} | {took} | {found} | {quality} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
