"""What cannot be compiled: parts, reports, strict_target, crashes of native code."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys

import pytest
from sweeps import sweep

torch = pytest.importorskip("torch")
F = torch.nn.functional

from torch._dynamo.exc import BackendCompilerFailed  # noqa: E402

import polyblocks  # noqa: E402
from polyblocks.errors import FallbackError, NativeCrashError, UnsupportedError  # noqa: E402
from polyblocks_torch import polyblocks_jit_torch  # noqa: E402
from polyblocks_torch.importing import importer  # noqa: E402


@pytest.fixture
def plant(monkeypatch):
    """``plant(op, act)``: importing any graph that holds ``op`` calls ``act`` first."""
    proper = importer.import_capture

    def make(op, act):
        def import_capture(capture):
            if any(node.target is op for node in capture.graph_module.graph.nodes):
                act()
            return proper(capture)

        monkeypatch.setattr(importer, "import_capture", import_capture)

    return make


def refuse():
    raise UnsupportedError("planted: no lowering")


def crash():
    os.kill(os.getpid(), signal.SIGSEGV)


aten = torch.ops.aten


def test_only_the_unsupported_op_is_left(check, plant, caplog):
    plant(aten.cosh.default, refuse)

    def f(x, y):
        a = (x * 2 + 1).exp()
        b = torch.cosh(a - y)
        return (b + y).sigmoid(), a

    with caplog.at_level(logging.WARNING, "polyblocks"), polyblocks.explain() as watched:
        report = check(f, torch.rand(4, 5), torch.rand(5), whole=False)
    assert report.variants[0].outcome == "partitioned"
    assert report.variants[0].parts == 2
    (row,) = report.fallbacks
    assert row.op == "aten.cosh.default"
    assert row.reason == "planted: no lowering"
    line = f.__code__.co_firstlineno + 2
    assert row.location == f"{__file__}:{line}"
    assert f"f: PyTorch runs aten.cosh.default at {__file__}:{line}: planted" in caplog.text
    assert [f.op for f in watched.fallbacks] == ["aten.cosh.default"]
    assert "cosh" in str(report)
    assert report.to_json()["variants"][0]["parts"] == 2


@pytest.mark.cpu
@pytest.mark.isolated
def test_a_native_crash_is_a_fallback_with_a_reason(check, plant):
    plant(aten.asinh.default, crash)
    report = check(lambda x: (x * 3).asinh() + x.cos(), torch.rand(7), whole=False)
    (row,) = report.fallbacks
    assert row.op == "aten.asinh.default"
    assert "SIGSEGV" in row.reason


def test_strict_target_refuses_with_op_and_line(plant):
    plant(aten.acosh.default, refuse)

    @polyblocks_jit_torch(compile_options={"strict_target": True})
    def f(x):
        return x.acosh() + 1

    line = f.__wrapped__.__code__.co_firstlineno + 2
    pattern = re.escape("aten.acosh.default: planted: no lowering; strict_target") + f".*:{line}$"
    with pytest.raises(FallbackError, match=pattern) as caught:
        f(torch.rand(3) + 1)
    assert caught.value.op == "aten.acosh.default"


def test_a_plan_is_cached(check, plant, monkeypatch):
    plant(aten.sinh.default, refuse)

    def f(x):
        return x.sinh() * 2 + 3

    first = check(f, torch.rand(9), whole=False)
    assert not first.variants[0].cached

    def never(*args):
        raise AssertionError("a warm start neither probes nor imports")

    monkeypatch.setattr("polyblocks_torch.partitioning.plan.probe_nodes", never)
    monkeypatch.setattr(importer, "import_capture", never)
    torch._dynamo.reset()
    second = check(f, torch.rand(9), whole=False)
    assert second.variants[0].cached
    assert list(second.fallbacks) == list(first.fallbacks)


def test_parts_do_not_depend_on_each_other_in_a_circle(check, plant):
    plant(aten.erfinv.default, refuse)

    def f(x):
        a = x * 0.5
        b = torch.erfinv(a)
        c = a + b
        d = torch.erfinv(c * 0.1)
        return a + d, b * c

    report = check(f, torch.rand(6), whole=False)
    assert report.variants[0].parts == 3


def test_tuple_results_and_views_cross_the_border(check, plant):
    plant(aten.topk.default, refuse)

    def f(x):
        values, places = torch.topk(x + 1, 2)
        return values * 2, places, places.t(), values.t().exp()

    check(f, torch.rand(4, 5), whole=False)


def test_updates_in_a_partitioned_graph(check, plant):
    plant(aten.sinh.default, refuse)

    def f(x, y):
        old = x.clone()
        x.copy_(y.sinh())
        y.copy_(old)
        return old.view(-1)

    check(f, torch.rand(3, 2), torch.rand(3, 2), whole=False)


def test_gradients_through_a_partitioned_graph(plant):
    plant(aten.cosh.default, refuse)

    def f(x):
        return (x * 2).sinh().sum()

    x = torch.rand(5, requires_grad=True)
    (expected,) = torch.autograd.grad(f(x), x)
    (actual,) = torch.autograd.grad(polyblocks_jit_torch(f)(x), x)
    torch.testing.assert_close(actual, expected)


def operations(capture):
    return [n.target for n in capture.graph_module.graph.nodes if n.op == "call_function"]


def test_only_what_the_failure_names_is_probed(check, monkeypatch):
    from polyblocks_torch.partitioning import plan

    probed: list[str] = []
    proper = plan.probe_nodes

    def probe_nodes(module, nodes, attempt):
        probed.extend(str(node.target) for node in nodes)
        return proper(module, nodes, attempt)

    monkeypatch.setattr(plan, "probe_nodes", probe_nodes)

    def f(x):
        y = x
        for shift in range(20):
            y = (y * 0.5 + shift).flip(0)
        return torch.linalg.ldl_factor_ex(x).LD + 1, y.cumsum(0)

    report = check(f, torch.rand(4, 4), whole=False)
    assert [row.op for row in report.fallbacks] == ["aten.linalg_ldl_factor_ex.default"]
    assert probed == ["aten.linalg_ldl_factor_ex.default"]


def test_a_part_that_fails_only_whole_is_cut(check, monkeypatch):
    proper = importer.import_capture

    def import_capture(capture):
        if {aten.exp.default, aten.sin.default} <= set(operations(capture)):
            raise UnsupportedError("planted: exp and sin do not go together")
        return proper(capture)

    monkeypatch.setattr(importer, "import_capture", import_capture)
    report = check(lambda x: ((x + 5).exp() * 2).sin() - 3, torch.rand(3))
    assert report.variants[0].parts == 2
    assert report.whole


def test_a_part_that_was_met_alone_and_cut_is_cut_again(check, monkeypatch):
    proper = importer.import_capture

    def import_capture(capture):
        if {aten.exp.default, aten.sin.default} <= set(operations(capture)):
            raise UnsupportedError("planted: exp and sin do not go together")
        if aten.cosh.default in operations(capture):
            refuse()
        return proper(capture)

    monkeypatch.setattr(importer, "import_capture", import_capture)
    alone = check(lambda x: (x.exp() * 2).sin(), torch.rand(3))
    assert alone.variants[0].parts == 2
    report = check(lambda x: (x.cosh().exp() * 2).sin(), torch.rand(3), whole=False)
    assert report.variants[0].parts == 2
    assert {row.op for row in report.fallbacks} == {"aten.cosh.default"}


def test_what_cannot_even_be_cut_runs_in_the_framework(check, monkeypatch):
    monkeypatch.setattr("polyblocks_torch.partitioning.plan.ROUNDS", 0)
    proper = importer.import_capture

    def import_capture(capture):
        if len(operations(capture)) > 1:
            raise UnsupportedError("planted: too large")
        return proper(capture)

    monkeypatch.setattr(importer, "import_capture", import_capture)
    report = check(lambda x: (x + 5).exp() * 2, torch.rand(3), whole=False)
    assert report.variants[0].outcome == "framework"
    assert {row.reason for row in report.fallbacks} == {"planted: too large"}


def test_a_custom_op_is_left(check):
    @torch.library.custom_op("polyblocks_test::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @twice.register_fake
    def _(x):
        return torch.empty_like(x)

    report = check(lambda x: twice(x + 1) * 3, torch.rand(4), whole=False)
    assert [row.op for row in report.fallbacks] == ["polyblocks_test.twice.default"]


def test_outputs_that_are_no_arrays_of_ours(check):
    report = check(
        lambda x: ((x * 4).to(torch.uint16), x + 1),
        torch.rand(5),
        whole=False,
    )
    assert {row.reason for row in report.fallbacks} == {"a tensor of dtype uint16"}
    assert report.variants[0].parts >= 1
    check(lambda x: x.to(torch.uint16), torch.ones(3), whole=False)


def test_strides_that_the_framework_promised_wrongly(check):
    @torch.library.custom_op("polyblocks_test::turned", mutates_args=())
    def turned(x: torch.Tensor) -> torch.Tensor:
        return x.t().contiguous().t()

    @turned.register_fake
    def _(x):
        return torch.empty_like(x)

    compiled = polyblocks_jit_torch(lambda x: turned(x + 1) * 3)
    x = torch.rand(4, 5)
    torch.testing.assert_close(compiled(x), (x + 1) * 3)
    # As an output, and as what the backward graph reads.
    assert polyblocks_jit_torch(lambda x: turned(x + 1))(x).is_contiguous()


def test_what_overlaps_itself_crosses_the_border(plant):
    plant(aten.sin.default, refuse)

    def f(x):
        y = x.sin()
        return y.as_strided((3, 1, 3), (2, 0, 1)).expand(3, 4, 3), x + 1

    x0 = torch.rand(3, 3)
    compiled = polyblocks_jit_torch(f)
    for ours, theirs in zip(compiled(x0), f(x0), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_graph_breaks_are_reported(capsys):
    @polyblocks_jit_torch
    def f(x):
        y = x + 1
        print("between", file=sys.stdout)
        return y * 2

    assert f(torch.ones(2)).tolist() == [4.0, 4.0]
    assert capsys.readouterr().out == "between\n"
    report = f.polyblocks_report()
    (row,) = report.graph_breaks
    assert row.location.endswith(f":{f.__wrapped__.__code__.co_firstlineno + 3}")
    assert not report.whole
    assert [v.outcome for v in report.variants] == ["compiled", "compiled"]


def test_strict_target_refuses_a_graph_break():
    @polyblocks_jit_torch(compile_options={"strict_target": True})
    def f(x):
        print("no", file=sys.stdout)
        return x + 1

    with pytest.raises(FallbackError, match="graph break .* strict_target forbids"):
        f(torch.ones(2))


def test_strict_target_refuses_a_branch_on_a_number_of_a_tensor():
    def f(x):
        count = (x > 0.5).sum().item()
        return x if count == 1 else x * 2

    with pytest.raises(FallbackError, match=r"graph break .*Could not guard on data-dependent"):
        polyblocks_jit_torch(f, compile_options={"strict_target": True})(torch.rand(5))


def _masked(x, sizes):
    return x[x > 0.5] * 2


def _nonzero(x, sizes):
    return torch.nonzero(x > 0.5).sum(0)


def _split(x, sizes):
    return torch.stack([part.sum() for part in torch.split(x, sizes.tolist())])


def _split_by_sizes_of_data(x, sizes):
    """Dynamo's own error here is that of a shape rule."""
    return torch.stack([part.sum() for part in torch.split(x, sizes[sizes > 0].tolist())])


