"""Which figures of a run a report shows, and how each is to be read."""

from entourage.errors import EntourageError
from entourage.report.blocks import Heading, Paragraph
from entourage.report.pictures import Picture
from entourage.runs.figures import FIGURES, FigureOptions, applicable
from entourage.runs.figures.options import DRIFTING

__all__ = ["draw_all"]

# What the sheet shows stands on the page as lists. The names of these are the kinds of `entourage plot`.
SHOWN = ("training", "drift", "query", "steps", "grid", "learners", "specialities", "gradients", "attention", "parts")
# Lines and axes that may be laid out anew for a narrow screen; in the others every place was chosen for the size.
_NARROW = ("gradients", "learners", "steps", "training")

_READING = {
    "drift": "Pale: where an item lies among the raw vectors. An arrow leads to where refinement takes it. Items of "
    "one class that gather are easier to find. Of many items some are shown, laid out by themselves; in the "
    "picture of all, which entourage plot drift makes, they lie elsewhere.",
    "query": "The nearest items before and after; an arrow leads from an item's old place to its new one. Lines from "
    "the query, where it is known what it looked at: the wider, the more, step by step.",
    "steps": "Points gained over the raw vectors after each step.",
    "grid": "What other numbers of neighbours and steps would have given, by the labels of these very items: to "
    "look at, not to choose by.",
    "training": "Loss of every epoch, and the score on held-out training classes by which the epoch was kept.",
    "learners": "Recall when only the first m slices of the embedding are used.",
    "specialities": "Queries that one slice finds and all others lose.",
    "gradients": "How large the gradients are at the encoder's output, epoch by epoch.",
    "attention": "Where the blocks look in one picture when it is compared with another.",
    "parts": "The marked place, and the places in other pictures most like it.",
}


def draw_all(run, seed: int = 0) -> list:
    """Blocks with every figure the run has; one that cannot be drawn is a sentence that says why."""
    blocks, known = [], applicable(run)
    for kind in SHOWN:
        if kind in known:
            blocks += [Heading(_capital(FIGURES[kind].shows)), _drawn(kind, run, seed)]
    return blocks


def _drawn(kind: str, run, seed: int):
    options = FigureOptions(seed=seed, points=DRIFTING if kind == "drift" else None)
    try:
        figure = FIGURES[kind].draw(run, options)
    except (EntourageError, OSError) as error:  # such as pictures that are gone
        return Paragraph(f"Not drawn: {error}.")
    return Picture.of(figure, _capital(FIGURES[kind].shows), _READING[kind], narrow=kind in _NARROW)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
