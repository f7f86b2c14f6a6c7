"""Every kind of picture of a run, by name: what it takes from the run, and which function of figures/ draws it.

run = open_run("runs/demo")
applicable(run)                     # ["drift", "query", "steps", "grid", "sheet"]
draw("drift", run)                  # a matplotlib Figure
write_plot("drift", run, "drift.png")
"""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from entourage.errors import FileError, InputError
from entourage.plots.options import PlotOptions
from entourage.refinements import Refinement, open_refinement
from entourage.runs import SYSTEMS
from entourage.store import check_free
from entourage.trainings import Training, open_training

__all__ = ["PLOTS", "Plot", "PlotOptions", "applicable", "draw", "open_run", "write_plot"]


@dataclass(frozen=True)
class Plot:
    """A kind of picture.

    refinement, training: which function draws it of such a run, as module:name, taking (run, options, progress); None
    where there is no such picture.
    """

    name: str
    says: str
    """What it shows, in a few words."""
    refinement: str | None = None
    training: str | None = None
    systems: tuple[str, ...] = tuple(SYSTEMS)
    """Of which systems' trainings."""
    wants: tuple[str, ...] = ()
    """What the run must have: labels, steps, refiner, slices, gradients, pictures."""
    moves: bool = False
    """Whether it can be drawn as motion too."""

    def draw(self, run, options: PlotOptions | None = None, progress=None):
        """A Figure or, with options.motion, a sequence of frames."""
        function = self.refinement if isinstance(run, Refinement) else self.training
        module, name = function.split(":")
        return getattr(import_module(f"entourage.plots.{module}"), name)(run, options or PlotOptions(), progress)

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs that may have it: "refinement", and systems."""
        return ("refinement",) * bool(self.refinement) + self.systems * bool(self.training)


PLOTS: dict[str, Plot] = {
    plot.name: plot
    for plot in (
        Plot("drift", "where items lie before and where they go", "of_refinements:drift", moves=True),
        Plot(
            "query",
            "one query, and its neighbours before and after",
            "of_refinements:query",
            wants=("steps",),
        ),
        Plot("steps", "scores after each step", "of_refinements:steps", wants=("labels",)),
        Plot("grid", "recall@1 by neighbours and steps", "of_refinements:grid", wants=("labels", "refiner")),
        Plot("training", "loss and held-out score by epoch", training="of_trainings:training"),
        Plot(
            "sheet", "queries and what they find, the best and the worst", "of_refinements:sheet", "of_trainings:sheet"
        ),
        Plot(
            "gradients",
            "gradients at the encoder's output, with the blocks and without",
            training="of_cross_image:gradients",
            systems=("cross-image",),
            wants=("gradients",),
        ),
        Plot(
            "attention",
            "where one picture looks in another",
            training="of_cross_image:attention",
            systems=("cross-image",),
        ),
        Plot("parts", "like places in other pictures", training="of_cross_image:parts", systems=("cross-image",)),
        Plot(
            "learners",
            "recall of the first m learners together",
            training="of_trainings:learners",
            systems=("divide", "baseline"),
            wants=("slices",),
        ),
        Plot(
            "specialities",
            "queries that one learner alone finds",
            training="of_trainings:specialities",
            systems=("divide", "baseline"),
            wants=("slices", "pictures"),
        ),
    )
}


def open_run(folder) -> Refinement | Training:
    """A kept refinement, or a run of `entourage train`."""
    folder = Path(folder)
    if (folder / "run.json").is_file():
        return open_refinement(folder)
    if (folder / "config.json").is_file() or folder.name.endswith(".partial"):
        return open_training(folder)
    seen = "is no run" if folder.exists() else "does not exist"
    raise FileError(
        f"{folder} {seen}; wanted a folder of `entourage train`, of `entourage refine --run` or of the demo"
    )


def applicable(run: Refinement | Training, options: PlotOptions | None = None) -> list[str]:
    """The kinds of pictures this run has, in the order of PLOTS."""
    return [name for name, plot in PLOTS.items() if not _lacks(plot, run, options or PlotOptions())]


def draw(kind: str, run: Refinement | Training, options: PlotOptions | None = None, progress=None):
    """A Figure of that kind; an InputError that lists those the run has if it is none of them."""
    options = options or PlotOptions()
    known = ", ".join(applicable(run, options))
    if kind not in PLOTS:
        raise InputError(f"the kind of picture is {kind!r}; {run.folder} has {known}: name one of these")
    lacks = _lacks(PLOTS[kind], run, options)
    if lacks:
        raise InputError(f"{kind} is a picture of {lacks}; {run.folder} has {known}: name one of these")
    return PLOTS[kind].draw(run, options, progress)


def write_plot(
    kind: str, run, out, options: PlotOptions | None = None, *, overwrite: bool = False, progress=None
) -> None:
    """Draw, and write as .png, .pdf or .svg, or as motion, .mp4 or .gif, by the ending of `out`."""
    from dataclasses import replace

    from entourage.figures import ENDINGS, motion, save

    out, options = Path(out), options or PlotOptions()
    moves = out.suffix.lower() in motion.ENDINGS
    allowed = (*ENDINGS, *motion.ENDINGS) if kind in PLOTS and PLOTS[kind].moves else ENDINGS
    if out.suffix.lower() not in allowed:
        raise InputError(f"the picture is to be written to {out}; wanted a name that ends in {', '.join(allowed)}")
    check_free(out, overwrite=overwrite)
    if moves:
        motion.check_motion(out)  # what is missing is told before the work
    drawn = draw(kind, run, replace(options, motion=moves), progress)
    if moves:
        motion.write_motion(drawn, out, progress=progress)
    else:
        save(drawn, out)


def _lacks(plot: Plot, run, options: PlotOptions) -> str | None:
    """What a run would have to be to have that picture; None if it is."""
    if ("refinement" if isinstance(run, Refinement) else run.system) not in plot.runs:
        return f"a run of {' or '.join(plot.runs)}"
    if "labels" in plot.wants and run.per_query() is None:
        return "a refinement with labels (--labels)"
    if "steps" in plot.wants and run.n_steps < 1:
        return "a refinement of 1 step or more (--steps)"
    if "refiner" in plot.wants and not run.has_refiner:
        return "a refiner that is applied with other settings, which the network of a training is not"
    if "slices" in plot.wants and run.system != "divide" and options.slices is None:
        return "slices, of which a baseline has none (--slices cuts it)"
    if "pictures" in plot.wants and not run.has_pictures:
        return "a run on pictures"
    if "gradients" in plot.wants and not _has_gradients(run):
        return "gradients, which are counted with probe_batches of 1 or more"
    return None


def _has_gradients(run: Training) -> bool:
    from entourage.systems.cross_image.probe import read_gradients  # loads torch

    return bool(read_gradients(run.folder))
