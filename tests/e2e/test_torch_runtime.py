"""Compiled PyTorch functions at run time: threads, memory that stays, buffers that return."""

from __future__ import annotations

import gc
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from polyblocks import events

torch = pytest.importorskip("torch")
pytest.importorskip("polyblocks_torch")
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch  # noqa: E402

pytestmark = [pytest.mark.cpu, pytest.mark.isolated]

jit = polyblocks_jit_torch(compile_options={"target": "cpu", "strict_target": True})


@pytest.fixture
def compiled():
    """Names of the programs that were compiled, not taken from the cache."""
    names: list[str] = []

    def sink(event: events.Event) -> None:
        if event.kind == "compile-begin":
            names.append(event.data["name"])
        previous(event)

    previous = events.set_sink(sink)
    yield names
    events.set_sink(previous)


def test_32_threads_compile_a_new_function_once(compiled):
    @jit
    def threaded(x):
        return torch.tanh(x * 1.25) + 32

    inputs = [torch.full((50, 40), float(i)) for i in range(32)]
    barrier = threading.Barrier(32)

    def call(x: torch.Tensor) -> torch.Tensor:
        barrier.wait()
        return threaded(x)

    with ThreadPoolExecutor(32) as pool:
        results = list(pool.map(call, inputs))
    for x, result in zip(inputs, results, strict=True):
        torch.testing.assert_close(result, torch.tanh(x * 1.25) + 32)
    assert len(compiled) == 1


def test_threads_share_a_compiled_function():
    # With a workspace and pooled results, each call needs its own.
    @jit
    def normalized(x):
        centred = x - x.mean(0, keepdim=True)
        return centred / (centred * centred).sum(1, keepdim=True).sqrt()

    def expected(x: torch.Tensor) -> torch.Tensor:
        centred = x - x.mean(0, keepdim=True)
        return centred / (centred * centred).sum(1, keepdim=True).sqrt()

    inputs = [torch.randn(700, 600, generator=torch.Generator().manual_seed(i)) for i in range(6)]
    normalized(inputs[0])

    def check(x: torch.Tensor) -> bool:
        want = expected(x)
        return all(torch.allclose(normalized(x), want, atol=1e-4) for _ in range(5))

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(check, inputs))


def test_large_results_are_reused_and_never_overwritten_while_alive():
    @jit
    def plus_one(x):
        return x + 1

    x = torch.zeros(13_107_200)  # 50 MiB
    first = plus_one(x)
    address = first.data_ptr()
    alias = first[5:10]
    del first
    second = plus_one(x + 1)
    assert second.data_ptr() != address
    assert (alias == 1).all()
    del alias
    gc.collect()
    third = plus_one(x + 2)
    assert third.data_ptr() == address
    assert (second == 2).all()
    assert (third == 3).all()


@pytest.mark.slow
def test_100_000_calls_keep_no_memory(run_python):
    done = run_python(
        """
        import gc, torch
        from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

        @polyblocks_jit_torch(compile_options={"target": "cpu", "strict_target": True})
        def add(x, y):
            return x + y

        def resident():
            gc.collect()
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * 4096

        x, y = torch.ones(16), torch.ones(16)
        for _ in range(2000):
            add(x, y)
        before = resident()
        for _ in range(100_000):
            add(x, y)
        print(resident() - before)
        """,
        preloaded="torch",
    )
    assert done.stderr == ""
    assert int(done.stdout) < 1 << 20


def test_program_that_ignores_its_children(run_python):
    # Compilations are forked; with SIGCHLD ignored nobody can wait for them.
    done = run_python(
        """
        import signal
        import torch
        from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

        signal.signal(signal.SIGCHLD, signal.SIG_IGN)

        @polyblocks_jit_torch(compile_options={"target": "cpu", "strict_target": True})
        def scaled(x):
            return x * 7.75 - 1

        print(scaled(torch.ones(3)).tolist())
        """,
        preloaded="torch",
    )
    assert (done.stdout, done.stderr) == ("[6.75, 6.75, 6.75]\n", "")


def test_function_in_a_forked_worker(run_python):
    done = run_python(
        """
        import os
        import warnings
        import torch
        from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

        @polyblocks_jit_torch(compile_options={"target": "cpu", "strict_target": True})
        def scaled(x):
            return x * 3.5

        x = torch.ones(600_000)
        kept = scaled(x)
        # Python 3.12 and newer warn of forks beside threads.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
        if pid == 0:
            # One thread, as PyTorch's own data loaders: an OpenMP team does not survive a fork.
            torch.set_num_threads(1)
            ok = bool((scaled(x * 2) == 7).all()) and bool((kept == 3.5).all())
            os._exit(0 if ok else 1)
        print(os.waitpid(pid, 0)[1], bool((kept == 3.5).all()))
        """,
        preloaded="torch",
    )
    assert (done.stdout, done.stderr) == ("0 True\n", "")


def test_exit_with_results_alive_is_silent(run_python):
    done = run_python(
        textwrap.dedent(
            """
            import torch
            from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

            @polyblocks_jit_torch(compile_options={"target": "cpu", "strict_target": True})
            def scaled(x):
                return x * 3.5

            torch.kept = [scaled(torch.ones(600_000)) for _ in range(3)]
            """
        ),
        preloaded="torch",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
