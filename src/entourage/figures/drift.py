"""Where items lie before refinement and where they go: a dot and an arrow for each, or a density and mean arrows.

Positions are those of `projection.lay_out` and `projection.follow`. Only nearness means anything in such a plane, so
there are no axes. The most frequent labels have a colour and a shape of their own and stand beside their items.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import AbstractPathEffect
from numpy.typing import ArrayLike

from entourage.errors import InputError
from entourage.figures.appearance import Appearance
from entourage.figures.free_space import FreeSpace
from entourage.figures.label_styles import NAMED, REST, THIN, styles_of
from entourage.figures.legend import Legend
from entourage.figures.sheet import NEUTRAL, Box, draw_frame, draw_picture, draw_text, write
from entourage.figures.style import SUBSCRIPTS
from entourage.figures.text import shorten, width_of
from entourage.values import FloatArray, IntArray

__all__ = ["MOST_ARROWS", "draw_drift"]

MOST_ARROWS = 3000
"""With more items than this, a density and mean arrows are drawn instead of a dot and an arrow for each."""

_STREAM, _TRAVELLER = "#1f6fb4", "#c4314b"  # mean arrows; dots on their way over a density
_WIDTH, _HEIGHT = 10.0, 7.4  # inches, of the plane
_MARGIN, _ABOVE, _BELOW = 0.15, 0.85, 0.5
_SHORTEST = 0.06  # inches; a shorter arrow would be a speck
_ACROSS = _WIDTH / 3  # inches; a longer arrow passes over groups it has nothing to do with, and is pale
_SOLID, _PALE = 0.85, 0.4
_COMPARED = 500  # items of a label at most, to find where most of them are
_LEADER = 1.6  # inches from an item to its picture at most: longer lines cross each other
_PICTURE, _TEXT = (0.46, 0.46), (1.45, 0.44)
_TRIED = 10  # places looked for in vain, for each thumbnail: on a full sheet each takes milliseconds
_CELL = 0.42  # inches between mean arrows
_FEWEST = 5  # items in the mean of an arrow


def draw_drift(
    positions: ArrayLike,
    appearance: Appearance,
    title: str,
    *,
    moving: ArrayLike | None = None,
    thumbnails: int = 24,
    note: str = "",
) -> Figure:
    """Draw items before and after refinement with an arrow for each move.

    Beyond MOST_ARROWS items a density of where they end, and arrows of mean moves. Moves too short to see have no
    arrow.

    Parameters
    ----------
    positions : array-like of shape (T + 1, N, 2)
        The place of each item after 0, 1, ..., T steps, see `projection.follow`.
    appearance : Appearance
        How the N items look.
    title : str
    moving : array-like of rows, optional
        Which items may have arrows; by default all.
    thumbnails : int, default 24
        How many pictures, or texts, to show of the items that went farthest, as far as there is space.
    note : str, optional
        What is written below the title, instead of how the positions are made.

    Returns
    -------
    matplotlib Figure
    """
    picture = DriftPicture(positions, appearance, title, moving=moving, thumbnails=thumbnails, note=note)
    picture.show(1.0)
    return picture.figure


class DriftPicture:
    """A drawing of the drift that can show any moment of it: `draw_drift` shows the end, motion.py all of it."""

    def __init__(
        self,
        positions: ArrayLike,
        appearance: Appearance,
        title: str,
        *,
        moving: ArrayLike | None = None,
        thumbnails: int = 24,
        note: str = "",
        travelling: bool = False,
    ) -> None:
        """Take the parameters of `draw_drift`; travelling: whether moments between e_0 and e_T will be shown.

        The legend then says "now" instead of e_T, and a density shows e_0, under dots that move.
        """
        positions = np.asarray(positions, float)
        if positions.ndim != 3 or positions.shape[1:] != (len(appearance), 2):
            raise InputError(
                f"positions have shape {positions.shape}; wanted (T + 1, {len(appearance)}, 2), one per step and item"
            )
        self.places = _on_paper(positions)  # (T + 1, N, 2) inches
        self.appearance = appearance
        self.moving = np.arange(len(appearance)) if moving is None else np.sort(np.asarray(moving, int))
        self.dense = len(appearance) > MOST_ARROWS
        self.travelling = travelling
        self.figure = Figure(figsize=(_WIDTH + 2 * _MARGIN, _HEIGHT + _ABOVE + _BELOW))
        self.axes = self._new_axes()
        self.styles = styles_of(appearance.labels, self.places[-1])
        self._dots: list[tuple[PathCollection, IntArray]] = []
        self._leaders: list[tuple[Line2D, int, FloatArray]] = []
        self._write_title(title, note)
        space = FreeSpace(_WIDTH, _HEIGHT)
        if self.dense:
            self._draw_density(space, 0 if travelling else -1)
        else:
            self._draw_dots(space)
        if self.dense and travelling:
            self._draw_travellers()
        self._draw_arrows(space)
        self._name_labels(space)
        self._draw_thumbnails(space, thumbnails)
        self._draw_legend()

    def show(self, moment: float) -> None:
        """Move everything to a moment from 0, which is e_0, to 1, which is e_T."""
        now = at_moment(self.places, moment)
        for dots, rows in self._dots:
            dots.set_offsets(now[rows])
        for line, row, anchor in self._leaders:
            line.set_data(*zip(now[row], anchor, strict=True))
        tails, heads = self._arrow_ends(now)
        self.arrows.set_UVC(*(heads - tails).T)

    @property
    def n_steps(self) -> int:
        """T, the number of steps."""
        return len(self.places) - 1

    # ---- the sheet -----------------------------------------------------------------------------------------------

    def _new_axes(self) -> Axes:
        width, height = self.figure.get_size_inches()
        axes = self.figure.add_axes((_MARGIN / width, _BELOW / height, _WIDTH / width, _HEIGHT / height))
        axes.set(xlim=(0, _WIDTH), ylim=(_HEIGHT, 0))  # down, as on the sheets of sheet.py
        axes.axis("off")
        return axes

    def _write_title(self, title: str, note: str) -> None:
        note = note or "t-SNE of e₀; then each item is fitted again to its similarities while all others stay"
        write(self.axes, 0.05, -0.58, shorten(title, _WIDTH * 0.88, 13), size=13, fontweight="bold")
        write(self.axes, 0.05, -0.26, shorten(note, _WIDTH, 9), size=9, color="0.4")

    # ---- items ---------------------------------------------------------------------------------------------------

    def _draw_dots(self, space: FreeSpace) -> None:
        size = float(np.clip(9000 / len(self.appearance), 7, 34))
        for rows, colour, shape, _ in self.styles:
            first, area = self.places[0, rows], size * (1.6 if shape in THIN else 1)
            x, y = first.T
            self.axes.scatter(x, y, s=0.45 * area, c=colour, marker=shape, alpha=0.35, linewidths=0, zorder=2)
            now = self.axes.scatter(x, y, s=area, c=colour, marker=shape, edgecolors="white", linewidths=0.3)
            now.set_zorder(4)
            self._dots.append((now, rows))
        space.add_dots(self.places[0])
        space.add_dots(self.places[-1])

    def _draw_density(self, space: FreeSpace, step: int) -> None:
        self._shaded = f"e{step % len(self.places)}".translate(SUBSCRIPTS)
        grid: dict[str, Any] = {"gridsize": (90, 58), "extent": (0, _WIDTH, 0, _HEIGHT), "mincnt": 1}
        self.hexagons = self.axes.hexbin(*self.places[step].T, **grid, bins="log", cmap="Greys", zorder=1)
        counts = self.hexagons.get_array()
        most = 2.0 if counts is None else max(2.0, float(counts.max()))
        self.hexagons.set_clim(0.4, most**2)  # pale enough for arrows to be seen on it
        space.add_dots(np.asarray(self.hexagons.get_offsets()))

    def _draw_travellers(self) -> None:
        rows = self.moving[np.linspace(0, len(self.moving) - 1, min(len(self.moving), MOST_ARROWS)).astype(int)]
        x, y = self.places[0, rows].T
        dots = self.axes.scatter(x, y, s=5, c=_TRAVELLER, alpha=0.6, linewidths=0, zorder=2)
        self._dots.append((dots, rows))

    # ---- arrows --------------------------------------------------------------------------------------------------

    def _draw_arrows(self, space: FreeSpace) -> None:
        self._groups = self._mean_groups() if self.dense else self._single_groups()
        self.arrow_scale = self._readable_scale() if self.dense else 1.0
        tails, heads = self._arrow_ends(self.places[-1])
        colours = np.full(len(self.appearance), REST, dtype=object)
        if not self.dense:
            for rows, colour, _, _ in self.styles:
                colours[rows] = colour
        far = (not self.dense) & (np.linalg.norm(heads - tails, axis=1) > _ACROSS)
        self._n_across = int(far.sum())
        chosen = [
            to_rgba(_STREAM if self.dense else colours[rows[0]], _PALE if pale else _SOLID)
            for rows, pale in zip(self._groups, far, strict=True)
        ]
        self.arrows = self.axes.quiver(
            *tails.T, *(heads - tails).T, color=chosen, angles="xy", scale_units="xy", scale=1, units="inches",
            width=0.016 if self.dense else 0.011, headwidth=4.5, headlength=5, headaxislength=4.2, minlength=0,
            zorder=3,
        )  # fmt: skip
        if not self.dense:
            space.add_lines(tails, heads)

    def _single_groups(self) -> list[IntArray]:
        lengths = np.linalg.norm(self.places[-1] - self.places[0], axis=1)
        return [np.array([row]) for row in self.moving if lengths[row] >= _SHORTEST]

    def _mean_groups(self) -> list[IntArray]:
        """Moving items by the cell of a grid that they start in; those of cells with very few have no arrow."""
        cells = (self.places[0, self.moving] // _CELL).astype(int) @ [1000, 1]
        order = np.argsort(cells, kind="stable")
        groups = np.split(self.moving[order], np.flatnonzero(np.diff(cells[order])) + 1) if len(order) else []
        moves = self.places[-1] - self.places[0]
        return [g for g in groups if len(g) >= _FEWEST and np.linalg.norm(moves[g].mean(axis=0)) >= _SHORTEST]

    def _readable_scale(self) -> float:
        """By how much mean arrows are shortened for hardly any to reach beyond the foot of the next."""
        moves = self.places[-1] - self.places[0]
        lengths = [np.linalg.norm(moves[rows].mean(axis=0)) for rows in self._groups]
        return min(1.0, _CELL / np.quantile(lengths, 0.95)) if lengths else 1.0

    def _arrow_ends(self, now: FloatArray) -> tuple[FloatArray, FloatArray]:
        ends = [(self.places[0, rows].mean(axis=0), now[rows].mean(axis=0)) for rows in self._groups]
        tails, heads = np.array(ends).reshape(-1, 2, 2).transpose(1, 0, 2)
        return tails, tails + self.arrow_scale * (heads - tails)

    # ---- names, pictures, legend ------------------------------------------------------------------------------------

    def _name_labels(self, space: FreeSpace) -> None:
        labels = self.appearance.labels
        if labels is None or (self.dense and len(np.unique(labels)) > NAMED):
            return  # the items of one class among thousands lie at no one place
        for rows, colour, _, name in self.styles:
            if name is None:
                continue
            text = shorten(name, 1.5, 8)
            size = (width_of(text, 8) * 1.12 + 0.04, 0.15)  # bold letters are wider
            place = space.place(size, _densest(self.places[-1, rows]), farthest=0.9, per_dot=0.06)
            if place is not None:
                written = write(
                    self.axes, place[0], place[1], text, size=8, ha="center", color=colour, fontweight="bold"
                )
                written.set_path_effects(_halo())

    def _draw_thumbnails(self, space: FreeSpace, most: int) -> None:
        kind = self.appearance.kind
        if kind == "ids" or most < 1:
            return
        size, shown = (_PICTURE, most) if kind == "pictures" else (_TEXT, min(most, 14))
        colours = {row: colour for rows, colour, _, _ in self.styles for row in rows}
        plain = self.dense or self.appearance.labels is None
        for row in self._farthest(most)[: _TRIED * most]:
            if not shown:
                break
            place = space.place(size, self.places[-1, row], farthest=_LEADER)
            if place is None:
                continue
            shown -= 1
            box = (place[0] - size[0] / 2, place[1] - size[1] / 2, *size)
            self._draw_item(row, box, NEUTRAL if plain else colours[row])

    def _farthest(self, most: int) -> list[int]:
        """Moving rows, those that went farthest first; few of one label, so that many are seen."""
        lengths = np.linalg.norm(self.places[-1] - self.places[0], axis=1)
        order = self.moving[np.argsort(-lengths[self.moving], kind="stable")]
        if self.appearance.labels is None:
            return [int(row) for row in order]
        of_each = max(2, -(-most // len(np.unique(self.appearance.labels))))
        seen: dict[Any, int] = {}
        chosen: list[int] = []
        for row in order:
            label = self.appearance.labels[row]
            seen[label] = seen.get(label, 0) + 1
            if seen[label] <= of_each:
                chosen.append(int(row))
        return chosen

    def _draw_item(self, row: int, box: Box, colour: str) -> None:
        """A picture or text in a frame, with a line to where its item is."""
        picture = self.appearance.thumbnail(row)
        if picture is None:
            draw_text(self.axes, self.appearance.text(row), box, size=7, clear=True)
        else:
            draw_picture(self.axes, np.asarray(picture), box)
        draw_frame(self.axes, box, None, edge=colour)
        x, y, width, height = box
        target = np.clip(self.places[-1, row], (x, y), (x + width, y + height))  # the nearest point of the frame
        (line,) = self.axes.plot(*zip(self.places[-1, row], target, strict=True), color="0.45", linewidth=0.6, zorder=2)
        self._leaders.append((line, row, target))

    def _draw_legend(self) -> None:
        """What the marks mean, in a line below the plane."""
        legend = Legend(self.axes, _HEIGHT + 0.24)
        last = "now" if self.travelling else f"e{self.n_steps}".translate(SUBSCRIPTS)
        if self.dense:
            legend.bar(self.hexagons, f"items around a place at {self._shaded}")
            scale = "" if self.arrow_scale == 1 else f", drawn at {100 * self.arrow_scale:.0f} % of its length"
            legend.arrow(_STREAM, f"mean move from e₀ to {last} of items that start around its foot{scale}")
            return
        legend.dot(NEUTRAL, 0.35, "an item at e₀, before")
        legend.dot(NEUTRAL, 1.0, last if self.travelling else f"at {last}")
        across = f"; pale: across the map, {self._n_across}" if self._n_across else ""
        legend.arrow(NEUTRAL, f"its move, if long enough to draw ({len(self._groups)} of {len(self.moving)}{across})")
        if self.styles[0][1] == REST:
            legend.dot(REST, 1.0, f"other labels ({self._n_other_labels()})")

    def _n_other_labels(self) -> int:
        return 0 if self.appearance.labels is None else len(np.unique(self.appearance.labels)) - NAMED


def at_moment(places: FloatArray, moment: float) -> FloatArray:
    """Interpolate places linearly between steps.

    Parameters
    ----------
    places : array of shape (T + 1, N, 2)
    moment : float
        From 0, which is e_0, to 1, which is e_T.

    Returns
    -------
    array of shape (N, 2)
    """
    steps = len(places) - 1
    step = min(int(moment * steps), max(steps - 1, 0))
    share = moment * steps - step
    return np.asarray(places[step] + share * (places[min(step + 1, steps)] - places[step]))


def _densest(places: FloatArray) -> FloatArray:
    """The one of places (M, 2) to which a third of them is nearest: the middle of scattered ones may be empty."""
    some = places[np.linspace(0, len(places) - 1, min(len(places), _COMPARED)).astype(int)]
    apart = np.linalg.norm(some[:, None] - some, axis=2)
    third = min(max(1, len(some) // 3), len(some) - 1)
    return np.asarray(some[np.sort(apart, axis=1)[:, third].argmin()])


def _on_paper(positions: FloatArray) -> FloatArray:
    """Positions turned until they are widest from left to right, and scaled to fill the plane, in inches."""
    spread = positions[0] - positions[0].mean(axis=0)
    wide = np.linalg.eigh(spread.T @ spread)[1][:, ::-1]  # the direction in which they vary most, and the other
    positions = positions @ (wide * np.sign(np.diag(wide) + 1e-12))  # turned by less than a half
    low, high = positions.min(axis=(0, 1)), positions.max(axis=(0, 1))
    size = np.array([_WIDTH, _HEIGHT]) - 0.5
    scale = (size / np.maximum(high - low, 1e-9)).min()
    return (positions - (low + high) / 2) * scale + np.array([_WIDTH, _HEIGHT]) / 2


def _halo() -> list[AbstractPathEffect]:
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=2.5, foreground="white")]
