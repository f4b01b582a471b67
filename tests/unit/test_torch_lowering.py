"""FX graphs become linalg on tensors, or an error that names the op and the user's line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from polyblocks.errors import UnsupportedError
from polyblocks_torch.importing import lowering
from polyblocks_torch.importing.decompositions import decomposition_table
from polyblocks_torch.importing.lowering import lower_graph

aten = torch.ops.aten

TRACE = '  File "/home/user/model.py", line 12, in forward\n    return f(x)\n'


def traced(function: Callable[..., Any], *inputs: Any) -> torch.fx.GraphModule:
    graph = make_fx(function, decomposition_table=decomposition_table(), tracing_mode="fake")(
        *inputs
    )
    for node in graph.graph.nodes:
        node.meta["stack_trace"] = TRACE
    return graph


def lowered(function: Callable[..., Any], *inputs: Any) -> str:
    return str(lower_graph(traced(function, *inputs)))


def test_ops_carry_their_name_and_the_users_line() -> None:
    module = lower_graph(traced(lambda x: torch.tanh(x) @ x, torch.randn(4, 4)))
    text = module.operation.get_asm(enable_debug_info=True)
    assert 'loc("/home/user/model.py":12:0)' in text
    assert 'loc("aten.tanh.default"(#loc' in text
    assert 'loc("aten.mm.default"(#loc' in text


def test_graph_is_not_changed() -> None:
    graph = traced(lambda x: torch.fft.fft(x).abs(), torch.randn(2, 6))
    before = graph.code
    lower_graph(graph)
    graph.recompile()
    assert graph.code == before


def test_a_graph_that_may_be_consumed_becomes_the_same() -> None:
    def both(x: Any) -> Any:
        return torch.fft.fft(x).abs(), x.add(1)

    graph = traced(both, torch.randn(2, 6))
    kept = lower_graph(graph).operation.get_asm(enable_debug_info=True)
    assert lower_graph(graph, consume=True).operation.get_asm(enable_debug_info=True) == kept


def test_every_number_is_imported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []
    monkeypatch.setattr(lowering, "lower_ops", lambda module, _: found.append(str(module)))
    leaky_relu = torch.ops.aten.leaky_relu
    lowered(
        lambda x: (leaky_relu(x[1:3, 2:4], 0.0), leaky_relu(x[:2, 1:3], 0.0), leaky_relu(x, -0.0)),
        torch.randn(4, 4),
    )
    constants = [line.split(" = ")[1] for line in found[0].splitlines() if "torch.constant" in line]
    assert len(constants) == len(set(constants))
    assert {c.split()[1] for c in constants if c.startswith("torch.constant.float")} >= {
        "0.000000e+00",
        "-0.000000e+00",
    }


def test_floats_are_compared_in_their_type() -> None:
    text = str(lowered(lambda x: (x > 1) & (x != 0.3), torch.randn(3)))
    assert text.count("arith.cmpf") == 2
    assert "f64" not in text


def test_none_is_not_a_result() -> None:
    graph = traced(lambda x: (x + 1, x + 2), torch.randn(3))
    output = next(node for node in graph.graph.nodes if node.op == "output")
    output.args = ((None, output.args[0][1]),)
    assert "-> tensor<3xf32> {" in str(lower_graph(graph))


def test_constants_are_inside_the_text() -> None:
    graph = traced(lambda x: torch.fft.rfft(x).real, torch.randn(2, 6))
    text = str(lower_graph(graph))
    assert "dense_resource" not in text
    assert "dense<" in text


def test_ops_that_torch_mlir_lacks_are_built_here() -> None:
    assert "math.erfc" in lowered(torch.special.erfc, torch.randn(5))
    assert "math.exp2" in lowered(torch.exp2, torch.randn(5))
    assert "arith.bitcast" in lowered(lambda x: x.view(torch.int32), torch.randn(2, 3))
    text = lowered(torch.copysign, torch.randn(2, 1, 3), torch.randn(4, 1))
    assert "math.copysign" in text
    assert "tensor<2x4x3xf32>" in text


def refused(match: str, function: Callable[..., Any], *inputs: Any) -> UnsupportedError:
    graph = traced(function, *inputs)
    with pytest.raises(UnsupportedError, match=match) as caught:
        lower_graph(graph)
    return caught.value


def test_op_without_lowering_is_named_with_the_users_line() -> None:
    error = refused(
        "no lowering", lambda x: torch.linalg.ldl_factor_ex(x + 1).LD * 2, torch.randn(3, 3)
    )
    assert error.op == "aten.linalg_ldl_factor_ex.default"
    assert error.location == "/home/user/model.py:12"


def test_random_draws_are_refused() -> None:
    error = refused("PyTorch's own generator", torch.rand_like, torch.randn(3))
    assert error.op == "aten.rand_like.default"


def test_known_miscompilation_is_refused() -> None:
    graph = traced(lambda x: x.exp(), torch.ones(3))
    (exp,) = graph.graph.find_nodes(op="call_function", target=aten.exp.default)
    # Decompositions leave none; torch-mlir takes its operand for the memory that it reads.
    exp.target, exp.args = aten.as_strided.default, (*exp.args, [3], [1])
    with pytest.raises(UnsupportedError, match="reads memory that its operand is a part of"):
        lower_graph(graph)


def test_dtype_without_an_mlir_type_is_refused() -> None:
    refused("dtype uint32 cannot be compiled", lambda x: x.to(torch.uint32), torch.ones(3).int())


def test_argument_that_is_no_tensor_is_refused() -> None:
    graph = traced(lambda x: x + 1, torch.randn(3))
    next(iter(graph.graph.nodes)).meta["val"] = 3
    with pytest.raises(UnsupportedError, match="only tensors can be arguments"):
        lower_graph(graph)


def test_op_outside_of_aten_is_refused() -> None:
    graph = traced(lambda x: x + 1, torch.randn(3))
    node = next(node for node in graph.graph.nodes if node.op == "call_function")
    node.target = torch.add
    with pytest.raises(UnsupportedError, match="torch-mlir cannot import it"):
        lower_graph(graph)


def test_result_of_another_shape_is_refused() -> None:
    graph = traced(lambda x: (x + 1,), torch.randn(3))
    module = lower_graph(graph)
    node = next(node for node in graph.graph.nodes if node.op == "call_function")
    node.meta["val"] = torch.empty(4)
    with pytest.raises(
        UnsupportedError, match="lowered a result of tensor<4xf32> to tensor<3xf32>"
    ):
        lowering._check_signature(module, graph.graph)


def test_lowerings_that_give_up_at_run_time_are_refused() -> None:
    # The exchanged rows need pivoting, which torch-mlir's determinant does not do.
    graph = make_fx(torch.linalg.det, tracing_mode="fake")(torch.randn(2, 2))
    with pytest.raises(UnsupportedError, match=r"unimplemented: determinants .*at run time"):
        lower_graph(graph)
