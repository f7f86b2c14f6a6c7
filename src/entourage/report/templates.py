"""Templates that turn values into HTML, with everything escaped that they do not write themselves.

templates/blocks.html has a macro for each kind of block, templates/page.html is the whole document. No value is ever
marked as safe, so that labels, ids and texts of any content reach a page as text.
"""

from functools import cache

from entourage.errors import MissingExtra
from entourage.report import wording

try:
    from jinja2 import Environment, PackageLoader, StrictUndefined
except ModuleNotFoundError as error:
    raise MissingExtra("figures", "a report") from error

__all__ = ["Block", "templates"]


class Block:
    """A part of a page: a value that blocks.html has a macro for, named like the class in lower case."""

    def html(self) -> str:
        """The block as HTML; what it holds is escaped."""
        macros = templates().get_template("blocks.html").module
        return getattr(macros, type(self).__name__.lower())(self)


@cache
def templates() -> Environment:
    """The templates beside this module, with the filters they use."""
    found = Environment(
        loader=PackageLoader("entourage.report"),
        autoescape=True,
        undefined=StrictUndefined,  # a misspelt name is an error, not a gap on the page
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {name: getattr(wording, name) for name in wording.__all__}
    return found
