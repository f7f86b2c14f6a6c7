"""Every file of a run folder is named once: in runs/layout.py, or in what it gathers from below."""

import ast
from pathlib import Path

import pytest

import entourage
from entourage.runs import layout
from entourage.runs.layout import checkpoint_of, is_partial, partial_of

ROOT = Path(entourage.__file__).parent
NAMES = {getattr(layout, name) for name in layout.__all__ if name.isupper()}
NAMED_IN = {"runs/layout.py", "stores/filenames.py"}
# A config.json of a Hugging Face model is another file of that name.
# Files of other libraries that happen to have the same names.
OTHERS = {
    "encoders/hub.py": {"config.json"},
    "encoders/resnet_weights.py": {"config.json", "model.safetensors"},
    "integrations/sentence_transformers.py": {"model.safetensors"},
}


def spelled(source: str) -> set[str]:
    """Names of run files that a source spells: a file's anywhere, a folder's where a path is made of it."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "." in node.value:
            found |= {node.value}
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and isinstance(node.right, ast.Constant):
            found |= {node.right.value}
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and _is_constant(node.targets[0]):
            found |= {node.value.value} if node.value.value in ("network", "cross_image", "tensorboard") else set()
    return found & NAMES


def _is_constant(target) -> bool:
    return isinstance(target, ast.Name) and target.id.isupper() and not target.id.startswith("_")


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_other_module_spells_the_name_of_a_run_file(path):
    module = path.relative_to(ROOT).as_posix()
    if module not in NAMED_IN:
        assert spelled(path.read_text(encoding="utf-8")) - OTHERS.get(module, set()) == set()


def test_every_name_is_spelled_in_one_place_alone():
    places = [spelled((ROOT / module).read_text(encoding="utf-8")) for module in sorted(NAMED_IN)]
    assert places[0] & places[1] == set()
    assert len(NAMES) == sum(name.isupper() for name in layout.__all__)  # no two are the same


def test_the_page_of_the_layout_lists_every_name():
    assert [name for name in sorted(NAMES) if name not in layout.__doc__] == []


@pytest.mark.parametrize("source", ['x / "network"', 'open("run.json")', 'NETWORK = "network"', '("items.npz", 1)'])
def test_a_name_spelled_elsewhere_would_be_seen(source):
    assert len(spelled(source)) == 1


def test_what_lies_beside_a_folder_is_called_after_it():
    assert partial_of("runs/birds") == Path("runs/birds.partial") and is_partial("runs/birds.partial")
    assert not is_partial("runs/birds") and checkpoint_of("models/birds") == Path("models/birds.checkpoint")
