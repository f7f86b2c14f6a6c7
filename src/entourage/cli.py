"""The command line: a table of thin commands, each a call into the library.

Reports go to standard output, as a table or with --json as one document; everything else to standard error.
Anything wrong with the input ends in one sentence and exit code 2.
"""

import functools
import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from entourage import __version__
from entourage.errors import EntourageError

app = typer.Typer(
    name="entourage",
    help="Better retrieval by letting every embedding look at its neighbours.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Vectors = Annotated[Path, typer.Argument(help="Vectors: .npy, .npz or .parquet.", metavar="VECTORS")]
Labels = Annotated[
    str | None,
    typer.Option(help="Labels: .npy, .csv or .txt, or the name of a column of VECTORS. Default: its own labels."),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing output.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output, nothing else.")]
Seed = Annotated[int, typer.Option(help="Decides everything random.")]


def one_sentence_errors(command):
    """Errors raised on purpose become one sentence and exit code 2; Ctrl-C leaves with 130, as shells expect."""

    @functools.wraps(command)
    def run(*args, **options):
        try:
            command(*args, **options)
        except (EntourageError, OSError) as error:
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(130) from None

    return run


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


@app.command()
@one_sentence_errors
def demo(
    out: Annotated[Path | None, typer.Option(help="Folder for the run. Default: a new one under runs/.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer classes and shorter training.")] = False,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Render glyphs, train a small encoder, refine its embeddings of unseen scripts, show what changed."""
    from entourage.demo import run_demo
    from entourage.progress import terminal_progress

    with terminal_progress() as progress:
        result = run_demo(out, quick=quick, seed=seed, overwrite=overwrite, progress=progress)
    _report(result.document(), as_json, result.table())


@app.command()
@one_sentence_errors
def fit(
    vectors: Vectors,
    out: Annotated[Path, typer.Option(help="Folder for the model.")],
    labels: Labels = None,
    neighbors: Annotated[int, typer.Option(help="How many neighbours each item looks at.")] = 8,
    blocks: Annotated[int, typer.Option(help="How many cross-attention blocks.")] = 8,
    out_dim: Annotated[int | None, typer.Option(help="Another size for the refined vectors.")] = None,
    epochs: Annotated[int, typer.Option(help="At most this many passes over the items.")] = 30,
    patience: Annotated[int, typer.Option(help="Stop after this many epochs without a better score.")] = 5,
    learning_rate: Annotated[float, typer.Option(help="Of Adam.")] = 1e-4,
    seed: Seed = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint of an interrupted run.")] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Learn to refine VECTORS from their labels and write the model to a folder."""
    from entourage.progress import terminal_progress
    from entourage.store import check_free, read_vectors

    check_free(out, overwrite=overwrite)
    checkpoint = _checkpoint_of(out, resume=resume, overwrite=overwrite)
    items = read_vectors(vectors, labels=labels)

    from entourage.systems.context_refiner import ContextRefiner

    refiner = ContextRefiner(
        neighbors,
        blocks,
        out_dim=out_dim,
        epochs=epochs,
        patience=patience,
        learning_rate=learning_rate,
        seed=seed,
    )
    try:
        with terminal_progress() as progress:
            refiner.fit(items, checkpoint=checkpoint, resume=resume, progress=progress)
    except KeyboardInterrupt:
        if checkpoint.exists():
            typer.echo(f"stopped; {checkpoint} keeps the finished epochs: add --resume to go on", err=True)
        raise
    refiner.save(out, overwrite=overwrite)
    checkpoint.unlink(missing_ok=True)
    report = refiner.report()
    _report(report | {"model": str(out)}, as_json, _facts({**report["protocol"], **report["metrics"], "model": out}))


@app.command()
@one_sentence_errors
def refine(
    vectors: Vectors,
    model: Annotated[Path, typer.Option(help="A folder written by `entourage fit`.")],
    out: Annotated[Path, typer.Option(help="File for the refined vectors, in the format of VECTORS.")],
    context: Annotated[
        Path | None, typer.Option(help="Raw vectors of a gallery to find neighbours in. Default: VECTORS themselves.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Stop after this many blocks.")] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Refine VECTORS with a model and write them in the same format, ids and order kept."""
    from entourage.progress import terminal_progress
    from entourage.store import check_writable_like, read_vectors, write_like

    check_writable_like(vectors, out, overwrite=overwrite)
    items = read_vectors(vectors)
    gallery = None if context is None else read_vectors(context)

    from entourage.systems.context_refiner import ContextRefiner

    refiner = ContextRefiner.load(model)
    with terminal_progress() as progress:
        refined = refiner.transform(items, gallery, steps=steps, progress=progress)
    write_like(vectors, out, refined)
    protocol = {
        "items": len(items),
        "context": "transductive: the vectors themselves" if gallery is None else f"gallery: {len(gallery)} items",
        "neighbors": f"{refiner.n_neighbors}, exact, ties by id, never the item itself",
        "steps": refiner.n_blocks if steps is None else steps,
    }
    metrics = {}
    if refined.shape[1] == items.dim:
        metrics["mean_cosine_to_input"] = float((refined * items.vectors).sum(axis=1).mean())
    _report(
        {"protocol": protocol, "metrics": metrics, "out": str(out)},
        as_json,
        _facts({**protocol, **metrics, "out": out}),
    )


@app.command()
@one_sentence_errors
def evaluate(
    vectors: Vectors,
    labels: Labels = None,
    gallery: Annotated[Path | None, typer.Option(help="Vectors to search in. Default: VECTORS themselves.")] = None,
    gallery_labels: Annotated[str | None, typer.Option(help="Labels of the gallery, as --labels.")] = None,
    no_match: Annotated[str, typer.Option(help="Queries without a match: zero (papers) or drop.")] = "zero",
    nmi: Annotated[
        bool, typer.Option("--nmi/--no-nmi", help="Cluster for NMI, which is slow for many classes.")
    ] = True,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Score VECTORS by retrieval: recall@k, R-precision, MAP@R, mAP@1000, NMI."""
    from entourage.evaluation import evaluate_embeddings
    from entourage.progress import terminal_progress
    from entourage.store import read_vectors

    items = read_vectors(vectors, labels=labels)
    target = None if gallery is None else read_vectors(gallery, labels=gallery_labels)
    with terminal_progress() as progress:
        scores = evaluate_embeddings(items, target, no_match=no_match, nmi=nmi, seed=seed, progress=progress)
    _report(scores.document(), as_json, _facts(scores.protocol), _facts(scores.metrics, percent=True))


def _checkpoint_of(out: Path, *, resume: bool, overwrite: bool) -> Path:
    from entourage.errors import FileError

    checkpoint = out.with_name(out.name + ".checkpoint")
    if checkpoint.exists() and not resume:
        if not overwrite:
            raise FileError(
                f"{checkpoint} keeps an interrupted run; add --resume to go on with it, or --overwrite to start again"
            )
        checkpoint.unlink()
    if resume and not checkpoint.exists():
        raise FileError(f"there is no {checkpoint} to resume from; run without --resume to start")
    return checkpoint


def _facts(values: dict, *, percent: bool = False):
    """Names and values as a table of two columns; fractions as percentages where asked."""
    from rich.table import Table

    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, value in values.items():
        if isinstance(value, float):
            value = f"{100 * value:.2f}" if percent else f"{value:.4f}"
        table.add_row(name.replace("_", " "), str(value))
    return table


def _report(document: dict, as_json: bool, *tables) -> None:
    if as_json:
        json.dump(document, sys.stdout, indent=2)
        sys.stdout.write("\n")
        return
    from rich.console import Console

    console = Console()
    for table in tables:
        console.print(table)
        console.print()


def main() -> None:
    app()
