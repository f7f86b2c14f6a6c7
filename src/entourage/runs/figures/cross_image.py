"""Pictures of what the blocks of a cross-image run see: gradients, attention maps, parts."""

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from entourage.data.image_set import ImageSet
from entourage.data.preprocessing import Preprocessing
from entourage.encoders.protocol import FeatureMapEncoder
from entourage.errors import InputError
from entourage.figures.attention_maps import draw_attention
from entourage.figures.gradients import draw_gradients
from entourage.figures.parts import draw_parts
from entourage.runs.encoders import warn_of_corrupt
from entourage.runs.figures.choosing import choose_row, choose_rows
from entourage.runs.figures.options import FigureOptions
from entourage.runs.figures.training import source_of
from entourage.runs.layout import CROSS_IMAGE
from entourage.runs.training_run import TrainingRun
from entourage.runtime.progress import Progress
from entourage.systems.cross_image.blocks import CrossImageBlocks, load_blocks
from entourage.systems.cross_image.encoding import EncodedImages, encode
from entourage.systems.cross_image.maps import attention_maps, best_triples
from entourage.systems.cross_image.parts import find_parts, key_space
from entourage.systems.cross_image.probe import EDGES, read_gradients
from entourage.values import Embeddings, FloatArray, IntArray, labels_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["attention", "attention_figure", "counts_by_epoch", "gradients", "part_figure", "parts", "shown_blocks"]

BLOCKS = (2, 4, 6)
PART_IMAGES, PLACES_EACH, FOUND = 3, 2, 10
_MOST = 2000  # pictures among which triples and parts are looked for, unless more are asked for


def gradients(run: TrainingRun, options: FigureOptions) -> "Figure":
    """Gradients at the encoder's output, with the blocks and, at the same weights, without them."""
    entries = read_gradients(run.folder)
    counts = {
        "with the blocks": counts_by_epoch(entries, "with_blocks"),
        "without the blocks": counts_by_epoch(entries, "without_blocks"),
    }
    return draw_gradients(counts, EDGES, f"Gradients at the encoder's output, {source_of(run)}")


def counts_by_epoch(entries: list[dict], name: str) -> dict[int, IntArray]:
    return {entry["epoch"]: np.array(entry[name]) for entry in entries}


def attention(run: TrainingRun, options: FigureOptions) -> "Figure":
    """Where the nearest picture of its class and the nearest of another look in a picture."""
    images, encoder, blocks, encoded = _encoded(run, options)
    anchor = None if options.query is None else choose_row(images, options.query)
    return attention_figure(encoder, blocks, encoded, images, _triple(encoded, images, anchor))


def parts(run: TrainingRun, options: FigureOptions) -> "Figure":
    """Places of pictures, and the most similar places of other pictures."""
    images, encoder, blocks, encoded = _encoded(run, options)
    triples = best_triples(encoded, labels_of(images), PART_IMAGES)
    _check_found(triples)
    return part_figure(encoder, blocks, encoded, images, triples, run.progress)


class _Seen(NamedTuple):
    """Pictures, and how the encoder and the blocks of a run see them."""

    images: ImageSet
    encoder: FeatureMapEncoder
    blocks: CrossImageBlocks
    encoded: EncodedImages


def _encoded(run: TrainingRun, options: FigureOptions) -> _Seen:
    """Test pictures, whole classes of them where they are many, and how the run's encoder and blocks see them."""
    queries, gallery = run.loaded  # not all embedded, as for tests: a part of them is looked at
    images = queries if gallery is None else gallery
    if isinstance(images, Embeddings):
        raise InputError(f"{source_of(run)} holds vectors; wanted pictures: train on pictures")
    labelled = Embeddings(np.ones((len(images), 1), np.float32), images.ids, images.labels)
    rows = choose_rows(labelled, options.points or _MOST, options.seed)
    if rows is not None:
        images = images.take(rows if options.query is None else _with_query(rows, images, options.query))
    encoder, blocks = cast(FeatureMapEncoder, run.encoder), load_blocks(run.folder / CROSS_IMAGE)
    encoded = encode(encoder, blocks, images, strict=False, progress=run.progress)
    warn_of_corrupt(list(encoded.corrupt), len(images))
    if encoded.ids is not None:
        images = images.take(np.flatnonzero(np.isin(images.ids, encoded.ids)))
    return _Seen(images, encoder, blocks, encoded)


