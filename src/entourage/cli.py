"""The command line: a table of thin commands, each a call into the library.

Reports go to standard output, as a table or with --json as one document; everything else to standard error.
Anything wrong with files, values or settings ends in one sentence and exit code 2; so does a misused option, with
the usage before it.
"""

import functools
import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from entourage import __version__
from entourage.errors import EntourageError, FileError, InputError

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
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Decides everything random.")]


def one_sentence_errors(command):
    """Errors raised on purpose become one sentence and exit code 2; Ctrl-C leaves with 130, as shells expect."""

    @functools.wraps(command)
    def run(*args, **options):
        try:
            command(*args, **options)
        except BrokenPipeError:  # `entourage ... | head` has seen enough
            raise
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

    with terminal_progress(log=True) as progress:
        result = run_demo(out, quick=quick, seed=seed, overwrite=overwrite, progress=progress)
    _warn(result.warnings)
    names = ("before", result.before.metrics), ("after", result.after.metrics)
    _report(result.document(), as_json, _facts(result.protocol), _side_by_side(*names), f"Written to {result.folder}")


@app.command()
@one_sentence_errors
def fit(
    vectors: Vectors,
    out: Annotated[Path, typer.Option(help="Folder for the model.")],
    labels: Labels = None,
    recipe: Annotated[str, typer.Option(help="relational, or paper: as it was published.")] = "relational",
    neighbors: Annotated[
        int | None, typer.Option(help="How many neighbours each item looks at. Default: chosen; paper: 8.")
    ] = None,
    blocks: Annotated[int | None, typer.Option(help="How many steps or blocks. Default: 5; paper: 8.")] = None,
    out_dim: Annotated[int | None, typer.Option(min=1, help="Paper: another size for the refined vectors.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Paper: at most this many passes. Default: 30.")] = None,
    patience: Annotated[
        int | None, typer.Option(help="Paper: stop after this many epochs without a better score. Default: 5.")
    ] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Paper: of Adam. Default: 0.0001.")] = None,
    seed: Seed = 0,
    resume: Annotated[
        bool, typer.Option("--resume", help="Paper: go on from the checkpoint of an interrupted run.")
    ] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Learn to refine VECTORS from their labels and write the model to a folder."""
    from entourage.progress import terminal_progress
    from entourage.store import check_free, read_vectors

    if out.is_file() or not out.name:
        raise FileError(f"--out is {out}; wanted the name of a folder for the model: choose another --out")
    check_free(out, overwrite=overwrite)
    if resume and recipe != "paper":
        raise InputError(f"--resume goes on with the paper's recipe, but --recipe is {recipe}; leave --resume out")
    checkpoint = _checkpoint_of(out, resume=resume, overwrite=overwrite) if recipe == "paper" else None
    items = read_vectors(vectors, labels=labels)
    _check_labelled(items, vectors, "--labels")

    from entourage.systems.context_refiner import ContextRefiner

    asked = {"out_dim": out_dim, "epochs": epochs, "patience": patience, "learning_rate": learning_rate}
    given = {name: value for name, value in asked.items() if value is not None}
    refiner = ContextRefiner(neighbors, blocks, recipe=recipe, seed=seed, **given)
    try:
        with terminal_progress() as progress:
            refiner.fit(items, checkpoint=checkpoint, resume=resume, progress=progress)
    except KeyboardInterrupt:
        if checkpoint and checkpoint.exists():
            typer.echo(f"stopped; {checkpoint} keeps the finished epochs: add --resume to go on", err=True)
        raise
    except InputError:
        if checkpoint and not resume:  # a run that cannot succeed is of no use to resume
            checkpoint.unlink(missing_ok=True)
        raise
    refiner.save(out, overwrite=overwrite)
    if checkpoint:
        checkpoint.unlink(missing_ok=True)
    report = refiner.report()
    _warn(report["warnings"])
    tables = [_facts(report["protocol"])] + ([_facts(report["metrics"], percent=True)] if report["metrics"] else [])
    _report(report | {"model": str(out)}, as_json, *tables, f"Written to {out}")


@app.command()
@one_sentence_errors
def refine(
    vectors: Vectors,
    out: Annotated[Path, typer.Option(help="File for the refined vectors, in the format of VECTORS.")],
    model: Annotated[
        Path | None,
        typer.Option(help="A folder written by `entourage fit`. Default: the universal refiner, no labels needed."),
    ] = None,
    context: Annotated[
        Path | None, typer.Option(help="Raw vectors of a gallery to find neighbours in. Default: VECTORS themselves.")
    ] = None,
    context_out: Annotated[
        Path | None, typer.Option(help="File for the refined gallery, to search the refined queries in.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Stop after this many steps.")] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Refine VECTORS, with a model or without, and write them in the same format, ids and order kept."""
    from entourage.progress import terminal_progress
    from entourage.store import check_writable_like, read_vectors, write_like

    check_writable_like(vectors, out, overwrite=overwrite)
    if context_out is not None:
        if context is None:
            raise InputError(f"--context-out is {context_out} but there is no gallery; add --context or leave it out")
        check_writable_like(context, context_out, overwrite=overwrite)
        if context_out.absolute() == out.absolute():
            raise InputError(f"--out and --context-out are both {out}; give the refined gallery a name of its own")
    items = read_vectors(vectors, labels=False)
    gallery = None if _is_same(context, vectors) else read_vectors(context, labels=False)

    from entourage.systems.context_refiner import ContextRefiner

    with terminal_progress() as progress:
        if model is None:
            refiner = ContextRefiner().fit(items if gallery is None else gallery, progress=progress)
        else:
            refiner = ContextRefiner.load(model)
        refined = refiner.transform(items, gallery, steps=steps, progress=progress)
        write_like(vectors, out, refined)
        if context_out is not None:
            among = items if gallery is None else gallery
            write_like(context, context_out, refiner.transform(among, steps=steps, progress=progress))
    warnings = refiner.report()["warnings"] if model is None else []
    if gallery is not None and context_out is None:
        warnings = [*warnings, "search the refined queries in the refined gallery only: add --context-out to refine it"]
    _warn(warnings)
    protocol = {
        "items": len(items),
        "model": "universal, no labels" if model is None else str(model),
        "context": "transductive: the vectors themselves" if gallery is None else f"gallery: {len(gallery)} items",
        "neighbors": f"{refiner.n_neighbors_}, exact, ties by id",
        "own_item": _own_item(items, gallery),
        "steps": refiner.n_blocks_ if steps is None else steps,
    }
    metrics = dict(refiner.report()["metrics"]) if model is None else {}
    if refined.shape[1] == items.dim:
        metrics["mean_cosine_to_input"] = float((refined * items.vectors).sum(axis=1).mean())
    document = {"protocol": protocol, "metrics": metrics, "warnings": warnings, "out": str(out)}
    written = f"Written to {out}"
    if context_out is not None:
        document["context_out"], written = str(context_out), f"{written} and {context_out}"
    _report(document, as_json, _facts({**protocol, **metrics}), written)


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

    if gallery is None and gallery_labels is not None:
        raise InputError(f"--gallery-labels is {gallery_labels} but there is no gallery; add --gallery or leave it out")
    items = read_vectors(vectors, labels=labels)
    _check_labelled(items, vectors, "--labels")
    target = None if gallery is None else read_vectors(gallery, labels=gallery_labels)
    if target is not None:
        _check_labelled(target, gallery, "--gallery-labels")
    if target is not None and _is_same(gallery, vectors):
        if gallery_labels is not None and target.labels.astype(str).tolist() != items.labels.astype(str).tolist():
            raise InputError(f"the gallery is {vectors} itself but has other labels; leave out --gallery-labels")
        target = None  # one set, in which no item finds itself
    with terminal_progress() as progress:
        scores = evaluate_embeddings(items, target, no_match=no_match, nmi=nmi, seed=seed, progress=progress)
    _report(scores.document(), as_json, _facts(scores.protocol), _facts(scores.metrics, percent=True))


@app.command()
@one_sentence_errors
def compare(
    vectors: Vectors,
    labels: Labels = None,
    split: Annotated[
        str,
        typer.Option(help="half: learn from the first half of the classes; or a file with train or test per vector."),
    ] = "half",
    methods: Annotated[
        str, typer.Option(help="all, or names with commas between them; an unknown one lists them.")
    ] = "all",
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, from 0; the scores are their mean.")] = 1,
    per_class: Annotated[bool, typer.Option("--per-class", help="Add who got worse by the last refiner.")] = False,
    against: Annotated[str, typer.Option(help="With --per-class: the method it is measured against.")] = "raw",
    as_json: Json = False,
) -> None:
    """Compare refiners with everything else one could try, on classes of VECTORS that none of them has seen."""
    from entourage.compare import compare as bake_off
    from entourage.compare import select, split_half, tables
    from entourage.progress import terminal_progress
    from entourage.store import read_vectors

    chosen = select("all" if methods == "all" else [name.strip() for name in methods.split(",")])
    if against not in {contender.name for contender in chosen}:
        raise InputError(f"--against is {against}, which is not compared; add it to --methods or name another")
    items = read_vectors(vectors, labels=labels)
    _check_labelled(items, vectors, "--labels")
    training, test = split_half(items) if split == "half" else _split_by_file(items, vectors, split)
    told = "half of the classes" if split == "half" else f"as told by {split}"
    with terminal_progress() as progress:
        comparison = bake_off(training, test, chosen, seeds=seeds, split=told, progress=progress)
    _warn(list(comparison.warnings))
    document = comparison.document()
    if per_class:
        document["harm"] = comparison.harm(against=against)
    parts = [_facts(comparison.protocol), tables.scores_table(document), tables.settings_table(document)]
    parts += tables.harm_tables(document["harm"]) if per_class else []
    _report(document, as_json, *map(_unfolded, parts))


@app.command()
@one_sentence_errors
def doctor(vectors: Vectors, labels: Labels = None, as_json: Json = False) -> None:
    """Say before any training whether refinement will help VECTORS, and why; labels are optional."""
    from entourage.progress import terminal_progress
    from entourage.store import read_vectors

    items = read_vectors(vectors, labels=labels)

    from entourage.doctor import examine

    with terminal_progress() as progress:
        diagnosis = examine(items, progress=progress)
    _report(diagnosis.document(), as_json, _facts(diagnosis.protocol), diagnosis.table(), diagnosis.verdict)


def _split_by_file(items, vectors: Path, split: str):
    from entourage.compare import split_as_told
    from entourage.store.labels import read_labels

    try:
        return split_as_told(items, read_labels(split, vectors, items))
    except EntourageError as error:
        raise InputError(f"--split is {split}, not half, and cannot be used as a file: {error}") from error


def _warn(warnings: list[str]) -> None:
    for warning in warnings:
        typer.echo(f"warning: {warning}", err=True)


def _check_labelled(items, path: Path, option: str) -> None:
    if items.labels is None:
        raise InputError(f"{path} has no labels of its own; wanted one per vector: give them with {option}")


def _own_item(items, gallery) -> str:
    """How an item is kept out of its own context."""
    from entourage.neighbors import own_gallery_rows

    if gallery is None:
        return "left out of its own context"
    if not (items.named and gallery.named):
        return "cannot be recognised in the gallery: no ids in both files"
    return f"left out by id, {(own_gallery_rows(items, gallery) >= 0).sum()} times"


def _is_same(gallery: Path | None, vectors: Path) -> bool:
    """Whether the gallery is the vectors themselves, not named or named twice."""
    return gallery is None or (gallery.exists() and vectors.exists() and gallery.samefile(vectors))


def _checkpoint_of(out: Path, *, resume: bool, overwrite: bool) -> Path:
    checkpoint = out.with_name(out.name + ".checkpoint")
    if checkpoint.exists() and not (resume or overwrite):
        raise FileError(
            f"{checkpoint} keeps an interrupted run; add --resume to go on with it, or --overwrite to start again"
        )
    if resume and not checkpoint.exists():
        raise FileError(f"there is no {checkpoint} to resume from; run without --resume to start")
    return checkpoint


def _facts(values: dict, *, percent: bool = False) -> str:
    """Names and values, a line each; fractions as percentages where asked."""
    width = max(map(len, values))
    lines = []
    for name, value in values.items():
        if isinstance(value, float):
            value = f"{100 * value:.2f}" if percent else f"{value:.4f}"
        lines.append(f"{name.replace('_', ' '):{width}}  {'not measured' if value is None else value}")
    return "\n".join(lines)


def _side_by_side(before: tuple[str, dict], after: tuple[str, dict]):
    """Two columns of scores in percent, and what lies between them in points."""
    from rich.table import Table

    table = Table("metric", box=None, padding=(0, 2, 0, 0))
    for name in (before[0], after[0], "change"):
        table.add_column(name, justify="right")
    for metric, value in before[1].items():
        new = after[1][metric]
        table.add_row(metric, f"{100 * value:.2f}", f"{100 * new:.2f}", f"{100 * (new - value):+.2f}")
    return table


def _unfolded(table) -> str:
    """A table as text of its full width: wide rows are of more use than folded ones where output is no terminal."""
    if isinstance(table, str):
        return table
    from rich.console import Console

    console = Console(width=10_000, color_system=None)
    with console.capture() as text:
        console.print(table, markup=False, highlight=False)
    return "\n".join(line.rstrip() for line in text.get().splitlines())


def _report(document: dict, as_json: bool, *tables) -> None:
    if as_json:
        json.dump(document, sys.stdout, indent=2)
        sys.stdout.write("\n")
        return
    from rich.console import Console

    console = Console()
    for number, table in enumerate(tables):
        if number:
            typer.echo()
        if isinstance(table, str):
            typer.echo(table)  # as it is: a path must not be wrapped or read as markup
        else:
            console.print(table)


def main() -> None:
    app()