def _made(x, sizes):
    return torch.zeros(sizes[0].item()) + x.sum()


def _repeated(x, sizes):
    return torch.repeat_interleave(x[:3], sizes)


SIZES_OF_DATA = [_masked, _nonzero, _split, _split_by_sizes_of_data, _made, _repeated]


@pytest.mark.parametrize(
    "function",
    sweep(SIZES_OF_DATA, *SIZES_OF_DATA[::3], extended=[*SIZES_OF_DATA[1:3], *SIZES_OF_DATA[4:]]),
)
def test_strict_target_refuses_sizes_that_depend_on_data(function):
    class Module(torch.nn.Module):
        def forward(self, x, sizes):
            return function(x, sizes)

    x, sizes = torch.rand(9), torch.tensor([4, 2, 3])
    where = rf"at {re.escape(__file__)}:\d+"
    strict = {"strict_target": True}
    for compiled in (
        polyblocks_jit_torch(function, compile_options=strict),
        polyblocks_jit_torch(Module(), compile_options=strict),
    ):
        with pytest.raises(FallbackError, match=f"strict_target forbids .*{where}"):
            compiled(x, sizes)
    backend = torch.compile(function, backend="polyblocks", options=strict)
    # torch.compile puts every error of a backend into one of its own.
    with pytest.raises(BackendCompilerFailed, match=f"FallbackError.*strict_target.*{where}"):
        backend(x, sizes)
    loose = polyblocks_jit_torch(function)
    torch.testing.assert_close(loose(x, sizes), function(x, sizes))
    assert not loose.polyblocks_report().whole


def test_a_frame_that_python_runs_is_reported():
    @polyblocks_jit_torch
    def f(x):
        return x * 2

    assert f(torch.ones(3).to_sparse()).to_dense().tolist() == [2.0] * 3
    (frame,) = f.polyblocks_report().frames
    assert not frame.compiled
    assert frame.reason
    assert not f.polyblocks_report().whole


def test_crash_error_is_an_unsupported_error():
    assert issubclass(NativeCrashError, UnsupportedError)
