"""The tree is the pipeline: which room imports which, where a heavy library is imported, what rooms say they hold."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

import entourage

ROOT = Path(entourage.__file__).parent

# From top to bottom; a module may import what lies strictly below it, or its own package.
LAYERS = [
    {"cli"},
    {"demo", "engine", "explorer", "report", "serve"},
    {"runs"},
    {"comparison"},
    {"baselines", "systems"},
    {"refiner"},
    {"encoders", "figures", "training"},
    {"data", "evaluation"},
    {"neighbors", "stores"},
    {"runtime", "values"},
    {"errors"},
]
HEIGHT = {room: -depth for depth, layer in enumerate(LAYERS) for room in layer}
MOST_LAYERS, MOST_NAMES = 11, 24

# The rooms a heavy library is imported in; equality, so that a room that no longer needs it goes.
HEAVY = {
    "faiss": {"neighbors", "stores"},
    "fastapi": {"explorer", "serve"},
    "jinja2": {"report"},
    "lancedb": {"stores"},
    "matplotlib": {"data", "figures"},  # data: the fonts it ships are what the built-in glyphs are drawn with
    "numba": {"runtime"},
    "psycopg": {"stores"},
    "pymilvus": {"stores"},
    "pynndescent": {"neighbors"},
    "pytorch_metric_learning": {"training"},
    "qdrant_client": {"stores"},
    "ray": {"engine"},
    "transformers": {"encoders"},
    "uvicorn": {"explorer", "serve"},
    # What learns, and what pictures become on their way into it; devices, threads and processes are torch's own.
    "torch": {"baselines", "data", "encoders", "evaluation", "neighbors", "refiner", "runtime", "systems", "training"},
}

VAGUE = {"utils", "util", "common", "helpers", "helper", "base", "manager", "misc"}
# A room on its own although one other room alone imports it: what a user runs, not what code shares.
ENTRIES = {"baselines", "cli", "comparison", "demo", "engine", "explorer", "report", "serve"}

DATASETS = re.compile(r"glyphs?|cub(200)?|cars196|sop|in-?shop|market-?1501|mnist|omniglot", re.IGNORECASE)
MAY_NAME_DATASETS = {
    "data",
    "demo",
    "cli",
    "systems.presets",
}  # the last: presets are named after datasets

# The package's own __init__ only maps public names to their homes (test_public_api looks after it), and its __main__
# only calls the command line.
MODULES = sorted(set(ROOT.rglob("*.py")) - {ROOT / "__init__.py", ROOT / "__main__.py"})
ROOMS = sorted({path.relative_to(ROOT).parts[0].removesuffix(".py") for path in MODULES})
PACKAGES = sorted(path.parent for path in MODULES if path.name == "__init__.py")


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str:
    return module.split(".")[0]


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def imported(source: str) -> set[str]:
    """Modules of entourage that a source imports, anywhere in it, without the leading `entourage.`."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the direction"
            modules = {f"{node.module}.{name.name}" for name in node.names if _is_module(f"{node.module}.{name.name}")}
            found |= modules | ({node.module} if len(modules) < len(node.names) else set())
    return {name.removeprefix("entourage.") for name in found if name.startswith("entourage.")}


def libraries(source: str) -> set[str]:
    """The top-level packages that a source imports, anywhere in it but for type checkers, which load nothing."""
    tree, found = ast.parse(source), set()
    for_checkers = [
        node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
    ]
    unloaded = {id(inside) for node in for_checkers for inside in node.body}
    for node in (each for each in ast.walk(tree) if id(each) not in unloaded):
        if isinstance(node, ast.Import):
            found |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found


def _is_module(name: str) -> bool:
    parts = name.split(".")
    path = ROOT.joinpath(*parts[1:])
    return parts[0] == "entourage" and (path.with_suffix(".py").is_file() or (path / "__init__.py").is_file())


def _system(module: str) -> str | None:
    """The package in systems/ that a module is or belongs to; None for what the systems share."""
    room, _, inside = module.partition(".")
    first = inside.split(".")[0]
    return first if room == "systems" and (ROOT / "systems" / first / "__init__.py").is_file() and first else None


