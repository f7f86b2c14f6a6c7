"""The drift as motion: frames go from e_0 to e_T, and files hold them all or are not there."""

import builtins
import gc
import subprocess
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

from entourage.errors import InputError, MissingExtra
from entourage.figures import drift
from entourage.figures.appearance import Appearance
from entourage.figures.motion import drift_frames, write_motion


def moving_frames(**options):
    rng = np.random.default_rng(0)
    first = rng.normal(size=(40, 2))
    positions = np.stack([first, 0.7 * first, 0.4 * first])
    return drift_frames(positions, Appearance(np.arange(40)), "Title", per_step=2, **options)


@pytest.fixture(scope="module")
def frames():
    return list(moving_frames())


def test_frames_stand_still_then_move_then_stand_still(frames):
    assert len(frames) == len(moving_frames()) == 2 + 5 + 4
    assert all(frame.dtype == np.uint8 and frame.shape == frames[0].shape for frame in frames)
    assert frames[0].shape[0] % 2 == frames[0].shape[1] % 2 == 0 and frames[0].shape[2] == 3
    changes = [bool((a != b).any()) for a, b in pairwise(frames)]
    assert changes == [False, False, True, True, True, True, False, False, False, False]


def test_frames_can_be_drawn_again(frames):
    again = moving_frames()
    next(iter(again))
    said = len(again.picture.axes.texts)
    assert all((one == other).all() for one, other in zip(frames, again, strict=True))
    assert len(again.picture.axes.texts) == said


def test_a_moment_shows_dots_where_they_are_then():
    frames = moving_frames()
    frames.picture.show(0.5)
    (dots, rows), *_ = frames.picture._dots
    np.testing.assert_allclose(dots.get_offsets(), frames.picture.places[1, rows])
    np.testing.assert_allclose(
        frames.picture.arrows.U,
        (frames.picture.places[1] - frames.picture.places[0])[[group[0] for group in frames.picture._groups], 0],
    )


@pytest.mark.parametrize("most", [30, 3000])
def test_legend_and_key_are_those_of_the_still_picture(monkeypatch, most):
    monkeypatch.setattr(drift, "MOST_ARROWS", most)
    positions = np.random.default_rng(0).normal(size=(3, 40, 2))
    shown = Appearance(np.arange(40), np.repeat([f"class {code}" for code in range(8)], 5))
    film = drift_frames(positions, shown, "Title").picture.axes
    still = drift.draw_drift(positions, shown, "Title").axes[0]
    said = [sorted(text.get_text() for text in axes.texts if text.get_text()) for axes in (film, still)]
    moved = [[text.replace("at e₂", "now").replace("e₂", "now") for text in each] for each in said]
    assert sorted(moved[0]) == sorted(moved[1]) and sum(text.startswith("class ") for text in said[0]) == 16
    last = list(drift_frames(positions, shown, "Title", per_step=1))[-1]
    assert (last[:, int(last.shape[1] * 10.3 / 12.75) :] < 120).any()  # the key is not cut off


@pytest.mark.parametrize("most", [30, 3000])
def test_the_key_calls_what_moves_now(monkeypatch, most):
    monkeypatch.setattr(drift, "MOST_ARROWS", most)
    said = [text.get_text() for text in moving_frames().picture.axes.texts]
    assert any(text == "now" or text.startswith("mean move from e₀ to now") for text in said)
    assert not any("e₂" in text for text in said)


def test_of_thousands_all_dots_travel(monkeypatch):
    monkeypatch.setattr(drift, "MOST_ARROWS", 30)
    picture = moving_frames().picture
    ((dots, rows),) = picture._dots
    assert len(rows) == 40
    picture.show(1.0)
    np.testing.assert_allclose(dots.get_offsets(), picture.places[2, rows])


def test_a_gif_holds_every_frame(frames, tmp_path):
    told = []
    small = [frame[::4, ::4] for frame in frames[2:7]]
    write_motion(small, tmp_path / "drift.gif", fps=10, progress=lambda *report: told.append(report))
    with Image.open(tmp_path / "drift.gif") as written:
        assert written.n_frames == 5 and written.info["duration"] == 100 and written.info["loop"] == 0
        assert written.size == small[0].shape[1::-1]
        difference = np.asarray(written.convert("RGB"), int) - small[0]
        assert np.abs(difference).mean() < 6
    assert told == [("drawing frames", number, 5) for number in range(1, 6)]
    assert [path.name for path in tmp_path.iterdir()] == ["drift.gif"]


def test_a_video_holds_every_frame(frames, tmp_path):
    ffmpeg = pytest.importorskip("imageio_ffmpeg")
    small = [np.ascontiguousarray(frame[:200, :320]) for frame in frames]
    write_motion(iter(small), tmp_path / "drift.mp4", fps=10)
    read = [ffmpeg.get_ffmpeg_exe(), "-i", tmp_path / "drift.mp4", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    decoded = subprocess.run(read, capture_output=True, check=True)
    shown = np.frombuffer(decoded.stdout, np.uint8).reshape(-1, 200, 320, 3)
    assert len(shown) == len(small) and b"h264" in decoded.stderr and b"10 fps" in decoded.stderr
    assert np.abs(shown[0].astype(int) - small[0]).mean() < 6
    gc.collect()  # pipes left open would be a warning, and so an error


def test_without_the_extra_the_pip_line_is_named_and_nothing_is_left(frames, tmp_path, monkeypatch):
    real = builtins.__import__

    def missing(name, *rest, **options):
        if name == "imageio_ffmpeg":
            raise ImportError(name)
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingExtra, match=r"entourage\[video\]"):
        write_motion(frames, tmp_path / "drift.mp4")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ["mp4", "gif"])
def test_a_drawing_that_fails_leaves_nothing(frames, tmp_path, ending):
    def broken():
        yield frames[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_motion(broken(), tmp_path / f"drift.{ending}")
    assert list(tmp_path.iterdir()) == []


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"drift\.avi; wanted a name that ends in \.mp4 or \.gif"):
        write_motion([], tmp_path / "drift.avi")
