"""Arithmetic on uint8 above 127, where a signed byte would be negative."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch
from polyblocks_torch.importing.decompositions import decomposition_table
from polyblocks_torch.rewrites import rewrite_graph

aten = torch.ops.aten

X = torch.tensor([0, 1, 100, 127, 128, 130, 200, 255], dtype=torch.uint8)
Y = torch.tensor([3, 255, 7, 128, 127, 2, 201, 254], dtype=torch.uint8)


def arithmetic(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    return (
        x + y, x * 3, -x, x - 1, x / y, x % y, torch.abs(x), x.sum(), x.sum(0, dtype=torch.float32),
        x > y, x > 99.5, x + 1000.0, x + y.to(torch.int64), torch.maximum(x, y), x.float(),
        torch.div(x, y, rounding_mode="floor"), torch.where(x > 128, x, y), x.max(), x.cumsum(0),
        x ** 2, torch.sqrt(x), x.to(torch.float32).mean(), (x & y) | 5, torch.clamp(x, 50, 200),
    )  # fmt: skip


def test_results_equal_eager() -> None:
    compiled: Any = polyblocks_jit_torch(compile_options={"strict_target": True})(arithmetic)
    for got, expected in zip(compiled(X, Y), arithmetic(X, Y), strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6)


def test_signed_bytes_equal_eager() -> None:
    def function(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return x.max(), x.amin(0), torch.div(x, y, rounding_mode="trunc"), x / y, x % y, x + y

    compiled: Any = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
    x, y = X.view(torch.int8), Y.view(torch.int8)
    for got, expected in zip(compiled(x, y), function(x, y), strict=True):
        torch.testing.assert_close(got, expected)


def test_only_what_needs_it_is_widened() -> None:
    def function(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return torch.maximum(x, y) + x, x > 3, x / y, torch.cat([x, y]), x.amax()

    graph = make_fx(function, decomposition_table=decomposition_table(), tracing_mode="fake")(X, Y)
    rewrite_graph(graph)
    graph.graph.lint()
    conversions = [n for n in graph.graph.nodes if n.target is aten._to_copy.default]
    assert [c.meta["val"].dtype for c in conversions] == [torch.int32, torch.uint8]
    (largest,) = (n for n in graph.graph.nodes if n.target is aten.amax.default)
    assert list(largest.all_input_nodes) == conversions[:1]
    placeholders = [n.op == "placeholder" for n in graph.graph.nodes]
    assert placeholders[:2] == [True, True]
    assert not any(placeholders[2:])
