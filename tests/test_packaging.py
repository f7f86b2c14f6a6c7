"""The package: its wheel with the core alone, its extras, its version, and the README as a package index shows it."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement
from sklearn.datasets import load_digits

import entourage
from entourage.runtime.extras import _EXTRAS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

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
    assert "![" in shown and f"{source}raw/HEAD/docs/images/explorer.webp" in targets
    assert f"{source}blob/HEAD/docs/command-line.md" in targets


def test_what_is_absolute_already_stays():
    spec = importlib.util.spec_from_file_location("setup_of_the_project", ROOT / "setup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = "[a](https://a.org/b) [c](mailto:d@e.org) ![f](g h.png) [i](#j)"
    assert module.with_absolute_links(text, None) == text
    assert module.with_absolute_links(text, "https://k.org") == text.replace("(#j)", "(https://k.org#j)")


# ---- the wheel, and the core alone: what .ci/package does with pip, here without a network -----------------------


def built(folder: Path, what: str) -> Path:
    """A wheel or an sdist of the project in this folder, as `python -m build --no-isolation` would make it."""
    build = f"import setuptools.build_meta as b; print(b.build_{what}('dist'))"
    told = subprocess.run([sys.executable, "-c", build], cwd=folder, capture_output=True, text=True, check=True)
    return folder / "dist" / told.stdout.split()[-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Made from the sdist, so that this has all it takes."""
    folder = tmp_path_factory.mktemp("project")
    for path in ROOT.iterdir():
        if path.is_file() and path.name != ".git":
            shutil.copy(path, folder)
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    with tarfile.open(built(folder, "sdist")) as sdist:
        sdist.extractall(folder / "unpacked", filter="data")
    return built(next((folder / "unpacked").iterdir()), "wheel")


def test_the_wheel_holds_every_file_of_the_package_and_no_other(wheel):
    package = ROOT / "src" / "entourage"
    wanted = {path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    with zipfile.ZipFile(wheel) as opened:
        names = {name for name in opened.namelist() if ".dist-info/" not in name}
    assert names == {path.relative_to(package.parent).as_posix() for path in wanted}


def core_distributions() -> set[str]:
    """The names of all that `pip install entourage` installs besides, without extras; their versions are checked."""
    found, ahead = set(), [Requirement(line) for line in PROJECT["dependencies"]]
    while ahead:
        wanted = ahead.pop()
        if (wanted.marker and not wanted.marker.evaluate({"extra": ""})) or wanted.name in found:
            continue
        there = distribution(wanted.name)
        assert wanted.specifier.contains(there.version, prereleases=True), wanted
        found.add(wanted.name)
        ahead += [Requirement(line) for line in there.requires or ()]
    return found


def test_the_core_alone_diagnoses_refines_and_scores_digits(wheel, tmp_path):
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(site)
    for found in map(distribution, core_distributions()):
        for top in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            (site / top).symlink_to(found.locate_file(top))
    images, digits = load_digits(return_X_y=True)
    np.save(tmp_path / "vectors.npy", images.astype(np.float32))
    np.save(tmp_path / "labels.npy", digits)

    def entourage_says(*arguments: str) -> dict:
        code = f"import sys; sys.path.append({str(site)!r}); from entourage.cli import main; main()"
        line = [sys.executable, "-S", "-c", code, *arguments, "--json"]  # -S: nothing else that is installed is seen
        alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        told = subprocess.run(line, cwd=tmp_path, env=alone, capture_output=True, text=True, timeout=300)
        assert told.returncode == 0, told.stderr
        return json.loads(told.stdout)

    assert "should help" in entourage_says("doctor", "vectors.npy")["verdict"]
    entourage_says("refine", "vectors.npy", "--out", "refined.npy")
    before, after = (
        entourage_says("evaluate", name, "--labels", "labels.npy")["metrics"]["map@r"]
        for name in ("vectors.npy", "refined.npy")
    )
    assert after > before + 0.15
    seen = {path.name for path in site.iterdir()}
    assert not seen & {"PIL", "fastapi", "jinja2", "matplotlib", "pandas", "pyarrow", "torch", "transformers"}


# ---- extras, versions, workflows ---------------------------------------------------------------------------------

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
OF_DEVELOPERS = {"all", "bench", "dev", "docs"}


def brought(extra: str) -> set[str]:
    """The extras that an extra includes, itself among them."""
    found = {extra}
    for line in EXTRAS[extra]:
        inner = re.match(r"entourage\[([^]]*)\]", line)
        for name in inner[1].split(",") if inner else ():
            found |= brought(name)
    return found


def test_all_brings_every_extra_that_users_have():
    assert brought("all") == {"all"} | set(EXTRAS) - OF_DEVELOPERS


def test_every_extra_that_a_message_names_exists_and_brings_the_library():
    packages = {"PIL": "pillow", "faiss": "faiss-cpu", "haystack": "haystack-ai", "llama_index": "llama-index-core"}
    for library, extra in _EXTRAS.items():
        package = packages.get(library, library).replace("_", "-")
        lines = [line.replace("_", "-") for each in brought(extra) for line in EXTRAS[each]]
        assert any(re.match(rf"{package}\b(?!-)", line) for line in lines), (library, extra)


def test_what_is_optional_is_not_installed_by_the_core():
    core = {re.match(r"[\w-]+", line)[0] for line in PROJECT["dependencies"]}
    assert core & {"jinja2", "matplotlib", "pillow", "pyarrow", "torch", "transformers"} == set()


def test_every_extra_is_on_the_page_that_lists_them():
    page = (ROOT / "docs" / "installing.md").read_text(encoding="utf-8")
    assert [extra for extra in set(EXTRAS) - OF_DEVELOPERS if f"`{extra}`" not in page] == []


def test_the_version_is_the_same_wherever_it_is_written():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.*)$", citation, re.MULTILINE)[1] == entourage.__version__
    assert "version" in PROJECT["dynamic"]


def test_the_workflows_run_the_commands_that_people_run():
    workflows = "".join(path.read_text(encoding="utf-8") for path in (ROOT / ".github/workflows").glob("*.yml"))
    commands = set(re.findall(r"- run: (?:make (\w+)|(\.ci/\w+))$", workflows, re.MULTILINE))
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert {target for target, _ in commands if target} == {"docs", "package"} <= targets
    assert (ROOT / next(script for _, script in commands if script)).is_file()
    declared = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert all(f'"{version}"' in workflows for version in declared) and declared


def test_make_attack_makes_every_attack():
    recipe = re.search(r"^attack:.*\n\t(.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert recipe is not None
    given = [ROOT / word for word in recipe[1].split("-m attack")[1].split()]
    marked = [file for file in (ROOT / "tests").rglob("test_*.py") if "mark.attack" in file.read_text(encoding="utf-8")]
    assert len(marked) > 5
    assert [file for file in marked if not any(place in file.parents for place in given)] == []
