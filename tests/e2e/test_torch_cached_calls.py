"""Calls that find their code: what they leave out, and what they must not leave out."""

from __future__ import annotations

import inspect
from concurrent.futures import ThreadPoolExecutor

import pytest

torch = pytest.importorskip("torch")

from torch._C._dynamo.eval_frame import get_eval_frame_callback  # noqa: E402
from torch._dynamo.mutation_guard import GenerationTracker  # noqa: E402
from torch._guards import TracingContext, tracing  # noqa: E402

from polyblocks.errors import FallbackError  # noqa: E402
from polyblocks_torch import polyblocks_jit_torch  # noqa: E402
from polyblocks_torch.tracing import gate as gates  # noqa: E402
from polyblocks_torch.tracing.cached_calls import _becomes_usual  # noqa: E402

ONES = torch.ones(3, 4)


def is_ordinary(function, *args):
    """Whether a call goes through Dynamo's own wrapper, which counts its calls."""
    before = GenerationTracker.generation
    function(*args)
    return GenerationTracker.generation != before


@pytest.mark.parametrize("strict", [False, True])
def test_a_call_goes_straight_to_its_code(strict):
    @polyblocks_jit_torch(compile_options={"strict_target": strict})
    def scaled(x, factor=2.0, *, shift):
        return x * factor + shift

    assert torch.equal(scaled(ONES, shift=ONES), 3 * ONES)
    assert torch.equal(scaled(ONES, shift=4 * ONES), 6 * ONES)
    before = GenerationTracker.generation
    assert torch.equal(scaled(3 * ONES, shift=ONES), 7 * ONES)
    assert GenerationTracker.generation == before


def test_it_looks_like_the_function():
    def named(x: int, *, y: int = 3):
        """Documented."""
        return x + y

    compiled = polyblocks_jit_torch(named)
    assert (compiled.__name__, compiled.__doc__) == ("named", "Documented.")
    assert inspect.signature(compiled) == inspect.signature(named)
    assert inspect.unwrap(compiled) is named


def test_methods_are_bound():
    class Scale:
        def __init__(self, factor):
            self.factor = factor

        @polyblocks_jit_torch
        def __call__(self, x):
            return x * self.factor

    two, three = Scale(2.0), Scale(3.0)
    for _ in range(3):
        assert torch.equal(two(ONES), 2 * ONES)
        assert torch.equal(three(ONES), 3 * ONES)


def test_new_arguments_are_compiled_for():
    compiled = polyblocks_jit_torch(lambda x: x.sin() + 1)
    for shape in ((3,), (3,), (5, 2), (3,), (5, 2), (0,)):
        x = torch.rand(shape)
        assert torch.allclose(compiled(x), x.sin() + 1)
        x = x.double()
        assert torch.allclose(compiled(x), x.sin() + 1)
    assert len(compiled.polyblocks_report().variants) == 6
    assert not is_ordinary(compiled, torch.rand(5, 2))


def test_what_is_read_from_outside_is_watched():
    state = {"factor": 2}

    @polyblocks_jit_torch
    def scaled(x):
        return x * state["factor"]

    for factor in (2, 2, 3, 3, 2):
        state["factor"] = factor
        assert torch.equal(scaled(ONES), factor * ONES)


def test_gradients_appear_and_disappear():
    compiled = polyblocks_jit_torch(lambda x: (x * x).sum())
    for needed in (False, False, True, True, False):
        x = (2 * ONES).requires_grad_(needed)
        y = compiled(x)
        assert y.requires_grad == needed
        if needed:
            y.backward()
            assert torch.equal(x.grad, 4 * ONES)


def test_what_python_runs_runs_once():
    seen = []

    @polyblocks_jit_torch
    def talks(x):
        y = x + 1
        torch._dynamo.graph_break()
        seen.append(tuple(x.shape))
        return y * 2

    shapes = [(3, 4), (3, 4), (2, 2), (2, 2), (3, 4), (7,)]
    for shape in shapes:
        assert torch.equal(talks(torch.ones(shape)), torch.full(shape, 4.0))
    assert seen == shapes
    assert is_ordinary(talks, ONES)


def test_a_variant_that_python_runs_a_part_of_ends_it():
    seen = []

    @polyblocks_jit_torch
    def sometimes(x, loud):
        if loud:
            torch._dynamo.graph_break()
            seen.append(1)
        return x + 1

    for loud in (False, False, True, True, False):
        assert torch.equal(sometimes(ONES, loud), 2 * ONES)
    assert len(seen) == 2


