"""Pictures: functions that take values and return a matplotlib Figure; `save` writes it whole or not at all.

Colours tell right from wrong, and so do a tick and a cross, for readers who do not see the colours.
"""

from entourage.store import whole_file

__all__ = ["save"]


def save(figure, path) -> None:
    """Write a figure as .png, .pdf or .svg, by the path's ending."""
    with whole_file(path) as temporary:
        figure.savefig(temporary, dpi=150)
