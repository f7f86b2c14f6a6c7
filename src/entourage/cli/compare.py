"""`entourage compare`."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from entourage.cli.options import (
    At,
    IdColumn,
    Json,
    LabelColumn,
    Labels,
    Vectors,
    check_labelled,
    cutoffs,
    words_of_split,
)
from entourage.cli.output import facts, print_report, print_warnings, terminal_width
from entourage.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["compare"]


def compare(
    vectors: Vectors,
    labels: Labels = None,
    label_column: LabelColumn = None,
    id_column: IdColumn = None,
    split: Annotated[
        str,
        typer.Option(
            help="half (learn from the first half of the classes), or a column of VECTORS or a file that says "
            "train or test, or train, query or gallery, for each vector."
        ),
    ] = "half",
    splits: Annotated[
        int,
        typer.Option(
            metavar="<int>", min=1, help="Number of class splits: the first half, then random halves of the classes."
        ),
    ] = 1,
    protocol: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="together (all test items look at each other; default), served (queries one at a time; default where "
            "the split names queries), open (half of them without a match), sparse (few items a class, distractors); "
            "comma-separated, or repeated.",
        ),
    ] = None,
    methods: Annotated[
        str, typer.Option(help="all, or comma-separated names; an unknown name lists them all.")
    ] = "all",
    seeds: Annotated[
        int,
        typer.Option(metavar="<int>", min=1, help="Number of seeds, counted from 0; scores are averaged over them."),
    ] = 1,
    at: At = None,
    per_class: Annotated[
        bool, typer.Option("--per-class", help="Also show the queries and classes that the last refiner made worse.")
    ] = False,
    against: Annotated[str, typer.Option(help="With --per-class: the method the refiner is compared with.")] = "raw",
    as_json: Json = False,
) -> None:
    """Compare refiners with the alternatives.

    All methods are scored on classes of VECTORS that none of them was trained on.
    """
    from entourage.comparison import tables
    from entourage.comparison.measuring import check_single, compare_halves, compare_split
    from entourage.comparison.methods import select_methods
    from entourage.comparison.protocols import check_protocols
    from entourage.comparison.splits import queries_given, split_given
    from entourage.runtime.progress import terminal_progress
    from entourage.stores import read_vectors

    asked = cutoffs(at)
    chosen = select_methods("all" if methods == "all" else [name.strip() for name in methods.split(",")])
    if against not in {spec.name for spec in chosen}:
        raise InputError(f"--against is {against}, which is not compared; add it to --methods or name another")
    protocols = check_protocols([name.strip() for part in protocol for name in part.split(",")]) if protocol else None
    items = read_vectors(vectors, labels=labels, id_column=id_column, label_column=label_column)
    check_labelled(items, vectors, "--labels")
    with terminal_progress(log=not as_json, patient=True) as progress:
        options: dict[str, Any] = {"protocol": protocols, "seeds": seeds, "at": asked, "progress": progress}
        if split == "half":
            comparison = compare_halves(items, chosen, splits=splits, **options)
        else:
            check_single(splits)
            words = words_of_split(items, vectors, split, otherwise="half")
            parts, queries = split_given(items, words), queries_given(words)
            comparison = compare_split(*parts, chosen, queries=queries, split=f"given by {split}", **options)
    print_warnings(list(comparison.warnings))
    document = comparison.document()
    if per_class:
        document["harm"] = comparison.harm(against=against)
    shown = {name: value for name, value in comparison.protocol.items() if name != "by_split"}
    parts_shown: list[Table | str] = [facts(shown), *tables.comparison_tables(document, asked or ())]
    parts_shown += tables.harm_tables(document["harm"]) if per_class else []
    width = terminal_width()
    print_report(document, as_json, *(tables.fitted(part, width) for part in parts_shown))
