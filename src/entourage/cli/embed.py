"""`entourage embed`."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from entourage.cli.options import (
    DataOptions,
    Device,
    Engine,
    IdColumn,
    ImageSource,
    Json,
    LabelColumn,
    Overwrite,
    PathColumn,
    RayAddress,
    Root,
    Strict,
    Workers,
    check_engine,
    data_options_of,
)
from entourage.cli.output import facts, print_report, print_warnings
from entourage.errors import InputError
from entourage.runtime.extras import require
from entourage.runtime.warnings import collected_warnings

if TYPE_CHECKING:
    from entourage.encoders.shards import EmbeddedFile

__all__ = ["embed"]


def embed(
    images: ImageSource,
    model: Annotated[
        list[str],
        typer.Option(
            metavar="MODEL",
            help="A run of `entourage train`, or a Hugging Face vision model; several make an ensemble.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="File for the vectors: .npz or .parquet; .npy with a .csv beside it. A name without an ending is a "
            "folder of .parquet files, one for each shard."
        ),
    ],
    split: Annotated[
        str,
        typer.Option(
            help="Split: train or test; train, query or gallery; several, such as train,test, with a column `split`; "
            "or all."
        ),
    ] = "test",
    root: Root = None,
    path_column: PathColumn = None,
    label_column: LabelColumn = None,
    id_column: IdColumn = None,
    data_options: DataOptions = None,
    shard_size: Annotated[int, typer.Option(help="Number of pictures to embed between two writes to disk.")] = 4096,
    workers: Workers = None,
    device: Device = "auto",
    strict: Strict = False,
    engine: Engine = None,
    ray_address: RayAddress = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume an interrupted run.")] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Embed the pictures of IMAGES as vectors.

    They are written with ids and labels, for `fit`, `refine`, `evaluate` and `compare` to read.
    """
    from entourage.runs.encoders import recorded_columns
    from entourage.runtime.progress import terminal_progress
    from entourage.stores import check_streamable

    require("torch", "embedding pictures")
    check_streamable(out, overwrite=overwrite, inputs=(images, root, *model))
    _check_different(model)
    check_engine(engine, {"--ray-address": ray_address})
    named = {"path_column": path_column, "label_column": label_column, "id_column": id_column}
    options = recorded_columns(model, images) | data_options_of(data_options, **named)
    how = {
        "shard_size": shard_size,
        "workers": workers,
        "device": device,
        "resume": resume,
        "overwrite": overwrite,
        "strict": strict,
    }
    with collected_warnings(lambda text: print_warnings([text])) as warnings:
        from entourage.encoders.shards import parts_of
        from entourage.runs.encoders import warn_of_corrupt
        from entourage.runs.unfinished import resume_advice

        embed_into = _engine(engine, ray_address)
        try:
            with terminal_progress(log=not as_json) as progress:
                written = embed_into(images, split, model, root, options, out, progress=progress, **how)
        except KeyboardInterrupt:
            typer.echo(f"stopped; {resume_advice(parts_of(out), 'what is done')}", err=True)
            raise
        warn_of_corrupt(written.corrupt, written.total)
    protocol = {
        "data": f"{images}, {split}",
        "pictures": written.total,
        "left_out": len(written.corrupt),
        "vectors": written.count,
        "dimensions": written.dim,
        "model": " + ".join(model),
    }
    document = {"protocol": protocol, "metrics": {}, "warnings": warnings, "out": str(out), "corrupt": written.corrupt}
    print_report(document, as_json, facts(protocol), f"Written to {out}")


def _engine(engine: str | None, address: str | None) -> "Callable[..., EmbeddedFile]":
    """What embeds: a function of what is embedded, and of how."""
    if engine is None:
        return _embed_here
    from entourage.engine.embed import Pictures, embed_on_ray

    def embed_there(
        images: str, split: str, model: list[str], root: Path | None, options: dict[str, Any], out: Path, **how: Any
    ) -> "EmbeddedFile":
        return embed_on_ray(Pictures.of(images, split, model, root, options), out, address, **how)

    return embed_there


def _embed_here(
    images: str, split: str, model: list[str], root: Path | None, options: dict[str, Any], out: Path, **how: Any
) -> "EmbeddedFile":
    from entourage.data.joining import load_splits
    from entourage.encoders.shards import embed_to_file
    from entourage.runs.encoders import encoder_of

    pictures, splits = load_splits(images, split, root, **options)
    return embed_to_file([encoder_of(each) for each in model], pictures, out, splits=splits, **how)


def _check_different(models: list[str]) -> None:
    """Twice the same is no ensemble: vectors twice as long that say nothing more."""
    from entourage.stores.paths import resolved

    seen = set()
    for each in models:
        if resolved(each) in seen:
            raise InputError(f"--model names '{each}' twice; wanted different ones for an ensemble: leave one out")
        seen.add(resolved(each))
