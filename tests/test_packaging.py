"""The package: its extras, its version, and the README as a package index shows it, with links out of the index."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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
