"""The README as a package index shows it: its pictures and links start from the repository, if that has an address."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"\]\(([^)\s]+)\)")


def description(folder: Path) -> str:
    """What the metadata of a wheel of the project in this folder would say."""
    build = "import setuptools.build_meta as b; print(b.prepare_metadata_for_build_wheel('made'))"
    (folder / "made").mkdir()
    told = subprocess.run([sys.executable, "-c", build], cwd=folder, capture_output=True, text=True, check=True)
    metadata = (folder / "made" / told.stdout.split()[-1] / "METADATA").read_text(encoding="utf-8")
    return metadata.partition("\n\n")[2]


@pytest.mark.parametrize("source", [None, "https://example.org/them/entourage/"])
def test_links_of_the_readme_are_absolute_where_the_project_has_an_address(tmp_path, source):
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "src/entourage").mkdir(parents=True)
    shutil.copy(ROOT / "src/entourage/__init__.py", tmp_path / "src/entourage")
    if source is not None:
        with (tmp_path / "pyproject.toml").open("a", encoding="utf-8") as file:
            file.write(f'\n[project.urls]\nSource = "{source}"\n')
    shown, written = description(tmp_path), (ROOT / "README.md").read_text(encoding="utf-8")
    targets = LINK.findall(shown)
    assert len(targets) == len(LINK.findall(written)) > 10
    if source is None:
        assert shown.strip() == written.strip()
        return
    assert all(target.startswith("https://") for target in targets)
    assert "![" in shown and f"{source}raw/HEAD/docs/images/drift.png" in targets
    assert f"{source}blob/HEAD/docs/command-line.md" in targets


def test_what_is_absolute_already_stays():
    spec = importlib.util.spec_from_file_location("setup_of_the_project", ROOT / "setup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = "[a](https://a.org/b) [c](mailto:d@e.org) ![f](g h.png) [i](#j)"
    assert module.with_absolute_links(text, None) == text
    assert module.with_absolute_links(text, "https://k.org") == text.replace("(#j)", "(https://k.org#j)")
