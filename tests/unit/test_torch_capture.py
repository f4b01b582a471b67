"""Canonical captures, fingerprints and partitions, without compiling anything."""

from __future__ import annotations

import operator

import pytest

torch = pytest.importorskip("torch")

from torch._dynamo.backends.common import aot_autograd  # noqa: E402
from torch.utils._python_dispatch import _disable_current_modes  # noqa: E402

from polyblocks.errors import UnsupportedError  # noqa: E402
from polyblocks.runtime.source import Source  # noqa: E402
from polyblocks_torch.capture import (  # noqa: E402
    EmptyOutput,
    FromConstant,
    FromInput,
    InputOutput,
    LiteralOutput,
    ResultOutput,
    View,
)
from polyblocks_torch.launch.launcher import boxed  # noqa: E402
from polyblocks_torch.partitioning.node_rules import is_random  # noqa: E402
from polyblocks_torch.partitioning.partition import boundary, obvious, steps  # noqa: E402
from polyblocks_torch.partitioning.partitioned_call import conformed  # noqa: E402
from polyblocks_torch.recording.canonical import capture_graph  # noqa: E402
from polyblocks_torch.recording.retrace import decompose  # noqa: E402
from polyblocks_torch.specs import is_dense, spec_of  # noqa: E402

aten = torch.ops.aten


def capture(function, *arguments):
    """The capture of a function as AOTAutograd hands it over."""
    torch._dynamo.reset()
    made = []

    def compiler(gm, inputs):
        with _disable_current_modes():
            made.append(capture_graph(gm, inputs, "f"))
        return torch._dynamo.disable(gm.forward)

    backend = aot_autograd(
        fw_compiler=compiler, inference_compiler=compiler, keep_inference_input_mutations=True
    )
    torch.compile(function, backend=backend, dynamic=False)(*arguments)
    return made[0]


def targets(made):
    return [n.target for n in made.graph_module.graph.nodes if n.op == "call_function"]


def test_updates_become_results():
    def f(x, y):
        y.add_(x)
        return y * 2

    made = capture(f, torch.rand(3), torch.rand(3))
    # Dynamo passes arguments in the order of their use.
    assert [r.updates for r in made.results] == [0, None]
    assert [s.position for s in made.sources] == [0, 1]
    assert aten.copy_.default not in targets(made)


def test_an_argument_that_is_only_written_stays_one():
    made = capture(lambda x, y: x.copy_(y), torch.rand(3), torch.rand(3))
    assert [r.updates for r in made.results] == [0]
    assert len(made.arguments) == 2


def test_outputs_are_planned():
    def f(x):
        y = x.exp()
        return y, y.t(), x.t(), x, y[:0]

    made = capture(f, torch.rand(3, 4))
    assert len(made.results) == 1
    assert made.outputs[0] == ResultOutput(0)
    assert ResultOutput(0, View((4, 3), (1, 4), 0)) in made.outputs
    kinds = {type(output) for output in made.outputs}
    assert kinds >= {ResultOutput, EmptyOutput} or InputOutput in kinds


def test_nothing_but_views_is_trivial():
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.rand(2, 3)
    turned = graph.call_function(aten.t.default, (x,))
    turned.meta["val"] = x.meta["val"].t()
    graph.output((turned, x, None, 3))
    made = capture_graph(torch.fx.GraphModule({}, graph), [x.meta["val"]], "f")
    assert made.is_trivial
    assert made.outputs == (
        InputOutput(0, View((3, 2), (1, 3), 0)),
        InputOutput(0),
        LiteralOutput(None),
        LiteralOutput(3),
    )
    assert made.arguments == ()


