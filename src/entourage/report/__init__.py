"""A run as one HTML file that can be sent to anyone: it opens from disk, fetches nothing and runs nothing.

    run folder → open_run → blocks → Page → report.html

refinement.py and training.py choose what of a run is shown, drawing.py which figures. blocks.py, rankings.py and
pictures.py are values; templates/ turns them into HTML, and wording.py numbers into words.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from entourage.errors import EntourageWarning, InputError
from entourage.runtime.warnings import collected_warnings
from entourage.stores import check_file, whole_file

if TYPE_CHECKING:
    from entourage.report.page import Page
    from entourage.report.templates import Block
    from entourage.runs.refinement_run import RefinementRun
    from entourage.runs.training_run import TrainingRun
    from entourage.runtime.progress import Progress

__all__ = ["write_report"]


def write_report(
    run: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    seed: int = 0,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Write the report of a run folder, whole or not at all.

    What cannot be shown as it should, such as pictures that are gone, is an EntourageWarning that stands on the page
    too.

    Parameters
    ----------
    run : path
        Folder of `entourage refine --run`, `entourage train` or `entourage demo`.
    out : path, optional
        File to write, ending in .html; report.html inside the run by default.
    seed : int
        Decides which items are drawn.
    overwrite : bool
        Whether an existing file may be replaced.
    progress : callable, optional
        Called as progress(title, done, total).

    Returns
    -------
    Path
        The file that was written.
    """
    from entourage.report.blocks import Warnings
    from entourage.report.drawing import draw_all
    from entourage.report.page import Section
    from entourage.runs.layout import REPORT
    from entourage.runs.open import open_run

    opened = open_run(run, progress=progress)
    out = Path(run) / REPORT if out is None else Path(out)
    if out.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"the report cannot be written to {out}; choose a name that ends in .html")
    check_file(out, overwrite=overwrite)
    with collected_warnings() as messages:
        page = _page_of(opened, draw_all(opened, seed))
    if messages:
        page = replace(page, sections=[*page.sections, Section("About this report", [Warnings(messages)])])
    with whole_file(out, overwrite=overwrite) as temporary:
        temporary.write_text(page.html(), encoding="utf-8")
    for message in messages:
        warnings.warn(message, EntourageWarning, stacklevel=2)
    return out


def _page_of(run: RefinementRun | TrainingRun, figures: list[Block]) -> Page:
    from entourage.report.refinement import refinement_page
    from entourage.report.training import training_page
    from entourage.runs.refinement_run import RefinementRun

    if isinstance(run, RefinementRun):
        return refinement_page(run, figures)
    return training_page(run, figures)
