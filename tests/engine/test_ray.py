"""Ray: what is refused before a cluster is started, and on_a_cluster.py in a process of its own."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.cli.shop import run
from tests.engine.folders import fill, some

from entourage.engine.refine import refine_on_ray
from entourage.errors import MissingExtra, StoreError
from entourage.runs.streamed.refine import StreamedRequest

HERE = Path(__file__).parent


@pytest.mark.parametrize("marked", ["not attack", pytest.param("attack", marks=pytest.mark.attack)])
def test_on_a_cluster(marked, tmp_path):
    """Apart from all others: Ray ends a process that loses its node, and leaves threads that do not bear a fork."""
    pytest.importorskip("ray", reason="the package ray is not installed: pip install 'entourage[ray]'")
    report = tmp_path / "report.xml"
    own = tempfile.mkdtemp(prefix="ray")  # a short name, as sockets need; elsewhere others would find the address there
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", marked]
    ended = subprocess.run(
        [*command, f"--junitxml={report}", str(HERE / "on_a_cluster.py")],
        cwd=HERE.parents[1], capture_output=True, text=True, timeout=3600, env=os.environ | {"RAY_TMPDIR": own},
    )  # fmt: skip
    shutil.rmtree(own, ignore_errors=True)
    assert report.exists(), ended.stdout[-4000:] + ended.stderr[-2000:]
    (results,) = ElementTree.parse(report).getroot()
    counts = {kind: int(results.get(kind)) for kind in ("tests", "failures", "errors", "skipped")}
    assert counts["tests"] and not counts["failures"] + counts["errors"], ended.stdout[-4000:]
    if counts["skipped"]:
        pytest.skip("; ".join({each.get("message") for each in results.iter("skipped")}))


def test_without_the_package_the_pip_line_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("entourage.runtime.extras.is_installed", lambda library: False)
    source = fill(tmp_path / "x", some(240))
    with pytest.raises(MissingExtra, match=r"--engine ray needs .*pip install 'entourage\[ray\]'"):
        refine_on_ray(StreamedRequest(str(source), tmp_path / "y"))


@pytest.mark.parametrize("address", ["nowhere", "127.0.0.1:x", "127.0.0.1:{free}", "ray://127.0.0.1:{free}"])
def test_an_address_without_a_cluster_is_refused_at_once(tmp_path, monkeypatch, address):
    from entourage.engine.cluster import _check_reachable

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = address.format(free=free.getsockname()[1])
    begun = time.monotonic()
    with pytest.raises(StoreError, match=r"no Ray cluster answers at|--ray-address is") as refused:
        _check_reachable(address, "--ray-address")
    assert time.monotonic() - begun < 6 and address in str(refused.value)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--engine dask", "--engine is dask; wanted ray"),
        ("--ray-address 10.0.0.5:6379", "--ray-address is 10.0.0.5:6379 without a cluster; add --engine ray"),
        ("--partitions 4", "--partitions is 4 without a cluster"),
        ("--engine ray --partitions 0", "--partitions is 0; wanted a whole number, at least 1"),
        ("--engine ray --search HNSW16", "--search is HNSW16 with --engine ray"),
        ("--engine ray --run kept", "--run is kept with the folder"),
        ("--engine ray --column name", "holds no vectors in 'name'"),
        ("--engine ray --column other", "has no 'other'"),
        ("--engine ray --model nowhere", "there is no folder 'nowhere'"),
    ],
    ids=str,
)
def test_the_command_refuses_in_a_sentence_before_a_cluster_is_started(tmp_path, monkeypatch, options, sentence):
    monkeypatch.setattr("entourage.engine.refine.ray_cluster", None)  # whoever started one would fail
    result = run(f"refine {fill(tmp_path / 'x', some(240))} --out {tmp_path / 'y'} {options}")
    assert result.exit_code == 2 and result.stderr.count("\n") == 1 and sentence in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_what_is_there_already_is_refused_before_a_cluster_is_started(tmp_path, monkeypatch):
    monkeypatch.setattr("entourage.engine.refine.ray_cluster", None)
    source = fill(tmp_path / "x", some(240))
    (tmp_path / "y").mkdir()
    result = run(f"refine {source} --engine ray --out {tmp_path / 'y'}")
    assert result.exit_code == 2 and "y exists already; allow overwriting (--overwrite)" in result.stderr