def test_small_constants_are_inside_and_large_ones_arguments():
    large = torch.rand(5000)
    made = capture(lambda x: x + torch.tensor([1.0, 2.0]).sum() + large, torch.rand(5000))
    inside = [n for n in made.graph_module.graph.nodes if n.op == "get_attr"]
    assert len(inside) == 1
    made = capture_of_constant(torch.rand(5000))
    assert [type(s) for s in made.sources] == [FromInput, FromConstant]
    # Held by the graph, but its elements may be changed in place.
    assert [a.constant for a in made.arguments] == [False, False]
    made = capture_of_constant(torch.rand(3))
    assert [type(s) for s in made.sources] == [FromInput]


def capture_of_constant(constant):
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = constant.clone()
    held = graph.get_attr("held")
    held.meta["val"] = constant
    total = graph.call_function(aten.add.Tensor, (x, held))
    total.meta["val"] = constant + 1
    graph.output((total,))
    return capture_graph(torch.fx.GraphModule({"held": constant}, graph), [x.meta["val"]], "f")


def test_dropout_is_a_draw_and_arithmetic():
    made = capture(
        lambda x: torch.nn.functional.dropout(x, 0.25), torch.rand(4, requires_grad=True)
    )
    assert aten.native_dropout.default not in targets(made)
    draws = [n for n in made.graph_module.graph.nodes if is_random(n)]
    assert [n.target for n in draws] == [aten.bernoulli.p]
    # The draw waits for nothing: the rest is one part.
    order = steps(made.graph_module.graph, set(draws))
    assert [step.compiled for step in order] == [False, False, True]


def test_attention_without_dropout_is_not_random():
    q = torch.rand(1, 2, 8, 4)
    made = capture(lambda q: torch.nn.functional.scaled_dot_product_attention(q, q, q), q)
    assert not obvious(made.graph_module.graph)


def test_symbolic_and_foreign_arguments_are_problems():
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.rand(3).to_sparse()
    y = graph.call_function(aten.neg.default, (x,))
    y.meta["val"] = torch.rand(3)
    graph.output((y,))
    made = capture_graph(torch.fx.GraphModule({}, graph), [x.meta["val"]], "f")
    with pytest.raises(UnsupportedError, match="layout sparse_coo"):
        made.prepare_import()
    with pytest.raises(UnsupportedError, match="1 placeholders but 0 example inputs"):
        capture_graph(torch.fx.GraphModule({}, graph), [], "f")


def test_fingerprints_do_not_depend_on_names_and_lines():
    def one(x):
        first = x * 2
        return first.exp()

    def two(y):
        return (y * 2).exp()

    text = capture(one, torch.rand(3)).fingerprint_text()
    assert capture(two, torch.rand(3)).fingerprint_text() == text


@pytest.mark.parametrize(
    "other",
    [
        lambda: capture(lambda x: x * 3, torch.rand(4, 4)),
        lambda: capture(lambda x: x * 2.0, torch.rand(4, 4)),
        lambda: capture(lambda x: x * 2, torch.rand(4, 5)),
        lambda: capture(lambda x: x * 2, torch.rand(4, 4).t()),
        lambda: capture(lambda x: x * 2, torch.rand(4, 4).double()),
        lambda: capture(lambda x: (x * 2).t().contiguous(), torch.rand(4, 4)),
        lambda: capture(lambda x: x.mul_(2), torch.rand(4, 4)),
        lambda: capture(lambda x: x * torch.tensor(2.0), torch.rand(4, 4)),
    ],
    ids=["number", "type", "shape", "strides", "dtype", "result", "update", "constant"],
)
def test_fingerprints_tell_programs_apart(other):
    base = capture(lambda x: x * 2, torch.rand(4, 4)).fingerprint_text()
    assert other().fingerprint_text() != base


def test_fingerprints_hold_the_constants_values():
    one = capture(lambda x: x + torch.tensor([1.0, 2.0]), torch.rand(2)).fingerprint_text()
    two = capture(lambda x: x + torch.tensor([1.0, 3.0]), torch.rand(2)).fingerprint_text()
    assert one != two


