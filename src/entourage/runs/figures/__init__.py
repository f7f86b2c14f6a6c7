"""Every kind of figure of a run, by name: what it takes from the run, and which function of figures/ draws it.

run = open_run("runs/demo")
applicable(run)                     # ["drift", "query", "steps", "grid", "sheet"]
draw("drift", run)                  # a matplotlib Figure
write_figure("drift", run, "drift.png")
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from entourage.errors import EntourageError, InputError
from entourage.runs.figures.options import FigureOptions
from entourage.runs.refinement_run import RefinementRun
from entourage.runs.training_run import TrainingRun
from entourage.runtime.config import check_name
from entourage.stores import check_file, check_kept
from entourage.systems import SYSTEMS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from entourage.figures.motion import DriftFrames

__all__ = ["FIGURES", "FigureKind", "FigureOptions", "applicable", "draw", "draw_motion", "write_figure"]


@dataclass(frozen=True)
class FigureKind:
    """A kind of figure, and which runs have it."""

    name: str
    shows: str
    """What it shows, in a few words."""
    refinement: str | None = None
    """What draws it of a refinement run, as module:function, taking (run, options); None where there is none."""
    training: str | None = None
    """What draws it of a training run."""
    systems: tuple[str, ...] = tuple(SYSTEMS)
    """The systems whose training runs have it."""
    wants: tuple[str, ...] = ()
    """What the run must have: labels, steps, refiner, slices, gradients, pictures."""
    motion: str | None = None
    """What draws it of a refinement run as motion; None where nothing moves."""

    def draw(self, run: RefinementRun | TrainingRun, options: FigureOptions | None = None) -> "Figure":
        """Draw the figure of a run that has it."""
        function = self.refinement if isinstance(run, RefinementRun) else self.training
        if function is None:
            raise InputError(f"{self.name} is no figure of {run.folder}; wanted one of {', '.join(applicable(run))}")
        figure: Figure = _function(function)(run, options or FigureOptions())
        return figure

    @property
    def runs(self) -> tuple[str, ...]:
        """The kinds of run that may have it: "refinement", and the names of systems."""
        return ("refinement",) * bool(self.refinement) + self.systems * bool(self.training)


def _function(named: str) -> Callable[..., Any]:
    """The function of module:function, imported when it is needed."""
    module, name = named.split(":")
    function: Callable[..., Any] = getattr(import_module(f"entourage.runs.figures.{module}"), name)
    return function


FIGURES: dict[str, FigureKind] = {
    kind.name: kind
    for kind in (
        FigureKind(
            "drift", "where items lie before and where they go", "refinement:drift", motion="refinement:drift_motion"
        ),
        FigureKind(
            "query",
            "one query, and its neighbours before and after",
            "refinement:query",
            wants=("steps",),
        ),
        FigureKind("steps", "scores after each step", "refinement:steps", wants=("labels",)),
        FigureKind(
            "grid", "recall@1 and MAP@R by neighbours and steps", "refinement:grid", wants=("labels", "refiner")
        ),
        FigureKind("training", "loss and held-out score by epoch", training="training:training"),
        FigureKind("sheet", "queries and what they find, the best and the worst", "refinement:sheet", "training:sheet"),
        FigureKind(
            "gradients",
            "gradients at the encoder's output, with the blocks and without",
            training="cross_image:gradients",
            systems=("cross-image",),
            wants=("gradients",),
        ),
        FigureKind(
            "attention",
            "where one picture looks in another",
            training="cross_image:attention",
            systems=("cross-image",),
        ),
        FigureKind("parts", "like places in other pictures", training="cross_image:parts", systems=("cross-image",)),
        FigureKind(
            "learners",
            "recall of the first m learners together",
            training="training:learners",
            systems=("divide", "baseline"),
            wants=("slices",),
        ),
        FigureKind(
            "specialities",
            "queries that one learner alone finds",
            training="training:specialities",
            systems=("divide", "baseline"),
            wants=("slices", "pictures"),
        ),
    )
}


def applicable(run: RefinementRun | TrainingRun, options: FigureOptions | None = None) -> list[str]:
    """List the figures that a run has.

    Parameters
    ----------
    run : RefinementRun or TrainingRun
        The opened run.
    options : FigureOptions, optional
        Options of the figure; some figures exist only with `slices`.

    Returns
    -------
    list of str
        Names of figures, in the order of FIGURES.
    """
    return [name for name, kind in FIGURES.items() if not _lacks(kind, run, options or FigureOptions())]


def draw(kind: str, run: RefinementRun | TrainingRun, options: FigureOptions | None = None) -> "Figure":
    """Draw a figure of a run.

    Parameters
    ----------
    kind : str
        The name of the figure, one of `applicable(run, options)`.
    run : RefinementRun or TrainingRun
        The opened run.
    options : FigureOptions, optional
        The query, the number of points, the seed and so on.

    Returns
    -------
    matplotlib Figure

    Raises
    ------
    InputError
        If the run does not have this figure; the message lists those it has.
    """
    options = options or FigureOptions()
    return _checked(kind, run, options).draw(run, options)


def draw_motion(kind: str, run: RefinementRun | TrainingRun, options: FigureOptions | None = None) -> "DriftFrames":
    """A figure of a run as motion, a sequence of frames; parameters are those of `draw`."""
    options = options or FigureOptions()
    named = _checked(kind, run, options).motion
    if named is None:
        moving = ", ".join(name for name, each in FIGURES.items() if each.motion)
        raise InputError(f"{kind} is no figure that moves; wanted one that does: {moving}")
    frames: DriftFrames = _function(named)(run, options)
    return frames


def _checked(kind: str, run: RefinementRun | TrainingRun, options: FigureOptions) -> FigureKind:
    known = applicable(run, options)
    if kind not in FIGURES:
        check_name(kind, known, "figure", f"of {run.folder}")
    lacks = _lacks(FIGURES[kind], run, options)
    if lacks:
        raise InputError(f"{kind} is a figure of {lacks}; wanted one that {run.folder} has: {', '.join(known)}")
    return FIGURES[kind]


def write_figure(
    kind: str,
    run: RefinementRun | TrainingRun,
    out: str | Path,
    options: FigureOptions | None = None,
    *,
    overwrite: bool = False,
) -> None:
    """Draw a figure of a run and write it to a file.

    Parameters
    ----------
    kind, run, options
        As in `draw`.
    out : path
        The file, whose ending decides the format: .png, .pdf or .svg, or .mp4 or .gif for motion.
    overwrite : bool
        Whether an existing file is replaced.
    """
    from entourage.figures import ENDINGS, motion, save

    out, options = Path(out), options or FigureOptions()
    moves = out.suffix.lower() in motion.ENDINGS
    allowed = (*ENDINGS, *motion.ENDINGS) if kind in FIGURES and FIGURES[kind].motion else ENDINGS
    if out.suffix.lower() not in allowed:
        raise InputError(f"the picture is to be written to {out}; wanted a name that ends in {', '.join(allowed)}")
    check_file(out, overwrite=overwrite)
    _check_spares_pictures(out, run)
    if moves:
        motion.check_motion(out)  # what is missing is named before the work
        motion.write_motion(draw_motion(kind, run, options), out, overwrite=overwrite, progress=run.progress)
    else:
        save(draw(kind, run, options), out, overwrite=overwrite)


def _check_spares_pictures(out: Path, run: RefinementRun | TrainingRun) -> None:
    """Refuse to replace a picture of an item by a picture of the run."""
    if out.exists():
        inputs: list[Path] = []
        with suppress(EntourageError, OSError):  # pictures that are gone cannot be lost
            inputs = [path for path in run.picture_files() if path.name == out.name]
        check_kept((out,), inputs)


def _lacks(kind: FigureKind, run: RefinementRun | TrainingRun, options: FigureOptions) -> str | None:
    """What a run would have to be to have that picture; None if it is."""
    if ("refinement" if isinstance(run, RefinementRun) else run.system) not in kind.runs:
        return f"a run of {' or '.join(kind.runs)}"
    return _refinement_lacks(kind, run) if isinstance(run, RefinementRun) else _training_lacks(kind, run, options)


def _refinement_lacks(kind: FigureKind, run: RefinementRun) -> str | None:
    if "labels" in kind.wants and run.per_query is None:
        return "a refinement with labels (--labels)"
    if "steps" in kind.wants and run.n_steps < 1:
        return "a refinement of 1 step or more (--steps)"
    if "refiner" in kind.wants and not run.has_refiner:
        return "a refiner that is applied with other settings, which the network of a training is not"
    return None


def _training_lacks(kind: FigureKind, run: TrainingRun, options: FigureOptions) -> str | None:
    if "slices" in kind.wants and run.system != "divide" and options.slices is None:
        return "slices, of which a baseline has none (--slices cuts it)"
    if "pictures" in kind.wants and not run.has_pictures:
        return "a run on pictures"
    if "gradients" in kind.wants and not _has_gradients(run):
        return "gradients, which are counted with probe_batches of 1 or more"
    return None


def _has_gradients(run: TrainingRun) -> bool:
    from entourage.systems.cross_image.probe import read_gradients  # loads torch

    return bool(read_gradients(run.folder))
