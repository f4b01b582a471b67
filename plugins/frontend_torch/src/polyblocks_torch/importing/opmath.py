"""The type in which operations on 16-bit floating-point numbers are computed.

PyTorch's kernels compute in float32 (``opmath_type`` in its sources) and round the result. A
decomposition that was written for any type rounds after each of its operations::

    %0 = mul(%a, %b) : float16
    %1 = mul(%c, %d) : float16
    %2 = sub(%0, %1) : float16

It is recorded again on operands of float32, and what it gives is rounded::

    %0 = mul(convert_element_type(%a, float32), convert_element_type(%b, float32)) : float32
    %1 = mul(convert_element_type(%c, float32), convert_element_type(%d, float32)) : float32
    %2 = convert_element_type(sub(%0, %1), float16) : float16

So is an operation that the lowering takes apart (a mean is a sum and a quotient), one that adds to
numbers in memory, and one with a number that 16 bits do not hold. Operations that cast themselves,
are elementwise or only move numbers stay as they are, and so do products of matrices: the lowering
accumulates 16-bit products in float32, and a chip's units may do so.

Programs convert by ``_to_copy``, and mean it. Conversions that decompositions make, or that are
added here, become another operation, since a result that is computed with right away need not be
rounded (see :mod:`polyblocks_torch.elementwise`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

#: The types that are computed in another one.
NARROW = frozenset({torch.float16, torch.bfloat16})

#: Operations, besides views, whose results are numbers that they were given or know exactly.
_EXACT = frozenset(
    """abs amax amin argmax argmin cat ceil clone constant_pad_nd copy copysign cummax cummin
    diagonal_scatter embedding empty empty_like empty_permuted empty_strided expand_copy fill flip
    floor full full_like gather index index_select kthvalue lift_fresh_copy masked_fill
    masked_scatter max max_pool2d_with_indices max_pool3d_with_indices maximum median min minimum
    mode nanmedian neg new_empty new_empty_strided new_full new_ones new_zeros ones ones_like relu
    repeat roll round scalar_tensor scatter select_scatter sign slice_scatter sort topk tril triu
    trunc where zeros zeros_like""".split()
)

#: Sums of products and plain sums, which the lowering adds up in float32 and rounds once.
_SUMS = frozenset("bmm convolution dot mm mv prod sum".split())

_CONVERSIONS = frozenset({"_to_copy", "convert_element_type"})


def is_narrow(value: Any) -> bool:
    """Whether a value is a tensor of 16-bit floating-point numbers."""
    return isinstance(value, torch.Tensor) and value.dtype in NARROW


def converted(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A tensor in another type, whose rounding may be left out where it is computed with."""
    if value.dtype == dtype:
        return value
    return torch.ops.prims.convert_element_type(value, dtype)


