"""How scores change from step to step, relative to the unrefined embeddings (Fig. 3 of Attend to Context)."""

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from entourage.figures.style import STYLES, SUBSCRIPTS, head, tidy

__all__ = ["draw_steps"]


def draw_steps(scores: dict[str, list[float]], title: str, note: str = "", *, ends: bool = True) -> Figure:
    """Draw how much each metric has gained after every step, in points.

    Parameters
    ----------
    scores : dict of lists of T + 1 floats
        scores[name][t] is the score of the embeddings after t steps, a fraction.
    title : str
    note : str, optional
        What is written below the axis.
    ends : bool, default True
        Whether the legend says the first and the last score.

    Returns
    -------
    matplotlib Figure
    """
    figure = Figure(figsize=(7.5, 4.6), layout="constrained")
    head(figure, title)
    axes = figure.add_subplot()
    for (name, values), (colour, line, marker) in zip(scores.items(), STYLES, strict=False):
        gains = [100 * (value - values[0]) for value in values]
        label = f"{name}: {100 * values[0]:.1f} → {100 * values[-1]:.1f} %" if ends else name
        axes.plot(range(len(gains)), gains, color=colour, linestyle=line, marker=marker, linewidth=2, label=label)
    axes.axhline(0, color="0.6", linewidth=1, zorder=0)
    axes.set_xlabel(f"after t steps (e₀: before){chr(10) + note if note else ''}")
    axes.set_ylabel("points gained over e₀")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda t, _: f"e{int(t)}".translate(SUBSCRIPTS)))
    tidy(axes)
    axes.legend(frameon=False)
    return figure
