"""The page of a kept refinement."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from entourage.figures.retrieval import choose_queries
from entourage.report.blocks import Beside, Facts, Heading, Paragraph, ScoreTable, Table, Tally, Warnings
from entourage.report.classes import means_by_class
from entourage.report.page import Page, Section
from entourage.report.rankings import SHOWN, Ranking, cells_of
from entourage.report.templates import Block
from entourage.report.wording import changes_in_words, flattened, metric_title
from entourage.runs.figures.refinement import changed_queries, rankings
from entourage.runs.refinement_run import RefinementRun

__all__ = ["refinement_page"]

WHEN = ("before", "after")
_EACH = 4  # wins and losses shown
_CLASSES = 6  # classes listed that gained, and that lost
_UNCHANGED = 1e-9
_HEADLINE = ("recall@1", "map@r")  # metrics


def refinement_page(run: RefinementRun, figures: Sequence[Block]) -> Page:
    """Compose the page of a refinement; figures: blocks with its pictures."""
    return Page(
        title=f"{run.folder.absolute().name} · refinement",
        headline=_headline(run),
        lede=_lede(run),
        sections=[
            Section("Scores", _scores(run)),
            Section("Protocol", [Facts("How this was measured.", run.document["protocol"])]),
            Section("Figures", figures),
            Section("Wins and losses" if run.labelled else "What changed most", _wins_and_losses(run)),
            Section("Settings", [Facts("What decided the result.", _settings(run))]),
            Section("Versions", [Facts("What it was made with.", run.run.get("versions", {}))]),
        ],
        footer=_footer(run),
    )


def _headline(run: RefinementRun) -> str:
    document = run.document
    names = [name for name in _HEADLINE if name in document["metrics"]]
    if names:
        changes = changes_in_words(document["metrics_before"], document["metrics"], document["intervals"], names)
        return f"Refinement {changes}."
    return (
        f"{len(run.items):,} vectors were refined. Without labels there are no scores to show whether they became "
        "better, but what changed can be seen below."
    )


def _lede(run: RefinementRun) -> str:
    before, after = run.document["metrics_before"], run.document["metrics"]
    fell = [metric_title(name) for name in after if name not in _HEADLINE and after[name] < before[name]]
    movement = _movement(run.document.get("movement", {}))
    return f"{_enumerated(fell)} fell. {movement}".strip() if fell else movement


def _movement(movement: dict[str, float]) -> str:
    """Say how far the vectors moved, where that was measured."""
    clauses = []
    if "mean_cosine_to_input" in movement:
        between = movement.get("mean_cosine_of_two_inputs")
        beside = "" if between is None else f" (two different vectors had {between:.3f})"
        clauses.append(f"has a cosine of {movement['mean_cosine_to_input']:.3f} to what it was before{beside}")
    for name, share in movement.items():
        if name.startswith("share_of_"):
            count = name.removeprefix("share_of_").split("_")[0]
            clauses.append(f"keeps {100 * share:.0f} % of its {count} nearest neighbours")
    return f"On average a vector {' and '.join(clauses)}." if clauses else ""


def _scores(run: RefinementRun) -> list[Block]:
    document = run.document
    blocks: list[Block] = [Warnings(document["warnings"])] if document.get("warnings") else []
    if not document["metrics"]:
        return blocks
    caption = "In percent. ▲ better and ▼ worse at 95 %; ≈ no clear change; △ ▽ higher and lower, without an interval."
    return [*blocks, ScoreTable(caption, document["metrics"], document["metrics_before"], document["intervals"])]


def _settings(run: RefinementRun) -> dict[str, Any]:
    settings = flattened(run.run.get("settings", {}))
    if "refiner.steps" in settings:  # where runs of older versions have None for all
        settings["refiner.steps"] = run.n_steps
    return settings | {"seed": run.run.get("seed"), "seconds": run.run.get("seconds")}


def _footer(run: RefinementRun) -> str:
    intervals = "Intervals: paired bootstrap over queries, 95 %. " if run.document["intervals"] else ""
    name = run.folder.absolute().name
    return f"Made by entourage report {name}. {intervals}This file holds everything it shows; it fetches nothing."


# ---- wins and losses ---------------------------------------------------------------------------------------------


def _wins_and_losses(run: RefinementRun) -> list[Block]:
    scores, labels = run.per_query, run.items.labels
    if scores is None or labels is None:
        return _most_changed(run)
    before, after = (scores[when]["map@r"] for when in WHEN)
    gains = after - before
    won, lost = int((gains > _UNCHANGED).sum()), int((gains < -_UNCHANGED).sum())
    blocks: list[Block] = [
        Paragraph("Queries by average precision at R, before and after:"),
        Tally((won, "got better"), (lost, "got worse"), (len(gains) - won - lost, "unchanged")),
        Beside(_class_tables(labels, before, after)),
    ]
    chosen = choose_queries(gains, n_best=_EACH, n_worst=_EACH)
    for title, mark, sign in (("Biggest wins", "▲", 1), ("Biggest losses", "▼", -1)):
        rows = [row for row in chosen if sign * gains[row] > 0]
        notes = [f"{mark} average precision {100 * before[row]:.0f} → {100 * after[row]:.0f} %" for row in rows]
        blocks += [Heading(title)] if rows else []
        blocks += [_ranking(run, row, note) for row, note in zip(rows, notes, strict=True)]
    return blocks


def _most_changed(run: RefinementRun) -> list[Block]:
    """Without labels: the queries that keep the fewest of their nearest items."""
    before, after = rankings(run, SHOWN)
    kept, rows = before.kept_in(after), changed_queries(run, 2 * _EACH)
    return [
        Paragraph("Without labels it is not known which items are right."),
        Heading("Queries whose nearest items changed most"),
        *(_ranking(run, row, f"{kept[row]} of the {before.k} nearest stayed") for row in rows),
    ]


def _ranking(run: RefinementRun, row: int, note: str) -> Ranking:
    queries, gallery = run.appearance, run.gallery_appearance
    (query, before), (_, after) = (cells_of(queries, row, gallery, run.neighbors[when].rows[row]) for when in WHEN)
    return Ranking(queries.name(row), str(queries.ids[row]), note, query, after, before)


def _class_tables(labels: ArrayLike, before: np.ndarray, after: np.ndarray) -> list[Block]:
    """The classes of labels (N,) that gained and those that lost most, by average precision (N,)."""
    names, sizes, means = means_by_class(labels, before, after)
    gained = means[1] - means[0]
    tables: list[Block] = []
    for word, sign in (("gained", 1), ("lost", -1)):
        rows = [row for row in np.argsort(-sign * gained, kind="stable") if sign * gained[row] > _UNCHANGED]
        caption = f"{len(rows):,} of {len(names):,} classes {word}, these the most. MAP@R in percent."
        cells = [(names[row], f"{sizes[row]:,}", *(f"{100 * mean[row]:.1f}" for mean in means)) for row in rows]
        table = Table(caption, ("class", "queries", *WHEN), cells[:_CLASSES])
        tables.append(table if cells else Paragraph(f"No class {word}."))
    return tables


def _enumerated(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
