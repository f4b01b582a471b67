"""Variants by shape and type; sharing between functions, threads and processes."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest
from sweeps import sweep

torch = pytest.importorskip("torch")

from polyblocks_torch import polyblocks_jit_torch  # noqa: E402
from polyblocks_torch.tracing.gate import Gate  # noqa: E402


@pytest.mark.parametrize("count", sweep([10, 40], 10))
def test_every_shape_is_a_variant(count):
    @polyblocks_jit_torch
    def f(x):
        return x * 2 + 1

    for _ in range(2):
        for n in range(count):
            x = torch.rand(n + 2)
            torch.testing.assert_close(f(x), x * 2 + 1)
    report = f.polyblocks_report()
    assert [v.arguments for v in report.variants] == [[f"float32[{n + 2}]"] for n in range(count)]
    assert {v.outcome for v in report.variants} == {"compiled"}
    assert [frame.compiled for frame in report.frames] == [True]


def test_a_changing_float_becomes_an_argument():
    @polyblocks_jit_torch
    def f(x, scale):
        return x * scale

    x = torch.rand(5)
    for n in range(10):
        torch.testing.assert_close(f(x, 0.1 * n + 0.05), x * (0.1 * n + 0.05))
    assert len(f.polyblocks_report().variants) == 2


def test_numbers_that_choose_what_is_computed_are_constants_of_a_variant():
    @polyblocks_jit_torch
    def f(x, p):
        return torch.linalg.vector_norm(x, p, 1) * p

    x = torch.rand(3, 4)
    for p in (1.0, 2.0, 3.0, float("inf"), 0.0):
        torch.testing.assert_close(f(x, p), torch.linalg.vector_norm(x, p, 1) * p)


def test_integers_that_shape_a_variant_are_its_constants():
    @polyblocks_jit_torch
    def f(x, n):
        return x[:n] * 2

    x = torch.rand(5)
    for n in (2, 3, 4, 3):
        torch.testing.assert_close(f(x, n), x[:n] * 2)
    assert len(f.polyblocks_report().variants) == 3


def test_the_gate_lets_everybody_in_when_compiling_failed():
    hooks = []
    gate = Gate(hooks)
    leave = gate.enter()
    assert hooks == [gate.enter]
    gate.close()
    waiting = threading.Thread(target=gate.enter)
    waiting.start()
    waiting.join(0.05)
    assert waiting.is_alive()
    leave()
    waiting.join(5)
    assert not waiting.is_alive()
    assert hooks == []


def test_a_forked_process_does_not_wait_for_a_thread_that_it_lacks():
    gate = Gate([])
    compiling = threading.Thread(target=gate.close)
    compiling.start()
    compiling.join()
    child = os.fork()
    if child == 0:
        gate.enter()
        os._exit(7)
    deadline = time.monotonic() + 20
    while (done := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
        time.sleep(0.01)
    if done == (0, 0):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(done[1]) == 7


def test_equal_graphs_share_one_program():
    def make():
        return polyblocks_jit_torch(lambda x: (x * 3.5).exp() - 2)

    one, two = make(), make()
    x = torch.rand(6)
    one(x)
    two(x)
    assert not one.polyblocks_report().variants[0].cached
    assert two.polyblocks_report().variants[0].cached


@pytest.mark.slow
@pytest.mark.cpu
def test_warm_start_loads_no_compiler(run_python):
    code = """
        import sys
        import torch
        from polyblocks_torch import polyblocks_jit_torch

        f = polyblocks_jit_torch(lambda x: x.softmax(-1) * 0.7)
        f(torch.rand(4, 9))
        (variant,) = f.polyblocks_report().variants
        print(variant.cached, any("mlir" in name for name in sys.modules))
        """
    assert run_python(code).stdout.split() == ["False", "True"]
    assert run_python(code).stdout.split() == ["True", "False"]
