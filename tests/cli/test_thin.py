"""The command line is thin: a command calls the library and prints, and looks into no folder itself."""

import ast
from pathlib import Path

import pytest

from entourage import cli

MODULES = sorted(Path(cli.__file__).parent.glob("*.py"))
MOST_LINES = 60
TOUCHES = {"exists", "glob", "is_dir", "is_file", "iterdir", "listdir", "rglob", "walk"}


def functions(source: str) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]


def body_lines(function: ast.FunctionDef) -> int:
    """Lines of the body, without options and docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def touched(source: str) -> set[str]:
    """Methods by which a source would look into the file system."""
    return {node.attr for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)} & TOUCHES


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_command_is_short_and_looks_into_no_folder(path):
    source = path.read_text(encoding="utf-8")
    assert {function.name for function in functions(source) if body_lines(function) > MOST_LINES} == set()
    assert touched(source) == set()


def test_a_long_body_and_a_look_would_be_seen():
    (function,) = functions("def f(\n    a,\n):\n    '''What it does.'''\n    x = 1\n\n    return x\n")
    assert body_lines(function) == 3
    assert touched("(model / 'network').is_dir()") == {"is_dir"}