def violations(module: str, source: str) -> list[str]:
    room, wrong = room_of(module), []
    for other in sorted(imported(source)):
        if room_of(other) != room:
            upwards = HEIGHT[room_of(other)] >= HEIGHT[room]
        else:  # a system knows itself and what all share; the table of systems alone knows every one's settings
            upwards = module != "systems" and _system(other) not in (None, _system(module))
        if upwards:
            wrong.append(f"{module} imports {other}")
    return wrong


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that need each other: the strongly connected components of more than one (Tarjan 1972)."""
    index, low, stack, found = {}, {}, [], []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for other in sorted(graph.get(module, ())):
            if other not in index:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], index[other])
        if low[module] == index[module]:
            group = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(group) > 1:
                found.append(sorted(group))

    for module in sorted(graph):
        if module not in index:
            visit(module)
    return found


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


# ---- rooms -------------------------------------------------------------------------------------------------------


def test_the_layers_name_every_room_and_nothing_else():
    assert set(ROOMS) == set(HEIGHT)
    assert sum(map(len, LAYERS)) == len(HEIGHT)  # each in one layer
    assert len(LAYERS) <= MOST_LAYERS


def test_the_top_level_can_be_taken_in_at_a_glance():
    names = {path.name for path in ROOT.iterdir() if path.name != "__pycache__"}
    assert len(names) <= MOST_NAMES, sorted(names)


@pytest.mark.parametrize("package", PACKAGES, ids=dotted)
def test_a_package_says_in_one_line_what_belongs_in_it(package):
    first, _, rest = (ast.get_docstring(ast.parse(read(package / "__init__.py"))) or "").partition("\n")
    assert first.endswith((".", "?")) and len(first) >= 40, f"{dotted(package / '__init__.py')}: {first!r}"
    assert not rest or rest.startswith("\n"), "the first line stands alone"


def test_what_one_room_alone_needs_stands_inside_it():
    used_by = defaultdict(set)
    for path in MODULES:
        for other in imported(read(path)):
            used_by[room_of(other)] |= {room_of(dotted(path))} - {room_of(other)}
    assert {room: used_by[room] for room in ROOMS if len(used_by[room]) <= 1 and room not in ENTRIES} == {}


def test_no_module_has_a_vague_name():
    assert [dotted(path) for path in MODULES if set(dotted(path).split(".")) & VAGUE] == []


# ---- directions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_a_module_imports_only_from_below(path):
    assert violations(dotted(path), read(path)) == []


def test_inside_a_package_imports_have_an_order_too():
    """No two modules need each other, not even by an import inside a function."""
    assert cycles({dotted(path): imported(read(path)) for path in MODULES}) == []


@pytest.mark.parametrize("library", HEAVY)
def test_a_heavy_library_is_imported_in_its_rooms_alone(library):
    rooms = {room_of(dotted(path)) for path in MODULES if library in libraries(read(path))}
    assert rooms == HEAVY[library]


def test_only_the_data_package_the_demo_the_command_line_and_presets_name_a_dataset():
    others = [path for path in MODULES if not {dotted(path), room_of(dotted(path))} & MAY_NAME_DATASETS]
    found = {dotted(path): datasets_named(read(path)) for path in others}
    assert {module: names for module, names in found.items() if names} == {}


def test_the_top_of_the_package_imports_nothing_heavy_by_itself():
    """`import entourage` must stay instant: its imports from below stand under TYPE_CHECKING or in a function."""
    tree = ast.parse(read(ROOT / "__init__.py"))
    at_once = [node.module for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert at_once == ["importlib", "typing"]
    assert not any(isinstance(node, ast.Import) for node in tree.body)


# ---- the checks themselves ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "source", "count"),
    [
        ("neighbors", "from entourage.errors import InputError", 0),
        ("neighbors", "from entourage.evaluation import evaluate", 1),
        ("neighbors", "from entourage import evaluation", 1),
        ("neighbors", "import entourage.evaluation", 1),
        ("neighbors", "def f():\n    from entourage.stores.atomic import whole_file", 1),  # the same layer
        ("stores.vectors", "from entourage.stores.atomic import whole_file", 0),
        ("evaluation.metrics", "from entourage.systems import SYSTEMS", 1),
        ("figures.drift", "from entourage.refiner import ContextRefiner", 1),
        ("systems.baseline.training", "from entourage.systems.encoder_training import encoder_training", 0),
        ("systems.baseline.training", "from entourage.systems.baseline.settings import BaselineSettings", 0),
        ("systems.baseline.training", "from entourage.systems import intra_batch", 1),
        ("systems.baseline.training", "from entourage.systems.intra_batch.network import MessagePassing", 1),
        ("systems.encoder_training", "from entourage.systems.baseline.settings import BaselineSettings", 1),
        ("systems", "from entourage.systems.baseline.settings import BaselineSettings", 0),
        ("cli", "from entourage import __version__", 0),
    ],
)
def test_an_import_in_the_wrong_direction_would_be_seen(module, source, count):
    assert len(violations(module, source)) == count


def test_a_library_is_seen_where_it_is_loaded():
    source = "import a.b\nif TYPE_CHECKING:\n    from c import C\ndef f():\n    from d import D"
    assert libraries(source) == {"a", "d"}


def test_modules_that_need_each_other_would_be_seen():
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [["b", "c"]]


def test_a_dataset_named_in_code_would_be_seen_and_one_in_prose_is_not():
    assert datasets_named('"""About SOP."""\nname = "the glyphs data"\nload_cub()') == {"glyphs", "cub"}