def _with_query(rows: IntArray, images: ImageSet, query: str) -> IntArray:
    """The rows, and the picture that is asked for with its class, or as much of it as there are rows."""
    row, labels = choose_row(images, query), labels_of(images)
    same = np.flatnonzero(labels == labels[row])[: len(rows)]
    return np.union1d(rows, [row, *same])


def _triple(encoded: EncodedImages, images: ImageSet, anchor: int | None) -> IntArray:
    """(a, same, other): of the hardest picture, or of the one that is asked for."""
    labels = labels_of(images)
    if anchor is None:
        triples = best_triples(encoded, labels, 1)
        _check_found(triples)
        return triples[0]
    similarities = (encoded.vectors @ encoded.vectors[anchor]).numpy()
    same = labels == labels[anchor]
    others = np.arange(len(images)) != anchor
    masks = [same & others, ~same]
    if not all(mask.any() for mask in masks):
        raise InputError(
            f"the query is {images.ids[anchor]}, and of the {len(images)} pictures {masks[0].sum()} others are of its "
            f"class and {masks[1].sum()} of another; wanted one of each: choose another query"
        )
    return np.array([anchor, *(np.where(mask, similarities, -np.inf).argmax() for mask in masks)])


def _check_found(triples: IntArray) -> None:
    if not len(triples):
        raise InputError(
            "no picture has one of its class and one of another near it; wanted at least one: add pictures"
        )


# ---- from an encoder and its blocks ------------------------------------------------------------------------------


def attention_figure(
    encoder: FeatureMapEncoder,
    blocks: CrossImageBlocks,
    encoded: EncodedImages,
    images: ImageSet,
    triple: IntArray,
) -> "Figure":
    """Where the second and the third picture of a triple (3,) look in the first, over what the encoder sees of it."""
    labels = labels_of(images)
    anchor, same, other = map(int, triple)
    names = [f"{role}: {labels[row]}" for role, row in zip(("Ia", "I1", "I2"), triple, strict=True)]
    maps = attention_maps(blocks, encoded, anchor, [same, other])
    title = "Where I1 (same class) and I2 (another) look in Ia"
    pictures = [_part_seen(encoder, images, int(row)) for row in triple]
    return draw_attention(pictures, names, maps, shown_blocks(len(blocks)), title)


def shown_blocks(count: int) -> list[int]:
    """Choose the blocks shown in the paper where there are as many, else the first, the middle and the last."""
    return list(BLOCKS) if count >= BLOCKS[-1] else sorted({1, (count + 1) // 2, count})


def part_figure(
    encoder: FeatureMapEncoder,
    blocks: CrossImageBlocks,
    encoded: EncodedImages,
    images: ImageSet,
    triples: IntArray,
    progress: Progress | None,
) -> "Figure":
    """Draw, for some images, the places that their nearest image of the class attends to most, and similar ones."""
    labels, space = labels_of(images), key_space(encoder, blocks, images, progress=progress)
    chosen = []
    for anchor, same, _ in triples[:PART_IMAGES]:
        heat = attention_maps(blocks, encoded, int(anchor), [int(same)])[0].mean(axis=0)
        chosen += [(int(anchor), *place) for place in _peaks(heat, PLACES_EACH)]
    found = find_parts(space, chosen, min(FOUND, len(space) - 1), progress=progress)
    rows = []
    for number, (row, *place) in enumerate(chosen):
        parts = [
            {"picture": _part_seen(encoder, images, int(r)), "place": p, "right": labels[r] == labels[row]}
            for r, p in zip(found.rows[number], found.places[number], strict=True)
        ]
        name = str(labels[row])
        rows.append({"picture": _part_seen(encoder, images, row), "name": name, "place": place, "found": parts})
    return draw_parts(rows, "Parts found through the keys of the last block, without labels", space.shape)


def _peaks(heat: FloatArray, count: int) -> list[tuple[int, int]]:
    """The strongest places (y, x), no two of them neighbours."""
    left = heat.copy()
    peaks: list[tuple[int, int]] = []
    for _ in range(count):
        y, x = np.unravel_index(left.argmax(), left.shape)
        peaks.append((int(y), int(x)))
        left[max(0, y - 1) : y + 2, max(0, x - 1) : x + 2] = -1
    return peaks


def _part_seen(encoder: FeatureMapEncoder, images: ImageSet, row: int) -> NDArray[Any]:
    """What the encoder sees of a picture: places of its map lie on the crop, not on the whole."""
    preprocessing = encoder.preprocessing or Preprocessing.small()
    return np.asarray(preprocessing.part_seen(images.picture(row)))
