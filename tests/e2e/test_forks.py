"""Programs that fork: threads that fork at once, and functions that are first used in a child."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.sweeps import sweep

pytestmark = [
    pytest.mark.isolated,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system"),
]

#: Framework -> a function of an array, and an array large enough for the pool and for threads.
PROGRAMS = {
    "torch": """
        import torch
        from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

        @polyblocks_jit_torch(compile_options={"target": "cpu", "strict_target": True})
        def f(x):
            return x * 3.5

        x = torch.ones(600_000)
        weight = torch.ones(600, 600, requires_grad=True)
        (weight @ weight).exp().sum().backward()  # PyTorch's threads have worked
        """,
    "jax": """
        import warnings
        import jax.numpy as jnp
        from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax

        warnings.simplefilter("ignore")  # JAX's, of forks

        @polyblocks_jit_jax(compile_options={"target": "cpu", "strict_target": True})
        def f(x):
            return x * 3.5

        x = jnp.ones(600_000)
        """,
    "tf": """
        import tensorflow as tf
        from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf

        @polyblocks_jit_tf(compile_options={"target": "cpu", "strict_target": True})
        def f(x):
            return x * 3.5

        x = tf.ones(600_000)
        """,
}

THREADS = """
import os, sys, threading
import numpy as np

f(x)
bad = []

def fork():
    for _ in range(int(sys.argv[1])):
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        if os.waitpid(pid, 0)[1]:
            bad.append(pid)

threads = [threading.Thread(target=fork) for _ in range(4)]
for thread in threads:
    thread.start()
while any(thread.is_alive() for thread in threads):
    bad += [] if (np.asarray(f(x)) == 3.5).all() else ["wrong"]
print(bad)
"""

CHILD = """
import os, signal
import numpy as np

pid = os.fork()
if pid == 0:
    signal.alarm(60)
    try:
        print((np.asarray(f(x)) == 3.5).all(), flush=True)
    except Exception as error:
        print(type(error).__name__, error, flush=True)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def run(run_python: Callable[..., Any], framework: str, code: str, *arguments: str) -> str:
    code = textwrap.dedent(PROGRAMS[framework]) + code
    done = run_python(code, *arguments, preloaded=framework, limit=150)
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


@pytest.mark.extended
@pytest.mark.parametrize("forks", sweep(["8", "30"], "8"))
@pytest.mark.parametrize("framework", sweep(PROGRAMS, "torch", "jax"))
def test_four_threads_fork_at_once(run_python, framework, forks):
    assert run(run_python, framework, THREADS, forks) == "[]\n"


@pytest.mark.extended
@pytest.mark.parametrize("framework", ["torch", "tf"])
def test_a_function_is_first_used_in_a_child(run_python, framework):
    assert run(run_python, framework, CHILD) == "True\n0\n"


def test_jax_cannot_compile_in_a_child_and_says_so(run_python):
    """JAX's own functions wait there forever."""
    said = run(run_python, "jax", CHILD)
    assert said.startswith("ExecutionError 'f' is compiled for new arguments in a process that was")
    assert said.endswith("or start processes with the method 'spawn'\n0\n")
