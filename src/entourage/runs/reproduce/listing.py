"""All tables and figures of the papers in a list."""

import json

from entourage.runs.reproduce.tables import papers, tables

__all__ = ["list_tables", "listed"]


def list_tables() -> str:
    """A line for each table and figure, by paper."""
    lines = []
    width = max(map(len, tables()))
    place = max(len(table.place) for table in tables().values())
    for name, paper in papers().items():
        lines += ["", f"{paper.title} ({paper.authors})"]
        lines += [
            f"  {table.id:{width}}  {table.place:{place}}  {table.shows} [{', '.join(table.datasets)}]"
            for table in tables().values()
            if table.paper == name
        ]
    lines += ["", "entourage reproduce TABLE --root DATA makes one as printed; --small, or --quick, on a small set."]
    return "\n".join(lines[1:])


def listed() -> str:
    """The same as JSON."""
    return json.dumps(
        [
            {
                "table": table.id,
                "paper": papers()[table.paper].title,
                "place": table.place,
                "page": table.page,
                "shows": table.shows,
                "datasets": list(table.datasets),
                "rows": [row.name for row in table.made],
                "also": list(table.aliases),
            }
            for table in tables().values()
        ],
        indent=2,
    )
