"""How long a user waits before anything happens: beyond bare Python, at its best."""

import subprocess
import sys
from collections.abc import Iterator

from timing import Result, best_times

__all__ = ["run"]

# What is started, and how many seconds it may take longer than Python itself.
STARTS = {
    "entourage --help": (["-m", "entourage", "--help"], 0.3),
    "import entourage": (["-c", "import entourage"], 0.15),
}


def run(n: int, quick: bool) -> Iterator[Result]:
    contenders = {"python": _start(["-c", "pass"])} | {name: _start(line) for name, (line, _) in STARTS.items()}
    seconds = best_times(contenders, repeats=10)
    for name, (_, allowed) in STARTS.items():
        beyond = max(seconds[name] - seconds["python"], 1e-3)
        detail = {"seconds": seconds[name], "python_seconds": seconds["python"]}
        yield Result("start-up", name, f"{allowed} s beyond bare Python", allowed / beyond, 1.0, detail)


def _start(line: list[str]):
    return lambda: subprocess.run([sys.executable, *line], stdout=subprocess.DEVNULL, check=True)
