"""Decompositions after AOTAutograd: what is copied, what is run, and on which values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import fx
from torch.fx.experimental.proxy_tensor import make_fx

from polyblocks.errors import UnsupportedError
from polyblocks_torch.importing.decompositions import decomposition_table
from polyblocks_torch.recording.recorder import Recorder
from polyblocks_torch.recording.retrace import decompose

aten = torch.ops.aten


def traced(function: Callable[..., Any], *inputs: Any) -> fx.GraphModule:
    with torch.no_grad():
        return make_fx(function, tracing_mode="fake")(*inputs)


def targets(gm: fx.GraphModule) -> list[str]:
    return [str(n.target) for n in gm.graph.nodes if n.op == "call_function"]


def values(gm: fx.GraphModule) -> dict[str, Any]:
    return {n.name: n.meta["val"] for n in gm.graph.nodes if n.op == "call_function"}


@pytest.fixture
def run_ops(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every operation that a recorder sees."""
    seen: list[str] = []
    dispatch = Recorder.__torch_dispatch__

    def counted(self: Any, func: Any, *arguments: Any, **keywords: Any) -> Any:
        seen.append(str(func))
        return dispatch(self, func, *arguments, **keywords)

    monkeypatch.setattr(Recorder, "__torch_dispatch__", counted)
    return seen


def test_only_what_a_decomposition_replaces_is_run(run_ops: list[str]) -> None:
    graph = traced(lambda x: torch.cat([x, x]).exp() + 1, torch.ones(4, 4))
    made, _ = decompose(graph, decomposition_table())
    assert made.graph is not graph.graph
    assert targets(made) == ["aten.cat.default", "aten.exp.default", "aten.add.Tensor"]
    assert run_ops == []
    graph = traced(lambda x: torch.nn.functional.gelu(x.exp()) + 1, torch.ones(4))
    made, _ = decompose(graph, decomposition_table())
    assert "aten.gelu.default" in run_ops
    assert not {"aten.exp.default", "aten.gelu.default"} <= set(run_ops)
    assert "aten.gelu.default" not in targets(made)
    assert values(made)["exp"] is values(graph)["exp"]


def test_a_decomposition_of_a_decomposition() -> None:
    table = {
        aten.silu.default: lambda x: x * torch.sigmoid(x),
        aten.sigmoid.default: lambda x: 1 / (1 + torch.exp(-x)),
    }
    made, _ = decompose(traced(lambda x: torch.nn.functional.silu(x), torch.ones(3)), table)
    assert [t.split(".")[1] for t in targets(made)] == [
        "neg",
        "exp",
        "add",
        "reciprocal",
        "mul",
        "mul",
    ]


def test_one_that_refuses_leaves_the_op() -> None:
    made, _ = decompose(
        traced(torch.neg, torch.ones(3)), {aten.neg.default: lambda x: NotImplemented}
    )
    assert targets(made) == ["aten.neg.default"]


def test_elements_of_a_tuple() -> None:
    def topk(x, k, dim=-1, largest=True, is_sorted=True):
        values, places = torch.sort(x, dim, largest)
        return values[:k], places[:k]

    graph = traced(lambda x: torch.topk(x, 2)[1] + torch.max(x, 0)[1], torch.rand(4))
    made, _ = decompose(graph, {aten.topk.default: topk})
    assert "aten.topk.default" not in targets(made)
    assert targets(made).count("<built-in function getitem>") == 2
    made.graph.lint()
    x = torch.rand(4)
    assert made(x).equal(graph(x))


def test_updates_inside_of_a_decomposition_and_constants_of_it() -> None:
    def silu(x):
        y = x.clone()
        y[1:] *= torch.sigmoid(x)[1:]
        y[0] = torch.tensor([7.0])[0]
        return y

    graph = traced(
        lambda x: torch.nn.functional.silu(x) + torch.nn.functional.silu(x.exp()), torch.rand(3)
    )
    made, _ = decompose(graph, {aten.silu.default: silu})
    assert not any(n.target._schema.is_mutable for n in made.graph.nodes if n.op == "call_function")
    x = torch.rand(3)
    torch.testing.assert_close(made(x), silu(x) + silu(x.exp()))


