"""Speed and memory side by side with what users have today: one table, one list of JSON objects.

    python benchmarks/speed [--quick] [--only NAME ...] [--out FOLDER]

NAME is one of the modules listed below. Results are written to FOLDER (benchmarks/results) as full.json and full.md, or
quick.json and quick.md, after every single one, so that a run may be stopped; the table also goes into docs/speed.md.
With --only, results of other modules stay. The exit code is 0 whatever the ratios: noise must not break a build.
"""

import argparse
import json
import os
import sys
import traceback
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]  # also when started by python -m

from markers import fill  # noqa: E402
from samples import DIMENSIONS, FULL, QUICK  # noqa: E402

# Each has run(n, quick), which yields results.
MODULES = (
    "headline",
    "serving",
    "sharing",
    "neighbors",
    "refine",
    "messages",
    "training",
    "metrics",
    "reranking",
    "pictures",
    "startup",
)
RESULTS = HERE.parent / "results"
PAGE = HERE.parent.parent / "docs" / "speed.md"
LIBRARIES = ("numpy", "torch", "numba", "faiss-cpu", "pytorch-metric-learning", "scikit-learn")
HEAD = ["| bench | contender | peer | ratio | our limit | |", "|---|---|---|---:|---:|---|"]


def main(arguments: list[str] | None = None) -> None:
    options = _options(arguments)
    n = options.n or (QUICK if options.quick else FULL)
    name = f"n{n}" if options.n else "quick" if options.quick else "full"
    entries = _kept(options.out / f"{name}.json", options.only)
    for module in options.only or MODULES:
        if find_spec(module) is None:
            print(f"{module}: skipped, as there is no {module}.py here", file=sys.stderr, flush=True)
            continue
        for entry in _entries(module, n, options.quick):
            entries.append(entry)
            _save(entries, options.out, name, n)
            print(_row(entry), flush=True)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK:,} items instead of {FULL:,}")
    parser.add_argument("--only", nargs="+", choices=MODULES, metavar="NAME", help=", ".join(MODULES))
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument("--n", type=int, help="another number of items, for a try; written to nN.json")
    return parser.parse_args(arguments)


def _kept(file: Path, only: list[str] | None) -> list[dict]:
    """Results of an earlier run that this one does not repeat."""
    if not only or not file.exists():
        return []
    return [entry for entry in json.loads(file.read_text()) if entry["module"] not in only]


def _entries(module: str, n: int, quick: bool):
    """The results of a module as they come; an error is the last of them."""
    try:
        for result in import_module(module).run(n, quick):
            yield result.document() | {"module": module}
    except Exception as error:
        traceback.print_exc()
        failed = {"bench": module, "contender": "entourage", "peer": "", "ratio": 0.0, "needed": None, "ok": False}
        yield failed | {"detail": {"error": f"{type(error).__name__}: {error}"}, "module": module}


def _save(entries: list[dict], folder: Path, name: str, n: int) -> None:
    entries.sort(key=lambda entry: MODULES.index(entry["module"]))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(entries, indent=1) + "\n")
    text = table(entries, n)
    (folder / f"{name}.md").write_text(text)
    if folder.resolve() == RESULTS and name in ("full", "quick"):
        fill(PAGE, f"speed {name}", text)


def table(entries: list[dict], n: int) -> str:
    """The results as Markdown, under the size and the machine they were measured on."""
    sizes = f"N = {n:,}, d = {DIMENSIONS}; {machine()}. Ratios: larger is better, 1 is as good as the peer."
    return "\n".join([sizes, "", *HEAD, *map(_row, entries)]) + "\n"


def _row(entry: dict) -> str:
    error = entry["detail"].get("error")
    needed = "" if entry["needed"] is None else f"{round(entry['needed'], 2):g}"
    verdict = "failed" if error else "" if entry["needed"] is None else "ok" if entry["ok"] else "**below**"
    ratio = "" if error else f"{entry['ratio']:.2f}"
    return f"| {entry['bench']} | {entry['contender']} | {entry['peer']} | {ratio} | {needed} | {verdict} |"


def machine() -> str:
    """Processors, threads and versions, in one sentence."""
    import numba
    import torch

    threads = f"{torch.get_num_threads()} torch and {numba.get_num_threads()} numba threads on {os.cpu_count()} CPUs"
    versions = [f"{library} {metadata.version(library)}" for library in LIBRARIES if _installed(library)]
    return f"{threads}; Python {sys.version.split()[0]}, {', '.join(versions)}"


def _installed(library: str) -> bool:
    try:
        return bool(metadata.version(library))
    except metadata.PackageNotFoundError:
        return False


if __name__ == "__main__":
    main()
