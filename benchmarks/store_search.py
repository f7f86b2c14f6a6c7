"""Neighbours by a store's own search, beside ours: is it better to ask the engine for them?

    python benchmarks/store_search.py [--items N] [--dim D] [--engines lance milvus qdrant] [--out FOLDER]

A refinement needs the 20 nearest items of every item. Ours are found in the copy of the vectors that a refinement makes
anyway, exactly and by an index of faiss; the engines are asked in batches of 256 queries, LanceDB also by an index of
its own (IVF_HNSW_SQ). Seconds are those of filling the engine, building its index and searching; recall is against
exact search, on 256 items. The table goes into docs/stores.md.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "speed")]

from markers import fill  # noqa: E402
from scale import write_vectors  # noqa: E402

RESULTS = HERE / "results"
PAGE = HERE.parent / "docs" / "stores.md"
NEIGHBORS, BATCH, SAMPLE = 20, 256, 256


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=5_000)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--engines", nargs="+", default=["lance", "milvus", "qdrant"])
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    options = parser.parse_args(arguments)
    rows: list[dict] = []
    with tempfile.TemporaryDirectory() as folder:
        path = write_vectors(Path(folder), options.items, options.dim)
        vectors = np.load(path).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        wanted = ours("exact")(Path(folder), vectors)
        engines = {name: way for name, way in ENGINES.items() if name.replace(",", "").split()[0] in options.engines}
        for name, way in (OURS | engines).items():
            start = time.perf_counter()
            found = way(Path(folder), vectors)
            row = {"by": name, "seconds": time.perf_counter() - start, "recall": recall(found, wanted)}
            rows.append({"n": len(vectors), "d": vectors.shape[1], **row})
            print(json.dumps(rows[-1]), flush=True)
            save(rows, options.out)


def recall(found: np.ndarray, wanted: np.ndarray) -> float:
    rows = np.random.default_rng(0).choice(len(wanted), min(SAMPLE, len(wanted)), replace=False)
    return float((found[rows][:, :, None] == wanted[rows][:, None, :]).any(axis=2).sum() / wanted[rows].size)


def ours(by: str) -> Callable[[Path, np.ndarray], np.ndarray]:
    def searched(folder: Path, vectors: np.ndarray) -> np.ndarray:
        from entourage import search

        return search(vectors, k=NEIGHBORS, by=by).rows

    return searched


def _batched(vectors: np.ndarray, ask: Callable[[np.ndarray], list[list[int]]]) -> np.ndarray:
    """The lists of all items, each without the item itself."""
    lists = [each for start in range(0, len(vectors), BATCH) for each in ask(vectors[start : start + BATCH])]
    others = [[each for each in found if each != row][:NEIGHBORS] for row, found in enumerate(lists)]
    return np.array([each + [-1] * (NEIGHBORS - len(each)) for each in others])


def lance(index: bool) -> Callable[[Path, np.ndarray], np.ndarray]:
    def searched(folder: Path, vectors: np.ndarray) -> np.ndarray:
        import lancedb
        import pyarrow as pa

        column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
        table = lancedb.connect(folder / "lance").create_table(
            "items", pa.table({"id": np.arange(len(vectors)), "vector": column}), mode="overwrite"
        )
        if index:
            table.create_index(metric="cosine", vector_column_name="vector", index_type="IVF_HNSW_SQ")

        def ask(queries: np.ndarray) -> list[list[int]]:
            query = table.search(list(queries)).distance_type("cosine").select(["id"]).limit(NEIGHBORS + 1)
            answer = (query.nprobes(20) if index else query).to_arrow()
            found = answer.column("id").to_numpy()
            return [found[answer.column("query_index").to_numpy() == number].tolist() for number in range(len(queries))]

        return _batched(vectors, ask)

    return searched


def milvus(folder: Path, vectors: np.ndarray) -> np.ndarray:
    from pymilvus import MilvusClient

    client = MilvusClient(str(folder / "milvus.db"))
    client.create_collection("items", dimension=vectors.shape[1], metric_type="COSINE")
    for start in range(0, len(vectors), 1000):
        rows = range(start, min(start + 1000, len(vectors)))
        client.insert("items", [{"id": row, "vector": vectors[row]} for row in rows])

    def ask(queries: np.ndarray) -> list[list[int]]:
        return [[hit["id"] for hit in each] for each in client.search("items", queries.tolist(), limit=NEIGHBORS + 1)]

    return _batched(vectors, ask)


def qdrant(folder: Path, vectors: np.ndarray) -> np.ndarray:
    from qdrant_client import QdrantClient, models

    client = QdrantClient(path=str(folder / "qdrant"))
    size = models.VectorParams(size=vectors.shape[1], distance=models.Distance.COSINE)
    client.create_collection("items", vectors_config=size)
    client.upload_collection("items", vectors, ids=range(len(vectors)))

    def ask(queries: np.ndarray) -> list[list[int]]:
        requests = [models.QueryRequest(query=each.tolist(), limit=NEIGHBORS + 1) for each in queries]
        return [[point.id for point in each.points] for each in client.query_batch_points("items", requests)]

    found = _batched(vectors, ask)
    client.close()
    return found


OURS = {"ours, exact": ours("exact"), "ours, HNSW32,SQ8": ours("HNSW32,SQ8")}
ENGINES = {
    "lance, no index": lance(False),
    "lance, IVF_HNSW_SQ": lance(True),
    "milvus Lite": milvus,
    "qdrant embedded": qdrant,
}


def save(rows: list[dict], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "store_search.json").write_text(json.dumps(rows, indent=1) + "\n")
    if folder.resolve() == RESULTS:
        fill(PAGE, "store_search", table(rows))


def table(rows: list[dict]) -> str:
    lines = [f"| {NEIGHBORS} nearest of {rows[0]['n']:,} x {rows[0]['d']} by | s | recall |", "|---|---|---|"]
    lines += [f"| {row['by']} | {row['seconds']:.1f} | {row['recall']:.3f} |" for row in rows]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
