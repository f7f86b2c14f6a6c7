"""Arguments and options that several commands share, and their checks."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from entourage.errors import EntourageError, InputError

if TYPE_CHECKING:
    from entourage.values import Embeddings, LabelArray

__all__ = [
    "At",
    "DataOptions",
    "Device",
    "Engine",
    "IdColumn",
    "ImageSource",
    "Json",
    "LabelColumn",
    "Labels",
    "Overwrite",
    "PathColumn",
    "RayAddress",
    "Root",
    "Seed",
    "Strict",
    "Vectors",
    "Workers",
    "check_engine",
    "check_labelled",
    "cutoffs",
    "data_options_of",
    "words_of_split",
]

Vectors = Annotated[Path, typer.Argument(help="Vectors: .npy, .npz or .parquet.", metavar="VECTORS")]
Labels = Annotated[
    str | None,
    typer.Option(
        help="Labels: .npy, .csv, .txt, .json or .parquet, or the name of a column of VECTORS. Default: its own labels."
    ),
]
PathColumn = Annotated[
    str | None, typer.Option(metavar="NAME", help="Column of a .csv that holds the paths of the pictures.")
]
LabelColumn = Annotated[
    str | None, typer.Option(metavar="NAME", help="Column that holds the labels. Default: label, class, category, ...")
]
IdColumn = Annotated[
    str | None, typer.Option(metavar="NAME", help="Column that holds the ids. Default: id, sku, item_id, ...")
]
At = Annotated[
    str | None,
    typer.Option(
        help="Numbers of items k at which to measure recall@k, precision@k, nDCG@k and MRR@k, such as 1,5,10.",
        metavar="K,K,...",
    ),
]
ImageSource = Annotated[
    str,
    typer.Argument(
        help="A dataset as `entourage datasets` lists them, a folder, a .csv, or a file of vectors.", metavar="IMAGES"
    ),
]
Root = Annotated[
    Path | None,
    typer.Option(
        help="Folder that holds the datasets (default: $ENTOURAGE_DATA), or that paths in a .csv are relative to."
    ),
]
DataOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--data-option",
        metavar="NAME=VALUE",
        help="Option of the dataset as name=value, such as train_share=0.8; may be repeated.",
    ),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1; auto uses cuda if available.")]
Strict = Annotated[
    bool, typer.Option("--strict", help="Stop at a picture that cannot be decoded instead of leaving it out.")
]
Workers = Annotated[int | None, typer.Option(help="Number of threads that decode pictures. Default: one per core.")]
Engine = Annotated[
    str | None, typer.Option(help="ray: do the work on a Ray cluster. Default: in this process.", metavar="ENGINE")
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="With --engine ray: HOST:PORT of the cluster's head, ray://HOST:PORT, or auto for the one on this "
        "machine. Default: RAY_ADDRESS, or a cluster started on this machine for the command.",
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing output.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output, nothing else.")]
Seed = Annotated[int, typer.Option(metavar="<int>", min=0, max=2**32 - 1, help="Seed of all random numbers.")]


def check_engine(engine: str | None, of_ray: dict[str, Any]) -> None:
    """Refuse an engine that there is not, and options of a cluster without one."""
    if engine not in (None, "ray"):
        raise InputError(f"--engine is {engine}; wanted ray, or no --engine for this process")
    for option, value in of_ray.items():
        if engine is None and value is not None:
            raise InputError(f"{option} is {value} without a cluster; add --engine ray, or leave it out")


def check_labelled(items: "Embeddings", path: Path, option: str) -> None:
    if items.labels is None:
        column = "" if path.suffix.lower() == ".npy" else ", or name their column with --label-column"
        raise InputError(f"{path} has no labels of its own; wanted one per vector: give them with {option}{column}")


def data_options_of(pairs: list[str] | None, **columns: str | None) -> dict:
    """The options of a dataset: those given as name=value, and the columns that are named."""
    from entourage.runtime.config import from_pairs

    options, named = from_pairs(pairs or []), {name: value for name, value in columns.items() if value is not None}
    for name in ("name_or_path", "root", "split"):
        if name in options:
            raise InputError(f"--data-option {name} is {options[name]}, which is no option of the data; leave it out")
    for name in options.keys() & named.keys():
        raise InputError(
            f"--{name.replace('_', '-')} is {named[name]} and --data-option {name} is {options[name]}; leave one out"
        )
    return options | named


def cutoffs(at: str | None, option: str = "--at") -> tuple[int, ...] | None:
    """Read `--at 1,5,10`; None where it was not given."""
    if at is None:
        return None
    from entourage.evaluation.names import check_cutoffs

    parts = [part.strip() for part in at.split(",")]
    if not all(part.isascii() and part.isdecimal() and len(part) < 10 for part in parts):
        raise InputError(f"{option} is {at!r}; wanted whole numbers from 1 on, such as 1,5,10")
    return check_cutoffs(map(int, parts), option)


def words_of_split(items: "Embeddings", vectors: Path, split: str, *, otherwise: str = "") -> "LabelArray":
    """The word for each vector that `--split` names a column or a file of, (N,)."""
    from entourage.comparison.splits import check_words
    from entourage.stores.labels import read_labels
    from entourage.stores.tables import SPLIT

    try:
        return check_words(items, read_labels(split, vectors, items, column=SPLIT))
    except EntourageError as error:
        instead = f", not {otherwise}," if otherwise else ""
        raise InputError(f"--split is {split}{instead} and cannot be used as a column or a file: {error}") from error
