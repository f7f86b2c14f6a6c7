"""The numbered scripts of examples/ run, as notebooks, and print what lies beside them."""

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SPEC = importlib.util.spec_from_file_location("examples_make", ROOT / "examples" / "make.py")
make = importlib.util.module_from_spec(SPEC)
sys.modules[SPEC.name] = make  # dataclasses look their module up
SPEC.loader.exec_module(make)

SCRIPTS = make.scripts()
QUICK = {"01_five_minutes", "02_without_labels", "05_changing_gallery"}  # as they are, within seconds
ONE_THREAD = {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
SMALL = {"CLASSES": "16", "EPOCHS": "1", "EVERY": "4", "ITEMS": "4000"} | ONE_THREAD
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def printed(script: Path) -> str:
    return script.with_suffix(".txt").read_text(encoding="utf-8")


def words(text: str) -> list[str]:
    """The lines without their numbers and the width these take."""
    return [" ".join(NUMBER.sub("#", line).split()) for line in text.splitlines()]


def figures(text: str) -> list[float]:
    return [float(number.replace(",", "")) for number in NUMBER.findall(text)]


def test_there_are_seven_numbered_scripts():
    assert [script.name[:2] for script in SCRIPTS] == [f"{number:02}" for number in range(1, 8)]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_text_notebook_and_page_are_made_of_the_script_as_it_is(script):
    cells = make.cells_of(script.read_text(encoding="utf-8"))
    kept = make.printed_before(script, cells)
    assert kept is not None, "its code has changed: run `make examples`"
    assert "".join(kept).strip(), "an example prints what it found"
    for path, text in make.files_of(script, cells, kept).items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is out of date: run `make examples`"


def test_the_notebooks_run_in_a_kernel(tmp_path, monkeypatch):
    """One kernel for all of them, emptied in between: starting it takes longer than most of them."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    for name, value in SMALL.items():
        monkeypatch.setenv(name, value)
    together, marks = nbformat.v4.new_notebook(), []
    for script in SCRIPTS:
        cells = json.loads(script.with_suffix(".ipynb").read_text(encoding="utf-8"))["cells"]
        together.cells += [nbformat.v4.new_code_cell("%reset -f")]
        together.cells += [nbformat.v4.new_code_cell("".join(cell["source"])) for cell in cells if "outputs" in cell]
        marks.append(len(together.cells))
    nbclient.NotebookClient(together, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    for script, begin, end in zip(SCRIPTS, [0, *marks], marks, strict=False):
        outputs = [output for cell in together.cells[begin:end] for output in cell["outputs"]]
        shown = "".join(output["text"] for output in outputs if output.get("name") == "stdout")
        assert words(shown) == words(printed(script)), script.name
        if script.stem in QUICK:  # not made small; processors round differently
            assert figures(shown) == pytest.approx(figures(printed(script)), abs=1.0)


def test_a_script_is_cut_at_its_marks():
    cells = make.cells_of("# %% [markdown]\n# # Title\n#\n# Prose.\n\n# %%\nx = 1\nprint(x)\n")
    assert [cell.text for cell in cells] == ["# Title\n\nProse.", "x = 1\nprint(x)"]
    assert make.run(cells) == ["", "1\n"]
    assert "```python\nx = 1\nprint(x)\n```\n\n```text\n1\n```" in make.page("a", cells, ["", "1\n"])
