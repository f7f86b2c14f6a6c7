"""ONNX: a refiner as one file that runs wherever onnxruntime does: in JavaScript, Java, C#, Rust, on a phone.

`refine` takes a query and what an index returned for it and gives refined vectors and new scores, as `entourage.rerank`
does; `scorer` is the scorer of edges alone.
"""

from pathlib import Path
from typing import Any

from entourage import __version__
from entourage.errors import InputError, NotFittedError
from entourage.refiner.estimator import ContextRefiner
from entourage.refiner.relations import RELATIONS
from entourage.refiner.universal import universal_network
from entourage.runtime.config import check_known
from entourage.runtime.extras import require
from entourage.stores import StrPath, whole_file

__all__ = ["PARTS", "export_onnx", "onnx_model"]

PARTS = ("refine", "scorer")


def onnx_model(refiner: ContextRefiner | None = None, part: str = "refine") -> Any:
    """Write a refiner down as a model of ONNX.

    Parameters
    ----------
    refiner : ContextRefiner, optional
        A fitted refiner, whose base map and scorer are used. Default: the universal scorer, for vectors of any size.
    part : {"refine", "scorer"}
        "refine": inputs `vector` (d,), `context` (C, d), raw vectors of C candidates, and `mask` (C,), which of them
        are there; outputs `refined` (d,), `refined_context` (C, d) and `scores` (C,), by which to sort: what
        `entourage.rerank(vector, context)` gives. "scorer": input `relations` (edges, 22), output `probabilities`.

    Returns
    -------
    onnx.ModelProto
    """
    require("onnx", "exporting a refiner to ONNX")
    check_known(part, PARTS, "the part")
    if refiner is not None and not isinstance(refiner, ContextRefiner):
        raise InputError(f"the refiner is a {type(refiner).__name__}; wanted a fitted ContextRefiner, or None")
    if refiner is not None and not hasattr(refiner, "network_"):
        raise NotFittedError("this ContextRefiner is not fitted yet: call fit(X, y) or load(folder)")
    from entourage.integrations.onnx.nodes import as_model
    from entourage.integrations.onnx.refine import refine_graph, scorer_graph

    network = universal_network() if refiner is None else refiner.network_
    metadata = {"entourage": __version__, "part": part, "scorer": "universal" if refiner is None else "fitted"}
    if part == "scorer":
        return as_model(scorer_graph(network.scorer, len(RELATIONS)), metadata | {"relations": ", ".join(RELATIONS)})
    dim = None if refiner is None else refiner.n_features_in_
    return as_model(refine_graph(network, dim), metadata)


def export_onnx(
    refiner: ContextRefiner | None, path: StrPath, *, part: str = "refine", overwrite: bool = False
) -> Path:
    """Write a refiner as a file of ONNX, whole or not at all.

    Parameters
    ----------
    refiner, part
        As in `onnx_model`.
    path : str or path-like
        A .onnx file.
    overwrite : bool
        Whether a file that is there is replaced.

    Returns
    -------
    Path
    """
    path = Path(path)
    if path.suffix.lower() != ".onnx":
        raise InputError(f"the file is {path.name}; wanted one that ends in .onnx: rename it")
    model = onnx_model(refiner, part)
    with whole_file(path, overwrite=overwrite) as temporary:
        temporary.write_bytes(model.SerializeToString())
    return path
