"""On a real cluster of several nodes: the same vectors, whatever is killed meanwhile.

Not collected by itself: test_ray.py runs it, in a process of its own.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import BuiltinFunctionType

import numpy as np
import pytest
from tests.engine.folders import fill, read, some

from entourage import ContextRefiner
from entourage.engine.refine import refine_on_ray
from entourage.errors import InputError
from entourage.runs.streamed.refine import StreamedRequest

KILLS = int(os.environ.get("KILLS", "50"))
SMALL = {"num_cpus": 1, "object_store_memory": 80 * 2**20}


@pytest.fixture(scope="module")
def cluster():
    """Two nodes of one processor each, and this process connected to them."""
    ray = pytest.importorskip("ray", reason="the package ray is not installed: pip install 'entourage[ray]'")
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_TQDM_PATCH_PRINT": "0"}
    from ray.cluster_utils import Cluster

    nodes = started(lambda: Cluster(initialize_head=True, head_node_args=SMALL | {"include_dashboard": False}))
    started(lambda: nodes.add_node(**SMALL))
    nodes.wait_for_nodes()
    ray.init(address=nodes.address, log_to_driver=False)
    return nodes  # not shut down here: Ray may end this process when a node goes, and the report must be written first


def started(start):
    """A node; Ray gives up after 15 seconds, which may be too few on a busy machine: skipped after three of them."""
    for _ in range(2):
        with contextlib.suppress(Exception):
            return start()
    try:
        return start()
    except Exception as error:
        pytest.skip(f"no node of Ray starts on this machine: {error}")


def workers(nodes) -> list[tuple[int, str]]:
    """The processes that do tasks for these nodes, and what each is at."""
    parents = {process.process.pid for node in nodes for process in node.all_processes.get("raylet", [])}
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            title = (folder / "cmdline").read_text().replace("\0", " ").strip()
        except OSError:  # it has just ended
            continue
        if parent in parents and title.startswith("ray::"):
            found.append((int(folder.name), title))
    return found


class KillsWorkers:
    """A progress that kills a busy worker, as by `kill -9`, at some of its reports, and removes a node at one."""

    def __init__(self, cluster, moments, removed_at=None):
        self.cluster, self.moments, self.removed_at = cluster, set(moments), removed_at
        self.reports, self.killed = 0, []

    def __call__(self, title, done, total):
        self.reports += 1
        if self.reports in self.moments:
            self._kill()
        if self.reports == self.removed_at:
            self.cluster.remove_node(self.cluster.list_all_nodes()[-1], allow_graceful=False)

    def _kill(self):
        until = time.monotonic() + 0.5  # after a stage's last task there is nothing to be killed in the middle of
        while time.monotonic() < until:
            for pid, title in workers(self.cluster.list_all_nodes()):
                if not title.startswith("ray::IDLE") and "Agent" not in title:  # agents are part of the node
                    os.kill(pid, signal.SIGKILL)
                    self.killed.append(title)
                    return


def check_refined(source, out):
    assert read(out)[0] == read(source)[0]  # nothing lost, nothing twice
    np.testing.assert_allclose(read(out)[1], ContextRefiner().fit_transform(read(source)[1]), atol=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_what_is_built_in_stays_as_it_is(tmp_path):
    pytest.importorskip("ray", reason="the package ray is not installed: pip install 'entourage[ray]'")
    refine_on_ray(StreamedRequest(str(fill(tmp_path / "x", some(240))), tmp_path / "y"), partitions=2)
    assert isinstance(print, BuiltinFunctionType)  # with another one, NN-descent could not be compiled


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_that_runs_here_by_chance_is_left_alone(tmp_path, cluster):
    """It is used only if its address is given: another's cluster may hold other packages, or none of the memory."""
    from ray._private import state as ray_state

    source = fill(tmp_path / "x", some(240))
    command = [sys.executable, "-m", "entourage", "refine", str(source), "--engine", "ray"]
    command += ["--out", str(tmp_path / "y")]
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    jobs = len(ray_state.jobs())
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert ended.returncode == 0, ended.stderr
    assert len(ray_state.jobs()) == jobs  # of the cluster that this process is connected to
    check_refined(source, tmp_path / "y")


