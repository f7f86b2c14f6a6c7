"""A graph of ONNX, written down operator by operator: `nodes.Add(a, b)` adds a node and names its output."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

__all__ = ["OPSET", "Nodes", "Value", "as_model"]

Value = str | int | float | bool | np.ndarray
"""The name of a value in the graph, or a constant; Python's numbers become int64 and float32."""

OPSET = 18
_IR_VERSION = 9  # that of the first runtimes that know this opset
_KINDS: dict[type, type] = {bool: np.bool_, int: np.int64, float: np.float32}


class Nodes:
    """The nodes and constants of a graph that is being written.

    >>> nodes = Nodes()
    >>> nodes.Add("x", 1.0)
    'add_1'
    """

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def __getattr__(self, operator: str) -> Callable[..., str]:
        if not operator[:1].isupper():
            raise AttributeError(operator)
        return lambda *inputs, **attributes: self.add(operator, *inputs, **attributes)[0]

    def add(self, operator: str, *inputs: Value, count: int = 1, **attributes: Any) -> list[str]:
        """Add a node.

        Parameters
        ----------
        operator : str
            As ONNX names it, such as "TopK".
        *inputs : Value
        count : int
            How many outputs it has.
        **attributes
            Its attributes.

        Returns
        -------
        list of str
            The names of its outputs.
        """
        from onnx import helper

        names = [each if isinstance(each, str) else self.constant(each) for each in inputs]
        number = len(self._nodes) + 1
        outputs = [f"{self._prefix}{operator.lower()}_{number}" + "_b" * place for place in range(count)]
        self._nodes.append(helper.make_node(operator, names, outputs, **attributes))
        return outputs

    def constant(self, value: Any) -> str:
        """Name a constant."""
        from onnx import numpy_helper

        array = value if isinstance(value, np.ndarray) else np.array(value, _KINDS[type(value)])
        name = f"{self._prefix}constant_{len(self._constants) + 1}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name))
        return name

    def cast(self, value: Value, kind: type) -> str:
        """Add a node that turns values into another kind of number."""
        from onnx import helper

        return self.Cast(value, to=helper.np_dtype_to_tensor_dtype(np.dtype(kind)))

    def graph(self, name: str, inputs: Mapping[str, tuple[type, Any]], outputs: Mapping[str, tuple[type, Any]]) -> Any:
        """The whole graph.

        Parameters
        ----------
        name : str
        inputs, outputs : dict
            By name, the kind of numbers and the shape, whose sizes may be names; None: of any shape. `rename` gives a
            value the name of an output.

        Returns
        -------
        onnx.GraphProto
        """
        from onnx import helper

        def described(values: Mapping[str, tuple[type, Any]]) -> list[Any]:
            return [
                helper.make_tensor_value_info(each, helper.np_dtype_to_tensor_dtype(np.dtype(kind)), shape)
                for each, (kind, shape) in values.items()
            ]

        return helper.make_graph(self._nodes, name, described(inputs), described(outputs), self._constants)

    def rename(self, value: str, name: str) -> None:
        """Give a value the name that an output has."""
        from onnx import helper

        self._nodes.append(helper.make_node("Identity", [value], [name]))


def as_model(graph: Any, metadata: dict[str, str]) -> Any:
    """The graph as a model that runtimes read, with what it is for."""
    from onnx import checker, helper

    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=_IR_VERSION, producer_name="entourage"
    )
    helper.set_model_props(model, metadata)
    checker.check_model(model, full_check=True)
    return model
