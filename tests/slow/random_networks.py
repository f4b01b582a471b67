"""Random perceptrons and transformer layers on simulated GPUs with matrix units.

``python tests/slow/random_networks.py --count 20``: written in PyTorch, JAX and TensorFlow by
turns, in both 16-bit types, with sizes that tiles do not divide, on each chip by turns. Every other
sample takes any kernels of units that could be chosen in the place of the best ones. An error
against the same network in float64 may be twice that of the framework itself.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from any_unit import any_unit
from simulated_chips import CHIPS, on_chip

#: Of the layers that are normalized.
EPSILON = 1e-5
#: What an error may be where the framework's own is smaller: a unit in the last place.
UNIT = {"float16": 2.0**-10, "bfloat16": 2.0**-7}


@dataclass(frozen=True)
class Network:
    """A sample, of any framework.

    Attributes:
        attends: a layer of a transformer, and not a perceptron alone.
        batch, length, width: of its input.
        heads: of the attention; their size divides the width.
        hidden: width of the layer between two products.
        causal: whether what comes later is masked.
    """

    attends: bool
    batch: int
    length: int
    width: int
    heads: int
    hidden: int
    causal: bool

    @classmethod
    def sample(cls, number: int) -> Network:
        """The sample of a number."""
        numbers = random.Random(number)
        heads = numbers.choice([1, 2, 4])
        return cls(
            numbers.random() < 0.6,
            *(numbers.choice([1, 2]), numbers.randint(3, 70)),
            *(heads * 8 * numbers.randint(1, 4), heads),
            hidden=numbers.choice([40, 61, 96, 160]),
            causal=numbers.random() < 0.5,
        )

    def arrays(self, number: int) -> list[np.ndarray]:
        """The input and the weights, float64."""
        numbers = np.random.default_rng(number)
        w, h = self.width, self.hidden
        shapes: list[tuple[int, ...]] = [(self.batch, self.length, w), (w, h), (h,), (h, w), (w,)]
        if self.attends:
            shapes += [(w, w)] * 4 + [(w,), (w,)]
        scales = [1.0] + [shape[0] ** -0.5 if len(shape) == 2 else 0.5 for shape in shapes[1:]]
        pairs = zip(shapes, scales, strict=True)
        return [numbers.standard_normal(shape) * scale for shape, scale in pairs]


def main() -> int:
    """Run the samples; the exit status is 1 if one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="number of the first sample")
    parser.add_argument("--arch", choices=CHIPS, action="append", help="default: all in turn")
    arguments = parser.parse_args()
    archs = arguments.arch or list(CHIPS)
    outcomes: Counter[str] = Counter()
    for number in range(arguments.first, arguments.first + arguments.count):
        framework = list(FRAMEWORKS)[number % len(FRAMEWORKS)]
        arch = archs[number // len(FRAMEWORKS) % len(archs)]
        dtype = ("float16", "bfloat16")[number // 2 % 2]
        network = Network.sample(number)
        outcome, told = check(network, number, framework, arch, dtype)
        outcomes[outcome] += 1
        if outcome != "right":
            print(f"{number} {framework} {arch} {dtype} {network}: {outcome}: {told}", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())))
    return int(any(not outcome.startswith("right") for outcome in outcomes))


def check(network: Network, number: int, framework: str, arch: str, dtype: str) -> tuple[str, str]:
    """What became of a sample, and what was found."""
    arrays = network.arrays(number)
    numbers = random.Random(number) if number % 2 else None
    with on_chip(arch) as seen, any_unit(numbers):
        try:
            compiled, own, exact = FRAMEWORKS[framework](network, arrays, dtype)
        except Exception as error:  # whatever it is, the sample has failed
            return "failed", f"{type(error).__name__}: {error}"
    if seen.findings:
        return "finding", seen.findings[0]
    if seen.fallbacks:
        return "fallback", seen.fallbacks[0]
    if seen.cuts:
        return "cut", seen.cuts[0]
    allowed = 2 * np.abs(own - exact).max() + UNIT[dtype] * np.abs(exact).max()
    error = np.abs(compiled - exact).max()
    if not error <= allowed:
        return "wrong", f"error {error:.2e}, the framework's {np.abs(own - exact).max():.2e}"
    if not seen.instructions["matrix"]:
        return "right, without a unit", "other kernels are quicker"
    return "right", ""


