"""Tables for terminals: none is wider than the terminal, and nothing of them is lost."""

from rich.table import Table

from entourage.comparison.tables import fitted, unfolded


def table(columns: int) -> Table:
    wide = Table("gallery", "method", box=None, padding=(0, 2, 0, 0))
    for number in range(columns):
        wide.add_column(f"metric {number}, %", justify="right")
    for row in range(3):
        wide.add_row("served", f"method {row}", *(f"{100 * row + number}.00" for number in range(columns)))
    return wide


def test_a_table_that_fits_is_left_whole():
    assert fitted(table(3), 80) == unfolded(table(3)) == fitted(table(3), None)
    assert len(unfolded(table(30)).splitlines()) == 4 and fitted(table(30), None) == unfolded(table(30))
    assert fitted("a line that is no table", 5) == "a line that is no table"


def test_a_wide_table_is_cut_into_parts_that_fit():
    parts = fitted(table(13), 80).split("\n\n")
    assert len(parts) == 4 and max(len(line) for part in parts for line in part.splitlines()) <= 80
    for part in parts:
        lines = part.splitlines()
        assert [line.split()[:3] for line in lines[1:]] == [["served", "method", str(row)] for row in range(3)]
    cells = [[cell for part in parts for cell in part.splitlines()[1 + row].split()[3:]] for row in range(3)]
    assert cells == [[f"{100 * row + number}.00" for number in range(13)] for row in range(3)]
    assert len(fitted(table(2), 5).split("\n\n")) == 2  # a column at least, however narrow the terminal
