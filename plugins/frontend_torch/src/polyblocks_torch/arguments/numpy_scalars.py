"""Scalars of NumPy beside tensors are numbers, as in eager mode.

Dynamo passes ``np.float64(2.5)`` as a tensor without dimensions, and what NumPy computes in a
function is one, too. Beside a tensor of integers its type would decide that of the result, float64;
eager mode takes it for a Python number, and gives float32. So it is converted to the type that the
tensor and such a number are promoted to.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import fx
from torch._dynamo.source import NumpyTensorSource
from torch._dynamo.symbolic_convert import InstructionTranslator
from torch._dynamo.utils import (
    numpy_attr_wrapper,
    numpy_method_wrapper,
    numpy_operator_wrapper,
    numpy_to_tensor_wrapper,
)

from polyblocks_torch.arguments.overlapping_updates import updated_by

_OPERATORS: tuple[Callable[..., Any], ...] = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
    operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift,
)  # fmt: skip

#: Names of functions, methods and operators that promote their operands.
_NAMES = frozenset(
    """add sub subtract mul multiply div divide true_divide floor_divide remainder fmod pow
    float_power lt le gt ge eq ne less less_equal greater greater_equal not_equal rsub clamp
    clamp_min clamp_max clip where bitwise_and bitwise_or bitwise_xor bitwise_left_shift
    bitwise_right_shift""".split()
) | {f.__name__.strip("_") for f in _OPERATORS}

#: Functions that return arrays; NumPy's others return scalars for 0 dimensions.
_MAKES_ARRAYS = frozenset(
    "array asarray asanyarray ascontiguousarray copy empty full ones zeros reshape".split()
)

#: Functions of a scalar that return scalars: ``real``, ``imag``, its size.
_OF_SCALARS = frozenset({numpy_attr_wrapper, abs, operator.abs})

_WRAPPERS = (numpy_to_tensor_wrapper, numpy_operator_wrapper, numpy_method_wrapper)


def scalars_as_numbers(gm: fx.GraphModule) -> None:
    """Convert the scalars of a graph of Dynamo where they meet tensors, in place."""
    scalars = {node for node in gm.graph.nodes if _is_scalar(node)}
    if not scalars:
        return
    values = {node: node.meta.get("example_value") for node in gm.graph.nodes}
    changed: set[fx.Node] = set()
    for node in list(gm.graph.nodes):
        if node.op not in ("call_function", "call_method"):
            continue
        if _name(node) in _NAMES:
            operands = node.args[1:] if _name(node) == "where" else node.args
            tensors = [n for n in operands if isinstance(n, fx.Node) and n not in scalars]
            if len(tensors) == 1 and isinstance(values[tensors[0]], torch.Tensor):
                for scalar in [n for n in node.all_input_nodes if n in scalars]:
                    number = _converted(gm.graph, node, scalar, values[tensors[0]])
                    if number is not scalar:
                        values[number] = number.meta["example_value"]
                        node.replace_input_with(scalar, number)
                        changed.add(number)
        if changed.intersection(node.all_input_nodes) and not any(updated_by(node)):
            values[node] = _result(node, values)
            changed.add(node)
    gm.recompile()


def _result(node: fx.Node, values: Mapping[fx.Node, Any]) -> Any:
    """A node's current result, whose type may differ from the recorded one."""
    args, kwargs = fx.map_arg((node.args, node.kwargs), values.get)
    try:
        with values[node].fake_mode:
            if node.op == "call_method":
                return getattr(args[0], str(node.target))(*args[1:], **kwargs)
            return node.target(*args, **kwargs)  # type: ignore[operator]
    except Exception:  # whatever an operation says to operands of another type
        return values[node]


def _converted(graph: fx.Graph, node: fx.Node, scalar: fx.Node, tensor: torch.Tensor) -> fx.Node:
    """A scalar as the number that eager mode takes it for beside a tensor."""
    number = scalar
    if scalar.meta["example_value"].dtype == torch.complex64:
        # It is no Python complex, as complex128 is: eager mode asks it for a float.
        warnings.warn(_DISCARDED, np.exceptions.ComplexWarning, stacklevel=2)
        number = _added(graph, node, torch.real, scalar)
    dtype = number.meta["example_value"].dtype
    wanted = torch.result_type(tensor, _number(dtype))
    decides = tensor.dim() and _same_kind(dtype, wanted)
    if dtype == wanted or (wanted == tensor.dtype and decides):
        return number
    return _added(graph, node, torch.Tensor.to, number, wanted)


_DISCARDED = (
    "PyTorch takes a numpy.complex64 beside a tensor for its real part, and so does the compiled "
    "function; pass a Python complex, or a numpy.complex128"
)


def _added(
    graph: fx.Graph, before: fx.Node, function: Callable[..., Any], scalar: fx.Node, *args: Any
) -> fx.Node:
    """A call on a scalar, in front of a node."""
    with graph.inserting_before(before):
        made = graph.call_function(function, (scalar, *args))
    made.meta = dict(scalar.meta)
    made.meta["example_value"] = function(scalar.meta["example_value"], *args)
    return made


def _number(dtype: torch.dtype) -> complex:
    """A Python number of the kind that eager mode makes of a scalar; of booleans a float."""
    if dtype.is_complex:
        return 1j
    return 1.0 if dtype.is_floating_point or dtype == torch.bool else 1


def _same_kind(dtype: torch.dtype, other: torch.dtype) -> bool:
    """Whether a tensor of one with dimensions decides over a scalar of the other."""
    return dtype.is_floating_point and other.is_floating_point


def _is_scalar(node: fx.Node) -> bool:
    value = node.meta.get("example_value")
    if not isinstance(value, torch.Tensor) or value.dim():
        return False
    if node.op == "placeholder":
        source = getattr(node.meta.get("grapharg"), "source", None)
        return isinstance(source, NumpyTensorSource) and not _is_array(source)
    if node.target in _OF_SCALARS:
        return isinstance(node.args[0], fx.Node) and _is_scalar(node.args[0])
    return isinstance(node.target, _WRAPPERS) and _name(node) not in _MAKES_ARRAYS


def _is_array(source: NumpyTensorSource) -> bool:
    """Whether an argument is an array without dimensions, and no scalar."""
    output = InstructionTranslator.current_tx().output
    scope = {"G": output.global_scope, "L": output.local_scope}
    try:
        return isinstance(source.base.get_value(scope, {}, {}), np.ndarray)
    except Exception:  # whatever the expression of a source runs into
        return False


def _name(node: fx.Node) -> str:
    target = node.target
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    name = name.removeprefix("wrapped_").strip("_")
    # ``iadd`` and ``radd`` are said as ``add``.
    return name[1:] if name[:1] in "ir" and name[1:] in _NAMES else name
