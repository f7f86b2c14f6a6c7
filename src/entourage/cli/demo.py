"""`entourage demo`."""

import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from entourage.cli.options import Json, Overwrite, Seed
from entourage.cli.output import facts, print_report, print_warnings, side_by_side
from entourage.runtime.extras import is_installed, require

__all__ = ["demo"]


def demo(
    out: Annotated[Path | None, typer.Option(help="Folder for the run. Default: a new one under runs/.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer classes and shorter training.")] = False,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Refine embeddings of built-in glyphs and show what changed.

    It renders the glyphs, trains a small encoder and refines its embeddings of scripts it has not seen.
    """
    require("torch", "the demo, which trains an encoder,")

    from entourage.demo import run_demo
    from entourage.runtime.progress import terminal_progress

    with terminal_progress() as progress:
        result = run_demo(out, quick=quick, seed=seed, overwrite=overwrite, progress=progress)
    measured = result.document()
    print_warnings(measured["warnings"])
    names = ("before", measured["metrics_before"]), ("after", measured["metrics"])
    tables = facts(measured["protocol"]), side_by_side(*names)
    print_report(measured, as_json, *tables, f"Written to {result.folder}", _how_to_see(result.folder))


def _how_to_see(folder: Path) -> str:
    """The line that opens the page, as it can be typed: with the path of this program, if it was called by one."""
    called = Path(sys.argv[0])
    program = str(called) if called.name == "entourage" and not shutil.which("entourage") else "entourage"
    first = "" if is_installed("fastapi") else " (first: pip install 'entourage[explorer]')"
    return f"See it in your browser: {shlex.join([program, 'explore', str(folder)])}{first}"
