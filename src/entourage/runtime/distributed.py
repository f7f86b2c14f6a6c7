"""Several processes that train one model, as `torchrun` starts them; the only place that knows torch.distributed.

Each process works on its share of a batch, all of them on the same weights:

1. it embeds its rows; `gathered` joins the embeddings of all, so that the loss sees the whole batch;
2. every process computes that one loss, and its gradient with respect to its own rows;
3. `average_gradients` makes the gradients those of a single process with the whole batch; all take the same step.

Started alone, every function here does nothing. Plain batch norm takes its statistics from a process's own share;
torch's SyncBatchNorm, which would take them from the whole batch, exists for CUDA only and not for CPU with gloo.
So a net with batch norm learns a little differently on several processes; one without it learns the same.
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor, distributed, nn

from entourage.runtime.launch import launched

__all__ = [
    "average_gradients",
    "from_main",
    "gathered",
    "is_main",
    "local_rank",
    "rank",
    "running",
    "running_on",
    "share_state",
    "start",
    "stop",
    "world_size",
]

_PATIENCE = timedelta(hours=2)  # the others wait while the first evaluates


def start(backend: str | None = None) -> bool:
    """Join the other processes if `torchrun` started this one among several.

    Parameters
    ----------
    backend : str, optional
        How processes exchange tensors; by default "nccl" with CUDA and "gloo" without.

    Returns
    -------
    bool
        Whether this call joined them: False for a process on its own, and for one that has joined before.
    """
    if _active() or launched().world_size == 1:
        return False
    backend = backend or ("nccl" if torch.cuda.is_available() else "gloo")
    if backend == "nccl":
        torch.cuda.set_device(local_rank())
    distributed.init_process_group(backend, timeout=_PATIENCE)
    return True


def stop() -> None:
    """Leave the other processes."""
    if _active():
        distributed.destroy_process_group()


@contextmanager
def running(backend: str | None = None) -> Iterator[None]:
    """`start` for as long as the block lasts, unless it was started before."""
    started = start(backend)
    try:
        yield
    finally:
        if started:
            stop()


def running_on(device: torch.device) -> AbstractContextManager[None]:
    """`running`, with the backend for tensors on such a device."""
    return running("gloo" if device.type == "cpu" else None)


def rank() -> int:
    """The number of this process, 0 for the first or only one."""
    return distributed.get_rank() if _active() else 0


def local_rank() -> int:
    """The number of this process on its machine: which of the machine's devices is its own."""
    return launched().local_rank


def world_size() -> int:
    """How many processes there are."""
    return distributed.get_world_size() if _active() else 1


def is_main() -> bool:
    """Whether this is the process that writes files and shows progress."""
    return rank() == 0


def gathered(rows: Tensor) -> Tensor:
    """Join the rows of all processes in the order of their ranks, with gradients.

    Every process must compute the same loss of the result; the gradient that arrives at its rows is world_size times
    theirs, which `average_gradients` divides by.

    Parameters
    ----------
    rows : tensor of shape (b_r, ...)
        The rows of this process; processes may have different numbers of them.

    Returns
    -------
    tensor of shape (sum of b_r, ...)
    """
    if not _active():
        return rows
    joined: Tensor = _Gather.apply(rows)
    return joined


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        lengths = [torch.zeros(1, dtype=torch.int64, device=rows.device) for _ in range(world_size())]
        distributed.all_gather(lengths, torch.tensor([len(rows)], device=rows.device))
        sizes = [int(length) for length in lengths]
        padded = rows.new_zeros(max(sizes), *rows.shape[1:])
        padded[: len(rows)] = rows
        parts = [torch.empty_like(padded) for _ in sizes]
        distributed.all_gather(parts, padded)
        ctx.own = slice(sum(sizes[: rank()]), sum(sizes[: rank() + 1]))
        return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient[ctx.own] * world_size()


def average_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Replace every gradient by its mean over all processes, in one exchange.

    Summing what each process knows about the encoder gives the gradient of the whole batch (see `gathered`);
    parameters of the loss have the whole gradient everywhere, and their mean is that gradient. A gradient missing
    here counts as 0, for another process may have one; missing everywhere, it stays so.

    Parameters
    ----------
    parameters : iterable of torch parameters
        Those of the encoder and of the loss, in the same order in every process.
    """
    if not _active():
        return
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    gradients = [p.grad if p.grad is not None else torch.zeros_like(p) for p in trained]
    present = gradients[0].new_tensor([p.grad is not None for p in trained])
    flat = torch.cat([*(gradient.flatten() for gradient in gradients), present])
    distributed.all_reduce(flat)
    flat /= world_size()
    *means, present = flat.split([*(gradient.numel() for gradient in gradients), len(present)])
    for parameter, gradient, mean, anywhere in zip(trained, gradients, means, present.tolist(), strict=True):
        if anywhere:
            parameter.grad = gradient.copy_(mean.view_as(gradient))


def share_state(model: nn.Module) -> None:
    """Give all processes the weights and buffers of the first."""
    if _active():
        for value in model.state_dict().values():
            exchanged = value.contiguous()
            distributed.broadcast(exchanged, src=0)
            value.copy_(exchanged)
        distributed.barrier()


def from_main(number: float) -> float:
    """The first process's number, in every process."""
    if not _active():
        return number
    device = "cuda" if distributed.get_backend() == "nccl" else "cpu"
    box = torch.tensor([number], dtype=torch.float64, device=device)
    distributed.broadcast(box, src=0)
    return box.item()


def _active() -> bool:
    return distributed.is_available() and distributed.is_initialized()
