"""Threads of libraries wait asleep in the command's process; elsewhere the user decides."""

import os
import subprocess
import sys

import pytest

from entourage.runtime.waiting import ASLEEP, wait_asleep

STARTED = """
import os, sys
from contextlib import suppress
from entourage.cli import main
sys.argv = ["entourage", "--version"]
with suppress(SystemExit):
    main()
import numpy, threadpoolctl
blas = [library["num_threads"] for library in threadpoolctl.threadpool_info() if library["user_api"] == "blas"]
print(os.environ.get("OMP_WAIT_POLICY"), blas)
"""


def started(**environment: str) -> str:
    clean = {name: value for name, value in os.environ.items() if name not in ASLEEP}
    line = [sys.executable, "-c", STARTED]
    return subprocess.check_output(line, env=clean | environment, text=True).splitlines()[-1]


@pytest.mark.parametrize(
    ("environment", "seen"),
    [({}, "passive [1]"), ({"OMP_WAIT_POLICY": "active", "OPENBLAS_NUM_THREADS": "2"}, "active [2]")],
)
def test_a_command_decides_before_libraries_are_loaded_unless_the_user_has(environment, seen):
    assert started(**environment) == seen


def test_what_the_user_has_set_stays(monkeypatch):
    monkeypatch.setattr(os, "environ", {"OMP_WAIT_POLICY": "active"})
    wait_asleep()
    assert os.environ == ASLEEP | {"OMP_WAIT_POLICY": "active"}


def test_importing_the_library_sets_nothing():
    code = f"import os, entourage.cli, entourage.refiner; assert not {set(ASLEEP)} & set(os.environ)"
    clean = {name: value for name, value in os.environ.items() if name not in ASLEEP}
    subprocess.run([sys.executable, "-c", code], env=clean, check=True)
