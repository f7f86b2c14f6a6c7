"""The figures of benchmarks/cross_image.py, from a trained encoder with its blocks and images of unseen classes."""

from pathlib import Path

from entourage.figures import save
from entourage.figures.gradients import draw_gradients
from entourage.runs.figures.cross_image import attention_figure, counts_by_epoch, part_figure
from entourage.systems.cross_image.maps import best_triples
from entourage.systems.cross_image.probe import EDGES

TRIPLES = 3


def gradient_figure(gradients: dict[str, list], path: Path, data: str) -> None:
    """The baseline's run, and the cross-image run with the blocks and, at the same weights, without them."""
    counts = {
        "baseline": counts_by_epoch(gradients["baseline"], "with_blocks"),
        "cross-image": counts_by_epoch(gradients["cross-image"], "with_blocks"),
        "cross-image's encoder, without the blocks": counts_by_epoch(gradients["cross-image"], "without_blocks"),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    save(draw_gradients(counts, EDGES, f"Gradients at the encoder's output, {data}"), path)


def draw_all(stem: Path, encoder, blocks, encoded, images, progress) -> None:
    """Attention maps of triples and parts, as files that begin with `stem`."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    triples = best_triples(encoded, images.labels, TRIPLES)
    for number, triple in enumerate(triples, 1):
        figure = attention_figure(encoder, blocks, encoded, images, triple)
        save(figure, stem.with_name(f"{stem.name}_attention_{number}.png"))
    if len(triples):
        figure = part_figure(encoder, blocks, encoded, images, triples, progress)
        save(figure, stem.with_name(f"{stem.name}_parts.png"))
