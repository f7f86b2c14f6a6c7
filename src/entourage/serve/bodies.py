"""What requests and answers hold: JSON as declared here, or vectors as bytes.

Vectors as bytes are float32, little-endian, row by row (application/octet-stream with the header X-Shape: N,d), or a
file of numpy (application/x-npy). What else a request says then stands in the query string and in headers.

N vectors, d dimensions.
"""

import io
import json
import re
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError
from starlette.datastructures import Headers, QueryParams
from starlette.exceptions import HTTPException
from starlette.responses import Response

from entourage.serve.limits import Limits
from entourage.values import FloatArray

__all__ = [
    "BYTES",
    "JSON",
    "NPY",
    "ChangesAnswer",
    "FoundAnswer",
    "HealthAnswer",
    "Items",
    "Problem",
    "Queries",
    "RefinedAnswer",
    "ReportAnswer",
    "Rerank",
    "RerankedAnswer",
    "Search",
    "as_bytes",
    "read",
]

JSON, BYTES, NPY = "application/json", "application/octet-stream", "application/x-npy"

Id = Annotated[StrictInt, Field(gt=-(10**18), lt=10**18)] | Annotated[StrictStr, Field(min_length=1, max_length=512)]
Vector = list[float]
Vectors = list[Vector]
Score = Annotated[float, Field(allow_inf_nan=False)]  # an answer in JSON could not repeat any other

_SHAPE = re.compile(r"\s*(\d{1,9})\s*[,x]\s*(\d{1,9})\s*", re.ASCII)


class _Request(BaseModel):
    """What all requests with vectors may say."""

    model_config = ConfigDict(extra="forbid")
    encoder: str | None = Field(
        None, description="What made the vectors; another encoder than the gallery's is refused."
    )
    canaries: Vectors | None = Field(None, description="Its vectors of the inputs whose vectors the gallery keeps.")


class Queries(_Request):
    """Vectors to refine."""

    vector: Vector | None = Field(None, description="One vector, of any length.")
    vectors: Vectors | None = Field(None, description="Or several.")


class Search(Queries):
    """Vectors to search."""

    k: Annotated[StrictInt, Field(ge=1, le=Limits.neighbors, description="How many items to find of each.")] = 10
    refine: bool = Field(True, description="Refined vectors among refined ones; raw among raw if false.")
    confidence: bool = Field(False, description="Also say how sure one can be that there is a match at all, 0 to 1.")


class Items(_Request):
    """Items to add, or to give other vectors."""

    vectors: Vectors
    ids: list[Id] | None = Field(None, description="Numbers or texts; the next numbers if left out.")


class Rerank(_Request):
    """A query and its candidates."""

    query: Vector
    ids: list[Id] | None = Field(None, description="Of the candidates; items of the gallery if there are no vectors.")
    candidates: Vectors | None = Field(None, description="Their vectors, if they are not in the gallery.")
    scores: list[Score] | None = Field(None, description="The scores they came with, which are kept beside the new.")


class Problem(BaseModel):
    """What is wrong with a request."""

    detail: Any


class FoundAnswer(BaseModel):
    """The items found for each vector, nearest first."""

    version: int
    ids: list[list[Id]]
    similarities: Vectors
    confidence: Vector | None = Field(None, description="Of each vector, if it was asked for.")


class RefinedAnswer(BaseModel):
    """Refined vectors, of length 1."""

    version: int
    vectors: Vectors


class RerankedAnswer(BaseModel):
    """The candidates, best first."""

    ids: list[Id]
    rows: list[int]
    scores: list[float]
    given_scores: list[float] | None


class ReportAnswer(BaseModel):
    """What a change did; those that waited for each other are made together and have the same version."""

    version: int
    added: int
    updated: int
    removed: int
    refined: int = Field(description="How many items were refined again, for all changes of this version.")
    moved: int = Field(description="How many refined vectors moved, for all changes of this version.")
    ids: list[Id]


class ChangesAnswer(BaseModel):
    """What an index has to replace and remove; go on with since=version and after, while there is more."""

    version: int
    after: Id | None
    more: bool
    ids: list[Id]
    vectors: Vectors
    removed: list[Id]