def wide_product(op: Any, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """A product of matrices whose sums are not rounded to the 16 bits of its operands.

    Args:
        op: ``aten.mm`` or ``aten.bmm``.
        a, b: of one type.

    Returns:
        float32 if that is narrow, else the same type.
    """
    return op.dtype(a, b, torch.float32) if a.dtype in NARROW else op(a, b)


def rounds_between(nodes: Collection[fx.Node]) -> bool:
    """Whether what one operation is made of rounds to 16 bits more often than at its end.

    Args:
        nodes: of one graph, in any order.
    """
    if not any(is_narrow(value) for node in nodes for value in _values(node)):
        return False
    if any(in_steps(node) for node in nodes):
        return True
    rounded: dict[fx.Node, bool] = {}

    def is_rounded(node: fx.Node) -> bool:
        """Whether it is, or has been taken from, a computed number that was rounded."""
        if node not in nodes:
            return False
        if node not in rounded:
            rounded[node] = (
                any(is_narrow(value) for value in _values(node))
                if computes(node)
                else any(is_rounded(operand) for operand in node.all_input_nodes)
            )
        return rounded[node]

    return any(
        computes(node) and any(is_rounded(operand) for operand in node.all_input_nodes)
        for node in nodes
    )


def in_steps(node: fx.Node) -> bool:
    """Whether one operation on 16-bit numbers is lowered to several, or rounds its operands.

    Comparisons, which round numbers that they are given to the type of the tensor, are none.
    """
    if not any(is_narrow(value) for value in _values(node)) or not computes(node):
        return False
    if torch.Tag.nondeterministic_seeded in node.target.tags:  # type: ignore[union-attr]
        return False
    if torch.Tag.pointwise in node.target.tags:  # type: ignore[union-attr]
        limits = (value.dtype for value in _values(node) if is_narrow(value))
        return not all(_holds(dtype, number) for dtype in limits for number in _numbers(node))
    return _name(node) not in _SUMS | _CONVERSIONS


def _values(node: fx.Node) -> list[Any]:
    value = node.meta.get("val")
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _name(node: fx.Node) -> str:
    name: str = node.target.overloadpacket.__name__  # type: ignore[union-attr]
    return name


def computes(node: fx.Node) -> bool:
    """Whether results of a node may not be among its operands."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or target.is_view:
        return False
    if _name(node) in _CONVERSIONS:
        # From a narrow type each number stays what it is.
        return not any(is_narrow(operand.meta.get("val")) for operand in node.all_input_nodes)
    if _name(node) == "_unsafe_index_put":
        accumulates = node.args[3:4]
        return bool(accumulates and accumulates[0])
    if not node.all_input_nodes:
        return _name(node) in ("arange", "linspace", "logspace")
    return _name(node) not in _EXACT


def _numbers(node: fx.Node) -> Iterator[float]:
    for value in pytree.tree_leaves((node.args, node.kwargs)):
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            yield value


def _holds(dtype: torch.dtype, number: float) -> bool:
    """Whether a number stays what it is in a type; of those too near to zero the significand."""
    if not math.isfinite(number):
        return True
    significand = math.frexp(number)[0] / torch.finfo(dtype).eps * 2
    return significand.is_integer() and abs(number) <= torch.finfo(dtype).max


def in_float32(function: Callable[..., Any], results: Any) -> Callable[..., Any]:
    """``function`` with its narrow operands converted to float32.

    Args:
        function: of tensors, dtypes and whatever else.
        results: tensors of the dtypes that the results shall have.
    """

    def widened(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = pytree.tree_map(_widened, (args, kwargs))
        made, tree = pytree.tree_flatten(function(*args, **kwargs))
        shall = pytree.tree_leaves(results)
        return pytree.tree_unflatten(list(_rounded(made, shall)), tree)

    return widened


def with_rounded_integers(node: fx.Node) -> Callable[..., Any]:
    """The operation of a node, with integers rounded to the 16 bits of its result before.

    An integer scalar that is combined with narrow numbers was converted to their type: in
    float16 70000 is an infinity.
    """
    function: Any = node.target
    result = node.meta["val"]
    if torch.Tag.pointwise not in function.tags or not is_narrow(result):
        return function
    if not any(_may_round(operand.meta.get("val")) for operand in node.all_input_nodes):
        return function

    def rounded(*args: Any, **kwargs: Any) -> Any:
        args = pytree.tree_map_only(
            torch.Tensor, lambda x: x.to(result.dtype) if _may_round(x) else x, args
        )
        return function(*args, **kwargs)

    return rounded


def _may_round(value: Any) -> bool:
    """Whether a value is a tensor of integers of more than 8 bits."""
    return isinstance(value, torch.Tensor) and (
        value.dtype in (torch.int16, torch.int32, torch.int64)
    )


def need_not_round(node: fx.Node) -> None:
    """Say of a conversion from or to 16 bits, in place, that its rounding may be left out."""
    if node.target is not torch.ops.aten._to_copy.default or set(node.kwargs) != {"dtype"}:
        return
    (operand,) = node.all_input_nodes
    value, result = operand.meta["val"], node.meta["val"]
    if value.dtype == result.dtype or not (is_narrow(value) or is_narrow(result)):
        return
    if value.is_floating_point() and result.is_floating_point():
        node.target = torch.ops.prims.convert_element_type.default
        node.args, node.kwargs = (operand, result.dtype), {}


def _widened(value: Any) -> Any:
    if is_narrow(value):
        return converted(value, torch.float32)
    return torch.float32 if isinstance(value, torch.dtype) and value in NARROW else value


def _rounded(values: Iterable[Any], shall: Iterable[Any]) -> Iterator[Any]:
    for value, like in zip(values, shall, strict=True):
        yield converted(value, like.dtype) if is_narrow(like) else value
