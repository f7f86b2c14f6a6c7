"""Compiled functions: what they say, where they cannot be kept, and what happens to those that were kept."""

import importlib.util
import os
import pickle
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import caching

from entourage.runtime import jit_files
from entourage.runtime.jit import compiled

SOURCE = """
from entourage.runtime.jit import compiled

@compiled
def double(x):
    return 2 * x
"""


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """The folder of what is compiled."""
    folder = tmp_path / "kept"
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(folder))
    (tmp_path / "doubling.py").write_text(SOURCE)
    return folder


def files(kept: Path, suffix: str = "") -> list[Path]:
    return sorted(path for path in kept.rglob(f"*{suffix}") if path.is_file())


def compiles(kept: Path) -> bool:
    """Whether a process that starts now has to compile the function; it computes what it should either way."""
    spec = importlib.util.spec_from_file_location("doubling", kept.parent / "doubling.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.double(21) == 42
    return bool(sum(module.double.stats.cache_misses.values()))


def test_what_is_compiled_is_kept(kept):
    assert compiles(kept) and not compiles(kept)
    assert [path.suffix for path in files(kept)] == [".nbc", ".nbi"]


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-20] ^= 1
    path.write_bytes(content)


def replace_by_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def replace_by_what_another_version_wrote(path: Path) -> None:
    path.write_bytes(pickle.dumps("0.1") + path.read_bytes())


DAMAGE = {
    "empty": lambda path: path.write_bytes(b""),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:-9]),
    "cut to its checksum": lambda path: path.write_bytes(path.read_bytes()[:32]),
    "garbage": lambda path: path.write_bytes(b"garbage" * 99),
    "one bit": flip_a_bit,
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"more"),
    "missing": Path.unlink,
    "another version": replace_by_what_another_version_wrote,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("suffix", ["nbi", "nbc", ""])
def test_what_is_damaged_is_compiled_anew_and_replaced(kept, suffix, damage):
    compiles(kept)
    for path in files(kept, suffix):
        damage(path)
    assert compiles(kept)
    assert not compiles(kept)


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_what_cannot_be_read_nor_replaced_is_compiled_in_every_process(kept, suffix):
    compiles(kept)
    for path in files(kept, suffix):
        replace_by_a_folder(path)
    assert compiles(kept) and compiles(kept)


@pytest.fixture
def unpickled(monkeypatch):
    """What was unpickled, and therefore could have run code."""
    seen = []
    monkeypatch.setattr(pickle, "loads", lambda content, loads=pickle.loads: seen.append(content) or loads(content))
    return seen


def test_files_of_strangers_are_not_even_opened_as_pickles(kept, monkeypatch, unpickled):
    compiles(kept)
    monkeypatch.setattr(jit_files, "_owners", lambda source: frozenset({os.getuid() + 1}))
    unpickled.clear()
    assert compiles(kept) and compiles(kept) and unpickled == []


@pytest.mark.skipif(os.name == "nt", reason="has no such permissions")
def test_nor_are_files_that_anyone_may_change(kept, unpickled):
    compiles(kept)
    for path in files(kept):
        path.chmod(0o666)
    unpickled.clear()
    assert compiles(kept) and unpickled == []
    assert not compiles(kept)  # replaced by files of the user's own


def test_garbage_is_not_unpickled(kept, unpickled):
    compiles(kept)
    for path in files(kept):
        path.write_bytes(b"garbage")
    unpickled.clear()
    assert compiles(kept) and unpickled == []


def test_a_function_is_compiled_where_no_folder_can_be_written_to(monkeypatch):
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    double = compiled(lambda x: 2 * x)
    assert double(21) == 42 and isinstance(double._cache, caching.NullCache)


@pytest.mark.parametrize(
    "lost",
    [
        "caching.FunctionCache = object",
        "del caching.IndexDataCacheFile",
        "caching.IndexDataCacheFile = lambda path: None",
        "del caching.CacheImpl.locator",
        "sys.modules['numba.core.event'] = None; del core.event",
    ],
)
def test_a_numba_of_other_insides_compiles_without_keeping(tmp_path, lost):
    (tmp_path / "doubling.py").write_text(SOURCE)
    code = f"import sys; from numba import core; from numba.core import caching, dispatcher; {lost}\n"
    code += "import doubling; sys.exit(doubling.double(21) != 42)"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    outcome = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, stderr=subprocess.PIPE)
    assert (outcome.returncode, outcome.stderr) == (0, b"")
    assert files(tmp_path / "kept") == []


def full_disk() -> None:
    """No file can grow in this process any more."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def test_a_full_disk_costs_only_what_would_have_been_kept(tmp_path):
    (tmp_path / "doubling.py").write_text(SOURCE)
    code = "import doubling, sys; sys.exit(doubling.double(21) != 42)"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    line = [sys.executable, "-c", code]
    outcome = subprocess.run(line, cwd=tmp_path, env=environment, preexec_fn=full_disk, stderr=subprocess.PIPE)
    assert outcome.returncode == 0, outcome.stderr
    assert files(tmp_path / "kept") == []


def test_a_setting_that_numba_refuses_is_named_in_a_sentence(tmp_path):
    code = "from entourage.cli import main; main()"
    np.save(tmp_path / "v.npy", np.eye(30))
    line = [sys.executable, "-c", code, "refine", str(tmp_path / "v.npy"), "--out", str(tmp_path / "o.npy")]
    environment = os.environ | {"NUMBA_NUM_THREADS": "0"}
    outcome = subprocess.run(line, env=environment, capture_output=True, text=True)
    assert outcome.returncode == 2
    assert outcome.stderr.startswith("error: numba cannot be loaded with ") and outcome.stderr.count("\n") == 1


def test_without_compiling_at_all_the_search_is_the_same(tmp_path):
    code = """
import numpy as np
from entourage.neighbors import search
from entourage.values import Embeddings
print(search(Embeddings.from_vectors([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]]), k=1).rows.tolist())
"""
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    assert subprocess.check_output([sys.executable, "-c", code], env=environment, text=True) == "[[1], [0], [1]]\n"


def test_what_is_compiled_computes_the_same():
    @compiled
    def double(x):
        return 2 * x

    assert double(21) == double.py_func(21) == 42


REFINE = """
import logging
import numpy as np
import torch
from entourage.refiner.paper.attention import CrossAttention
from entourage.runtime.progress import terminal_progress
logging.basicConfig(level="INFO", format="%(name)s %(message)s")
with terminal_progress():
    block = CrossAttention(4)
    block.refined(torch.ones(3, 4), block.offer(torch.ones(3, 4)), torch.zeros(3, 2, dtype=torch.int64))
"""


def test_only_the_first_call_compiles_and_it_says_so(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    first, second = (
        subprocess.run([sys.executable, "-c", REFINE], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    )
    lines = first.stderr.splitlines()
    functions = [line for line in lines if line.startswith("entourage compiling ")]
    assert 1 <= lines.count("compiling, once") < len(functions)  # not for each of them, but again where it takes long
    assert "entourage compiling entourage.refiner.gathering._attend, once" in lines
    assert second.stderr == ""
