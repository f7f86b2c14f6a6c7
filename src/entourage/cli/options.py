"""Arguments and options that several commands share, and their checks."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from entourage.errors import InputError

if TYPE_CHECKING:
    from entourage.values import Embeddings

__all__ = [
    "DataOptions",
    "ImageSource",
    "Json",
    "Labels",
    "Overwrite",
    "Root",
    "Seed",
    "Strict",
    "Vectors",
    "Workers",
    "check_labelled",
]

Vectors = Annotated[Path, typer.Argument(help="Vectors: .npy, .npz or .parquet.", metavar="VECTORS")]
Labels = Annotated[
    str | None,
    typer.Option(help="Labels: .npy, .csv or .txt, or the name of a column of VECTORS. Default: its own labels."),
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
        "--data-option", help="Option of the dataset as name=value, such as train_share=0.8; may be repeated."
    ),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Stop at a picture that cannot be decoded instead of leaving it out.")
]
Workers = Annotated[int | None, typer.Option(help="Number of threads that decode pictures. Default: one per core.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing output.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output, nothing else.")]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of all random numbers.")]


def check_labelled(items: "Embeddings", path: Path, option: str) -> None:
    if items.labels is None:
        raise InputError(f"{path} has no labels of its own; wanted one per vector: give them with {option}")
