"""The documentation runs: every python and bash block of README and docs/ is executed, in order, file by file."""

import re
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from tests.test_layers import LAYERS
from typer.testing import CliRunner

import entourage
from entourage.cli import app

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Those of docs/tutorials are made of examples/, which tests/test_examples.py runs.
BY_HAND = [page for page in PAGES if page.parent.name != "tutorials"]


@pytest.fixture
def folder_of_a_user(tmp_path, monkeypatch):
    """The files the documentation speaks of, in small."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(20), 10)
    vectors = (rng.normal(size=(20, 16))[labels] + rng.normal(size=(200, 16))).astype(np.float32)
    monkeypatch.chdir(tmp_path)
    np.save("vectors.npy", vectors)
    np.save("labels.npy", labels)
    seen, gallery, queries = (
        labels < 10,
        (labels >= 10) & (np.arange(200) % 2 == 0),
        (labels >= 10) & (np.arange(200) % 2),
    )
    pq.write_table(pa.table({"vector": list(vectors[seen]), "label": labels[seen]}), "train.parquet")
    np.save("gallery.npy", vectors[gallery])
    np.save("queries.npy", vectors[queries == 1])
    Path("gallery.txt").write_text("\n".join(map(str, labels[gallery])) + "\n")
    Path("queries.csv").write_text("label\n" + "\n".join(map(str, labels[queries == 1])) + "\n")
    for number, colour in enumerate(rng.integers(0, 255, (12, 3))):
        Path("photos", f"class {number:02}").mkdir(parents=True)
        for shot in range(4):
            noisy = np.clip(colour + rng.normal(0, 20, (16, 16, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(noisy).save(f"photos/class {number:02}/{shot}.png")


def blocks(page: Path) -> list[tuple[str, str]]:
    return re.findall(r"^```(python|bash)\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", BY_HAND, ids=lambda page: page.name)
def test_blocks_run(page, folder_of_a_user):
    without = set()
    for language, source in blocks(page):
        if language == "python":
            try:
                exec(compile(source, f"{page.name} block", "exec"), {})
            except ModuleNotFoundError as error:
                without.add(str(error.name))
            continue
        for line in source.splitlines():
            program, *arguments = shlex.split(line, comments=True) or [None]
            if program == "entourage" and arguments[0] != "demo":  # the demo has tests of its own
                outcome = CliRunner().invoke(app, arguments)
                assert outcome.exit_code == 0, f"{line}\n{outcome.stderr}"
    if without:
        pytest.skip(f"not all of {page.name} was run: {', '.join(sorted(without))} is not installed")


def test_examples_of_the_ecosystem_are_short():
    sources = [source for language, source in blocks(ROOT / "docs" / "ecosystem.md") if language == "python"]
    assert len(sources) >= 13 and max(source.count("\n") for source in sources) <= 15


def test_the_readme_has_something_to_run():
    languages = [language for language, _ in blocks(ROOT / "README.md")]
    assert {"python", "bash"} <= set(languages)


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", page.read_text(encoding="utf-8")):
            there = page.parent / target if target else page
            assert there.exists(), f"{page.name} links to {target}"
            assert not anchor or anchor in anchors(there), f"{page.name} links to {target}#{anchor}"


def anchors(page: Path) -> set[str]:
    """The names that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.*)", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_make_targets_named_in_the_readme_exist():
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"make (\w+)", (ROOT / "README.md").read_text())) <= targets


# ---- the map of the code -----------------------------------------------------------------------------------------

PACKAGE = Path(entourage.__file__).parent


def mapped(page: str) -> set[str]:
    """The modules and packages that the tree of docs/architecture.md names, as paths in the package.

    A line that begins with a package, `name/`, opens it: at the first level a room, at the second a package in it. All
    further names of modules belong to what is open; lines that begin further in go on with the line before.
    """
    tree = page.partition("    src/entourage/\n")[2].partition("\n    tests/")[0]
    found, room, inner = set(), "", ""
    for line in tree.splitlines():
        depth, first = len(line) - len(line.lstrip()), (line.split() or [""])[0]
        if depth <= 8:
            inner = first if depth == 8 and first.endswith("/") else ""
        if depth == 6:
            room = first if first.endswith("/") else ""
        found |= {name for name in (room, room + inner) if name}
        found |= {room + inner + name for name in re.findall(r"(?<![\w/])\w+\.py\b", line)}
    return found


def test_the_map_names_every_room_and_module_and_nothing_else():
    named = mapped((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))
    modules = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")}
    packages = {f"{Path(name).parent.as_posix()}/" for name in modules if name.endswith("/__init__.py")}
    wanted = {name for name in modules if not name.endswith("/__init__.py")} | packages
    assert sorted(wanted - named) == [], "not on the map"
    assert sorted(name for name in named - wanted if not (PACKAGE / name).is_dir()) == [], "on the map alone"


def test_modules_named_on_the_page_of_the_map_exist():
    named = re.findall(r"`((?:\w+/)+(?:\w+\.py)?|\w+\.py)`", (ROOT / "docs" / "architecture.md").read_text("utf-8"))
    assert len(named) > 20
    assert [name for name in named if not (PACKAGE / name).exists() and not (ROOT / name).exists()] == []


def test_the_map_has_the_layers_that_are_checked():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    block = page.partition("## Which layer may import which")[2].partition("\n- ")[0]
    layers = [set(line.strip().split(", ")) for line in block.splitlines() if line.startswith("    ")]
    assert layers == LAYERS


def test_the_map_is_read_as_it_is_meant():
    page = """
    src/entourage/
      top.py     a
      room/      b
        one.py     c; two.py: d
        inner/     e: three.py,
                   four.py
        five.py    f

    tests/       g.py
"""
    inner = {"room/inner/", "room/inner/three.py", "room/inner/four.py"}
    assert mapped(page) == {"top.py", "room/", "room/one.py", "room/two.py", "room/five.py"} | inner
