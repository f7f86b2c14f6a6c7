"""Which column of a file is which, and how a .csv is read.

A column has a name of ours (`id`, `label`, `path`) or one that is usual elsewhere (`sku`, `category`, `filename`); ours
wins where there are both. Any other is named by the user. Capitals do not matter.

The cells of a .csv are separated by commas, semicolons or tabs, whichever its header shows.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from entourage.errors import FileError, InputError, few
from entourage.stores.reading import readable

__all__ = ["ID", "LABEL", "PATH", "SPLIT", "TEXT", "Column", "Table", "named_column", "read_table", "separator_of"]

_SEPARATORS = ",;\t"


@dataclass(frozen=True)
class Column:
    """What a column holds, and the names it is known by, in lower case."""

    holds: str
    """Its content, in the plural."""
    ours: tuple[str, ...]
    """Names that say it for certain."""
    usual: tuple[str, ...] = ()
    """Names that others use, which may mean something else."""
    option: str = ""
    """The option of the command line that names the column, if there is one."""

    def found_in(self, names: Iterable[str]) -> str | None:
        """Find the column by its name.

        Parameters
        ----------
        names : iterable of str
            The columns of a file.

        Returns
        -------
        str or None
            Its name as the file writes it. Two that could be meant are an error.
        """
        names = list(names)
        for known in (self.ours, self.usual):
            found = [name for name in names if name.strip().lower() in known]
            if len(found) > 1:
                fix = f"choose one with {self.option}" if self.option else "rename the other"
                raise InputError(
                    f"there are columns called `{found[0]}` and `{found[1]}`, and either may hold the {self.holds}; "
                    f"wanted only one: {fix}"
                )
            if found:
                return found[0]
        return None

    def is_certain(self, name: str) -> bool:
        """Whether a column of this name is surely meant, or only usual for it."""
        return name.strip().lower() in self.ours

    @property
    def wanted(self) -> str:
        """Some of the names it is known by, for a message."""
        others = [f"`{name}`" for name in self.usual[:3]] + ["..."] * (len(self.usual) > 3)
        return f"one called `{self.ours[-1]}`" + (f" (or {', '.join(others)})" if others else "")


ID = Column("ids", ("ids", "id"), ("sku", "item_id", "product_id", "key"), "--id-column")
LABEL = Column("labels", ("labels", "label"), ("class", "category", "target"), "--label-column")
PATH = Column(
    "paths",
    ("path",),
    ("file", "filename", "file_name", "filepath", "file_path", "image", "image_path"),
    "--path-column",
)
SPLIT = Column("splits", ("split",), ("labels", "label"))
TEXT = Column("texts", ("texts", "text"))


def named_column(names: Iterable[str], given: str) -> str | None:
    """Find the column that a user names: by its name as it is written, else without regard to capitals."""
    names = list(names)
    if given in names:
        return given
    return next((name for name in names if name.strip().lower() == given.strip().lower()), None)


@dataclass(frozen=True)
class Table:
    """The rows of a .csv, its header among them; cells are stripped of spaces."""

    path: Path
    rows: Sequence[list[str]]
    """The header and every line up to the last that is not blank."""

    @property
    def header(self) -> list[str]:
        """The cells of the first line."""
        return self.rows[0] if self.rows else []

    def find(self, column: Column, given: str | None = None) -> str | None:
        """The name of a column in this table: the given one, which must be there, or one that is recognised."""
        if given is None:
            return column.found_in(self.header)
        found = named_column(self.header, given)
        if found is None:
            raise FileError(
                f"{self.path} has no column `{given}`; its columns are {few(self.header, 'columns')}: "
                f"name one of them with {column.option}"
            )
        return found

    def cells(self, name: str) -> list[str]:
        """The cells of a column below the header; those of a line that is too short are empty."""
        place = self.header.index(name)
        return [row[place] if place < len(row) else "" for row in self.rows[1:]]

    def filled(self, name: str) -> list[str]:
        """The cells of a column, none of which may be empty."""
        cells = self.cells(name)
        if "" in cells:
            raise self.bad_cell(cells.index(""), name, "empty", "a value on every line")
        return cells

    def bad_cell(self, row: int, name: str, seen: str, wanted: str) -> FileError:
        """What is wrong with a cell; the row is counted from 0, below the header."""
        return FileError(f"line {row + 2} of {self.path} has {name} {seen}; wanted {wanted}: correct it")


def read_table(path: Path, columns: Iterable[Column], given: Iterable[str | None] = ()) -> Table:
    """Read a .csv.

    Parameters
    ----------
    path : Path
        A file in UTF-8, with or without a byte order mark.
    columns : iterable of Column
        What is looked for: how the header is separated is seen by their names.
    given : iterable of str or None
        Further names to look for.

    Returns
    -------
    Table
        Its rows, the first of which may be a header.
    """
    with readable(path):
        text = _text(path)
        rows = _cells(path, text, separator_of(text, columns, given))
    last = max((number for number, row in enumerate(rows, start=1) if any(row)), default=0)
    return Table(path, rows[:last])


def _text(path: Path) -> str:
    with path.open(encoding="utf-8-sig", newline="") as file:  # line ends within quotes stay as they are
        return file.read()


def separator_of(text: str, columns: Iterable[Column], given: Iterable[str | None] = ()) -> str:
    """The first mark that makes known names of the header; a comma where none does, as in a file without a header."""
    known = {name for column in columns for name in (*column.ours, *column.usual)}
    known |= {name.strip().lower() for name in given if name is not None}
    line = text.partition("\n")[0]
    for mark in _SEPARATORS:
        if known & {cell.strip().lower() for row in csv.reader([line], delimiter=mark) for cell in row}:
            return mark
    return ","


def _cells(path: Path, text: str, separator: str) -> list[list[str]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        return [[cell.strip() for cell in row] for row in reader]
    except csv.Error as error:
        raise FileError(
            f"line {reader.line_num} of {path} cannot be read ({error}); check the quotes around its cells"
        ) from error
