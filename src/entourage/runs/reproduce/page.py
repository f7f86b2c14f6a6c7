"""The page "Papers" of the documentation: every printed figure, what was measured here, and what differs."""

from pathlib import Path
from typing import NamedTuple

from entourage.runs.reproduce.markdown import measured_text, printed_text
from entourage.runs.reproduce.results import Results
from entourage.runs.reproduce.scale import Scale
from entourage.runs.reproduce.tables import Paper, Table, papers, tables

__all__ = ["QUICK", "papers_page", "results_of"]

QUICK = "quick"  # the folder, within that of the results, of what --quick made
_KEPT = "benchmarks/results/papers"
_HEAD = """# Papers

Every table and figure of the four papers whose systems are here: what is printed, how `entourage reproduce` makes it,
what came out at small scale, and what differs. This page is written by `python benchmarks/papers.py` from
`src/entourage/runs/reproduce/papers.toml`, which holds the printed figures and the recipe of every row, and from
`benchmarks/results/papers`; do not edit it by hand.

    entourage reproduce                                   # lists all of them
    entourage reproduce attend-3 --root DATA              # as printed: the datasets in DATA, and a GPU for days
    entourage reproduce attend-3 --small                  # the same rows on a small set, from scratch
    entourage reproduce attend-3 --quick                  # with fewer classes and epochs: a minute at most on one core

- **needs the dataset**: printed by the paper and not measured here. The command makes these rows once the dataset is
  there; [datasets.md](datasets.md) says where to get each.
- **measured here**: by `--small`, on classes unseen in training, in percent, mean ± standard deviation over the seeds.
  Small encoders are trained from scratch, so that such figures say how rows differ, not what the paper's figures are.
- **tried here**: by `--quick` alone, on 40 classes with 3 epochs and one seed. This shows that the rows are made and
  the figures drawn; differences between the rows mean nothing.
- **printed alone**: rows of other authors' methods, which are not made here.

Rows keep their printed names, so that "Ours" is the method of the paper; rows that are not in it say so. Figures of the
papers without numbers are drawn from what their rows are made of; what the text says of them is quoted.
"""


def papers_page(folder: Path) -> str:
    """The whole page.

    Parameters
    ----------
    folder : Path
        The results that are kept, TABLE.json each.

    Returns
    -------
    str
        Markdown.
    """
    parts = [_HEAD]
    for name, paper in papers().items():
        parts.append(_of_paper(paper))
        own = [table for table in tables("small").values() if table.paper == name]
        parts += [_of_table(_kept(table, folder)) for table in own]
    return "\n".join(parts)


def results_of(table: Table, folder: Path) -> Results:
    """What is kept of a table; nothing if there is no file."""
    return Results(folder / f"{table.id}.json", table.id, "small")


class _Kept(NamedTuple):
    """What is kept of a table, and at what scale it was made."""

    table: Table
    results: Results
    scale: Scale
    pictures: str


def _kept(table: Table, folder: Path) -> _Kept:
    """At small scale; what --quick made takes the place of what there is not yet."""
    results, pictures = results_of(table, folder), _pictures(table, folder)
    quick = Results(folder / QUICK / f"{table.id}.json", table.id, "quick")
    if results.datasets or pictures or not quick.datasets:
        return _Kept(table, results, Scale("small"), pictures)
    table = tables("quick")[table.id]  # a grid has fewer cells
    return _Kept(table, quick, Scale("quick"), _pictures(table, folder / QUICK, f"{_KEPT}/{QUICK}"))


def _of_paper(paper: Paper) -> str:
    note = f" {paper.note}" if paper.note else ""
    return f"## {paper.title}\n\n{paper.authors}. Figures and pages: {paper.source}.{note}\n"


def _pictures(table: Table, folder: Path, kept: str = _KEPT) -> str:
    """Its pictures, as far as they are kept; the page stands in docs/."""
    names = [path.name for path in sorted(folder.glob(f"{table.id}-*.png"))] if table.draw else []
    shown = [f"![{table.shows}: {name.removeprefix(table.id + '-')[:-4]}](../{kept}/{name})" for name in names]
    return "\n".join(shown) + "\n" if shown else ""


def _of_table(kept: _Kept) -> str:
    table, results, scale, pictures = kept
    also = f" (also {', '.join(f'`{name}`' for name in table.aliases)})" if table.aliases else ""
    lines = [f"### {table.place}: {table.shows}\n", f"`entourage reproduce {table.id}`{also}, page {table.page}.\n"]
    printed = printed_text(table)
    made = [row.name for row in table.made if row.printed]
    if printed:
        which = ", ".join(table.datasets)
        alone = len(made) < sum(bool(row.printed) for row in table.rows)
        which_rows = f" Rows made here: {'; '.join(made)}. The others are printed alone." if alone else ""
        lines.append(f"**Printed; needs the dataset** ({which}).{which_rows}\n\n{printed}")
    if table.says:
        lines.append(f"The paper says: {table.says}\n")
    measured = measured_text(table, results, scale)
    how = "Tried here by `--quick`" if scale.name == "quick" else "Measured here"
    if measured:
        lines.append(f"**{how}** ({_measured_on(results)}).\n\n{measured}")
    elif results.datasets:
        lines.append(f"**{how}** ({_measured_on(results)}).\n")
    elif not pictures:
        lines.append("Not measured here yet.\n")
    lines += [f"What came out: {table.found}\n"] if table.found else []
    lines += [pictures] if pictures else []
    if table.differs:
        lines.append(f"What differs: {table.differs}\n")
    return "\n".join(lines)


def _measured_on(results: Results) -> str:
    """The sets, and how many seeds of each."""
    said = []
    for dataset, rows in results.content["measured"].items():
        seeds = max(len(by_seed) for by_seed in rows.values())
        test = results.content["protocol"].get(dataset, {}).get("test", "")
        said.append(f"{dataset}: {test}, {seeds} seed{'s' * (seeds > 1)}")
    return "; ".join(said)
