"""A pass that never ends: the compiler is stopped, the framework runs the function."""

from __future__ import annotations

import textwrap

import pytest
from sweeps import sweep

pytestmark = pytest.mark.isolated

HANG = """
import logging, os, sys, time
from pathlib import Path
import numpy as np
from polyblocks.errors import FallbackError, UnsupportedError
from polyblocks.isolation import isolation
from polyblocks.pipeline import FunctionPass
from polyblocks.registry.registry import Registry

logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(message)s")
isolation.SLOW_S = 0.4
configure = Registry.configure

def hang(module, context):
    while True:
        time.sleep(0.01)

def with_hang(self, pipeline, target, options):
    configure(self, pipeline, target, options)
    pipeline.append("S3", FunctionPass("test-hangs", hang))

Registry.configure = with_hang

def check(jit, x):
    def f(x):
        return x * 3.5 + 1

    begin = time.monotonic()
    assert (np.asarray(jit(compile_options={"compile_timeout": 3})(f)(x)) == 4.5).all()
    try:
        jit(compile_options={"compile_timeout": 3, "strict_target": True})(f)(x)
    except (FallbackError, UnsupportedError) as error:
        print(error)
    assert time.monotonic() - begin < 60
    left = [p for p in Path(os.environ["POLYBLOCKS_CACHE_DIR"]).rglob("*") if p.is_file()]
    assert not [p for p in left if p.suffix in (".zip", ".tmp") or "lock" in p.parent.name], left

"""
CALLS = {
    "torch": """
        import torch
        from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch
        check(polyblocks_jit_torch, torch.ones(5))
        """,
    "jax": """
        import jax.numpy as jnp
        from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax
        check(polyblocks_jit_jax, jnp.ones(5))
        """,
    "tf": """
        import tensorflow as tf
        from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf
        check(polyblocks_jit_tf, tf.ones(5))
        """,
}


@pytest.mark.extended
@pytest.mark.parametrize("framework", sweep(CALLS, "torch", "jax"))
def test_a_pass_that_never_ends(run_python, framework, tmp_path):
    code = HANG + textwrap.dedent(CALLS[framework])
    preloaded = "" if framework == "jax" else framework  # JAX is imported quickly
    done = run_python(code, preloaded=preloaded, limit=150, POLYBLOCKS_CACHE_DIR=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "WARNING compiling takes" in done.stdout
    assert "so far in pass 'test-hangs' of stage S3" in done.stdout
    assert "the compiler was stopped after 3 s in pass 'test-hangs' of stage S3" in done.stdout
    assert "the option 'compile_timeout' or POLYBLOCKS_COMPILE_TIMEOUT" in done.stdout
