"""The drift as motion: frames between e_0 and e_T, written as .mp4 or .gif."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.text import Text

from entourage.errors import InputError, MissingExtra
from entourage.figures.appearance import Appearance
from entourage.figures.cells import write
from entourage.figures.drift import DriftPicture
from entourage.figures.style import SUBSCRIPTS
from entourage.stores import whole_file

__all__ = ["ENDINGS", "check_motion", "drift_frames", "write_motion"]

ENDINGS = (".mp4", ".gif")

_DPI = 100
_HOLD = 0.8  # of the frames of a step, for which the beginning stands still; the end twice as long


@dataclass(frozen=True, eq=False)
class DriftFrames:
    """Frames that are drawn as they are iterated over; len() knows how many. moments (F,): 0 is e_0, 1 is e_T."""

    picture: DriftPicture
    moments: np.ndarray
    clock: Text
    """On the figure, which step it is: one for all iterations, or they would be written over each other."""

    def __len__(self) -> int:
        return len(self.moments)

    def __iter__(self) -> Iterator[np.ndarray]:
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        figure = self.picture.figure
        figure.set_dpi(_DPI)
        canvas = FigureCanvasAgg(figure)
        frame, shown = None, None
        for moment in self.moments:
            if moment != shown:  # else it stands still
                self.picture.show(moment)
                self.clock.set_text(f"e{round(moment * self.picture.n_steps)}".translate(SUBSCRIPTS))
                canvas.draw()
                frame, shown = _even(np.asarray(canvas.buffer_rgba())[..., :3]), moment
            yield frame


def _even(pixels: np.ndarray) -> np.ndarray:
    """Without a last odd row or column: videos have none."""
    return pixels[: pixels.shape[0] // 2 * 2, : pixels.shape[1] // 2 * 2].copy()


def drift_frames(
    positions: np.ndarray, appearance: Appearance, title: str, *, per_step: int = 10, **options
) -> DriftFrames:
    """Pictures (H, W, 3) uint8 of the items on their way, `per_step` for each of the T steps.

    positions, appearance, title, options: as draw_drift takes them.
    """
    picture = DriftPicture(positions, appearance, title, travelling=True, **options)
    hold = max(1, round(_HOLD * per_step))
    going = np.linspace(0, 1, picture.n_steps * per_step + 1)
    clock = write(picture.axes, picture.axes.get_xlim()[1], -0.58, "", size=13, ha="right")
    return DriftFrames(picture, np.concatenate([np.zeros(hold), going, np.ones(2 * hold)]), clock)


def write_motion(frames: Iterable[np.ndarray], path, *, fps: int = 15, progress=None) -> None:
    """Write frames as .mp4 or .gif, by the path's ending, whole or not at all."""
    check_motion(path)
    writer = _write_mp4 if Path(path).suffix.lower() == ".mp4" else _write_gif
    with whole_file(path) as temporary:
        writer(_reported(frames, progress), temporary, fps)


def check_motion(path) -> None:
    """Refuse a path by whose ending no motion can be written, or not without the extra `video`."""
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise InputError(f"the motion is to be written to {path}; wanted a name that ends in {' or '.join(ENDINGS)}")
    if ending == ".mp4":
        try:
            import imageio_ffmpeg  # noqa: F401
        except ImportError:
            raise MissingExtra("video", "writing .mp4 (.gif needs nothing)") from None


def _reported(frames, progress) -> Iterator[np.ndarray]:
    count = len(frames) if hasattr(frames, "__len__") else None
    for number, frame in enumerate(frames, start=1):
        if progress is not None:
            progress("drawing frames", number, count or number)
        yield frame


def _write_mp4(frames: Iterator[np.ndarray], path: Path, fps: int) -> None:
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


def _write_gif(frames: Iterator[np.ndarray], path: Path, fps: int) -> None:
    """One palette for all frames, taken from the last, which shows all there is: else colours would flicker."""
    from PIL import Image

    pictures = [Image.fromarray(frame) for frame in frames]
    palette = pictures[-1].quantize(128, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    reduced = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    options = {"save_all": True, "append_images": reduced[1:], "duration": round(1000 / fps), "loop": 0}
    reduced[0].save(path, format="GIF", optimize=False, **options)
