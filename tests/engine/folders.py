"""Folders of Parquet files to refine, and what is in them."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.refiner.samples import clusters


def some(count=480, dtype=np.float32, copies=True) -> np.ndarray:
    """Clusters, among them copies: more of one item than are looked up, two of another, near-identical ones."""
    vectors, _ = clusters(0, n_classes=count // 12, per_class=12)
    if copies:
        vectors[100:130] = vectors[100]
        vectors[7] = vectors[209]
        noise = np.random.default_rng(0).normal(size=(20, vectors.shape[1]))
        vectors[40:60] = vectors[40] + 1e-3 * noise
    return np.ascontiguousarray(np.random.default_rng(1).permutation(vectors).astype(dtype))


def fill(folder: Path, vectors: np.ndarray, n_files=3) -> Path:
    """Write vectors as files of unequal size, with a name for each."""
    folder.mkdir()
    ends = np.cumsum([0, *(np.arange(n_files) + 1)]) * len(vectors) // (n_files * (n_files + 1) // 2)
    for number in range(n_files):
        part = vectors[ends[number] : ends[number + 1]]
        column = pa.FixedSizeListArray.from_arrays(pa.array(part.ravel()), part.shape[1])
        names = [f"item {row}" for row in range(ends[number], ends[number + 1])]
        pq.write_table(pa.table({"name": names, "vector": column}), folder / f"{number:03}.parquet")
    return folder


def read(folder: Path) -> tuple[list[str], np.ndarray]:
    """Names and vectors of a folder, in the order of its files."""
    tables = [pq.read_table(file) for file in sorted(folder.glob("*.parquet"))]
    names = [name for table in tables for name in table["name"].to_pylist()]
    return names, np.concatenate([np.stack(table["vector"].to_numpy(zero_copy_only=False)) for table in tables])
