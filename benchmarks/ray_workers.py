"""Refinement on Ray with 1 to 4 workers of this machine, beside one process without Ray.

    python benchmarks/ray_workers.py [--items N ...] [--dim D] [--workers W ...]

Every run is a process of its own that starts a cluster of W workers, one processor each, and refines the same folder of
Parquet shards exactly. Seconds are those after the cluster is up. Where there are fewer cores than workers, the table
shows what handing out tasks costs, and not how much quicker more machines are. Memory is the peak of what the process
that hands out tasks holds by itself beyond what it held before: it must not grow with the number of items. The table
goes into docs/scaling.md.
"""

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "speed")]

from markers import fill  # noqa: E402
from partitions import drawn  # noqa: E402
from scale import measured  # noqa: E402

RESULTS = HERE / "results"
PAGE = HERE.parent / "docs" / "scaling.md"
SHARDS, PARTITIONS = 8, 8


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, nargs="+", default=[5_000, 20_000])
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1, 2, 3, 4], help="0: one process without Ray")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    options = parser.parse_args(arguments)
    rows = []
    for count in options.items:
        with tempfile.TemporaryDirectory() as folder:
            source = write(Path(folder) / "x", count, options.dim)
            for workers in options.workers:
                rows.append({"items": count, "dim": options.dim, "workers": workers, **in_a_child(source, workers)})
                print(json.dumps(rows[-1]), flush=True)
    save(rows, options.out)


def write(folder: Path, count: int, dim: int) -> Path:
    folder.mkdir()
    vectors = np.concatenate(list(drawn("groups", count, dim)))
    for number, part in enumerate(np.array_split(vectors, SHARDS)):
        column = pa.FixedSizeListArray.from_arrays(pa.array(part.ravel()), dim)
        pq.write_table(pa.table({"vector": column}), folder / f"{number:03}.parquet")
    return folder


def in_a_child(source: Path, workers: int) -> dict:
    os.environ["OMP_NUM_THREADS"] = "1"  # of the child, and of its workers
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as child:
        return child.submit(refined, source, workers).result()


def refined(source: Path, workers: int) -> dict:
    """Refine twice, and measure the second time: the first one compiles."""
    from entourage.engine.refine import refine_on_ray
    from entourage.runs.streamed.refine import StreamedRequest, refine_streamed

    request = StreamedRequest(str(source), source.with_name(f"y{workers}"), search="exact", overwrite=True)
    if workers:
        import ray

        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        ray.init(num_cpus=workers, object_store_memory=2**27, include_dashboard=False, log_to_driver=False)
    for _ in range(2):
        with measured() as cost:
            if workers:
                refine_on_ray(request, partitions=PARTITIONS)
            else:
                refine_streamed(request)
    if workers:
        ray.shutdown()
    return {"seconds": cost.seconds, "mb": cost.mb, "cores": len(os.sched_getaffinity(0))}


def save(rows: list[dict], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ray_workers.json").write_text(json.dumps(rows, indent=1) + "\n")
    (folder / "ray_workers.md").write_text(table(rows))
    if folder.resolve() == RESULTS:
        fill(PAGE, "ray_workers", table(rows))


def table(rows: list[dict]) -> str:
    """A line for each number of workers."""
    lines = ["| N x d | workers | s | of one worker | memory of the driver, MB |", "|---|---|---|---|---|"]
    alone = {row["items"]: row["seconds"] for row in rows if row["workers"] == 1}
    for row in rows:
        share = f"{row['seconds'] / alone[row['items']]:.2f}" if row["items"] in alone and row["workers"] else ""
        who = row["workers"] or "no Ray"
        lines.append(f"| {row['items']:,} x {row['dim']} | {who} | {row['seconds']:.1f} | {share} | {row['mb']:,.0f} |")
    return "\n".join(lines) + f"\n{rows[0]['cores']} cores.\n"


if __name__ == "__main__":
    main()
