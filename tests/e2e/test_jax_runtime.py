"""Compiled JAX functions at run time: cache, memory, threads, and what a process loads."""

from __future__ import annotations

import numpy as np
import pytest
from sweeps import sweep

jax = pytest.importorskip("jax")
jnp = jax.numpy
from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax  # noqa: E402


@pytest.mark.extended
@pytest.mark.cpu
def test_warm_start_loads_no_compiler_and_compiles_nothing(run_python):
    """Neither loads it other frameworks, nor does the first start."""
    code = """
        import sys
        import jax, jax.numpy as jnp
        from polyblocks import events
        from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax

        misses = []
        events.set_sink(lambda e: e.kind in ("cache-miss", "compile-begin") and misses.append(e))
        f = polyblocks_jit_jax(lambda x: jax.nn.softmax(x) * 0.7)
        print(round(float(f(jnp.ones((4, 10))).sum()), 4))
        (variant,) = f.polyblocks_report().variants
        print(variant.cached, bool(misses), any("torch_mlir" in name for name in sys.modules))
        print({"torch", "tensorflow", "keras", "flax", "equinox"} & set(sys.modules))
        """
    first, second = run_python(code), run_python(code)
    assert first.stdout.split() == ["2.8", "False", "True", "True", "set()"]
    assert second.stdout.split() == ["2.8", "True", "False", "False", "set()"]
    assert first.stderr == second.stderr == ""


@pytest.mark.cpu
def test_listing_plugins_does_not_load_jax(run_python):
    code = """
        import sys
        import polyblocks_jax, polyblocks_jax.plugin
        print("jax" in sys.modules)
        """
    assert run_python(code).stdout == "False\n"


@pytest.mark.cpu
def test_without_the_package_the_import_says_what_to_install(run_python):
    code = """
        import sys
        sys.modules["polyblocks_jax"] = None
        try:
            import polyblocks.jax_polyblocks_compiler
        except ImportError as error:
            print(error)
        """
    assert "pip install polyblocks-jax" in run_python(code).stdout


def test_equal_functions_share_one_program():
    def make():
        return polyblocks_jit_jax(lambda x: jnp.exp(x * 3.5) - 2)

    def another_name(y):
        return jnp.exp(y * 3.5) - 2

    one, two, three = make(), make(), polyblocks_jit_jax(another_name)
    for f in (one, two, three):
        f(np.ones(6, np.float32))
    assert [f.polyblocks_report().variants[0].cached for f in (one, two, three)] == [
        False, True, True
    ]  # fmt: skip


def test_what_makes_a_difference_is_in_the_key():
    def make(factor):
        return polyblocks_jit_jax(lambda x: x * factor)

    x = np.ones(4, np.float32)
    np.testing.assert_array_equal(make(2.0)(x), 2 * x)
    np.testing.assert_array_equal(make(3.0)(x), 3 * x)
    np.testing.assert_array_equal(make(np.arange(4.0))(x), np.arange(4.0))
    np.testing.assert_array_equal(make(np.arange(4.0) + 1)(x), np.arange(4.0) + 1)


@pytest.mark.parametrize("count", sweep([10, 40], 10))
def test_every_shape_is_a_variant(count):
    f = polyblocks_jit_jax(lambda x: x * 2 + 1)
    for _ in range(2):
        for n in range(count):
            x = np.linspace(0, 1, n + 2, dtype=np.float32)
            np.testing.assert_array_equal(f(x), x * 2 + 1)
    variants = f.polyblocks_report().variants
    assert [v.arguments for v in variants] == [[f"float32[{n + 2}]"] for n in range(count)]
    assert {v.outcome for v in variants} == {"compiled"}


@pytest.mark.extended
@pytest.mark.cpu
@pytest.mark.parametrize("calls", sweep([20_000, 100_000], 20_000))
def test_many_calls_keep_no_memory(run_python, calls):
    done = run_python(
        """
        import gc, sys
        import jax.numpy as jnp
        from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax

        @polyblocks_jit_jax(compile_options={"target": "cpu", "strict_target": True})
        def add(x, y):
            return {"sum": x + y}

        def resident():
            gc.collect()
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * 4096

        x, y = jnp.ones(16), jnp.ones(16)
        for _ in range(2000):
            add(x, y)
        grown = []
        for _ in range(2):  # what is kept grows each time, pages that allocators take once
            before = resident()
            for _ in range(int(sys.argv[1])):
                add(x, y)
            grown.append(resident() - before)
        print(min(grown))
        """,
        str(calls),
        preloaded="jax",
    )
    assert done.stderr == ""
    # Less than an object of each call.
    assert int(done.stdout) < 26 * calls


@pytest.mark.cpu
def test_arrays_are_not_copied(run_python):
    """128 MiB go in as JAX's without a second copy, as NumPy's with none but JAX's own."""
    code = """
        import re, time
        import numpy as np, jax, jax.numpy as jnp
        from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax

        def resident(name):
            with open("/proc/self/status") as file:
                return int(re.search(rf"{name}:\\s+(\\d+)", file.read())[1]) >> 10  # MiB

        def more(function, x):
            for _ in range(3):
                function(x).block_until_ready()
            before = resident("VmRSS")
            for _ in range(50):  # JAX frees its copy of an argument in another thread
                time.sleep(0.01)
                before = min(before, resident("VmRSS"))
            with open("/proc/self/clear_refs", "w") as file:
                file.write("5")  # the highest is that of now
            function(x).block_until_ready()
            return resident("VmHWM") - before

        x = np.ones((64, 1 << 19), np.float32)
        first = lambda x: x[:, :1] * 2
        ours, theirs = polyblocks_jit_jax(first), jax.jit(first)
        print(more(ours, jnp.asarray(x)), more(ours, x), more(theirs, x))
        """
    of_jax, of_numpy, by_jax = map(int, run_python(code, preloaded="jax").stdout.split())
    assert of_jax < 50
    assert of_numpy < by_jax + 50


