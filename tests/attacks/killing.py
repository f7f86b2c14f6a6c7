"""Commands killed at a chosen step: a process that has loaded everything forks a child for each command.

A step is whatever changes files: open to write, rename, link, unlink, mkdir, rmdir, chmod, fsync, and the exchange of
two names. The child is killed, as by `kill -9`, before the step whose number is given.

Run as a program it reads a request per line, {"arguments", "folder", "kill_at", "exchange"}, and answers each with a
line, {"code", "steps", "errors"}; code is -9 for a command that was killed.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

CHANGES = {"os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.symlink", "os.truncate"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@dataclass(frozen=True)
class Outcome:
    """What came of a command."""

    code: int
    """Its exit code; -9 if it was killed."""
    steps: int
    """How many steps it took until it ended."""
    errors: str
    """What it wrote to standard error."""

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL


class Killer:
    """Runs commands of `entourage` in children of a process that is warm, and kills them where it is told to."""

    def __init__(self) -> None:
        environment = os.environ | {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
        self._server = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def run(self, command: str, folder: Path, kill_at: int | None = None, exchange: bool = True) -> Outcome:
        """Run a command in a folder; without `exchange` as on a system that cannot exchange two names."""
        assert self._server.stdin and self._server.stdout
        request = {"arguments": command.split(), "folder": str(folder), "kill_at": kill_at, "exchange": exchange}
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        return Outcome(**json.loads(self._server.stdout.readline()))

    def close(self) -> None:
        assert self._server.stdin and self._server.stdout
        self._server.stdin.close()
        self._server.stdout.close()
        self._server.wait(60)


class Steps:
    """Counts what changes files under a folder; at the step to be killed at, the process is no more."""

    def __init__(self, folder: str, kill_at: int | None) -> None:
        self.folder, self.kill_at, self.count = os.path.realpath(folder), kill_at, 0

    def watch(self, exchanges: bool) -> None:
        from entourage.stores import claims

        sys.addaudithook(self._hear)
        fsync, exchange = os.fsync, claims.exchange

        def counted_fsync(descriptor: int) -> None:
            self._step()
            fsync(descriptor)

        def counted_exchange(one: Path, other: Path) -> bool:
            self._step()
            return exchanges and exchange(one, other)

        os.fsync, claims.exchange = counted_fsync, counted_exchange

    def _hear(self, event: str, arguments: tuple) -> None:
        if event in CHANGES or (event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING):
            path = arguments[0]
            if isinstance(path, (str, bytes, os.PathLike)):
                place = os.fsdecode(path)
                if not os.path.isabs(place) or place.startswith(self.folder):
                    self._step()

    def _step(self) -> None:
        self.count += 1
        if self.count == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)


def serve() -> None:
    """Answer requests until standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    _load_everything()
    for line in sys.stdin:
        with tempfile.TemporaryFile("w+") as errors, tempfile.TemporaryFile("w+") as steps:
            child = os.fork()
            if not child:
                _be_the_command(json.loads(line), errors.fileno(), steps.fileno())
            _, status = os.waitpid(child, 0)
            errors.seek(0), steps.seek(0)
            answer = {"code": os.waitstatus_to_exitcode(status), "steps": int(steps.read() or 0)}
            answers.write(json.dumps(answer | {"errors": errors.read()}) + "\n")
            answers.flush()


def _load_everything() -> None:
    """By commands of every kind: libraries and compiled functions are loaded when they are first used."""
    import numpy as np

    from entourage.cli import app

    x = np.random.default_rng(0).normal(size=(60, 8))
    with tempfile.TemporaryDirectory() as folder:
        np.savez(f"{folder}/v.npz", vectors=x, labels=np.arange(60) % 6)
        for command in (
            f"refine {folder}/v.npz --run {folder}/kept",
            f"plot steps {folder}/kept --out {folder}/steps.png",
            f"fit {folder}/v.npz --out {folder}/model --recipe paper --blocks 1 --epochs 1",
            f"train {folder}/v.npz --out {folder}/run --encoder linear --epochs 1 --no-nmi",
            f"embed {folder}/v.npz --model {folder}/run --out {folder}/e.npz",
        ):
            app([*command.split(), *([] if command.startswith("plot") else ["--json"])], standalone_mode=False)


def _be_the_command(request: dict, errors: int, steps: int) -> None:
    """The child: run the command, and never return."""
    os.chdir(request["folder"])
    os.dup2(errors, 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    watched = Steps(request["folder"], request["kill_at"])
    watched.watch(request["exchange"])
    code = 70
    try:
        from entourage.cli import app

        app(request["arguments"])
    except SystemExit as leaving:
        code = int(leaving.code or 0)
    except BaseException:
        import traceback

        os.write(2, traceback.format_exc().encode())
    finally:
        sys.stderr.flush()
        os.write(steps, str(watched.count).encode())
        os._exit(code)


if __name__ == "__main__":
    serve()
