"""Where items lie before refinement and where they go: a dot and an arrow for each, or, of thousands, mean arrows.

Positions are those of `projection.lay_out` and `projection.follow`. Only nearness means anything in such a plane, so
there are no axes. The most frequent labels have a colour and a shape of their own; a key beside the plane lists them,
and their names stand where most of their items are, with a line to one of them.
"""

from collections.abc import Mapping
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
from entourage.figures.label_styles import REST, THIN, styles_of
from entourage.figures.legend import KEY_WIDTH, Legend, draw_key, key_height
from entourage.figures.sheet import INK, NEUTRAL, Box, draw_frame, draw_picture, draw_text, write
from entourage.figures.style import SUBSCRIPTS
from entourage.figures.text import shorten, width_of, wrap
from entourage.values import FloatArray, IntArray

__all__ = ["MOST_ARROWS", "draw_drift"]

MOST_ARROWS = 3000
"""With more items than this, mean arrows are drawn instead of an arrow for each."""

_WIDTH, _HIGHEST, _LOWEST = 10.0, 7.4, 4.2  # inches, of the plane
_MARGIN, _BELOW = 0.15, 0.5
_TITLE, _NOTE = 0.5, 0.22  # inches, of the title and of each line of the note
_SHORTEST = 0.06  # inches; a shorter arrow would be a speck
_ACROSS = _WIDTH / 3  # inches; a longer arrow passes over groups it has nothing to do with, and is pale
_SOLID, _PALE = 0.85, 0.4
_COMPARED = 500  # items of a label at most, to find where most of them are
_LEADER = 1.6  # inches from an item to its picture at most: longer lines cross each other
_NAME_NEAR, _NAME_FAR = 0.9, 3.0  # inches from an item to its label; far only where there is no space near
_SPARSE = 1000  # items between which there is space for names
_SEEN = 6.0  # points², of a dot
_ATTACHED = 0.14  # inches; a name that is nearer needs no line
_PICTURE, _TEXT = (0.46, 0.46), (1.45, 0.44)  # inches; a short text takes less
_TRIED = 10  # places looked for in vain, for each thumbnail: on a full sheet each takes milliseconds
_WAY = "t-SNE of e₀; then each item is fitted again to its similarities while all others stay"
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
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
) -> Figure:
    """Draw items before and after refinement with an arrow for each move.

    Beyond MOST_ARROWS items, a dot where each ends and arrows of mean moves. Moves too short to see have no arrow.

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
        What is written below the title, in a line or more, instead of how the positions are made.
    sizes : dict of int, optional
        How many items each label has in all, where the N items are a part of them.
    seed : int, default 0
        Decides which of equally frequent labels are named.

    Returns
    -------
    matplotlib Figure
    """
    options: dict[str, Any] = {"moving": moving, "thumbnails": thumbnails, "note": note, "sizes": sizes, "seed": seed}
    picture = DriftPicture(positions, appearance, title, **options)
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
        sizes: Mapping[str, int] | None = None,
        seed: int = 0,
        travelling: bool = False,
    ) -> None:
        """Take the parameters of `draw_drift`; travelling: whether moments between e_0 and e_T will be shown.

        The legend then says "now" instead of e_T.
        """
        positions = np.asarray(positions, float)
        if positions.ndim != 3 or positions.shape[1:] != (len(appearance), 2):
            raise InputError(
                f"positions have shape {positions.shape}; wanted (T + 1, {len(appearance)}, 2), one per step and item"
            )
        self.appearance = appearance
        self.moving = np.arange(len(appearance)) if moving is None else np.sort(np.asarray(moving, int))
        self.dense = len(appearance) > MOST_ARROWS
        self.travelling = travelling
        self.styles = styles_of(appearance.labels, positions[-1], sizes, seed)
        self.places, self.height = _on_paper(positions, self._key_height())  # (T + 1, N, 2) inches
        notes = (note or _WAY).splitlines()
        self.figure, self.axes = self._new_sheet(_TITLE + _NOTE * len(notes))
        self._dots: list[tuple[PathCollection, IntArray]] = []
        self._leaders: list[tuple[Line2D, int, FloatArray]] = []
        self.title_height = -0.22 - _NOTE * len(notes)
        self._write_title(title, notes)
        space = FreeSpace(_WIDTH, self.height)
        self._draw_dots(space)
        self._draw_arrows(space)
        self._name_labels(space)
        self._draw_thumbnails(space, thumbnails)
        self._draw_legend()
        if appearance.labels is not None:
            draw_key(self.axes, _WIDTH + 0.15, self.styles, appearance.labels, sizes)

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

    def _key_height(self) -> float:
        return 0.0 if self.appearance.labels is None else key_height(len(self.styles))

    def _new_sheet(self, above: float) -> tuple[Figure, Axes]:
        """A figure in inches, with the plane at its lower left."""
        beside = 0.0 if self.appearance.labels is None else KEY_WIDTH
        width, height = _WIDTH + 2 * _MARGIN + beside, self.height + above + _BELOW
        figure = Figure(figsize=(width, height))
        axes = figure.add_axes((_MARGIN / width, _BELOW / height, _WIDTH / width, self.height / height))
        axes.set(xlim=(0, _WIDTH), ylim=(self.height, 0))  # down, as on the sheets of sheet.py
        axes.axis("off")
        return figure, axes

    def _write_title(self, title: str, notes: list[str]) -> None:
        write(self.axes, 0.05, self.title_height, shorten(title, _WIDTH * 0.88, 13), size=13, fontweight="bold")
        for number, line in enumerate(reversed(notes)):
            write(self.axes, 0.05, -0.12 - _NOTE * number, shorten(line, _WIDTH, 9), size=9, color="0.4")

    # ---- items ---------------------------------------------------------------------------------------------------

    def _draw_dots(self, space: FreeSpace) -> None:
        size = float(np.clip(9000 / len(self.appearance), 1.5, 34))
        for rows, colour, shape, name in self.styles:
            larger = max(size, _SEEN) if name else size  # whose shape can be seen
            first, area = self.places[0, rows], larger * (1.6 if shape in THIN else 1)
            x, y = first.T
            look: dict[str, Any] = {"c": colour, "marker": shape, "rasterized": self.dense}
            if not self.dense:
                self.axes.scatter(x, y, s=0.45 * area, alpha=0.35, linewidths=0, zorder=2, **look)
            now = self.axes.scatter(x, y, s=area, edgecolors="white", linewidths=0 if self.dense else 0.3, **look)
            now.set_zorder(4 if name or not self.dense else 3.5)  # of thousands, the others lie below
            self._dots.append((now, rows))
        space.add_dots(self.places[0])
        space.add_dots(self.places[-1])

    # ---- arrows --------------------------------------------------------------------------------------------------

    def _draw_arrows(self, space: FreeSpace) -> None:
        self._groups = self._mean_groups() if self.dense else self._single_groups()
        self.arrow_scale = self._readable_scale() if self.dense else 1.0
        tails, heads = self._arrow_ends(self.places[-1])
        colours = np.full(len(self.appearance), REST, dtype=object)
        for rows, colour, _, _ in self.styles:
            colours[rows] = colour
        far = (not self.dense) & (np.linalg.norm(heads - tails, axis=1) > _ACROSS)
        self._n_across = int(far.sum())
        chosen = [
            to_rgba(INK if self.dense else colours[rows[0]], _PALE if pale else _SOLID)
            for rows, pale in zip(self._groups, far, strict=True)
        ]
        self.arrows = self.axes.quiver(
            *tails.T, *(heads - tails).T, color=chosen, angles="xy", scale_units="xy", scale=1, units="inches",
            width=0.016 if self.dense else 0.011, headwidth=4.5, headlength=5, headaxislength=4.2, minlength=0,
            zorder=4.5 if self.dense else 3,
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
        per_dot = 0.06 * min(1.0, _SPARSE / len(self.appearance))  # of thousands, a name covers some wherever it is
        for rows, colour, _, name in self.styles:
            if name is None:
                continue
            text, row = shorten(name, 1.5, 8), int(rows[_densest(self.places[-1, rows])])
            size = (width_of(text, 8) * 1.12 + 0.04, 0.15)  # bold letters are wider
            for farthest in (_NAME_NEAR, _NAME_FAR):
                place = space.place(size, self.places[-1, row], farthest=farthest, per_dot=per_dot)
                if place is not None:
                    self._write_name(text, colour, row, place, size)
                    break

    def _write_name(
        self, text: str, colour: str, row: int, place: tuple[float, float], size: tuple[float, float]
    ) -> None:
        """The name of a label at a place, with a line to one of its items if that is not beside it."""
        written = write(self.axes, *place, text, size=8, ha="center", color=colour, fontweight="bold", zorder=6)
        written.set_path_effects(_halo())
        half = np.array(size) / 2
        nearest = np.clip(self.places[-1, row], place - half, place + half)
        if self.travelling or np.linalg.norm(nearest - self.places[-1, row]) > _ATTACHED:
            self._draw_leader(row, nearest, color=colour, linewidth=1.0, linestyle=":", zorder=4.8)

    def _draw_thumbnails(self, space: FreeSpace, most: int) -> None:
        kind = self.appearance.kind
        if kind == "ids" or most < 1:
            return
        shown = most if kind == "pictures" else min(most, 14)
        colours = {row: colour for rows, colour, _, _ in self.styles for row in rows}
        plain = self.appearance.labels is None
        for row in self._farthest(most)[: _TRIED * most]:
            if not shown:
                break
            size = _PICTURE if kind == "pictures" else _text_size(self.appearance.text(row))
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
            draw_text(self.axes, self.appearance.text(row), box, size=7)
        else:
            draw_picture(self.axes, np.asarray(picture), box)
        draw_frame(self.axes, box, None, edge=colour)
        x, y, width, height = box
        target = np.clip(self.places[-1, row], (x, y), (x + width, y + height))  # the nearest point of the frame
        self._draw_leader(row, target, color="0.45", linewidth=0.6, zorder=2)

    def _draw_leader(self, row: int, target: FloatArray, **look: Any) -> None:
        """A line from an item, which it follows, to what is said of it."""
        ends = zip(self.places[-1, row], target, strict=True)
        (line,) = self.axes.plot(*ends, **look)
        self._leaders.append((line, row, target))

    def _draw_legend(self) -> None:
        """What the marks mean, in a line below the plane."""
        legend = Legend(self.axes, self.height + 0.24)
        last = "now" if self.travelling else f"e{self.n_steps}".translate(SUBSCRIPTS)
        if self.dense:
            legend.dot(NEUTRAL, 1.0, f"an item {'' if self.travelling else 'at '}{last}")
            scale = "" if self.arrow_scale == 1 else f", drawn at {100 * self.arrow_scale:.0f} % of its length"
            legend.arrow(INK, f"mean move from e₀ to {last} of items that start around its foot{scale}")
            return
        legend.dot(NEUTRAL, 0.35, "an item at e₀, before")
        legend.dot(NEUTRAL, 1.0, last if self.travelling else f"at {last}")
        across = f"; pale: across the map, {self._n_across}" if self._n_across else ""
        legend.arrow(NEUTRAL, f"its move, if long enough to draw ({len(self._groups)} of {len(self.moving)}{across})")


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


def _densest(places: FloatArray) -> int:
    """Which of places (M, 2) a third of them is nearest to: the middle of scattered ones may be empty."""
    some = np.linspace(0, len(places) - 1, min(len(places), _COMPARED)).astype(int)
    apart = np.linalg.norm(places[some][:, None] - places[some], axis=2)
    third = min(max(1, len(some) // 3), len(some) - 1)
    return int(some[np.sort(apart, axis=1)[:, third].argmin()])


def _on_paper(positions: FloatArray, lowest: float) -> tuple[FloatArray, float]:
    """Positions turned until they are widest from left to right, in inches, and the height of the plane they fill."""
    spread = positions[0] - positions[0].mean(axis=0)
    wide = np.linalg.eigh(spread.T @ spread)[1][:, ::-1]  # the direction in which they vary most, and the other
    positions = positions @ (wide * np.sign(np.diag(wide) + 1e-12))  # turned by less than a half
    low, high = positions.min(axis=(0, 1)), positions.max(axis=(0, 1))
    extent = np.maximum(high - low, 1e-9)
    scale = float(((np.array([_WIDTH, _HIGHEST]) - 0.5) / extent).min())
    height = float(np.clip(scale * extent[1] + 1.0, max(_LOWEST, lowest), _HIGHEST))
    return (positions - (low + high) / 2) * scale + np.array([_WIDTH, height]) / 2, height


def _text_size(text: str) -> tuple[float, float]:
    """Width and height of the box that a text needs, in inches."""
    lines = wrap(text, _TEXT[0] - 0.12, 3, 7)
    return min(_TEXT[0], max(width_of(line, 7) for line in lines or [""]) + 0.14), min(
        _TEXT[1], 0.09 + 0.12 * len(lines)
    )


def _halo() -> list[AbstractPathEffect]:
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=2.5, foreground="white")]