@pytest.mark.extended
@pytest.mark.cpu
def test_num_threads_is_respected(run_python):
    code = """
        import os, threading
        import jax.numpy as jnp, numpy as np
        from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax

        def tasks():
            return len(os.listdir("/proc/self/task"))

        f = polyblocks_jit_jax(lambda x: jnp.sin(x) * 1.5, compile_options={"num_threads": N})
        x = jnp.asarray(np.ones((400, 1000), np.float32))
        g = polyblocks_jit_jax(lambda x: x[:1, :4] * 2, compile_options={"num_threads": 1})
        for _ in range(50):
            f(x).block_until_ready(); g(x).block_until_ready()
        before = tasks()
        print(before)
        """
    one = run_python(code.replace("N", "1"), preloaded="jax", OMP_NUM_THREADS=2)
    two = run_python(code.replace("N", "2"), preloaded="jax", OMP_NUM_THREADS=2)
    assert int(two.stdout) > int(one.stdout)


@pytest.mark.cpu
def test_explain_shows_kernels_with_their_lines():
    import polyblocks

    def f(x):
        return jnp.tanh(x) * 2.125

    with polyblocks.explain() as report:
        polyblocks_jit_jax(f)(np.ones((64, 64), np.float32))
    line = f.__code__.co_firstlineno + 1
    assert f"tanh {__file__}:{line}" in str(report)
    measured = polyblocks.explain(f, np.ones((64, 64), np.float32), frontend="jax")
    (part,) = measured.parts
    assert part.profile
    assert part.profile[0]["calls"] > 0


def _frames(function, *args, **kwargs) -> int:
    """Calls of Python functions during a call."""
    import sys

    seen = []
    sys.setprofile(lambda frame, event, value: seen.append(frame) if event == "call" else None)
    try:
        function(*args, **kwargs)
    finally:
        sys.setprofile(None)
    return len(seen)


@pytest.mark.cpu
def test_a_call_of_a_known_kind_is_dispatched_by_jax_alone():
    x = jnp.arange(5.0)
    f = polyblocks_jit_jax(lambda x, y: {"sum": x + y["y"]})
    for args, kwargs in (((x, {"y": x}), {}), ((x,), {"y": {"y": x}})):
        assert _frames(f, *args, **kwargs) > 0
        assert _frames(f, *args, **kwargs) == 0
    assert {v.outcome for v in f.polyblocks_report().variants} == {"compiled"}


@pytest.mark.cpu
def test_what_the_dispatch_of_jax_forgets_is_traced_again():
    x, traces = jnp.arange(5.0), []

    @polyblocks_jit_jax
    def f(x):
        traces.append(x.dtype)
        return x * 2

    f(x), f(x)
    with jax.enable_x64(True):
        f(np.arange(5.0))
        np.testing.assert_array_equal(f(np.arange(5.0)), 2 * np.arange(5.0))
    f(x)
    assert traces == ["float32", "float64"]
    f.clear_cache()
    np.testing.assert_array_equal(f(x), 2 * x)
    assert traces == ["float32", "float64", "float32"]
    with jax.disable_jit():
        f(x)
    assert len(traces) == 4
    assert [r.op for r in f.polyblocks_report().fallbacks] == ["f (jax.disable_jit)"]


@pytest.mark.cpu
def test_a_compiled_function_is_freed():
    import gc
    import weakref

    def f(x):
        return x + 1

    compiled = polyblocks_jit_jax(f)
    compiled(jnp.ones(3))
    kept = weakref.ref(compiled), weakref.ref(f)
    del compiled, f
    jax.clear_caches()
    gc.collect()
    assert [ref() for ref in kept] == [None, None]


@pytest.mark.cpu
@pytest.mark.parametrize(
    ("function", "shape", "inside"),
    [
        (lambda x: x * 2, (1 << 17,), True),
        # Fresh pages for 16 MiB take longer than the program.
        (lambda x: x * 2, (1 << 22,), True),
        (lambda x: x @ x, (1 << 11, 1 << 11), False),
        # Nothing is kept of 128 MiB.
        (lambda x: x * 2, (1 << 25,), False),
        (lambda x: x.sum(-1), (1 << 11, 1 << 14), False),
    ],
)
def test_programs_that_cost_less_than_a_thread_of_xlas_run_on_the_callers(function, shape, inside):
    text = jax.jit(polyblocks_jit_jax(function)).lower(jax.ShapeDtypeStruct(shape, jnp.float32))
    text = text.as_text()
    assert "polyblocks_" in text
    # The operand that makes XLA hand a call over to a thread of its own.
    assert ("tensor<1024xi32>" not in text) == inside


@pytest.mark.cpu
def test_memory_of_large_results_is_used_again(run_python):
    code = """
        import jax, jax.numpy as jnp
        from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax

        f = polyblocks_jit_jax(jnp.sqrt)
        x = jnp.ones(1 << 22)
        print(len({f(x).block_until_ready().unsafe_buffer_pointer() for _ in range(40)}))
        """
    # XLA frees some results later than Python does; threads would each have memory of their own.
    assert int(run_python(code, preloaded="jax").stdout) < 10


@pytest.mark.cpu
def test_a_long_program_runs_while_its_caller_goes_on():
    steps = polyblocks_jit_jax(lambda x: jax.lax.fori_loop(0, 300, lambda _, y: jnp.sin(y) + x, x))
    x = jnp.ones(1 << 16)
    steps(x).block_until_ready()
    assert not steps(x).is_ready()