def test_a_reset_forgets_the_code():
    compiled = polyblocks_jit_torch(lambda x: x + 1)
    for _ in range(2):
        compiled(ONES)
        assert not is_ordinary(compiled, ONES)
        torch._dynamo.reset()
        assert torch.equal(compiled(ONES), 2 * ONES)


def test_stances_are_respected():
    compiled = polyblocks_jit_torch(lambda x: x + (1 if torch.compiler.is_compiling() else 2))
    assert torch.equal(compiled(ONES), 2 * ONES)
    with torch.compiler.set_stance("force_eager"):
        assert torch.equal(compiled(ONES), 3 * ONES)
    with torch.compiler.set_stance("fail_on_recompile"):
        assert torch.equal(compiled(ONES), 2 * ONES)
        with pytest.raises(RuntimeError, match="recompile"):
            compiled(torch.ones(9))
    assert not is_ordinary(compiled, ONES)


def test_other_tracers_are_told():
    compiled = polyblocks_jit_torch(lambda x: x + 1)
    compiled(ONES)
    with pytest.raises(RuntimeError, match=r"torch\.jit\.trace a dynamo-optimized"):
        torch.jit.trace(lambda x: compiled(x), (ONES,))
    with pytest.raises(RuntimeError, match="FX to symbolically trace"):
        torch.fx.symbolic_trace(lambda x: compiled(x))


def test_inside_another_compiled_function():
    inner = polyblocks_jit_torch(lambda x: x + 1)
    inner(ONES)

    @polyblocks_jit_torch(compile_options={"strict_target": True})
    def outer(x):
        return inner(x) * 3

    for _ in range(3):
        assert torch.equal(outer(ONES), 6 * ONES)

    @polyblocks_jit_torch
    def broken(x):
        torch._dynamo.graph_break()
        return inner(x) * 3

    for _ in range(3):
        assert torch.equal(broken(ONES), 6 * ONES)
    # The frame around the call is no part of the function.
    names = [frame.function for frame in broken.polyblocks_report().frames]
    assert "call" not in names


def test_compiled_once_more():
    inner = polyblocks_jit_torch(lambda x: x + 1)
    again = polyblocks_jit_torch(inner)
    for _ in range(3):
        assert torch.equal(again(ONES), 2 * ONES)
    assert again.polyblocks_report().variants


def test_vmap_and_grad_around_it():
    compiled = polyblocks_jit_torch(lambda x: (x * x).sum())
    for _ in range(2):
        assert torch.equal(torch.vmap(compiled)(2 * ONES), torch.full((3,), 16.0))
        assert torch.equal(torch.func.grad(compiled)(2 * ONES), 4 * ONES)
        assert compiled(ONES).item() == 12


def test_errors_come_out_and_leave_nothing_behind():
    @polyblocks_jit_torch(compile_options={"strict_target": True})
    def strict(x, broken):
        if broken:
            torch._dynamo.graph_break()
        return x + 1

    strict(ONES, False)
    for _ in range(2):
        with pytest.raises(FallbackError, match="graph break"):
            strict(ONES, True)
        assert torch.equal(strict(ONES, False), 2 * ONES)
        assert get_eval_frame_callback() is None


def test_threads_that_meet_new_shapes():
    compiled = polyblocks_jit_torch(lambda x: x * 2 + 1)
    compiled(torch.ones(1))

    def work(first):
        for n in range(first, first + 12):
            x = torch.rand(2 + n % 7)
            assert torch.equal(compiled(x), x * 2 + 1)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    # A thread whose number of threads Dynamo finds changed gets a variant of its own.
    assert {v.arguments[0] for v in compiled.polyblocks_report().variants} == {
        f"float32[{n}]" for n in range(1, 9)
    }


def test_a_thread_that_traces_does_not_wait():
    before = set(gates._gates)
    compiled = polyblocks_jit_torch(lambda x: x + 1)
    compiled(ONES)
    (gate,) = set(gates._gates) - before

    def traced():
        with tracing(TracingContext(None)):
            return _becomes_usual(gate)

    with ThreadPoolExecutor(1) as pool, gate.alone():
        assert pool.submit(traced).result(timeout=60) is False
    assert _becomes_usual(gate)
