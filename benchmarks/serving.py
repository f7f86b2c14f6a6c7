"""A gallery that changes and is served: how long a search takes, what a change costs, and many clients at once.

    python benchmarks/serving.py search  [--items 60000 --dim 512]   one search, beside faiss IndexFlatIP
    python benchmarks/serving.py changes [--items 20000 --dim 128 --count 10000]   changes one by one, then a rebuild
    python benchmarks/serving.py clients [--items 60000 --dim 512 --clients 50 --seconds 60]   all at once, by HTTP

Without --items, `search` takes 60,000 x 512 and 200,000 x 256. Results are added to benchmarks/results/serving.json;
the tables of all that is there go into docs/serve.md.
"""

import argparse
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

from entourage import Gallery  # noqa: E402
from entourage.refiner.gallery.state import State  # noqa: E402
from markers import fill  # noqa: E402

RESULTS = HERE / "results" / "serving.json"
PAGE = HERE.parent / "docs" / "serve.md"
SIZES = ((60_000, 512), (200_000, 256))
PER_CLASS, NOISE, QUERIES = 40, 1.0, 300
BYTES = "application/octet-stream"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", choices=("search", "changes", "clients"))
    parser.add_argument("--items", type=int)
    parser.add_argument("--dim", type=int)
    parser.add_argument("--count", type=int, default=10_000, help="changes to make")
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    benches: dict[str, Callable[[int, int, argparse.Namespace], dict]] = {
        "search": search,
        "changes": changes,
        "clients": clients,
    }
    sizes = SIZES if options.bench == "search" else (SIZES[0] if options.bench == "clients" else (20_000, 128),)
    if options.items:
        sizes = ((options.items, options.dim or 256),)
    for n, d in sizes:
        measured = {"bench": options.bench, "items": n, "dim": d} | benches[options.bench](n, d, options)
        print(json.dumps(measured, indent=1), flush=True)
        _keep(measured, options.out)


def _keep(measured: dict, file: Path) -> None:
    """Add a result to those of other benches and sizes."""
    known = json.loads(file.read_text()) if file.exists() else []
    same = ("bench", "items", "dim")
    known = [each for each in known if any(each[name] != measured[name] for name in same)] + [measured]
    file.write_text(json.dumps(known, indent=1) + "\n")
    if file.resolve() == RESULTS:
        fill(PAGE, "serving", tables(known))


def tables(known: list[dict]) -> str:
    """What was measured of searches, changes and clients, a table each."""
    lines: list[str] = []
    for each in (each for each in known if each["bench"] == "search"):
        size = f"{each['items']:,} x {each['dim']}"
        lines += [f"| one search of {size} | p50, ms | p99, ms | of faiss alone |", "|---|---|---|---|"]
        for name, taken in each["milliseconds"].items():
            lines.append(f"| {name} | {taken['p50']:.1f} | {taken['p99']:.1f} | {each['ratio to faiss'][name]:.2f} |")
        lines.append("")
    for each in (each for each in known if each["bench"] == "changes"):
        lines += [
            f"{each['changes']:,} random changes of {each['items']:,} x {each['dim']}, one by one: "
            f"{each['milliseconds']['p50']:.1f} ms each (p99 {each['milliseconds']['p99']:.1f}), and at the end no "
            f"number differs from a rebuild by more than {each['largest difference from a rebuild']:.1e}.",
            "",
        ]
    for each in (each for each in known if each["bench"] == "clients"):
        taken = each["milliseconds"]["search"]
        lines += [
            f"{each['clients']} clients at once for {each['seconds']:.0f} s over {each['items']:,} x {each['dim']}, "
            f"which also add and remove items: {sum(each['requests'].values()):,} requests, {each['errors']} errors; "
            f"a search takes {taken['p50']:.0f} ms (p99 {taken['p99']:.0f}).",
            "",
        ]
    return "\n".join(lines).rstrip() + "\n"


