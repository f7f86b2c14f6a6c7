"""The documentation runs: every python and bash block of README and docs/ is executed, in order, file by file."""

import re
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from typer.testing import CliRunner

from entourage.cli import app

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_run(page, folder_of_a_user):
    for language, source in blocks(page):
        if language == "python":
            exec(compile(source, f"{page.name} block", "exec"), {})
            continue
        for line in source.splitlines():
            program, *arguments = shlex.split(line, comments=True) or [None]
            if program == "entourage" and arguments[0] != "demo":  # the demo has tests of its own
                outcome = CliRunner().invoke(app, arguments)
                assert outcome.exit_code == 0, f"{line}\n{outcome.stderr}"


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
