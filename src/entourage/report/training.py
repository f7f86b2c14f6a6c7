"""The page of a run of `entourage train`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from entourage.errors import EntourageError
from entourage.evaluation.bootstrap import intervals_over_classes, resampled
from entourage.report.blocks import Beside, Facts, Heading, Paragraph, ScoreTable, Table, Tally, Warnings
from entourage.report.classes import means_by_class
from entourage.report.page import Page, Section
from entourage.report.rankings import Ranking, cells_of
from entourage.report.templates import Block
from entourage.report.wording import flattened, footer, without_repeats
from entourage.runs.figures.training import source_of, spread_queries
from entourage.runs.layout import NETWORK
from entourage.runs.training_run import TrainingRun
from entourage.values import labels_of

__all__ = ["training_page"]

_QUERIES = 8  # shown
_CLASSES = 6  # listed that are found best, and worst
_SHARES = (  # from which recall on it is called so
    (0.95, "nearly all queries"),
    (0.65, "most queries"),
    (0.5, "more than half of the queries"),
    (0.2, "fewer than half of the queries"),
    (0.0, "few queries"),
)


def training_page(run: TrainingRun, figures: Sequence[Block]) -> Page:
    """Compose the page of a training run; figures: blocks with its pictures."""
    scores, gone = _per_query(run)
    warnings = [*run.document["warnings"], *gone]
    return Page(
        title=f"{source_of(run)} · {run.system} ({run.folder.absolute().name})",
        headline=_headline(run),
        sections=[
            Section("Scores", [*([Warnings(warnings)] if warnings else []), _score_table(run, scores)]),
            Section("Figures", figures),
            Section("Found and missed", _found_and_missed(run, scores) if scores else []),
            Section("Network", _network(run)),
            Section(
                "Protocol", [Facts("How this was trained and measured.", without_repeats(run.document["protocol"]))]
            ),
            Section("Settings", [Facts("What decided the result.", _settings(run))]),
            Section("Versions", [Facts("What it was made with.", run.config.get("versions", {}))]),
        ],
        footer=footer(run.folder, resampled(labels_of(run.embedded[0]), paired=False) if scores else None),
    )


def _per_query(run: TrainingRun) -> tuple[dict[str, np.ndarray] | None, list[str]]:
    """Scores of every query, (N,) by metric, and no warning; or None and why the test set cannot be loaded again."""
    try:
        return run.per_query, []
    except (EntourageError, OSError) as error:
        return None, [f"the test set cannot be loaded again, so intervals and queries are missing: {error}"]


def _headline(run: TrainingRun) -> str:
    """How good the encoder is, without numbers: the table below has them."""
    recall = run.document["metrics"]["recall@1"]
    share = next(words for least, words in _SHARES if recall >= least)
    return (
        f"Trained by {run.system} on {source_of(run)}, the encoder finds an item of the right class first for {share}."
    )


def _score_table(run: TrainingRun, scores: dict[str, np.ndarray] | None) -> ScoreTable:
    nothing = {name: np.zeros(len(values)) for name, values in (scores or {}).items()}
    found = intervals_over_classes(scores, nothing, labels_of(run.embedded[0])) if scores else {}
    intervals = {name: interval.document() for name, interval in found.items()}
    return ScoreTable("In percent.", run.document["metrics"], intervals=intervals)


def _settings(run: TrainingRun) -> dict[str, Any]:
    source = {name: value for name, value in run.config["data"].items() if value}
    return flattened({"system": run.system, "data": source, **run.config["settings"]})


def _network(run: TrainingRun) -> list[Block]:
    """Of a system that trains a network beside the encoder: what it is, what both learned from, and its use."""
    if run.system != "intra-batch":
        return []
    chosen, name = run.config["settings"], run.folder.absolute().name
    contact = "each receiving messages from all" if chosen.get("messages", True) else "each on its own, as a control"
    facts = {
        "loss of the encoder": f"cross-entropy of its embedding, weight {chosen['auxiliary_weight']:g}",
        "loss of the network": f"cross-entropy after the messages, weight {chosen['network_weight']:g}",
        "a batch": f"{chosen['batch_classes']} classes of {chosen['batch_per_class']} items, {contact}",
        "message-passing steps": chosen["steps"],
        "heads": chosen["heads"],
    }
    use = "The scores above are those of the encoder alone. No network was kept, as it received no messages."
    if (run.folder / NETWORK).is_dir():
        use = (
            "The scores above are those of the encoder alone. The network was kept and refines vectors of this "
            f"encoder: entourage refine VECTORS --model {name} --run KEPT shows before and after."
        )
    return [Paragraph(use), Facts("How encoder and network were trained together.", facts)]


def _found_and_missed(run: TrainingRun, scores: dict[str, np.ndarray]) -> list[Block]:
    labels = labels_of(run.embedded[0])
    found = int(scores["recall@1"].sum())
    chosen = spread_queries(scores["map@r"], labels, _QUERIES)
    return [
        Paragraph("Queries by their nearest item:"),
        Tally((found, "found one of their class"), (len(labels) - found, "found another first"), marks=("✓", "✗")),
        Beside(_class_tables(labels, scores["map@r"])),
        Heading("From the queries found best to those found worst"),
        *(_ranking(run, row, scores["map@r"][row]) for row in chosen),
    ]


def _class_tables(labels: ArrayLike, precision: np.ndarray) -> list[Table]:
    names, counts, (means,) = means_by_class(labels, precision)
    order, last = (np.lexsort((-counts, sign * means)) for sign in (-1, 1))  # of equals the most frequent
    listed = [("Classes found best.", order[:_CLASSES]), ("Classes found worst.", last[:_CLASSES])]
    if len(names) <= 2 * _CLASSES:  # two tables would list the same ones twice
        listed = [("Classes from those found best to those found worst.", order)]
    tables = []
    for caption, rows in listed:
        cells = [(names[row], f"{counts[row]:,}", f"{100 * means[row]:.1f}") for row in rows]
        tables.append(Table(f"{caption} MAP@R in percent.", ("class", "queries", "MAP@R"), cells))
    return tables


def _ranking(run: TrainingRun, row: int, precision: float) -> Ranking:
    queries = run.appearance
    query, found = cells_of(queries, row, run.gallery_appearance, run.neighbors.rows[row])
    note = f"average precision {100 * precision:.0f} %"
    return Ranking(queries.name(row), str(queries.ids[row]), note, query, found)
