"""`entourage export`."""

from pathlib import Path
from typing import Annotated

import typer

from entourage.cli.options import Json, Overwrite
from entourage.cli.output import facts, print_report

__all__ = ["export"]


def export(
    out: Annotated[Path, typer.Option(help="The file to write: FILE.onnx.")],
    model: Annotated[
        Path | None,
        typer.Argument(
            metavar="MODEL",
            help="A folder written by `entourage fit`. Default: the universal refiner, which needs no labels.",
        ),
    ] = None,
    part: Annotated[
        str,
        typer.Option(
            help="refine: query, candidates and mask in, refined vectors and new scores out; scorer: the scorer of "
            "edges alone."
        ),
    ] = "refine",
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write a refiner as ONNX, for services in other languages.

    The file re-ranks what an index returned for a query, as `entourage rerank` does, wherever onnxruntime runs.
    """
    from entourage.integrations.onnx import export_onnx
    from entourage.refiner import load_refiner
    from entourage.stores import check_kept

    if model is not None:
        check_kept((out,), (model,))
    refiner = None if model is None else load_refiner(model)
    written = export_onnx(refiner, out, part=part, overwrite=overwrite)
    report: dict[str, object] = {"model": "universal, no labels" if model is None else str(model), "part": part}
    report |= {"bytes": written.stat().st_size}
    print_report(report | {"out": str(written)}, as_json, facts(report), f"Written to {written}")