@pytest.mark.filterwarnings("ignore")
def test_workers_and_a_node_that_are_killed_cost_nothing(cluster, tmp_path):
    source = fill(tmp_path / "x", some())
    progress = KillsWorkers(cluster, range(3, 60, 7), removed_at=30)
    result = refine_on_ray(StreamedRequest(str(source), tmp_path / "y"), partitions=5, progress=progress)
    check_refined(source, tmp_path / "y")
    assert progress.killed and len(cluster.list_all_nodes()) == 1
    assert "5 partitions, 2 workers" in result.protocol["engine"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x", "y"]
    cluster.add_node(**SMALL)


@pytest.mark.filterwarnings("ignore")
def test_workers_that_are_killed_while_they_embed_cost_nothing(cluster, tmp_path):
    pytest.importorskip("torch", reason="the package torch is not installed: pip install 'entourage[train]'")
    from entourage.encoders import build_encoder, save_encoder
    from entourage.encoders.shards import embed_to_file
    from entourage.engine.embed import Pictures, embed_on_ray

    save_encoder(tmp_path / "encoder", build_encoder("small", dim=8, width=4))
    pictures = Pictures.of("glyphs", "test", [str(tmp_path / "encoder")], None, {"per_class": 4, "max_classes": 10})
    progress = KillsWorkers(cluster, (1, 3))
    embed_on_ray(pictures, tmp_path / "there.npz", shard_size=5, progress=progress)
    embed_to_file(pictures.encoders(), pictures.load()[0], tmp_path / "here.npz", shard_size=5)
    with np.load(tmp_path / "there.npz") as found, np.load(tmp_path / "here.npz") as wanted:
        assert found["ids"].tolist() == wanted["ids"].tolist()  # nothing lost, nothing twice
        np.testing.assert_allclose(found["vectors"], wanted["vectors"], atol=1e-6)
    assert progress.killed and not list(tmp_path.glob("*.parts"))


@pytest.mark.filterwarnings("ignore")
def test_what_a_worker_refuses_is_told_in_a_sentence(cluster, tmp_path):
    vectors = some(240)
    vectors[200] = np.nan
    with pytest.raises(InputError) as refused:
        refine_on_ray(StreamedRequest(str(fill(tmp_path / "x", vectors)), tmp_path / "y"), partitions=3)
    assert "002.parquet: row" in str(refused.value) and "\n" not in str(refused.value)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.mark.attack
@pytest.mark.filterwarnings("ignore")
def test_killed_at_random_moments_nothing_is_lost(cluster, tmp_path):
    source, draw, killed = fill(tmp_path / "x", some()), np.random.default_rng(0), 0
    while killed < KILLS:
        progress = KillsWorkers(cluster, draw.choice(70, 8, replace=False) + 1)
        request = StreamedRequest(str(source), tmp_path / "y", overwrite=True)
        refine_on_ray(request, partitions=5, progress=progress)
        check_refined(source, tmp_path / "y")
        killed += len(progress.killed)


class Driver:
    """The command in a process of its own, which is killed, as by `kill -9`, when so many of its tasks are done."""

    def __init__(self, cluster, source, out, *options):
        command = [sys.executable, "-m", "entourage", "refine", str(source), "--engine", "ray", "--out", str(out)]
        self.tasks = out.with_name(f"{out.name}.refining") / "parts"
        self._process = subprocess.Popen(
            [*command, "--partitions", "5", "--ray-address", cluster.address, *options],
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        )  # fmt: skip

    def done(self) -> int:
        return len(list(self.tasks.glob("*_*.json")))

    def killed_after(self, tasks: int) -> bool:
        """Whether it was still at work then."""
        until = time.monotonic() + 300
        while self._process.poll() is None and self.done() < tasks and time.monotonic() < until:
            time.sleep(0.005)
        self._process.send_signal(signal.SIGKILL)
        self._process.communicate(timeout=60)
        return self._process.returncode == -signal.SIGKILL

    def ended(self) -> None:
        _, said = self._process.communicate(timeout=300)
        assert self._process.returncode == 0, said


@pytest.mark.attack
@pytest.mark.filterwarnings("ignore")
def test_a_driver_that_is_killed_is_resumed(cluster, tmp_path):
    source, out, kills = fill(tmp_path / "x", some()), tmp_path / "y", 0
    for tasks in (1, 15, 40, 70):
        driver = Driver(cluster, source, out, *["--resume"] * bool(kills))
        kills += driver.killed_after(tasks)
        assert kills and not out.exists()
    assert driver.done() >= tasks
    Driver(cluster, source, out, "--resume").ended()
    check_refined(source, out)
    assert kills == 4 and not list(tmp_path.glob("*.refining"))
