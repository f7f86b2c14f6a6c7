"""From what was asked for to a scene: a kept refinement, a run of `train`, or vectors that are refined now."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from entourage.errors import FileError, InputError
from entourage.explorer.queries import Encoder
from entourage.explorer.scene import Scene
from entourage.refiner.estimator import ContextRefiner
from entourage.runs.layout import ENCODER
from entourage.runs.media import Media, PictureSource
from entourage.runs.open import open_run
from entourage.runs.refine import RefineRequest, refine, write_refinement
from entourage.runs.refinement_run import RefinementRun, open_refinement
from entourage.runs.training_run import TrainingRun
from entourage.runtime.progress import Progress

__all__ = ["ExploreRequest", "encoder_of", "open_scene"]

_SAYS_NOTHING = {"vectors", "embeddings", "features", "x", "data"}


@dataclass(frozen=True)
class ExploreRequest:
    """What is shown, and where; the fields are the options of `entourage explore`."""

    run: Path | None = None
    """A refinement run, a run of `entourage train`, or the folder of the demo."""
    vectors: Path | None = None
    """Vectors to refine first, instead of a run."""
    options: dict[str, Any] = field(default_factory=dict)
    """With vectors: further fields of a RefineRequest: model, labels, pictures, texts, ..."""
    encoder: str | None = None
    """What makes vectors of dropped pictures or texts: a run, a model, or module:function; the run's own, if None."""
    host: str = "127.0.0.1"
    port: int = 8318
    browser: bool = True
    """Whether the page is opened in a browser."""
    export: Path | None = None
    """A .html to write instead of serving."""
    overwrite: bool = False

    def check(self) -> None:
        """Refuse what does not go together: before any work."""
        if (self.run is None) == (self.vectors is None):
            seen = "neither RUN nor --vectors is" if self.run is None else f"RUN is {self.run} and --vectors is"
            raise InputError(f"{seen} given; wanted one of them: a run folder, or vectors to refine now")
        given = [name for name, value in self.options.items() if value not in (None, {})]
        if self.run is not None and given:
            raise InputError(f"--{given[0].replace('_', '-')} goes with --vectors, but RUN is {self.run}; leave it out")
        if self.export is not None and self.export.suffix.lower() not in (".html", ".htm"):
            raise InputError(f"--export is {self.export}; wanted the name of a .html file")


def open_scene(request: ExploreRequest, scratch: Path, progress: Progress | None = None) -> Scene:
    """Open what is to be shown.

    Parameters
    ----------
    request : ExploreRequest
    scratch : Path
        An empty folder for what is refined now; it has to stay as long as the scene is shown.
    progress : callable, optional
        Called as progress(title, done, total).

    Returns
    -------
    Scene
    """
    if request.vectors is not None:
        folder = scratch / request.vectors.stem
        refine(RefineRequest(request.vectors, run=folder, **request.options), progress=progress)
        return Scene(open_refinement(folder), progress, _name_of(request.vectors))
    assert request.run is not None
    opened = open_run(request.run, progress=progress)
    if isinstance(opened, TrainingRun):
        opened = _refined(opened, scratch / request.run.absolute().name, progress)
    return Scene(opened, progress)


def _name_of(vectors: Path) -> str:
    """What vectors are called: as their file is or, where that says nothing, as the folder it is in."""
    path = vectors.absolute()
    return path.parent.name or path.stem if path.stem.lower() in _SAYS_NOTHING else path.stem


def encoder_of(request: ExploreRequest) -> Encoder:
    """What makes vectors of what is dropped: the encoder that was named, or that of the run, or none."""
    if request.encoder is not None:
        named = Encoder(request.encoder)
        named.check()
        return named
    has_own = request.run is not None and (request.run / ENCODER).is_dir()
    return Encoder(str(request.run) if has_own else None)  # loaded when the first picture is dropped


def _refined(trained: TrainingRun, folder: Path, progress: Progress | None) -> RefinementRun:
    """The test pictures of a training run, as its encoder sees them, refined without labels."""
    queries, gallery = trained.embedded
    pool = queries if gallery is None else gallery
    if len(pool) < 2:
        raise FileError(f"{trained.folder} has {len(pool)} test pictures; wanted two or more to show")
    media = None
    if trained.has_pictures:
        data = trained.config["data"]
        split = "test" if gallery is None else "query,gallery"
        media = Media(PictureSource(str(data["source"]), data["root"], split, data["options"]))
    refiner = ContextRefiner().fit(pool.without_labels())
    return write_refinement(folder, refiner, queries, gallery, media=media, progress=progress)
