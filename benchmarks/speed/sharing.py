"""Two commands at once on one machine, against one alone, and one alone against one whose libraries wait in loops.

Each command is a process of its own, with as many threads as it takes by default, and all take turns. Two at once have
twice the work, so twice the time of one is what the machine can give. Threads that wait in loops for each other (see
runtime/waiting.py) take many times as long; alone they may be a little faster.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from entourage.runtime.threads import thread_count
from samples import clustered_items
from timing import Result, best_times

__all__ = ["run"]

LIMIT = 2.3  # times one alone
AT_LEAST = 0.9  # of the speed of one alone whose libraries wait in loops
REFINED, FITTED = 24_000, 2_000  # items at most
IN_LOOPS = {"OMP_WAIT_POLICY": "active", "KMP_BLOCKTIME": "200", "OPENBLAS_NUM_THREADS": str(thread_count())}


def run(n: int, quick: bool) -> Iterator[Result]:
    with tempfile.TemporaryDirectory() as place:
        for name, line in _commands(n, Path(place)).items():
            seconds = best_times(_contenders(line), repeats=2 if quick else 3)
            detail = {"n": n, "seconds": seconds}
            alone, both, looping = (seconds[one] for one in ("alone", "two at once", "alone, waiting in loops"))
            yield Result("sharing a machine", f"two of {name} at once", "one alone", alone / both, 1 / LIMIT, detail)
            yield Result(
                "a machine of its own", name, "its libraries waiting in loops", looping / alone, AT_LEAST, detail
            )


def _commands(n: int, folder: Path) -> dict[str, list[str]]:
    """What is run, as a line that ends where its output is named."""
    for file, count in (("refined", REFINED), ("fitted", FITTED)):
        vectors, labels = clustered_items(min(n, count), d=256)
        np.savez(folder / f"{file}.npz", vectors=vectors, labels=labels)
    return {
        "entourage refine": ["refine", str(folder / "refined.npz"), "--overwrite", "--out"],
        "entourage fit": ["fit", str(folder / "fitted.npz"), "--overwrite", "--out"],
    }


def _contenders(line: list[str]) -> dict[str, Callable[[], object]]:
    return {
        "alone": lambda: _at_once(line, 1, {}),
        "two at once": lambda: _at_once(line, 2, {}),
        "alone, waiting in loops": lambda: _at_once(line, 1, IN_LOOPS),
    }


def _at_once(line: list[str], count: int, environment: dict[str, str]) -> None:
    """Run a command in some processes at the same time, each with an output of its own, beside its input."""
    own = [f"{Path(line[1]).with_suffix('')}-{number}" for number in range(count)]
    names = [f"{name}.npz" if line[0] == "refine" else name for name in own]
    started = [_start([*line, name], environment) for name in names]
    for process in started:
        _, errors = process.communicate()
        if process.returncode:
            raise RuntimeError(f"entourage {' '.join(line)} ended with {process.returncode}: {errors}")


def _start(line: list[str], environment: dict[str, str]) -> subprocess.Popen:
    command = [sys.executable, "-m", "entourage", *line]
    return subprocess.Popen(
        command, env=os.environ | environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
