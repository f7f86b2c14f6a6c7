"""A run as one HTML file that can be sent to anyone: it opens from disk, fetches nothing and runs nothing.

    run folder → open_run → blocks → Page → report.html

page.py is the page and its template page.html; blocks.py, scores.py, pictures.py and rankings.py are what stands on it;
refinement.py and training.py say what of a run is shown, drawing.py which figures.
"""

import warnings
from dataclasses import replace
from pathlib import Path

from entourage.errors import EntourageWarning, InputError
from entourage.runtime.warnings import collected_warnings
from entourage.stores import check_free, whole_file

__all__ = ["write_report"]


def write_report(run, out=None, *, seed: int = 0, overwrite: bool = False, progress=None) -> Path:
    """Write the report of a run folder to `out`, whole or not at all; default: report.html inside the run.

    A run is a kept refinement or one of `entourage train`; seed decides which items are drawn. What cannot be shown
    as it should, such as pictures that are gone, is an EntourageWarning, which the page says too.
    """
    from entourage.report.drawing import draw_all
    from entourage.report.page import Section
    from entourage.runs.layout import REPORT
    from entourage.runs.open import open_run

    opened = open_run(run, progress=progress)
    out = Path(run) / REPORT if out is None else Path(out)
    if out.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"the report is to be written to {out}; wanted a name that ends in .html")
    check_free(out, overwrite=overwrite)
    with collected_warnings() as doubts:
        page = _page_of(opened, draw_all(opened, seed))
    if doubts:
        from entourage.report.blocks import Doubts

        page = replace(page, sections=[*page.sections, Section("About this report", [Doubts(doubts)])])
    with whole_file(out) as temporary:
        temporary.write_text(page.html(), encoding="utf-8")
    for doubt in doubts:
        warnings.warn(doubt, EntourageWarning, stacklevel=2)
    return out


def _page_of(run, figures: list):
    from entourage.report.refinement import refinement_page
    from entourage.report.training import training_page
    from entourage.runs.refinement_run import RefinementRun

    if isinstance(run, RefinementRun):
        return refinement_page(run, figures)
    return training_page(run, figures)
