"""Starting and ending: the version, the help, what is imported for them, and a reader that leaves early."""

import os
import subprocess
import sys

import pytest
from tests.cli.shop import run

from entourage import __version__

pytestmark = pytest.mark.usefixtures("one_thread", "short_rehearsals")


def test_version_and_help():
    assert run("--version").stdout == f"{__version__}\n"
    assert all(name in run("--help").stdout for name in ("demo", "fit", "refine", "evaluate"))


@pytest.mark.parametrize("module", ["entourage", "entourage.cli"])
def test_starting_does_not_wait_for_heavy_libraries(module):
    code = f"import {module}, sys; print({{'torch', 'sklearn', 'matplotlib', 'pyarrow'}} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"


def test_a_reader_that_has_seen_enough_is_no_error(inside):
    nobody, pipe = os.pipe()
    os.close(nobody)
    line = [sys.executable, "-c", "from entourage.cli import main; main()", "evaluate", "v.npz", "--no-nmi"]
    said = subprocess.run(line, stdout=pipe, stderr=subprocess.PIPE, text=True).stderr
    assert "error" not in said and "Traceback" not in said  # progress, where it takes long
    os.close(pipe)
