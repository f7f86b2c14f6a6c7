"""The page of a run of `entourage train`."""

import numpy as np

from entourage.errors import EntourageError
from entourage.evaluation.bootstrap import paired_bootstraps
from entourage.report.blocks import Beside, Doubts, Facts, Heading, Paragraph, Table, flattened
from entourage.report.classes import means_by_class
from entourage.report.page import Page, Section
from entourage.report.rankings import Ranking, Tally, cells_of
from entourage.report.scores import ScoreTable
from entourage.runs.figures.training import source_of, spread_queries
from entourage.runs.layout import NETWORK

__all__ = ["training_page"]

_QUERIES = 8  # shown
_CLASSES = 6  # listed that are found best, and worst


def training_page(run, figures) -> Page:
    """run: trainings.Training. figures: blocks with its pictures."""
    scores, gone = _per_query(run)
    doubts = [*run.document["warnings"], *gone]
    return Page(
        title=f"{source_of(run)} · {run.system} ({run.folder.absolute().name})",
        headline=_headline(run),
        lede=_lede(run),
        sections=[
            Section("Scores", [*([Doubts(doubts)] if doubts else []), _score_table(run, scores)]),
            Section("Protocol", [Facts("How this was trained and measured.", run.document["protocol"])]),
            Section("Network", _network(run)),
            Section("Figures", figures),
            Section("Found and missed", _found_and_missed(run, scores) if scores else []),
            Section("Settings", [Facts("What decided the result.", _settings(run))]),
            Section("Versions", [Facts("What it was made with.", run.config.get("versions", {}))]),
        ],
        footer=f"Made by entourage report {run.folder.absolute().name}. "
        f"{'Intervals: bootstrap over queries, 95 %. ' if scores else ''}"
        "This file holds everything it shows; it fetches nothing.",
    )


def _per_query(run) -> tuple[dict | None, list[str]]:
    """Scores of every query, and nothing to say; or None, and why the test set cannot be looked at again."""
    try:
        return run.per_query, []
    except (EntourageError, OSError) as error:
        return None, [f"the test set cannot be looked at again, so that intervals and queries are missing: {error}"]


def _headline(run) -> str:
    protocol, recall = run.document["protocol"], 100 * run.document["metrics"]["recall@1"]
    return (
        f"Trained by {run.system} on {source_of(run)}, the encoder finds an item of the right class first for "
        f"{recall:.1f} % of {protocol['queries']:,} queries."
    )


def _lede(run) -> str:
    protocol = run.document["protocol"]
    learned = f"It learned from {protocol['trained_on']}; the epoch kept is {protocol['epoch_kept']}."
    return f"Tested on {protocol['data']}. {learned}"


def _score_table(run, scores: dict | None) -> ScoreTable:
    nothing = {name: np.zeros(len(values)) for name, values in (scores or {}).items()}
    found = paired_bootstraps(scores, nothing) if scores else {}
    intervals = {name: interval.document() for name, interval in found.items()}
    return ScoreTable("In percent.", run.document["metrics"], intervals=intervals)


def _settings(run) -> dict:
    told = {name: value for name, value in run.config["data"].items() if value}
    return flattened({"system": run.system, "data": told, **run.config["settings"]})


def _network(run) -> list:
    """Of a system that trains a network beside the encoder: what it is, what both learned from, and its use."""
    if run.system != "intra-batch":
        return []
    chosen, name = run.config["settings"], run.folder.absolute().name
    heard = "each hearing all" if chosen.get("messages", True) else "each seen alone, as a control"
    facts = {
        "loss of the encoder": f"cross-entropy of its embedding, weight {chosen['auxiliary_weight']:g}",
        "loss of the network": f"cross-entropy after the messages, weight {chosen['network_weight']:g}",
        "a batch": f"{chosen['batch_classes']} classes of {chosen['batch_per_class']} items, {heard}",
        "message-passing steps": chosen["steps"],
        "heads": chosen["heads"],
    }
    use = "The scores above are those of the encoder alone. No network is kept: none learned to hear others."
    if (run.folder / NETWORK).is_dir():
        use = (
            "The scores above are those of the encoder alone. The network is kept, and refines vectors of this "
            f"encoder: entourage refine VECTORS --model {name} --run KEPT shows before and after."
        )
    return [Paragraph(use), Facts("What encoder and network were trained by, together.", facts)]


def _found_and_missed(run, scores: dict) -> list:
    labels = run.embedded[0].labels
    found = int(scores["recall@1"].sum())
    chosen = spread_queries(scores["map@r"], labels, _QUERIES)
    return [
        Paragraph("Queries by their nearest item:"),
        Tally((found, "found one of their class"), (len(labels) - found, "found another first"), marks=("✓", "✗")),
        Beside(_class_tables(labels, scores["map@r"])),
        Heading("From the queries found best to those found worst"),
        *(_ranking(run, row, scores["map@r"][row]) for row in chosen),
    ]


def _class_tables(labels, precision) -> list[Table]:
    names, counts, (means,) = means_by_class(labels, precision)
    order = np.argsort(-means, kind="stable")
    listed = [("Classes found best.", order[:_CLASSES]), ("Classes found worst.", order[::-1][:_CLASSES])]
    if len(names) <= 2 * _CLASSES:  # two tables would list the same ones twice
        listed = [("Classes from those found best to those found worst.", order)]
    tables = []
    for caption, rows in listed:
        cells = [(names[row], f"{counts[row]:,}", f"{100 * means[row]:.1f}") for row in rows]
        tables.append(Table(f"{caption} MAP@R in percent.", ("class", "queries", "MAP@R"), cells))
    return tables


def _ranking(run, row: int, precision: float) -> Ranking:
    queries = run.appearance
    query, found = cells_of(queries, row, run.gallery_appearance, run.neighbors.rows[row])
    note = f"average precision {100 * precision:.0f} %"
    return Ranking(queries.name(row), str(queries.ids[row]), note, query, found)