def test_parts_read_and_give_what_is_needed():
    def f(x):
        a = x * 2
        b = torch.erfinv(a)
        return b + a, b * 3

    made = capture(f, torch.rand(4))
    graph = made.graph_module.graph
    left = {n for n in graph.nodes if n.target is aten.erfinv.default}
    order = steps(graph, left)
    assert [step.compiled for step in order] == [True, False, True]
    read, needed = boundary(order[0], graph)
    assert [n.op for n in read] == ["placeholder"]
    assert [n.target for n in needed] == [aten.mul.Tensor]
    assert {n.target for step in order for n in step.nodes} == set(targets(made))


def test_random_draws_keep_their_order_across_levels():
    def f(x):
        late = torch.bernoulli(x.exp().clamp(0, 1))
        early = torch.rand(4)
        return late + early

    made = capture(f, torch.rand(4))
    graph = made.graph_module.graph
    order = [s.nodes[0] for s in steps(graph, set(obvious(graph))) if not s.compiled]
    assert [n.target for n in order if is_random(n)] == [
        aten.bernoulli.default,
        aten.rand.default,
    ]


def test_elements_of_tuples_stay_with_their_producer():
    made = capture(lambda x: torch.topk(x * 2, 2), torch.rand(4))
    graph = made.graph_module.graph
    left = {n for n in graph.nodes if n.target is aten.topk.default}
    order = steps(graph, left)
    assert [s.nodes[0].target for s in order if not s.compiled] == [
        aten.topk.default,
        operator.getitem,
        operator.getitem,
    ]


def test_decomposing_keeps_constants_and_lines():
    made = capture(lambda x: torch.nn.functional.silu(x) + torch.tensor([1.0, 2.0]), torch.rand(2))
    silu = {aten.silu.default: lambda x: x * torch.sigmoid(x)}
    traced, inputs = decompose(made.graph_module, silu)
    ops = [n.target for n in traced.graph.nodes if n.op == "call_function"]
    assert aten.sigmoid.default in ops
    assert aten.silu.default not in ops
    assert len(inputs) == 1
    assert [n.op for n in traced.graph.nodes if n.op == "get_attr"] == ["get_attr"]
    (sigmoid,) = [n for n in traced.graph.nodes if n.target is aten.sigmoid.default]
    assert __file__ in sigmoid.meta["stack_trace"]


def test_decompositions_that_write_in_place_are_made_functional():
    made = capture(lambda x: torch.nn.functional.silu(x), torch.rand(2))

    def in_place(x):
        y = x.clone()
        y.mul_(torch.sigmoid(x))
        return y

    traced, _ = decompose(made.graph_module, {aten.silu.default: in_place})
    ops = [n.target for n in traced.graph.nodes]
    assert aten.mul_.Tensor not in ops
    assert aten.mul.Tensor in ops


def test_specs():
    assert spec_of(torch.empty(2, 3).t()).strides == (1, 3)
    with pytest.raises(UnsupportedError, match="dtype uint16"):
        spec_of(torch.empty(2, dtype=torch.uint16))
    assert is_dense(spec_of(torch.empty(2, 3).t()))
    assert not is_dense(spec_of(torch.empty(2, 3)[:, :2]))
    assert not is_dense(spec_of(torch.empty(2, 1).expand(2, 3)))


def test_conformed_copies_only_other_strides():
    x = torch.rand(2, 3)
    assert conformed(x, (2, 3), (3, 1)) is x
    assert conformed(x, (2, 3), (1, 2)).stride() == (1, 2)
    with pytest.raises(RuntimeError, match=r"inferred shape \(3, 2\), but the result is \(2, 3\)"):
        conformed(x, (3, 2), (2, 1))


def test_generated_source_names_an_object_once():
    source = Source()
    thing = object()
    assert source.name("thing", thing) == source.name("thing", thing)
    source.add(f"return (args, {source.name('thing', thing)})")
    call = source.build("test")
    assert call([1]) == ([1], thing)
    assert boxed(call)._boxed_call