class HealthAnswer(BaseModel):
    """What is served."""

    status: Literal["ok"]
    version: int
    items: int
    dim: int | None
    encoder: str | None
    fingerprint: str


_Model = TypeVar("_Model", bound=_Request)


def read(model: type[_Model], body: bytes, headers: Headers, query: QueryParams) -> _Model:
    """A request, from JSON, or from bytes and what the query string and headers say.

    Parameters
    ----------
    model : type
        Search, Queries, Items or Rerank, the last as JSON alone.
    body : bytes
    headers, query
        Of the request.

    Returns
    -------
    model
        Its vectors as an array where they came as bytes.
    """
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        if kind == JSON:
            return model.model_validate_json(body)
        if kind not in (BYTES, NPY) or model is Rerank:
            wanted = JSON if model is Rerank else f"{JSON}, {BYTES} or {NPY}"
            raise HTTPException(415, f"the body is {kind or 'of no type'}; wanted {wanted}")
        said: dict[str, Any] = {name: _value(text) for name, text in query.items()}
        said |= {"ids": _value(headers["x-ids"])} if "x-ids" in headers else {}
        said |= {"encoder": headers["x-encoder"]} if "x-encoder" in headers else {}
        request = model.model_validate({**said, "vectors": []})
    except ValidationError as error:
        raise HTTPException(422, _sentence(error)) from error
    vectors = _from_npy(body) if kind == NPY else _from_bytes(body, headers.get("x-shape", ""))
    return request.model_copy(update={"vectors": vectors})


def _value(text: str) -> Any:
    """JSON if it is, else the text as it stands."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # the second of thousands of brackets
        return text


def _sentence(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"])) or "the body"
    return f"{place}: {first['msg']}"


def _from_bytes(body: bytes, shape: str) -> FloatArray:
    sizes = _SHAPE.fullmatch(shape)
    if sizes is None:
        seen = repr(shape) if len(shape) <= 40 else f"{shape[:40]!r}..."
        raise HTTPException(422, f"X-Shape is {seen}; wanted two numbers, such as 16,384: vectors and dimensions")
    n, d = map(int, sizes.groups())
    if n * d * 4 != len(body):
        raise HTTPException(422, f"the body has {len(body)} bytes; wanted {n * d * 4}, for {n} x {d} float32")
    return np.frombuffer(body, "<f4").reshape(n, d).astype(np.float32)


def _from_npy(body: bytes) -> FloatArray:
    file = io.BytesIO(body)
    try:
        newer = np.lib.format.read_magic(file) != (1, 0)
        read_head = np.lib.format.read_array_header_2_0 if newer else np.lib.format.read_array_header_1_0
        sizes, by_column, dtype = read_head(file)
        shape = tuple(_size(size) for size in sizes)
    except Exception as error:  # whatever numpy makes of bytes that it did not write
        raise HTTPException(422, "the body is no file of numpy; wanted what np.save writes") from error
    if len(shape) != 2 or min(shape) < 1 or dtype.kind not in "fiu":
        raise HTTPException(422, f"the array is {dtype} of shape {shape}; wanted numbers (N, d), N and d at least 1")
    data = body[file.tell() :]
    if len(data) != shape[0] * shape[1] * dtype.itemsize:  # before room is made for what a head promises
        raise HTTPException(422, f"the array has {len(data)} bytes, which {shape} of {dtype} has not; send it again")
    return np.frombuffer(data, dtype).reshape(shape, order="F" if by_column else "C")


def _size(size: int) -> int:
    """A size that an array can have; a head may name any number."""
    if not 0 <= size < 2**63:
        raise ValueError("no size of an array")
    return int(size)


def as_bytes(vectors: FloatArray, version: int, kind: str) -> Response:
    """Vectors (N, d) as an answer of bytes."""
    headers = {"X-Shape": ",".join(map(str, vectors.shape)), "X-Version": str(version)}
    if kind == BYTES:
        return Response(np.ascontiguousarray(vectors, "<f4").tobytes(), media_type=BYTES, headers=headers)
    buffer = io.BytesIO()
    np.save(buffer, vectors, allow_pickle=False)
    return Response(buffer.getvalue(), media_type=NPY, headers=headers)