@pytest.mark.parametrize(
    "other, what",
    [
        (lambda x: (-1 * x).double(), r"float64\[3\] instead of float32\[3\]"),
        (lambda x: -1 * x[:2], r"float32\[2\] instead of float32\[3\]"),
        (lambda x: (-1 * x).unsqueeze(0), r"float32\[1, 3\] instead of float32\[3\]"),
    ],
)
def test_a_decomposition_that_gives_another_kind_of_result_is_refused(
    other: Callable[..., Any], what: str
) -> None:
    graph = traced(lambda x: x.neg().abs(), torch.ones(3))
    with pytest.raises(UnsupportedError, match=f"aten.neg.default: its decomposition gives {what}"):
        decompose(graph, {aten.neg.default: other})


def test_of_several_results_those_that_are_used_are_held_against_the_op() -> None:
    def topk(x, k, dim=-1, largest=True, is_sorted=True):
        values, places = torch.sort(x, dim, largest)
        return values[:k], places[:k].int()

    table = {aten.topk.default: topk}
    decompose(traced(lambda x: torch.topk(x, 2)[0], torch.rand(4)), table)
    with pytest.raises(UnsupportedError, match=r"aten.topk.default.* int32\[2\] instead of int64"):
        decompose(traced(lambda x: torch.topk(x, 2)[1], torch.rand(4)), table)


def test_a_decomposition_that_raises_is_refused() -> None:
    def neg(x):
        raise ValueError("no negative numbers\nat all")

    with pytest.raises(
        UnsupportedError, match=r"aten.neg.default: cannot be decomposed \(ValueError: no neg.*s\)"
    ):
        decompose(traced(torch.neg, torch.ones(3)), {aten.neg.default: neg})


def test_values_of_resolved_arguments_are_made_anew() -> None:
    x = torch.rand(3, dtype=torch.complex64)
    mode = torch._subclasses.FakeTensorMode()
    graph = fx.Graph()
    argument = graph.placeholder("x")
    argument.meta["val"] = mode.from_tensor(x).conj()
    magnitude = graph.call_function(aten.abs.default, (argument,))
    magnitude.meta["val"] = mode.from_tensor(x.abs())
    graph.output((magnitude,))
    made, inputs = decompose(fx.GraphModule({}, graph), {})
    # The caller resolves the argument, so nothing here conjugates it.
    assert targets(made) == ["aten.abs.default"]
    assert not inputs[0].is_conj()


def test_two_nodes_with_one_value() -> None:
    graph = traced(lambda x, y: torch.nn.functional.silu(x) - y, torch.ones(3), torch.ones(3))
    x, y = (n for n in graph.graph.nodes if n.op == "placeholder")
    y.meta["val"] = x.meta["val"]
    table = {
        aten.silu.default: lambda x: x * torch.sigmoid(x),
        aten.sub.Tensor: lambda x, y: x + torch.neg(y),
    }
    made, _ = decompose(graph, table)
    (negated,) = (n for n in made.graph.nodes if n.target is aten.neg.default)
    assert negated.args[0].name == y.name


def test_an_update_in_the_graph_is_refused() -> None:
    graph = traced(lambda x: x.clone().add_(1), torch.ones(3))
    with pytest.raises(UnsupportedError, match=r"aten\.add_\.Tensor.*changes its operand in place"):
        decompose(graph, {})


def test_a_decomposition_that_computes_a_number_is_refused() -> None:
    graph = traced(torch.neg, torch.ones(3))
    with pytest.raises(UnsupportedError, match=r"aten\.neg.*number that depends on data"):
        decompose(graph, {aten.neg.default: lambda x: x * -x.sum().item()})
