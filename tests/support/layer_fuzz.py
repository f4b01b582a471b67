"""Random PyTorch programs of layers on images: convolutions, pools, norms and skips.

Chains of windows over two dimensions, one behind the other: what is computed tile by tile, with
borders that the windows reach beyond.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import torch
import torch.nn.functional as F
from program_fuzz import Array, Program

#: Layers of a program.
LENGTH = 5
EXTENTS = (7, 13, 16, 24, 32, 33)
#: Elements of the largest array.
MOST = 80000


def make(seed: int, length: int = LENGTH) -> Program:
    """The program of a seed, with batch, channels and extents of its own."""
    rng = random.Random(seed)
    batch, channels = rng.choice([1, 1, 2, 3]), rng.choice([1, 3, 4, 8])
    shape = (batch, channels, rng.choice(EXTENTS), rng.choice(EXTENTS))
    values = [torch.zeros(shape, dtype=torch.float64)]
    program = Program([shape], [], [], [])
    while len(values) <= length:
        text, step = _layer(rng, values)
        try:
            new = step(values)
        except RuntimeError:
            # The window does not fit in what is left.
            continue
        if new.numel() == 0 or new.numel() > MOST:
            continue
        values.append(new)
        program.steps.append(step)
        program.text.append(f"v{len(values) - 1} = {text}")
    extra = rng.sample(range(1, length), 1) if length > 1 and rng.random() < 0.3 else []
    program.outputs = sorted({length, *extra})
    return program


def _layer(rng: random.Random, values: list[Array]) -> tuple[str, Callable[[list[Array]], Array]]:
    i = len(values) - 1
    x = values[i]
    kind = rng.choice("conv conv conv depthwise pool norm relu skip sum turn".split())
    if kind in ("conv", "depthwise"):
        k, stride = rng.choice([1, 2, 3, 3, 3, 5]), rng.choice([1, 1, 1, 2])
        pad = rng.choice([0, k // 2, k // 2])
        channels, groups = x.shape[1], x.shape[1] if kind == "depthwise" else 1
        features = channels if groups > 1 else rng.choice([2, 4, 5, 8, 16])
        generator = torch.Generator().manual_seed(rng.randrange(1 << 30))
        w = torch.randn(features, channels // groups, k, k, generator=generator) / k
        return (
            f"{kind}(v{i}, {features} of {k}x{k}, stride {stride}, pad {pad})",
            lambda v: F.conv2d(v[i], w.to(v[i].dtype), None, stride, pad, groups=groups),
        )
    if kind == "pool":
        f = rng.choice([F.max_pool2d, F.avg_pool2d])
        k, stride = rng.choice([2, 3]), rng.choice([1, 2])
        return f"{f.__name__}(v{i}, {k}, {stride})", lambda v: f(v[i], k, stride, k // 2)
    if kind == "norm":

        def norm(v: list[Array]) -> Array:
            variance, mean = torch.var_mean(v[i], (0, 2, 3), keepdim=True, unbiased=False)
            return (v[i] - mean) * torch.rsqrt(variance + 1e-2)

        return f"norm(v{i})", norm
    if kind == "relu":
        return f"relu(v{i})", lambda v: torch.relu(v[i])
    if kind == "skip":
        alike = [j for j in range(i) if values[j].shape == x.shape]
        j = rng.choice(alike or [i])
        return f"relu(v{i} + v{j})", lambda v: torch.relu(v[i] + v[j])
    if kind == "sum":
        d = rng.randrange(4)
        return f"v{i} - mean(v{i}, {d})", lambda v: v[i] - v[i].mean(d, keepdim=True)
    return f"channels last(v{i})", lambda v: v[i].contiguous(memory_format=torch.channels_last)
