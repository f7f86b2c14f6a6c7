"""Every command with every option, each given what it cannot mean.

Given are: nothing, a folder, a file that does not exist, a link to itself, bytes of another kind, a pipe, a device like
/dev/null and one without end (both made in its own folder), a huge number, a negative one, NaN, text with a half
letter, a name of 5,000 letters, and brackets 3,000 deep.
"""

import os
import random
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from tests.attacks.judging import fault
from tests.attacks.victims import write_vectors

from entourage.cli import app

# What each command needs besides the option that is attacked, so that it comes to look at that option.
NEEDED = {
    "compare": ["v.npz"],
    "datasets": [],
    "doctor": ["v.npz"],
    "embed": ["v.npz", "--model", "nothing", "--out", "out.npz"],
    "explore": ["--vectors", "v.npz", "--port", "0", "--no-browser"],
    "evaluate": ["v.npz", "--no-nmi"],
    "export": ["--out", "out.onnx"],
    "fit": ["v.npz", "--out", "out"],
    "plot": ["drift", "nothing", "--out", "out.png"],
    "refine": ["v.npz", "--out", "out.npz"],
    "report": ["nothing"],
    "reproduce": ["nothing"],
    "rerank": ["v.npz", "--gallery", "v.npz", "--out", "lists.npz"],
    "serve": ["--gallery", "shop", "--port", "0"],
    "train": ["v.npz", "--out", "out", "--epochs", "1"],
}
SAMPLE = 60


def values(folder: Path) -> dict[str, str]:
    """What is given, by what it is; files and pipes are made in the folder."""
    (folder / "folder").mkdir()
    (folder / "circle.npz").symlink_to("circle.npz")
    for ending in ("npy", "npz", "parquet", "csv", "txt", "json", "toml"):
        (folder / f"bytes.{ending}").write_bytes(bytes(range(256)) * 4)
        os.mkfifo(folder / f"pipe.{ending}")
    files = {f"{kind}.{end}": f"{kind}.{end}" for kind in ("bytes", "pipe") for end in ("npz", "csv", "toml", "json")}
    return files | {
        "nothing": "",
        "a folder": "folder",
        "no file": "missing.npz",
        "a link to itself": "circle.npz",
        "null": _device(folder / "null.npz", 3),
        "zeros": _device(folder / "zeros.npz", 5),
        "huge": "9" * 30,
        "digits": "9" * 5000,
        "negative": "-1",
        "NaN": "nan",
        "infinite": "inf",
        "a half letter": "\udc80",
        "a long name": "x" * 5000,
        "deep": "a=" + "[" * 3000,
    }


def _device(path: Path, minor: int) -> str:
    """A device of its own, never /dev/null itself: an output that took its place would break the machine."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, minor))
    except PermissionError:  # only root may make devices; a pipe is no file either
        os.mkfifo(path)
    return path.name


def lines(folder: Path) -> Iterator[list[str]]:
    commands = typer.main.get_command(app).commands
    assert NEEDED.keys() | {"demo"} == commands.keys()  # demo takes a while whatever it is given
    given = values(folder)
    # As root, a command that replaced what it should not could replace a part of the machine.
    assert not any(Path(value).is_absolute() or ".." in value for value in given.values())
    for name, needed in NEEDED.items():
        for parameter in commands[name].params:
            if getattr(parameter, "is_flag", False) or not parameter.opts:
                continue
            for value in given.values():
                if parameter.opts[0].startswith("-"):
                    yield [name, *_without(needed, parameter.opts[0]), parameter.opts[0], value]
                elif needed:
                    yield [name, value, *needed[1:]]


def _without(needed: list[str], option: str) -> list[str]:
    if option not in needed:
        return needed
    place = needed.index(option)
    return needed[:place] + needed[place + 2 :]


@pytest.fixture
def shop(tmp_path, monkeypatch, one_thread):
    write_vectors(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("ENTOURAGE_DATA", raising=False)
    monkeypatch.delenv("ENTOURAGE_TOKEN", raising=False)
    monkeypatch.setattr("entourage.explorer.start._run", lambda *given: None)  # as that of `serve`
    monkeypatch.setattr("entourage.serve.start._run", lambda *given: None)  # which would go on until it is stopped
    return tmp_path


def wrong(chosen: list[list[str]]) -> list[str]:
    """What went wrong; a valid number, such as a huge one of workers, may well succeed."""
    found = ((line, fault([*line, *_again(line)])) for line in chosen)
    return [f"{[each[:80] for each in line]}: {said}" for line, said in found if said]


def _again(line: list[str]) -> list[str]:
    return (
        ["--overwrite"] if line[0] in ("embed", "export", "fit", "plot", "refine", "report", "rerank", "train") else []
    )


def test_commands_refuse_what_an_option_cannot_mean(shop):
    assert wrong(random.Random(0).sample(list(lines(shop)), SAMPLE)) == []


@pytest.mark.attack
@pytest.mark.parametrize("command", NEEDED)
def test_every_option_of_every_command(shop, command, short_rehearsals):
    assert wrong([line for line in lines(shop) if line[0] == command]) == []
