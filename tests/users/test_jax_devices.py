"""Several devices: sharded arrays, ``jax.shard_map``, ``jax.pmap``, in a process of their own."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("jax")

PROGRAM = """
import json, logging, sys
import jax, numpy as np
from jax import numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
from polyblocks.errors import FallbackError
from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax

lines = []
handler = logging.Handler()
handler.emit = lambda record: lines.append(record.getMessage())
logging.getLogger("polyblocks").addHandler(handler)

mesh = jax.make_mesh((2,), ("d",), axis_types=(AxisType.Auto,))
explicit = jax.make_mesh((2,), ("d",), axis_types=(AxisType.Explicit,))
X = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
W = np.random.default_rng(1).normal(size=(6, 3)).astype(np.float32)

def dense(x, w):
    return jnp.tanh(x @ w) * 2

def mean(x, w):
    y = jax.lax.fori_loop(0, 3, lambda i, c: c + w[0], jnp.tanh(x @ w))
    return y - jax.lax.pmean(y.sum(), "d") + jax.lax.axis_index("d")

def sharded(f, on):
    return f(jax.device_put(X, NamedSharding(on, P("d"))), W)

def mapped(f, **options):
    return jax.shard_map(f, mesh=mesh, in_specs=(P("d"), P()), out_specs=P("d"), **options)

def gradient(f):
    return jax.grad(lambda w: (mapped(f)(X, w) ** 2).sum())(W)

def constrained(x, w):
    return jax.lax.with_sharding_constraint(dense(x, w), NamedSharding(mesh, P("d")))

def on_one(f):
    one = jax.make_mesh((1,), ("d",), axis_types=(AxisType.Explicit,), devices=jax.devices()[:1])
    with jax.set_mesh(one):
        return f(jax.device_put(X, NamedSharding(one, P("d"))), W)

def holds_map(x, w):
    one = jax.make_mesh((1,), ("d",), axis_types=(AxisType.Auto,), devices=jax.devices()[:1])
    def body(x, w):
        return jnp.tanh(x @ w) - jax.lax.psum(x.sum(), "d")
    specs = dict(in_specs=(P("d"), P()), out_specs=P("d"))
    return jax.shard_map(body, mesh=one, **specs)(x * 2, w) * 2

CASES = {
    "sharded": (dense, lambda f: sharded(f, mesh)),
    "explicit": (dense, lambda f: sharded(f, explicit)),
    "sharded_grad": (dense, lambda f: jax.grad(lambda x: f(x, W).sum())(
        jax.device_put(X, NamedSharding(mesh, P("d"))))),
    "constrained": (constrained, lambda f: f(X, W)),
    "shard_map": (dense, lambda f: mapped(f)(X, W)),
    "shard_map_unchecked": (dense, lambda f: mapped(f, check_vma=False)(X, W)),
    "shard_map_grad": (dense, gradient),
    "collective": (mean, lambda f: mapped(f)(X, W)),
    "collective_grad": (mean, gradient),
    "pmap": (dense, lambda f: jax.pmap(f, in_axes=(0, None))(X.reshape(2, 2, 6), W)),
    "one_device_of_a_mesh": (dense, on_one),
    "holds_map": (holds_map, lambda f: f(X, W)),
    "holds_map_grad": (holds_map, lambda f: jax.grad(lambda x: f(x, W).sum())(X)),
}
found = {}
for name in sys.argv[1:]:
    function, call = CASES[name]
    lines.clear()
    compiled = polyblocks_jit_jax(function)
    got, want = call(compiled), call(function)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    assert got.sharding.is_equivalent_to(want.sharding, got.ndim), (name, got.sharding)
    report = compiled.polyblocks_report()
    assert "not called yet" not in str(report)
    found[name] = {
        "outcomes": [v.outcome for v in report.variants],
        "ops": sorted({f.op for f in report.fallbacks}),
        "lines": list(lines),
    }
try:
    sharded(polyblocks_jit_jax(dense, compile_options={"strict_target": True}), mesh)
except FallbackError as error:
    found["strict"] = str(error)
print(json.dumps(found))
"""


@functools.cache
def run(*names):
    """What became of the cases with these names."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *names],
        env={**os.environ, "XLA_FLAGS": flags},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


QUICK = ("sharded", "shard_map", "holds_map", "holds_map_grad")
OTHERS = (
    *("explicit", "constrained", "sharded_grad", "shard_map_unchecked", "shard_map_grad"),
    *("pmap", "one_device_of_a_mesh", "collective", "collective_grad"),
)


def case_of(name):
    return run(*(QUICK if name in QUICK else OTHERS))[name]


def quick_or_slow(*names):
    rows = [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in names]
    return pytest.mark.parametrize("name", rows)


@pytest.mark.extended
@pytest.mark.cpu
@quick_or_slow("sharded", "explicit", "constrained", "sharded_grad")
def test_sharded_arrays_are_left_to_jax_with_one_line(name):
    case = case_of(name)
    (op,) = case["ops"]
    assert op.endswith("(sharded arrays)")
    (line,) = case["lines"]
    assert "2 devices" in line
    assert "jax.shard_map" in line
    assert case["outcomes"] == []


@pytest.mark.cpu
@quick_or_slow("shard_map", "shard_map_unchecked", "pmap", "one_device_of_a_mesh")
def test_shard_map_and_pmap_compile_what_each_device_computes(name):
    case = case_of(name)
    assert case["outcomes"]
    assert set(case["outcomes"]) == {"compiled"}
    assert case["ops"] == []
    assert case["lines"] == []


@pytest.mark.cpu
@quick_or_slow("collective", "collective_grad", "shard_map_grad")
def test_shard_map_with_collectives_compiles_the_rest(name):
    case = case_of(name)
    assert "partitioned" in case["outcomes"]
    assert any(op.startswith("psum") for op in case["ops"])
    assert all("it takes part in what several devices do" in line for line in case["lines"])


@pytest.mark.cpu
@quick_or_slow("holds_map", "holds_map_grad")
def test_shard_map_on_one_device_inside_is_left_to_jax(name):
    case = case_of(name)
    assert "partitioned" in case["outcomes"]
    assert any(op.startswith("shard_map") for op in case["ops"])
    assert all("it says what each device of a mesh computes" in line for line in case["lines"])


@pytest.mark.cpu
def test_sharded_arrays_are_an_error_with_strict_target():
    text = run(*QUICK)["strict"]
    assert "dense (sharded arrays): its arrays lie on 2 devices" in text
    assert "strict_target" in text
