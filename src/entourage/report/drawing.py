"""Which figures of a run a report shows, and how each is to be read."""

from entourage.errors import EntourageError
from entourage.report.blocks import Heading, Paragraph
from entourage.report.pictures import Picture
from entourage.report.templates import Block
from entourage.runs.figures import FIGURES, FigureOptions, applicable
from entourage.runs.refinement_run import RefinementRun
from entourage.runs.training_run import TrainingRun

__all__ = ["draw_all"]

# What the sheet shows stands on the page as lists. The names of these are the kinds of `entourage plot`.
SHOWN = ("training", "drift", "query", "steps", "grid", "learners", "specialities", "gradients", "attention", "parts")
# Lines and axes that may be laid out anew for a narrow screen; in the others every place was chosen for the size.
_NARROW = ("gradients", "learners", "steps", "training")

_READING = {
    "drift": "Pale: where an item lies among the raw vectors. An arrow leads to where refinement moves it. Items of "
    "one class that gather are easier to find. Of many items a sample is drawn and laid out by itself.",
    "query": "The nearest items before and after; an arrow leads from an item's old rank to its new one. Lines "
    "from the query, where there are some, show what it attended to, step by step: the wider, the more.",
    "steps": "Points gained over the raw vectors after each step.",
    "grid": "Scores with other numbers of neighbours and steps, measured with the labels of these very items: to "
    "look at, not to choose settings by.",
    "training": "Loss of every epoch, and the score on held-out training classes that decided which epoch was kept.",
    "learners": "Recall when only the first m slices of the embedding are used.",
    "specialities": "Queries that one slice finds and all others lose.",
    "gradients": "How large the gradients are at the encoder's output, epoch by epoch.",
    "attention": "Where the blocks look in one picture when it is compared with another.",
    "parts": "The marked place, and the places in other pictures most like it.",
}


def draw_all(run: RefinementRun | TrainingRun, seed: int = 0) -> list[Block]:
    """Draw every figure that the run has.

    Parameters
    ----------
    run : RefinementRun or TrainingRun
        The opened run.
    seed : int
        Decides which items are drawn.

    Returns
    -------
    list of Block
        A heading and a picture for each figure; where one cannot be drawn, a sentence that says why.
    """
    blocks: list[Block] = []
    known = applicable(run)
    for kind in SHOWN:
        if kind in known:
            blocks += [Heading(_capital(FIGURES[kind].shows)), _drawn(kind, run, seed)]
    return blocks


def _drawn(kind: str, run: RefinementRun | TrainingRun, seed: int) -> Block:
    try:
        figure = FIGURES[kind].draw(run, FigureOptions(seed=seed, in_report=True))
    except (EntourageError, OSError) as error:  # such as pictures that are gone
        return Paragraph(f"Not drawn: {error}.")
    return Picture.of(figure, _capital(FIGURES[kind].shows), _READING[kind], narrow=kind in _NARROW)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
