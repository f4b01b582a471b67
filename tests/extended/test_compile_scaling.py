"""Compile time grows with the program and not with its square; the command that measures it."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest
import torch
from bench import compile_time, empty_backend
from bench.generated import generate
from torch.fx.experimental.proxy_tensor import make_fx

from polyblocks import events, signature
from polyblocks.options import CompileOptions
from polyblocks.passes.standard import standard_pipeline
from polyblocks.pipeline import PassContext, run_stage
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch
from polyblocks_cpu.describe import describe
from polyblocks_cpu.lower import stage_s4
from polyblocks_torch.importing.importer import import_capture
from polyblocks_torch.recording.canonical import capture_graph


def work(operations: int) -> dict[str, int]:
    """Calls of functions in every pass up to S4: a measure of work that no machine disturbs."""
    program = generate(operations)
    counts: dict[str, int] = {}
    running = "none"

    def count(frame: FrameType, event: str, argument: Any) -> None:
        if event in ("call", "c_call"):
            counts[running] = counts.get(running, 0) + 1

    def listen(event: events.Event) -> None:
        nonlocal running
        if event.kind == "pass-begin":
            running = event.data["name"]
        elif event.kind == "pass-end":
            running = "none"

    graph = make_fx(program.function, tracing_mode="fake")(*program.inputs)
    values = [n.meta["val"] for n in graph.graph.nodes if n.op == "placeholder"]
    imported = import_capture(capture_graph(graph, values, "generated"))
    signature.attach(imported)
    options = CompileOptions(arch="x86-64-v3")
    target = describe(options)
    context = PassContext.create(target, options)
    with events.listening(listen):
        sys.setprofile(count)
        try:
            standard_pipeline(target, options).run(imported.module, context)
            signature.keep(imported.module)
            run_stage("S4", stage_s4(target), imported.module, context)
        finally:
            sys.setprofile(None)
    del counts["none"]
    return counts


@pytest.mark.parametrize(
    ("operations", "most"), [(60, 12), pytest.param(160, 9, marks=pytest.mark.slow)]
)
def test_no_pass_is_quadratic(operations: int, most: int) -> None:
    work(5)  # what happens once in a process
    small, large = work(operations), work(4 * operations)
    # Four times the program: linear is 4, quadratic is 16; what passes find in a program differs,
    # too, which counts for less the longer one of them is. What takes next to nothing, or a fixed
    # number of calls as upstream passes do, is left out.
    growth = {name: large[name] / small[name] for name in large if small[name] > 2000}
    assert len(growth) > 10
    assert {name: round(g, 1) for name, g in growth.items() if g > most} == {}


def test_a_generated_program_computes_what_pytorch_does() -> None:
    program = generate(60, seed=1)
    compiled = polyblocks_jit_torch(compile_options={"strict_target": True})(program.function)
    with torch.no_grad():
        torch.testing.assert_close(
            compiled(*program.inputs), program.function(*program.inputs), rtol=1e-4, atol=1e-5
        )


def test_generated_programs_are_the_same_in_every_run_and_of_the_length_asked_for() -> None:
    program = generate(100)
    assert program.text == generate(100).text
    assert generate(200).text.startswith("def generated(")
    body = [line for line in program.text.splitlines() if line.startswith("    v")]
    assert generate(200).text.splitlines()[1 : len(body) + 1] == body
    calls = torch.fx.symbolic_trace(program.function).graph.nodes
    assert 100 <= sum(n.op in ("call_function", "call_method") for n in calls) < 140


def test_exponents() -> None:
    assert compile_time.exponent([1, 2], [3.0, 6.0]) == pytest.approx(1)
    assert compile_time.exponent([1, 2, 4], [0.0, 1.0, 4.0]) == pytest.approx(2)
    assert compile_time.exponent([1], [1.0]) != compile_time.exponent([1], [1.0])


def test_the_empty_backend_runs_nothing() -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.t() + 1, x.double().sum(), x

    x = torch.randn(3, 4)
    call = empty_backend.captured(function)
    call(x)
    with torch.profiler.profile() as profile:
        plus, total, same = call(x)
    ran = {event.key for event in profile.key_averages()}
    assert "aten::empty_strided" in ran
    assert not ran & {"aten::add", "aten::to", "aten::_to_copy", "aten::sum"}
    assert (plus.shape, plus.stride()) == ((4, 3), (1, 4))
    assert (total.shape, total.dtype) == ((), torch.float64)
    assert same is x


def test_the_page_has_a_row_per_case_and_per_pass() -> None:
    rows = [
        {"name": n, "dynamo": 0.5, "ours": 2.0, "extra": 1.5, "processor": 1.25}
        | {"passes": {"S3 a": n / 100, "S3 b": 1e-3, "S4 c": 2e-3, "total": n / 50}}
        for n in (100, 200)
    ]
    found = {
        "date": "2026-01-02",
        "machine": {"cpu": "Chip", "processors": 2},
        "cases": [{"name": "softmax", "dynamo": 0.1, "ours": 0.3, "extra": 0.2, "processor": 0.15}],
        "generated": rows,
    }
    lines = compile_time.page(found).splitlines()
    assert "| softmax | 0.10 | 0.30 | 0.20 | 0.15 |" in lines
    assert "| generated, 200 ops | 0.50 | 2.00 | 1.50 | 1.25 |" in lines
    assert "| S3 a | 1.00 | 2.00 | 1.00 |" in lines
    assert "| all others | 0.00 | 0.00 | 0.00 |" in lines
    assert "| total | 2.00 | 4.00 | 1.00 |" in lines


def test_a_row_that_fails_is_left_out_and_told(capfd: pytest.CaptureFixture[str]) -> None:
    assert compile_time.in_process("case of none") is None
    assert "error: case of none: exit status 1" in capfd.readouterr().err
