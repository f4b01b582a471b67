"""Which operations on 16-bit numbers are computed in float32, and how."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional as F

from polyblocks_torch.elementwise import number_in
from polyblocks_torch.importing.decompositions import decomposition_table
from polyblocks_torch.importing.lowering import lower_graph
from polyblocks_torch.recording.retrace import decompose

aten, prims = torch.ops.aten, torch.ops.prims
HALF = torch.float16
CONVERSIONS = (aten._to_copy.default, prims.convert_element_type.default)


def decomposed(function: Callable[..., Any], *shapes: tuple[int, ...]) -> torch.fx.Graph:
    """The graph that is lowered, of a function of float16 tensors."""
    operands = [torch.randn(shape).to(HALF) for shape in shapes]
    return decompose(make_fx(function, tracing_mode="fake")(*operands), decomposition_table())[
        0
    ].graph


def narrow_ops(graph: torch.fx.Graph) -> set[str]:
    """The operations whose results have 16 bits, but for conversions and views."""
    return {
        str(node.target.overloadpacket)
        for node in graph.nodes
        if node.op == "call_function"
        and isinstance(node.target, torch._ops.OpOverload)
        and node.meta["val"].dtype == HALF
        and not node.target.is_view
        and node.target not in CONVERSIONS
    }


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (torch.linalg.cross, [(4, 3), (4, 3)]),
        (lambda x: x.mean(0), [(5, 3)]),
        (lambda x: F.avg_pool2d(x, 2), [(1, 2, 4, 4)]),
        (lambda x, y: x.scatter_add(0, torch.zeros(5, 3, dtype=torch.int64), y), [(5, 3), (5, 3)]),
        (lambda x: x * 0.3, [(5,)]),
        (torch.addmm, [(3,), (2, 4), (4, 3)]),
        (torch.baddbmm, [(2, 2, 3), (2, 2, 4), (2, 4, 3)]),
    ],
    ids=["cross", "mean", "avg_pool", "scatter_add", "number", "addmm", "baddbmm"],
)
def test_what_has_several_steps_is_computed_in_float32(function: Any, shapes: Any) -> None:
    assert not narrow_ops(decomposed(function, *shapes))


def test_what_rounds_once_stays() -> None:
    graph = decomposed(lambda x, y: torch.relu(x @ y) * 0.5 + x.sum(0), (3, 3), (3, 3))
    assert not any(n.target is prims.convert_element_type.default for n in graph.nodes)
    assert {"aten.mm", "aten.relu", "aten.mul", "aten.sum", "aten.add"} <= narrow_ops(graph)


def test_moving_numbers_is_no_computation() -> None:
    graph = decomposed(lambda x: torch.cat((x, x.flip(0)))[1:].clamp(min=0), (3, 3))
    assert not any(n.target is prims.convert_element_type.default for n in graph.nodes)


def test_a_comparison_keeps_its_operands() -> None:
    graph = decomposed(lambda x: x == 0.3, (3,))
    (node,) = (n for n in graph.nodes if n.op == "call_function")
    assert node.target is aten.eq.Scalar


def test_products_take_16_bits_and_give_float32() -> None:
    operands = [torch.randn(shape).to(HALF) for shape in [(3,), (2, 4), (4, 3)]]
    traced = make_fx(torch.addmm, tracing_mode="fake")(*operands)
    text = str(lower_graph(decompose(traced, decomposition_table())[0]))
    assert "ins(%arg1, %arg2 : tensor<2x4xf16>, tensor<4x3xf16>)" in text
    assert text.count("arith.truncf") == 1


def test_numbers_are_rounded() -> None:
    assert number_in(0.3, HALF) == 0.300048828125
    assert number_in(0.3, torch.bfloat16) == 0.30078125
    assert number_in(0.3, torch.float64) == 0.3
