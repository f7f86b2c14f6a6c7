"""The page of a kept refinement."""

import numpy as np

from entourage.figures.retrieval import choose_queries
from entourage.report.blocks import Beside, Doubts, Facts, Heading, Paragraph, Table, flattened
from entourage.report.classes import means_by_class
from entourage.report.page import Page, Section
from entourage.report.rankings import SHOWN, Ranking, Tally, cells_of
from entourage.report.scores import ScoreTable, changes_in_words, metric_title
from entourage.runs.figures.refinement import changed_queries, rankings

__all__ = ["refinement_page"]

WHEN = ("before", "after")
_EACH = 4  # wins and losses shown
_CLASSES = 6  # classes listed that gained, and that lost
_UNCHANGED = 1e-9
_SAID = ("recall@1", "map@r")  # in the headline


def refinement_page(run, figures) -> Page:
    """run: a RefinementRun. figures: blocks with its pictures."""
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


def _headline(run) -> str:
    document = run.document
    names = [name for name in _SAID if name in document["metrics"]]
    if names:
        said = changes_in_words(document["metrics_before"], document["metrics"], document["intervals"], names)
        return f"Refinement {said}."
    return (
        f"{len(run.items):,} vectors were refined; without labels no score tells whether they became better, but "
        "what changed can be seen below."
    )


def _lede(run) -> str:
    told = _movement(run.document.get("movement", {}))
    before, after = run.document["metrics_before"], run.document["metrics"]
    fell = [metric_title(name) for name in after if name not in _SAID and after[name] < before[name]]
    said = f"{_enumerated(fell)} fell. " if fell else ""
    return f"{said}{told}".strip()


def _movement(movement: dict) -> str:
    """How far the vectors moved, where it was kept."""
    clauses = []
    if "mean_cosine_to_input" in movement:
        between = movement.get("mean_cosine_of_two_inputs")
        beside = "" if between is None else f" (two different ones had {between:.3f})"
        clauses.append(f"has a cosine of {movement['mean_cosine_to_input']:.3f} to what it was{beside}")
    for name, share in movement.items():
        if name.startswith("share_of_"):
            count = name.removeprefix("share_of_").split("_")[0]
            clauses.append(f"keeps {100 * share:.0f} % of its {count} nearest neighbours")
    return f"On average a vector {' and '.join(clauses)}." if clauses else ""


def _scores(run) -> list:
    document = run.document
    blocks = [Doubts(document["warnings"])] if document.get("warnings") else []
    if not document["metrics"]:
        return blocks
    caption = "In percent. ▲ better and ▼ worse at 95 %; ≈ no clear change; △ ▽ higher and lower, without an interval."
    return [*blocks, ScoreTable(caption, document["metrics"], document["metrics_before"], document["intervals"])]


def _settings(run) -> dict:
    settings = flattened(run.run.get("settings", {}))
    if "refiner.steps" in settings:  # where runs of older versions have None for all
        settings["refiner.steps"] = run.n_steps
    return settings | {"seed": run.run.get("seed"), "seconds": run.run.get("seconds")}


def _footer(run) -> str:
    intervals = "Intervals: paired bootstrap over queries, 95 %. " if run.document["intervals"] else ""
    name = run.folder.absolute().name
    return f"Made by entourage report {name}. {intervals}This file holds everything it shows; it fetches nothing."


# ---- wins and losses ---------------------------------------------------------------------------------------------


def _wins_and_losses(run) -> list:
    gains = run.gains
    if gains is None:
        return _most_changed(run)
    won, lost = int((gains > _UNCHANGED).sum()), int((gains < -_UNCHANGED).sum())
    blocks = [
        Paragraph("Queries by average precision at R, before and after:"),
        Tally((won, "got better"), (lost, "got worse"), (len(gains) - won - lost, "unchanged")),
    ]
    blocks += _class_tables(run)
    chosen = choose_queries(gains, n_best=_EACH, n_worst=_EACH)
    for title, rows in (
        ("Biggest wins", [row for row in chosen if gains[row] > 0]),
        ("Biggest losses", [row for row in chosen if gains[row] < 0]),
    ):
        if rows:
            blocks += [Heading(title), *(_ranking(run, row, _precision(run, row)) for row in rows)]
    return blocks


def _most_changed(run) -> list:
    """Without labels: the queries that keep the fewest of their nearest items."""
    before, after = rankings(run, SHOWN)
    kept = before.kept_in(after)
    said = [Paragraph("Nobody has said which items are right."), Heading("Queries whose nearest items changed most")]
    told = []
    for row in changed_queries(run, 2 * _EACH):
        told.append(_ranking(run, row, f"{kept[row]} of the {before.k} nearest stayed"))
    return [*said, *told]


def _ranking(run, row: int, note: str) -> Ranking:
    queries, gallery = run.appearance, run.gallery_appearance
    (query, before), (_, after) = (cells_of(queries, row, gallery, run.neighbors[when].rows[row]) for when in WHEN)
    return Ranking(queries.name(row), str(run.items.ids[row]), note, query, after, before)


def _precision(run, row: int) -> str:
    scores = run.per_query
    before, after = (100 * scores[when]["map@r"][row] for when in WHEN)
    return f"{'▲' if after > before else '▼'} average precision {before:.0f} → {after:.0f} %"


def _class_tables(run) -> list:
    scores = run.per_query
    names, sizes, (before, after) = means_by_class(run.items.labels, *(scores[when]["map@r"] for when in WHEN))
    gained = after - before
    order = np.argsort(-gained, kind="stable")
    tables = []
    for word, rows in (
        ("gained", [row for row in order if gained[row] > _UNCHANGED]),
        ("lost", [row for row in order[::-1] if gained[row] < -_UNCHANGED]),
    ):
        caption = f"{len(rows):,} of {len(names):,} classes {word}; most of all these. MAP@R in percent."
        cells = [
            (names[row], f"{sizes[row]:,}", *(f"{100 * value:.1f}" for value in (before[row], after[row])))
            for row in rows[:_CLASSES]
        ]
        tables.append(Table(caption, ("class", "queries", *WHEN), cells) if cells else Paragraph(f"No class {word}."))
    return [Beside(tables)]


def _enumerated(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
