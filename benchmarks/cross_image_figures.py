"""The figures of benchmarks/cross_image.py, from a trained encoder with its blocks and images of unseen classes."""

from pathlib import Path

import numpy as np

from entourage.figures import save
from entourage.figures.attention_maps import draw_attention
from entourage.figures.gradients import draw_gradients
from entourage.figures.parts import draw_parts
from entourage.systems.cross_image import attention_maps, best_triples, find_parts, key_space
from entourage.systems.cross_image.probe import EDGES

TRIPLES, PART_IMAGES, PLACES_EACH, FOUND = 3, 3, 2, 10
BLOCKS = (2, 4, 6)


def gradient_figure(gradients: dict[str, list], path: Path, data: str) -> None:
    """The baseline's run, and the cross-image run with the blocks and, at the same weights, without them."""

    def by_epoch(system: str, name: str) -> dict:
        return {entry["epoch"]: np.array(entry[name]) for entry in gradients[system]}

    counts = {
        "baseline": by_epoch("baseline", "with_blocks"),
        "cross-image": by_epoch("cross-image", "with_blocks"),
        "cross-image's encoder, without the blocks": by_epoch("cross-image", "without_blocks"),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    save(draw_gradients(counts, EDGES, f"Gradients at the encoder's output, {data}"), path)


def draw_all(stem: Path, encoder, blocks, encoded, images, progress) -> None:
    """Attention maps of triples and parts, as files that begin with `stem`."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    triples = best_triples(encoded, images.labels, TRIPLES)
    for number, triple in enumerate(triples, 1):
        save(attention_figure(blocks, encoded, images, triple), stem.with_name(f"{stem.name}_attention_{number}.png"))
    if len(triples):
        figure = part_figure(encoder, blocks, encoded, images, triples, progress)
        save(figure, stem.with_name(f"{stem.name}_parts.png"))


def attention_figure(blocks, encoded, images, triple):
    anchor, same, other = map(int, triple)
    names = [f"{role}: {_short(images.labels[row])}" for role, row in zip(("Ia", "I1", "I2"), triple, strict=True)]
    shown = [number for number in BLOCKS if number <= len(blocks)] or [len(blocks)]
    maps = attention_maps(blocks, encoded, anchor, [same, other])
    title = "Where I1 (same class) and I2 (another) look in Ia"
    return draw_attention([_pixels(images, int(row)) for row in triple], names, maps, shown, title)


def part_figure(encoder, blocks, encoded, images, triples, progress):
    """For some images the places their nearest image of the class attends to most, and the most similar elsewhere."""
    space = key_space(encoder, blocks, images, progress=progress)
    chosen = []
    for anchor, same, _ in triples[:PART_IMAGES]:
        heat = attention_maps(blocks, encoded, int(anchor), [int(same)])[0].mean(axis=0)
        chosen += [(int(anchor), *place) for place in _peaks(heat, PLACES_EACH)]
    found = find_parts(space, chosen, min(FOUND, len(space) - 1), progress=progress)
    rows = []
    for number, (row, *place) in enumerate(chosen):
        parts = [
            {"picture": _pixels(images, int(r)), "place": p, "right": images.labels[r] == images.labels[row]}
            for r, p in zip(found.rows[number], found.places[number], strict=True)
        ]
        name = _short(images.labels[row], 16)
        rows.append({"picture": _pixels(images, row), "name": name, "place": place, "found": parts})
    return draw_parts(rows, "Parts found through the keys of the last block, without labels", space.shape)


def _peaks(heat: np.ndarray, count: int) -> list[tuple[int, int]]:
    """The strongest places (y, x), no two of them neighbours."""
    left, peaks = heat.copy(), []
    for _ in range(count):
        y, x = np.unravel_index(left.argmax(), left.shape)
        peaks.append((int(y), int(x)))
        left[max(0, y - 1) : y + 2, max(0, x - 1) : x + 2] = -1
    return peaks


def _pixels(images, row: int) -> np.ndarray:
    return np.asarray(images.picture(row))


def _short(label, most: int = 22) -> str:
    text = str(label)
    return text if len(text) <= most else f"{text[: most - 1]}…"
