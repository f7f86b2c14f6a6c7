"""Tasks, one for each shard or partition, on a Ray cluster; or in this process, for tests and simulations.

All that goes to a task and comes back is small: names, numbers, sums. Vectors go by the shared folder, so that the
object store stays empty, and a lost machine takes nothing with it but the tasks it was at, which Ray gives to another.
"""

import os
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from entourage import __version__
from entourage.errors import EntourageError, StoreError
from entourage.runtime.extras import require

__all__ = ["Cluster", "InProcess", "ray_cluster"]

_RETRIES = 8  # of a task whose worker died
_AHEAD = 4  # tasks handed out for each processor
_SECONDS = 5.0  # in which a cluster has to answer at all
_OBJECT_STORE = 2**27  # bytes; what goes through it is small


class Cluster(Protocol):
    """Whoever does tasks."""

    workers: int
    """How many tasks are done at a time."""

    def each(self, work: Callable[..., Any], numbers: Iterable[int], *given: Any) -> Iterator[tuple[int, Any]]:
        """Yield (number, work(number, *given)) for each number, in any order."""


class InProcess:
    """One task after the other, in this process."""

    workers = 1

    def each(self, work: Callable[..., Any], numbers: Iterable[int], *given: Any) -> Iterator[tuple[int, Any]]:
        for number in numbers:
            yield number, work(number, *given)


class RayCluster:
    """Tasks on the Ray cluster that this process is connected to, a processor each.

    Parameters
    ----------
    gpus : bool
        Whether each task has a graphics card, too, if the cluster has any.
    """

    def __init__(self, gpus: bool = False) -> None:
        import ray

        self._ray, there = ray, ray.cluster_resources()
        self._gpus = int(gpus and there.get("GPU", 0) >= 1)
        self.workers = max(1, int(there.get("GPU" if self._gpus else "CPU", 1)))

    def each(self, work: Callable[..., Any], numbers: Iterable[int], *given: Any) -> Iterator[tuple[int, Any]]:
        """Only some tasks ahead of what is taken: however many there are, their results do not pile up here."""
        task = self._ray.remote(num_cpus=1, num_gpus=self._gpus, max_retries=_RETRIES)(work)
        shared = [self._ray.put(each) for each in given]
        waiting: dict[Any, int] = {}
        left = iter(numbers)
        try:
            while True:
                while len(waiting) < _AHEAD * self.workers and (number := next(left, None)) is not None:
                    waiting[task.remote(number, *shared)] = number
                if not waiting:
                    return
                with _ray_faults(self._ray):
                    (done,), _ = self._ray.wait(list(waiting), num_returns=1)
                    result = self._ray.get(done)
                yield waiting.pop(done), result
        finally:
            for each in waiting:  # where one was refused, the others are not needed
                self._ray.cancel(each)


@contextmanager
def ray_cluster(address: str | None, gpus: bool = False) -> Iterator[RayCluster]:
    """Connect to a cluster, or start one on this machine, for the length of a `with` block.

    Parameters
    ----------
    address : str, optional
        HOST:PORT of its head, ray://HOST:PORT of its client server, or "auto". None: RAY_ADDRESS if it is set, else
        a cluster of this machine, started for it. A connection that the process has already is used as it is.
    gpus : bool
        Whether tasks are given graphics cards, a card each, where there are any.
    """
    require("ray", "--engine ray")
    os.environ.setdefault("RAY_TQDM_PATCH_PRINT", "0")  # its own print is one that numba cannot compile for others
    import ray

    if ray.is_initialized():
        yield RayCluster(gpus)
        return
    # Given none, Ray would look for one that somebody started on this machine.
    named = "--ray-address" if address else "RAY_ADDRESS"
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    if address not in ("auto", "local"):
        _check_reachable(address, named)
    try:
        with _ray_faults(ray, None if address == "local" else address):
            ray.init(address=address, log_to_driver=False, **_of_this_machine(address))
            cluster = RayCluster(gpus)
            _check_versions(cluster)
        yield cluster
    finally:
        ray.shutdown()


def _of_this_machine(address: str) -> dict[str, Any]:
    """How a cluster is started where there is none: without a web page, and nothing is told to anybody."""
    if address != "local":
        return {}
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    return {"include_dashboard": False, "object_store_memory": _OBJECT_STORE}


def _check_reachable(address: str, named: str) -> None:
    """Ray itself tries for half a minute, and says much."""
    place = address.partition("://")[2] or address
    host, _, port = place.rpartition(":")
    if not host or not port.isdecimal():
        raise StoreError(f"{named} is {address!r}; wanted HOST:PORT of a running cluster, ray://HOST:PORT or auto")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise StoreError(
            f"no Ray cluster answers at {address} ({error}), which {named} names; start one there (ray start --head), "
            f"or leave {named} out to use this machine"
        ) from error


def _version_there(number: int) -> str:
    from entourage import __version__

    return __version__


def _check_versions(cluster: RayCluster) -> None:
    for _, found in cluster.each(_version_there, [0]):
        if found != __version__:
            raise StoreError(
                f"workers of the cluster have Entourage {found} and this is {__version__}; install the same everywhere"
            )


@contextmanager
def _ray_faults(ray: Any, address: str | None = None) -> Iterator[None]:
    """Whatever was refused in a task is raised as what it was; what the cluster could not do, in a sentence."""
    try:
        yield
    except ray.exceptions.RayTaskError as error:  # and of the kind of its cause, with all that led to it as its text
        cause = error.cause if isinstance(getattr(error, "cause", None), Exception) else None
        if isinstance(cause, EntourageError | MemoryError | OSError):
            raise cause from None
        if isinstance(cause, ModuleNotFoundError):
            raise StoreError(
                f"workers of the cluster cannot import {cause.name}; install entourage=={__version__} everywhere"
            ) from error
        raise
    except EntourageError:
        raise
    except (ray.exceptions.RayError, ConnectionError, RuntimeError, ValueError) as error:
        text = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        where = f"the Ray cluster at {address}" if address else "the Ray cluster"
        raise StoreError(f"{where} does not work: {text}; check it, and resume (--resume)") from error
