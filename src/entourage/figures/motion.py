"""The drift in motion: frames from e_0 to e_T, written as .mp4 or .gif."""

from collections.abc import Iterable, Iterator, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.text import Text
from numpy.typing import ArrayLike, NDArray

from entourage.errors import InputError, MissingExtra
from entourage.figures.appearance import Appearance
from entourage.figures.drift import DriftPicture
from entourage.figures.sheet import write
from entourage.figures.style import SUBSCRIPTS
from entourage.runtime.progress import Progress
from entourage.stores import StrPath, whole_file
from entourage.values import FloatArray

__all__ = ["ENDINGS", "check_motion", "drift_frames", "write_motion"]

ENDINGS = (".mp4", ".gif")

_DPI = 100
_HOLD = 0.8  # of the frames of a step, for which the beginning stands still; the end twice as long


@dataclass(frozen=True, eq=False)
class DriftFrames:
    """F frames, drawn while they are iterated over."""

    picture: DriftPicture
    """What draws them."""
    moments: FloatArray
    """(F,) the moment of each frame, from 0, which is e_0, to 1, which is e_T."""
    clock: Text
    """Shows on the figure which step it is; one for all iterations, or they would be written over each other."""

    def __len__(self) -> int:
        return len(self.moments)

    def __iter__(self) -> Iterator[NDArray[np.uint8]]:
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        figure = self.picture.figure
        figure.set_dpi(_DPI)
        canvas = FigureCanvasAgg(figure)
        frame, shown = np.empty(0, np.uint8), None
        for moment in self.moments:
            if moment != shown:  # else it stands still
                self.picture.show(moment)
                self.clock.set_text(f"e{round(moment * self.picture.n_steps)}".translate(SUBSCRIPTS))
                canvas.draw()
                frame, shown = _even(np.asarray(canvas.buffer_rgba())[..., :3]), moment
            yield frame


def _even(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Without a last odd row or column: videos have none."""
    return pixels[: pixels.shape[0] // 2 * 2, : pixels.shape[1] // 2 * 2].copy()


def drift_frames(
    positions: ArrayLike, appearance: Appearance, title: str, *, per_step: int = 10, **options: Any
) -> DriftFrames:
    """Make the frames of a film of the items on their way.

    Parameters
    ----------
    positions, appearance, title, **options
        As `draw_drift` takes them.
    per_step : int, default 10
        How many frames there are for each of the T steps.

    Returns
    -------
    DriftFrames
        Arrays of shape (H, W, 3).
    """
    picture = DriftPicture(positions, appearance, title, travelling=True, **options)
    hold = max(1, round(_HOLD * per_step))
    going = np.linspace(0, 1, picture.n_steps * per_step + 1)
    clock = write(picture.axes, picture.axes.get_xlim()[1], picture.title_height, "", size=13, ha="right")
    return DriftFrames(picture, np.concatenate([np.zeros(hold), going, np.ones(2 * hold)]), clock)


def write_motion(
    frames: Iterable[NDArray[np.uint8]],
    path: StrPath,
    *,
    fps: int = 15,
    overwrite: bool = True,
    progress: Progress | None = None,
) -> None:
    """Write frames as a film, whole or not at all.

    Parameters
    ----------
    frames : iterable of arrays of shape (H, W, 3)
        H and W even.
    path : str or path-like
        A name that ends in .mp4 or .gif, which decides the format.
    fps : int, default 15
        Frames per second.
    overwrite : bool, default True
        Whether a file that exists is replaced.
    progress : Progress, optional
        Called as progress(title, done, total).
    """
    check_motion(path)
    writer = _write_mp4 if Path(path).suffix.lower() == ".mp4" else _write_gif
    with whole_file(path, overwrite=overwrite) as temporary:
        writer(_reported(frames, progress), temporary, fps)


def check_motion(path: StrPath) -> None:
    """Raise InputError for a name that does not end in .mp4 or .gif, MissingExtra if .mp4 cannot be written here."""
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise InputError(f"a film cannot be written to {path}; wanted a name that ends in {' or '.join(ENDINGS)}")
    if ending == ".mp4":
        try:
            import imageio_ffmpeg  # noqa: F401
        except ImportError:
            raise MissingExtra("video", "writing .mp4 (.gif needs nothing)") from None


def _reported(frames: Iterable[NDArray[np.uint8]], progress: Progress | None) -> Iterator[NDArray[np.uint8]]:
    count = len(frames) if isinstance(frames, Sized) else None
    for number, frame in enumerate(frames, start=1):
        if progress is not None:
            progress("drawing frames", number, count or number)
        yield frame


def _write_mp4(frames: Iterator[NDArray[np.uint8]], path: Path, fps: int) -> None:
    """H.264, by the program that imageio-ffmpeg brings along."""
    import imageio_ffmpeg

    first = next(frames)
    size = (first.shape[1], first.shape[0])
    options = {"fps": fps, "codec": "libx264", "macro_block_size": 2, "quality": 7, "ffmpeg_log_level": "error"}
    writer = imageio_ffmpeg.write_frames(str(path), size, **options)
    writer.send(None)  # starts it
    try:
        writer.send(np.ascontiguousarray(first))
        for frame in frames:
            writer.send(np.ascontiguousarray(frame))
    finally:
        writer.close()


def _write_gif(frames: Iterator[NDArray[np.uint8]], path: Path, fps: int) -> None:
    """One palette for all frames, taken from the last, which shows all there is: else colours would flicker."""
    from PIL import Image

    pictures = [Image.fromarray(frame) for frame in frames]
    palette = pictures[-1].quantize(128, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    reduced = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    options: dict[str, Any] = {"save_all": True, "append_images": reduced[1:], "duration": round(1000 / fps), "loop": 0}
    reduced[0].save(path, format="GIF", optimize=False, **options)