def in_torch(
    network: Network, arrays: list[np.ndarray], dtype: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What a chip, PyTorch, and PyTorch in float64 compute of a network."""
    import torch
    from torch.nn import functional

    from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

    def function(x: Any, *weights: Any) -> Any:
        if network.attends:
            *weights, query, key, value, out, gamma, beta = weights
            y = functional.layer_norm(x, (network.width,), gamma, beta, EPSILON)
            shape = (network.batch, network.length, network.heads, -1)
            parts = ((y @ w).view(shape).transpose(1, 2) for w in (query, key, value))
            y = functional.scaled_dot_product_attention(*parts, is_causal=network.causal)
            x = x + y.transpose(1, 2).reshape(x.shape) @ out
        up, bias, down, last = weights
        return x + functional.gelu(x @ up + bias) @ down + last

    exact = [torch.from_numpy(a).to(getattr(torch, dtype)) for a in arrays]
    compiled = polyblocks_jit_torch(function, compile_options={"strict_target": True})
    found = (compiled(*exact), function(*exact), function(*(a.double() for a in exact)))
    torch._dynamo.reset()
    first, own, reference = (t.double().numpy() for t in found)
    return first, own, reference


def in_jax(
    network: Network, arrays: list[np.ndarray], dtype: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As :func:`in_torch`."""
    import jax
    import jax.numpy as jnp

    from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax

    def function(x: Any, *weights: Any) -> Any:
        if network.attends:
            *weights, query, key, value, out, gamma, beta = weights
            centred = x - x.mean(-1, keepdims=True)
            y = centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + EPSILON) * gamma + beta
            shape = (network.batch, network.length, network.heads, -1)
            q, k, v = ((y @ w).reshape(shape) for w in (query, key, value))
            scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
            if network.causal:
                seen = jnp.tril(jnp.ones((network.length,) * 2, bool))
                scores = jnp.where(seen, scores, -jnp.inf)
            y = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1), v)
            x = x + y.reshape(x.shape) @ out
        up, bias, down, last = weights
        return x + jax.nn.gelu(x @ up + bias, approximate=True) @ down + last

    given = [jnp.asarray(a, dtype) for a in arrays]
    compiled = polyblocks_jit_jax(function, compile_options={"strict_target": True})
    found = [np.asarray(f(*given).astype("float32"), "float64") for f in (compiled, function)]
    with jax.enable_x64(True):
        exact = function(*(jnp.asarray(np.asarray(a, "float32"), "float64") for a in given))
    return found[0], found[1], np.asarray(exact)


def in_tensorflow(
    network: Network, arrays: list[np.ndarray], dtype: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As :func:`in_torch`."""
    import tensorflow as tf

    from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf

    def function(x: Any, *weights: Any) -> Any:
        if network.attends:
            *weights, query, key, value, out, gamma, beta = weights
            mean, variance = tf.nn.moments(x, -1, keepdims=True)
            y = tf.nn.batch_normalization(x, mean, variance, beta, gamma, EPSILON)
            shape = (network.batch, network.length, network.heads, network.width // network.heads)
            q, k, v = (
                tf.transpose(tf.reshape(y @ w, shape), (0, 2, 1, 3)) for w in (query, key, value)
            )
            scores = tf.matmul(q, k, transpose_b=True) * tf.cast(shape[-1] ** -0.5, q.dtype)
            if network.causal:
                seen = tf.linalg.band_part(tf.ones((network.length,) * 2, q.dtype), -1, 0)
                scores += (1 - seen) * q.dtype.min
            y = tf.transpose(tf.nn.softmax(scores) @ v, (0, 2, 1, 3))
            x = x + tf.reshape(y, x.shape) @ out
        up, bias, down, last = weights
        return x + tf.nn.gelu(x @ up + bias, approximate=True) @ down + last

    given = [tf.cast(a, dtype) for a in arrays]
    compiled = polyblocks_jit_tf(function, compile_options={"strict_target": True})
    found = (compiled(*given), function(*given), function(*(tf.cast(a, "float64") for a in given)))
    first, own, reference = (tf.cast(t, "float64").numpy() for t in found)
    return first, own, reference


#: Compute a network by the compiler, by the framework, and by the framework in float64.
FRAMEWORKS: dict[
    str,
    Callable[[Network, list[np.ndarray], str], tuple[np.ndarray, np.ndarray, np.ndarray]],
] = {"torch": in_torch, "jax": in_jax, "tensorflow": in_tensorflow}


if __name__ == "__main__":
    sys.exit(main())
