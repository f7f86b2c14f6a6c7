"""`entourage train`."""

from pathlib import Path
from typing import Annotated

import typer

from entourage.cli.options import (
    DataOptions,
    IdColumn,
    ImageSource,
    Json,
    LabelColumn,
    Overwrite,
    PathColumn,
    Root,
    Strict,
    Workers,
    data_options_of,
)
from entourage.cli.output import facts, print_report, print_warnings
from entourage.runtime.extras import require
from entourage.runtime.warnings import collected_warnings

__all__ = ["train"]


def train(
    images: ImageSource,
    out: Annotated[Path, typer.Option(help="Folder for the run.")],
    system: Annotated[
        str, typer.Option(help="How the encoder is trained: baseline, ...; an unknown name lists them all.")
    ] = "baseline",
    preset: Annotated[
        str | None,
        typer.Option(help="Settings published by the system's authors, by dataset; an unknown name lists them all."),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(help="small, small-rgb, a saved encoder or a Hugging Face vision model. Default: a small one."),
    ] = None,
    loss: Annotated[
        str | None, typer.Option(help="Loss: ms, margin, proxy-anchor, ...; an unknown name lists them all.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Maximum number of epochs.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Learning rate of the encoder.")] = None,
    dim: Annotated[int | None, typer.Option(help="Dimensions of the embedding.")] = None,
    image_size: Annotated[
        int | None, typer.Option(help="Height and width of the pictures as the encoder takes them.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or cuda:1.")] = None,
    workers: Workers = None,
    seed: Annotated[
        int | None, typer.Option(metavar="<int>", min=0, max=2**32 - 1, help="Seed of all random numbers.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Any other setting as name=value, such as loss_options.margin=0.1; may be repeated.",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="A TOML file of settings; it overrides --preset, and options given here override it."),
    ] = None,
    root: Root = None,
    path_column: PathColumn = None,
    label_column: LabelColumn = None,
    id_column: IdColumn = None,
    data_options: DataOptions = None,
    nmi: Annotated[bool, typer.Option("--nmi/--no-nmi", help="Cluster the test pictures for NMI.")] = True,
    strict: Strict = False,
    resume: Annotated[bool, typer.Option("--resume", help="Resume an interrupted run.")] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Train an encoder on the training classes of IMAGES.

    The run folder holds the encoder, the settings, the log, and its scores on the test classes.
    """
    from entourage.runs.train_settings import train_settings

    require("torch", "training an encoder")
    flags = {"encoder": encoder, "loss": loss, "epochs": epochs, "learning_rate": learning_rate, "dim": dim}
    flags |= {"image_size": image_size, "device": device, "workers": workers, "seed": seed}
    chosen = train_settings(system, preset=preset, config=config, flags=flags, pairs=settings or ())

    from entourage.runs.layout import partial_of
    from entourage.runs.train import TrainRequest, train_run
    from entourage.runs.unfinished import resume_advice
    from entourage.runtime.progress import terminal_progress

    request = TrainRequest(
        images,
        out,
        system=system,
        settings=chosen,
        root=root,
        data_options=data_options_of(
            data_options, path_column=path_column, label_column=label_column, id_column=id_column
        ),
        nmi=nmi,
        strict=strict,
        resume=resume,
        overwrite=overwrite,
    )
    try:
        with collected_warnings(lambda text: print_warnings([text])), terminal_progress(log=not as_json) as progress:
            run = train_run(request, progress=progress)
    except KeyboardInterrupt:
        typer.echo(f"stopped; {resume_advice(partial_of(out), 'the finished epochs')}", err=True)
        raise
    if run is None:  # among several processes the first reports
        return
    document = run.document() | {"run": str(out), "corrupt": run.corrupt, "curve": run.history.curve}
    print_report(document, as_json, facts(run.protocol), facts(run.scores.metrics, percent=True), f"Written to {out}")
