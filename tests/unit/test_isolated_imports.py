"""What a compilation imports stays in the process: no forked child imports it again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

#: Fails in the child if it imports what the process does not have.
WATCH = """
import sys
from polyblocks import driver
from polyblocks.isolation import isolation

real = isolation.run_isolated

def watched(fn, **options):
    def job():
        before = set(sys.modules)
        made = fn()
        new = [name for name in sorted(set(sys.modules) - before) if "." in name]
        assert not new, f"imported again by each child: {' '.join(new)}"
        return made
    return real(job, **options)

driver.run_isolated = isolation.run_isolated = watched
"""
TEXT = """
from polyblocks.api import compile_text
from polyblocks.options import CompileOptions
from polyblocks.testing.conformance import CASES

options = CompileOptions(target={target!r}, arch={arch!r})
compile_text(next(case for case in CASES if case.name == "exponential").module, options)
"""
TORCH = """
import torch
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

polyblocks_jit_torch(lambda x: torch.exp(x @ x).sum(1))(torch.ones(8, 8))
"""
JAX = """
import jax
from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax

polyblocks_jit_jax(lambda x: jax.numpy.exp(x @ x).sum(1))(jax.numpy.ones((8, 8)))
"""
TENSORFLOW = """
import tensorflow as tf
from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf

polyblocks_jit_tf(lambda x: tf.reduce_sum(tf.exp(x @ x), 1))(tf.ones((8, 8)))
"""


@pytest.mark.parametrize(
    ("code", "preloaded"),
    [
        (TEXT.format(target="cpu", arch=None), ""),
        (TEXT.format(target="nvgpu", arch="sm_90a"), ""),
        # The vendors' plugins import the same of the core.
        pytest.param(TEXT.format(target="amdgpu", arch="gfx1100"), "", marks=pytest.mark.extended),
        (TORCH, "torch"),
        # Parts of PyTorch that compiling takes are not there yet either.
        pytest.param(TORCH, "", marks=pytest.mark.slow),
        (JAX, ""),
        (TENSORFLOW, "tf"),
    ],
    ids=["cpu", "nvgpu", "amdgpu", "torch", "torch anew", "jax", "tf"],
)
def test_no_child_imports_anything(
    run_python: Callable[..., Any], code: str, preloaded: str
) -> None:
    # It begins with what the program itself imports first.
    done = run_python(f"{WATCH}{code}\nprint('compiled')", preloaded=preloaded)
    assert done.stdout.endswith("compiled\n"), done.stderr
