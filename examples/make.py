"""Run the numbered scripts and write what they print, a notebook and a page of the documentation for each.

    python examples/make.py          # those whose code has changed
    python examples/make.py 02 05    # these, anew

A script is cut into cells at lines that begin with `# %%`; cells of `# %% [markdown]` are prose. It leaves
01_name.txt (what it printed) and 01_name.ipynb beside it, and docs/tutorials/01_name.md.
"""

import io
import json
import os
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGES = HERE.parent / "docs" / "tutorials"


@dataclass(frozen=True)
class Cell:
    """A part of a script: prose or code."""

    is_prose: bool
    text: str


def scripts() -> list[Path]:
    """The numbered scripts, in order."""
    return sorted(HERE.glob("[0-9][0-9]_*.py"))


def cells_of(source: str) -> list[Cell]:
    """Cut a script into cells.

    >>> cells_of("# %% [markdown]\\n# Prose.\\n\\n# %%\\nprint(1)\\n")
    [Cell(is_prose=True, text='Prose.'), Cell(is_prose=False, text='print(1)')]
    """
    cells = []
    for part in source.split("# %%")[1:]:
        head, _, body = part.partition("\n")
        is_prose = head.strip() == "[markdown]"
        lines = [line.removeprefix("#").removeprefix(" ") if is_prose else line for line in body.splitlines()]
        cells.append(Cell(is_prose, "\n".join(lines).strip("\n")))
    return cells


def run(cells: list[Cell]) -> list[str]:
    """What each cell prints, all in one namespace; prose prints nothing."""
    folder, names, printed = Path.cwd(), {"__name__": "__main__"}, []
    try:
        for cell in cells:
            with redirect_stdout(io.StringIO()) as out:
                if not cell.is_prose:
                    exec(compile(cell.text, "example", "exec"), names)
            printed.append(out.getvalue())
    finally:
        os.chdir(folder)  # some work in a folder of their own
    return printed


def notebook(cells: list[Cell], printed: list[str]) -> dict[str, Any]:
    """The cells as a notebook, with what they printed."""
    parts = []
    for number, (cell, text) in enumerate(zip(cells, printed, strict=True)):
        part = {"id": f"cell-{number}", "metadata": {}, "source": cell.text.splitlines(keepends=True)}
        if cell.is_prose:
            parts.append({"cell_type": "markdown", **part})
            continue
        outputs = [{"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}] if text else []
        count = 1 + sum(each["cell_type"] == "code" for each in parts)
        parts.append({"cell_type": "code", "execution_count": count, **part, "outputs": outputs})
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return {"cells": parts, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}


def page(name: str, cells: list[Cell], printed: list[str]) -> str:
    """The cells as a page of the documentation: prose, code, and what it printed."""
    parts = []
    for cell, text in zip(cells, printed, strict=True):
        parts.append(cell.text if cell.is_prose else f"```python\n{cell.text}\n```")
        if text:
            parts.append(f"```text\n{text.rstrip()}\n```")
    source = f"The script is [`examples/{name}.py`](../../examples/{name}.py); beside it lies the same as a notebook."
    return "\n\n".join([*parts, f"*{source}*"]) + "\n"


def printed_before(script: Path, cells: list[Cell]) -> list[str] | None:
    """What a script printed when its notebook was made; None if its code has changed since."""
    kept = script.with_suffix(".ipynb")
    if not kept.exists():
        return None
    before = json.loads(kept.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in before if cell["cell_type"] == "code"]
    if code != [cell.text for cell in cells if not cell.is_prose]:
        return None
    outputs = (cell["outputs"] for cell in before if "outputs" in cell)
    texts = ("".join(output[0]["text"]) if output else "" for output in outputs)
    return ["" if cell.is_prose else next(texts) for cell in cells]


def files_of(script: Path, cells: list[Cell], printed: list[str]) -> dict[Path, str]:
    """Everything that is made of a script."""
    shown = json.dumps(notebook(cells, printed), indent=1, ensure_ascii=False) + "\n"
    return {
        script.with_suffix(".txt"): "".join(printed),
        script.with_suffix(".ipynb"): shown,
        PAGES / f"{script.stem}.md": page(script.stem, cells, printed),
    }


def main(wanted: list[str]) -> None:
    for script in scripts():
        if wanted and script.stem[:2] not in wanted:
            continue
        cells = cells_of(script.read_text(encoding="utf-8"))
        printed = None if wanted else printed_before(script, cells)
        if printed is None:
            print(f"running {script.name}", flush=True)
            printed = run(cells)
        for path, text in files_of(script, cells, printed).items():
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
