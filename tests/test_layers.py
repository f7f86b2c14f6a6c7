"""The direction of imports: the tree is the pipeline, and nothing reaches upwards."""

import ast
import re
from pathlib import Path

import pytest

import entourage

ROOT = Path(entourage.__file__).parent

# From top to bottom; a module may import what lies strictly below it, or its own package.
LAYERS = [
    {"__main__"},
    {"cli", "explorer"},
    {"demo", "report"},
    {"plots"},
    {"refinements", "trainings"},
    {"compare", "doctor", "engine", "runs", "shards"},
    {"figures"},
    {"systems", "baselines"},
    {"encoder_training"},
    {"embedding"},
    {"picture_batches"},
    {"evaluation", "training", "linear_maps", "encoders", "projection"},
    {
        "data",
        "sampling",
        "neighbors",
        "relations",
        "attention",
        "losses",
        "clustering",
        "metrics",
        "preprocessing",
        "shots",
    },
    {"store", "gathering", "devices", "versions"},
    {"compiling"},
    {"values", "progress", "distributed", "doubts", "once", "settings", "threads"},
    {"errors"},
]
HEIGHT = {part: -depth for depth, layer in enumerate(LAYERS) for part in layer}

VAGUE = {"utils", "util", "common", "helpers", "helper", "base", "manager", "misc"}

DATASETS = re.compile(r"glyphs?|cub(200)?|cars196|sop|in-?shop|market-?1501|mnist|omniglot", re.IGNORECASE)
MAY_NAME_DATASETS = {"data", "demo", "cli", "settings.intra_batch"}  # the last: presets are named after datasets

# The package's own __init__ only maps public names to their homes; test_public_api looks after it.
MODULES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(source: str) -> set[str]:
    """Modules of entourage that a source imports, anywhere in it, without the leading `entourage.`."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the direction"
            is_package = node.module == "entourage" or (ROOT / Path(*node.module.split(".")[1:])).is_dir()
            names = {f"{node.module}.{name.name}" for name in node.names}
            found |= {name for name in names if _is_module(name)} if is_package else set()
            found |= {node.module}
    return {name.removeprefix("entourage.") for name in found if name.startswith("entourage.")}


def _is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split(".")[1:])
    return path.with_suffix(".py").is_file() or path.is_dir()


def _system(module: str) -> str | None:
    """Which system a module is or belongs to: a file in systems/, or a folder there with all that is in it."""
    part, _, inside = module.partition(".")
    return inside.split(".")[0] if part == "systems" and inside else None


def violations(module: str, source: str) -> list[str]:
    part = module.split(".")[0]
    wrong = []
    for other in sorted(imported(source)):
        other_part = other.split(".")[0]
        own_package = other_part == part
        if _system(other) not in (None, _system(module)) if own_package else HEIGHT[other_part] >= HEIGHT[part]:
            wrong.append(f"{module} imports {other}")
    return wrong


def datasets_named(source: str) -> set[str]:
    """Datasets among the names and strings of a source, docstrings aside."""
    tree = ast.parse(source)
    prose = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None
    }
    words = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            words |= set(re.findall(r"[\w-]+", node.value))
        for field in ("id", "attr", "arg", "name", "module"):
            value = getattr(node, field, None)
            words |= set(re.split(r"[._]", value)) if isinstance(value, str) else set()
    return {word for word in words if DATASETS.fullmatch(word)}


def test_every_module_has_its_place_in_the_layers():
    assert {dotted(path).split(".")[0] for path in MODULES} <= set(HEIGHT)


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_a_module_imports_only_from_below(path):
    assert violations(dotted(path), path.read_text(encoding="utf-8")) == []


def test_no_module_has_a_vague_name():
    assert [dotted(path) for path in MODULES if set(dotted(path).split(".")) & VAGUE] == []


def test_only_the_data_package_the_demo_the_command_line_and_presets_name_a_dataset():
    others = [path for path in MODULES if not {dotted(path), dotted(path).split(".")[0]} & MAY_NAME_DATASETS]
    found = {dotted(path): datasets_named(path.read_text(encoding="utf-8")) for path in others}
    assert {module: names for module, names in found.items() if names} == {}


def test_the_top_of_the_package_imports_nothing_heavy_by_itself():
    """`import entourage` must stay instant: its imports from below stand under TYPE_CHECKING or in a function."""
    tree = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))
    at_once = [node.module for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert at_once == ["importlib", "typing"]
    assert not any(isinstance(node, ast.Import) for node in tree.body)


# ---- the checks themselves ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "source", "count"),
    [
        ("metrics", "from entourage.errors import InputError", 0),
        ("metrics", "from entourage.evaluation import evaluate", 1),
        ("metrics", "from entourage import evaluation", 1),
        ("metrics", "import entourage.evaluation", 1),
        ("metrics", "def f():\n    from entourage.sampling import usable_classes", 1),  # the same layer
        ("store.vectors", "from entourage.store.atomic import whole_file", 0),
        ("neighbors", "from entourage.neighbors import exact", 0),
        ("systems.one", "from entourage.systems.context_refiner import ContextRefiner", 1),
        ("systems.one", "from entourage.systems import context_refiner", 1),
        ("systems.one", "from entourage.systems.context_refiner.paper import PaperNetwork", 1),
        ("systems.one", "import entourage.systems.context_refiner.paper", 1),
        ("systems.context_refiner", "from entourage.systems.context_refiner.paper import PaperNetwork", 0),
        ("systems.context_refiner.paper", "from entourage.systems.context_refiner import relational", 0),
        ("systems.context_refiner.paper", "from entourage.systems.context_refiner.relational import step", 0),
        ("systems.context_refiner.paper", "from entourage.systems.context import step", 1),  # a name that begins alike
        ("systems.context_refiner.paper", "from entourage.systems.one.blocks import step", 1),
        ("systems.context_refiner.paper", "from entourage.demo import run_demo", 1),
        ("cli", "from entourage import __version__", 0),
    ],
)
def test_an_import_in_the_wrong_direction_would_be_seen(module, source, count):
    assert len(violations(module, source)) == count


def test_a_dataset_named_in_code_would_be_seen_and_one_in_prose_is_not():
    assert datasets_named('"""About SOP."""\nname = "the glyphs data"\nload_cub()') == {"glyphs", "cub"}