def vectors_of(n: int, d: int, seed: int = 0) -> np.ndarray:
    """(n, d) vectors in classes of 40."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(max(n // PER_CLASS, 1), d)).astype(np.float32)
    vectors = NOISE * rng.normal(size=(n, d)).astype(np.float32)
    vectors += centres[rng.integers(len(centres), size=n)]
    return vectors


# ---- one search --------------------------------------------------------------------------------------------------


def search(n: int, d: int, options: argparse.Namespace) -> dict:
    """One search at a time: faiss alone, the gallery in this process, and the service by HTTP, in turns."""
    import faiss

    vectors = vectors_of(n + QUERIES, d)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    flat = faiss.IndexFlatIP(d)
    flat.add(unit[:n])
    with tempfile.TemporaryDirectory() as folder:
        with Gallery(Path(folder) / "gallery") as gallery:
            gallery.add(vectors[:n])
            gallery.snapshot()
            ways = {
                "faiss IndexFlatIP": lambda query: flat.search(query, 10),
                "gallery.search": lambda query: gallery.search(query, 10),
                "gallery.search, raw": lambda query: gallery.search(query, 10, refine=False),
            }
            times = _in_turns(ways, unit[n:])
        with service(Path(folder) / "gallery") as url, _connected(url) as ask:
            times |= _in_turns({"by HTTP": lambda query: ask("POST", "/search", query)}, unit[n:])
    alone = times["faiss IndexFlatIP"]["p50"]
    return {"milliseconds": times, "ratio to faiss": {name: each["p50"] / alone for name, each in times.items()}}


def _in_turns(ways: dict[str, Callable], queries: np.ndarray) -> dict[str, dict[str, float]]:
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(len(queries)):
        for name, way in ways.items():
            started = time.perf_counter()
            way(queries[number : number + 1])
            taken[name].append(1e3 * (time.perf_counter() - started))
    return {name: _quantiles(each[10:]) for name, each in taken.items()}  # the first are for compiling


def _quantiles(milliseconds: list[float]) -> dict[str, float]:
    return {name: round(float(np.quantile(milliseconds, q)), 3) for name, q in (("p50", 0.5), ("p99", 0.99))}


# ---- changes -----------------------------------------------------------------------------------------------------


def changes(n: int, d: int, options: argparse.Namespace) -> dict:
    """Random changes of one item each, and how far the state then is from a rebuild."""
    vectors, rng = vectors_of(2 * n, d), np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder, Gallery(Path(folder) / "gallery") as gallery:
        started = time.perf_counter()
        gallery.add(vectors[:n])
        first = time.perf_counter() - started
        taken, refined, moved = [], [], []
        for number in range(options.count):
            started = time.perf_counter()
            report = _one_change(gallery, vectors, rng)
            taken.append(1e3 * (time.perf_counter() - started))
            refined.append(report.refined)
            moved.append(report.moved)
            if number % 100 == 99:
                print(f"{number + 1} changes, {np.median(taken):.1f} ms each", file=sys.stderr, flush=True)
        state = gallery._view.state
        started = time.perf_counter()
        rebuilt = State.of(state.recipe, state.items)
        rebuild = time.perf_counter() - started
        difference = float(np.abs(state.refined.vectors - rebuilt.refined.vectors).max())
    means = {"refined again, mean": float(np.mean(refined)), "moved, mean": float(np.mean(moved))}
    seconds = {"first items": first, "rebuild": rebuild}
    return (
        {"changes": options.count, "milliseconds": _quantiles(taken), "seconds": seconds}
        | means
        | {"largest difference from a rebuild": difference}
    )


def _one_change(gallery: Gallery, vectors: np.ndarray, rng: np.random.Generator):
    kind, ids = rng.integers(3), gallery.ids
    vector = vectors[rng.integers(len(vectors))][None]
    if kind == 0:
        return gallery.add(vector, [int(ids[-1]) + 1])
    each = [int(rng.choice(ids))]
    return gallery.remove(each) if kind == 1 else gallery.update(vector, each)


# ---- the service -------------------------------------------------------------------------------------------------


@contextmanager
def service(folder: Path) -> Iterator[str]:
    """`entourage serve` as a process; yields its address."""
    command = [sys.executable, "-m", "entourage", "serve", "--gallery", str(folder), "--port", "0"]
    environment = {name: value for name, value in os.environ.items() if name != "ENTOURAGE_TOKEN"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        yield process.stdout.readline().split(" at ")[1].split()[0]
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(120)


@contextmanager
def _connected(url: str) -> Iterator[Callable]:
    """A function that sends vectors over one connection and returns the status."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=120)

    def ask(method: str, path: str, vectors: np.ndarray | None = None, **headers: str) -> int:
        body = None if vectors is None else vectors.astype("<f4").tobytes()
        shape = {} if vectors is None else {"X-Shape": ",".join(map(str, vectors.shape)), "Content-Type": BYTES}
        connection.request(method, path, body, shape | headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status

    try:
        yield ask
    finally:
        connection.close()


def clients(n: int, d: int, options: argparse.Namespace) -> dict:
    """Many clients at once, each searching without a pause and, now and then, adding an item and removing it."""
    vectors = vectors_of(n + 1000, d)
    with tempfile.TemporaryDirectory() as folder:
        with Gallery(Path(folder) / "gallery") as gallery:
            gallery.add(vectors[:n])
            gallery.snapshot()
        with service(Path(folder) / "gallery") as url:
            seen: list[tuple[str, int, float]] = []
            end = time.perf_counter() + options.seconds
            threads = [
                threading.Thread(target=_client, args=(url, number, vectors, end, seen))
                for number in range(options.clients)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    kinds = {kind: [1e3 * taken for each, _, taken in seen if each == kind] for kind in ("search", "add", "remove")}
    return {
        "clients": options.clients,
        "seconds": options.seconds,
        "errors": sum(status != 200 for _, status, _ in seen),
        "requests": {kind: len(taken) for kind, taken in kinds.items()},
        "milliseconds": {kind: _quantiles(taken) for kind, taken in kinds.items() if taken},
    }


def _client(url: str, number: int, vectors: np.ndarray, end: float, seen: list) -> None:
    rng, own = np.random.default_rng(number), 0
    with _connected(url) as ask:
        while time.perf_counter() < end:
            kind = "search" if rng.random() < 0.98 else "remove" if own else "add"
            vector = vectors[rng.integers(len(vectors))][None]
            started = time.perf_counter()
            try:
                if kind == "search":
                    status = ask("POST", "/search", vector)
                elif kind == "add":
                    own = 10**9 + number
                    status = ask("POST", "/items", vector, **{"X-Ids": json.dumps([own])})
                else:
                    status, own = ask("DELETE", f"/items/{own}"), 0
            except OSError:
                status = 0
            seen.append((kind, status, time.perf_counter() - started))


if __name__ == "__main__":
    main()
