"""Refines a store in a process of its own, which kills itself, as by `kill -9`, some milliseconds after a report."""

import multiprocessing
import os
import signal
import sys
import threading
import traceback
from pathlib import Path
from unittest import mock

from entourage.runs.streamed.refine import StreamedRequest, refine_streamed

_PROCESSES = multiprocessing.get_context("forkserver")  # what takes seconds to import is imported once
_PROCESSES.set_forkserver_preload(["entourage.runs.streamed.refine", "pandas", "pyarrow"])
_ROOT = str(Path(__file__).parents[2])  # where the process finds this module, which pytest imports by its path


def refine_and_die(
    url: str, moment: int | str | None, milliseconds: float, *, resume: bool, said: Path
) -> tuple[int, str]:
    """The exit code of a refinement, -9 if it was killed, and what it said: how many reports there were, or its error.

    moment: after the report of progress of this number, or after the first of the stage of this title; None: never.
    said: a file for that.
    """
    said.unlink(missing_ok=True)
    process = _PROCESSES.Process(target=_refine, args=(url, moment, milliseconds, resume, said))
    with mock.patch.object(sys, "path", [_ROOT, *sys.path]):
        process.start()
    process.join(timeout=600)
    assert process.exitcode is not None, "it does not end"
    return process.exitcode, said.read_text() if said.exists() else ""


def _refine(url: str, moment: int | str | None, milliseconds: float, resume: bool, said: Path) -> None:
    _in_small_parts()
    os.chdir(said.parent)  # where work on what is on a server is kept
    reports = 0

    def report(title: str, done: int, total: int) -> None:
        nonlocal reports
        reports += 1
        if moment in (title, reports):
            threading.Timer(milliseconds / 1000, os.kill, (os.getpid(), signal.SIGKILL)).start()

    try:
        refine_streamed(StreamedRequest(url, resume=resume), progress=report)
    except Exception:
        said.write_text(traceback.format_exc())
        raise SystemExit(1) from None
    said.write_text(str(reports))


def _in_small_parts() -> None:
    """Few items are read, refined and written in many parts."""
    from entourage.runs.streamed import refine, sources, steps
    from entourage.stores.databases import parquet_folder, store

    store.BATCH = parquet_folder._WRITTEN = 7  # before an engine's module takes it from there
    refine._ROWS = sources._ROWS = steps._ROWS = 20
