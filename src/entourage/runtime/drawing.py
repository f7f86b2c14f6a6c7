"""What torch draws inside a block, taken from generators of the block's own instead of torch's global state.

Layers and dropout take no generator: they draw from one state of the whole process, which belongs to the caller and
which any other thread may draw from in between. Every operation that draws is marked as such by torch; here each is
given the block's generator as it is about to be run. That holds for this thread alone, and the global state is not
touched, except for the few operations that know no generator: they get it for as long as they take.

Looking at every operation takes some microseconds each, which is nothing while a network is built and much while it is
trained. `DrawingWhereNeeded` looks only at what is known to draw by its name.
"""

import functools
import re
from threading import Lock, local
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["DrawingFrom", "DrawingWhereNeeded"]

_global_state = Lock()
_inside = local()
_MAY_DRAW = re.compile(
    "rand|dropout|uniform|bernoulli|multinomial|binomial|poisson|exponential|geometric|cauchy|gamma|dirichlet"
    "|normal_|^normal$|gumbel|rrelu|attention|rnn|lstm|gru|fractional|kaiming|xavier|orthogonal|sparse_$"
)


class _Block:
    """A mode of torch of which this thread knows that it is inside; stands before the mode among the bases."""

    def __enter__(self) -> Any:
        _blocks().append(self)
        super().__enter__()  # type: ignore[misc]
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[misc]
        _blocks().pop()


class DrawingFrom(_Block, TorchDispatchMode):
    """A block in which this thread draws from a seed: what `torch.manual_seed` would make it draw.

    Parameters
    ----------
    seed : int
        Seeds a generator for each device that is drawn on.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._seed = seed
        self._generators: dict[torch.device, torch.Generator] = {}

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation, one that draws with the generator of its device."""
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded not in operation.tags or kwargs.get("generator") is not None:
            return operation(*args, **kwargs)
        device = _device(args, kwargs)
        if device.type == "meta":  # shapes alone: there are no numbers to draw
            return operation(*args, **kwargs)
        generator = self._generator(device)
        operation = _with_generator(operation)
        if any(argument.name == "generator" for argument in operation._schema.arguments):
            return operation(*args, **kwargs | {"generator": generator})
        return _by_the_global_state(generator, lambda: operation(*args, **kwargs))

    def _generator(self, device: torch.device) -> torch.Generator:
        if device not in self._generators:
            self._generators[device] = torch.Generator(device).manual_seed(self._seed)
        return self._generators[device]


class DrawingWhereNeeded(_Block, TorchFunctionMode):
    """The same block where speed matters: only functions whose names tell that they may draw are looked into.

    It may be entered again, and goes on drawing where it was. A function of another name that draws, as one of a
    compiled extension might, draws from torch's global state; so does what torch computes again for the gradient.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._drawing = DrawingFrom(seed)

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run a function of torch; within a block inside this one, that one says what is drawn."""
        if _blocks()[-1] is not self or not _may_draw(getattr(function, "__name__", "")):
            return function(*args, **kwargs or {})
        with self._drawing:
            return function(*args, **kwargs or {})


def _blocks() -> list[Any]:
    """The blocks that this thread is in, the innermost last."""
    blocks: list[Any] = _inside.__dict__.setdefault("blocks", [])
    return blocks


@functools.cache
def _may_draw(name: str) -> bool:
    return _MAY_DRAW.search(name) is not None


def _device(args: Any, kwargs: dict[str, Any]) -> torch.device:
    """Where an operation draws: where its first tensor is or, if it makes one, where that shall be."""
    tensor = next((value for value in (*args, *kwargs.values()) if isinstance(value, torch.Tensor)), None)
    return _as_tensors_say(torch.device(kwargs.get("device") or "cpu")) if tensor is None else tensor.device


def _as_tensors_say(device: torch.device) -> torch.device:
    """A device by the one name it has as the device of a tensor: a card with its number, the processor without."""
    if device.type == "cpu":
        return torch.device("cpu")
    if device.index is not None:
        return device
    return torch.device(device.type, torch.cuda.current_device() if device.type == "cuda" else 0)


def _with_generator(operation: Any) -> Any:
    """The form of an operation that takes a generator, such as torch.rand's; itself where there is none other."""
    name = operation._overloadname
    other = "generator" if name == "default" else f"{name}_generator"
    return getattr(operation.overloadpacket, other) if other in operation.overloadpacket.overloads() else operation


def _by_the_global_state(generator: torch.Generator, draw: Any) -> Any:
    """Draw with torch's global state where the generator's is, and leave the generator where it is then."""
    device = generator.device
    of_card = device.type == "cuda"
    with _global_state, torch.random.fork_rng(devices=[device] if of_card else []):
        if of_card:
            torch.cuda.set_rng_state(generator.get_state(), device)
        else:
            torch.set_rng_state(generator.get_state())
        drawn = draw()
        generator.set_state(torch.cuda.get_rng_state(device) if of_card else torch.get_rng_state())
    return drawn
