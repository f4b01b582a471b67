"""Random PyTorch programs: chains of point-wise ops, reductions, windows, reshapes and slices.

A program is a list of steps on a growing list of arrays, so it runs in any dtype. It exercises how
nests are read, fused, reordered and mapped, not single operators.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from strides import as_eager

Array = torch.Tensor
EXTENTS = (1, 2, 3, 5, 7, 8, 13, 17, 31, 64)
#: Steps of a program.
LENGTH = 8


@dataclass
class Program:
    """Called with inputs it gives the outputs; ``shapes`` are those of the inputs.

    ``signs`` are the numbers of the arrays of which it asks whether elements are above zero.
    """

    shapes: list[tuple[int, ...]]
    steps: list[Callable[[list[Array]], Array]]
    outputs: list[int]
    text: list[str]
    signs: list[int] = field(default_factory=list)

    def __call__(self, *inputs: Array) -> list[Array]:
        values = self.values(*inputs)
        return [values[i] for i in self.outputs]

    def values(self, *inputs: Array) -> list[Array]:
        """The inputs, and what every step gives."""
        values = list(inputs)
        for step in self.steps:
            values.append(step(values))
        return values


def make(seed: int, length: int = LENGTH) -> Program:
    """The program of a seed."""
    rng = random.Random(seed)
    rank = rng.choice([2, 2, 3, 4])
    base = tuple(rng.choice(EXTENTS) for _ in range(rank))
    shapes = [base, base, base[-1:]]
    values = [torch.zeros(s, dtype=torch.float64) for s in shapes]
    program = Program(shapes, [], [], [])
    for _ in range(length):
        for _attempt in range(20):
            text, step = _step(rng, values)
            try:
                new = step(values)
            except (RuntimeError, IndexError, ValueError):
                continue
            if new.numel() == 0 or new.numel() > 20000:
                continue
            break
        else:
            continue
        values.append(new)
        program.steps.append(step)
        program.text.append(f"v{len(values) - 1} = {text}")
        if text.startswith("where(v"):
            program.signs.append(int(text[7 : text.index(" ")]))
    last = len(values) - 1
    extra = rng.sample(range(3, last), min(1, max(0, last - 3))) if rng.random() < 0.4 else []
    program.outputs = sorted({last, *extra})
    return program


def _step(rng: random.Random, values: list[Array]) -> tuple[str, Callable[[list[Array]], Array]]:
    recent = [n for n in range(max(0, len(values) - 4), len(values)) if values[n].dim()] or [0]
    i = rng.choice(recent)
    x = values[i]
    kind = rng.choice(
        "unary unary binary binary reduce reduce softmax norm transpose reshape slice flip pad cat "
        "window conv matmul where cumulative roll expand".split()
    )
    if kind == "unary":
        f = rng.choice([torch.tanh, torch.sigmoid, torch.neg, torch.abs, torch.relu, torch.sin])
        return f"{f.__name__}(v{i})", lambda v: f(v[i])
    if kind == "binary":
        j = rng.choice(range(len(values)))
        f = rng.choice([torch.add, torch.mul, torch.sub, torch.maximum, torch.minimum])
        return f"{f.__name__}(v{i}, v{j})", lambda v: f(v[i], v[j])
    if kind == "where":
        j = rng.choice(range(len(values)))
        return f"where(v{i} > 0, v{i}, v{j})", lambda v: torch.where(v[i] > 0, v[i], v[j])
    if kind == "reduce":
        f = rng.choice([torch.sum, torch.mean, torch.amax, torch.amin])
        dims = rng.sample(range(x.dim()), rng.randrange(1, x.dim() + 1))
        keep = rng.random() < 0.6
        return (
            f"{f.__name__}(v{i}, {dims}, {keep})",
            lambda v: f(v[i], dim=tuple(dims), keepdim=keep),
        )
    if kind == "softmax":
        d = rng.randrange(x.dim())
        return f"softmax(v{i}, {d})", lambda v: torch.softmax(v[i], d)
    if kind == "norm":
        return f"layer_norm(v{i})", lambda v: F.layer_norm(v[i], v[i].shape[-1:], eps=1e-2)
    if kind == "cumulative":
        d = rng.randrange(x.dim())
        return f"cumsum(v{i}, {d})", lambda v: torch.cumsum(v[i], d)
    if kind == "roll":
        d, n = rng.randrange(x.dim()), rng.randrange(-3, 4)
        return f"roll(v{i}, {n}, {d})", lambda v: torch.roll(v[i], n, d)
    if kind == "transpose":
        p = rng.sample(range(x.dim()), x.dim())
        return f"permute(v{i}, {p})", lambda v: v[i].permute(p)
    if kind == "reshape":
        d = rng.randrange(max(1, x.dim() - 1))
        if rng.random() < 0.5 and x.dim() > 1:
            return f"flatten(v{i}, {d}, {d + 1})", lambda v: v[i].flatten(d, d + 1)
        factors = [k for k in (2, 3, 4, 5, 7, 8) if x.shape[d] % k == 0]
        k = rng.choice(factors) if factors else 1
        return f"unflatten(v{i}, {d}, {k})", lambda v: v[i].unflatten(d, (-1, k))
    if kind == "slice":
        d = rng.randrange(x.dim())
        a = rng.randrange(0, max(1, x.shape[d] // 2))
        s = rng.choice([1, 1, 2, 3])
        return f"v{i}[{a}::{s}] dim {d}", lambda v: v[i].movedim(d, 0)[a::s].movedim(0, d)
    if kind == "flip":
        d = rng.randrange(x.dim())
        return f"flip(v{i}, {d})", lambda v: torch.flip(v[i], (d,))
    if kind == "pad":
        a, b = rng.randrange(3), rng.randrange(3)
        return f"pad(v{i}, {a}, {b})", lambda v: F.pad(v[i], (a, b), value=0.5)
    if kind == "cat":
        j, d = rng.choice(range(len(values))), rng.randrange(x.dim())
        return f"cat(v{i}, v{j}, {d})", lambda v: torch.cat([v[i], v[j]], d)
    if kind == "expand":
        n = rng.choice([2, 3])
        return f"expand(v{i}, {n})", lambda v: v[i].unsqueeze(0).expand(n, *v[i].shape)
    if kind == "window":
        k, s = rng.choice([2, 3]), rng.choice([1, 2])
        return (
            f"max_pool(v{i}, {k}, {s})",
            lambda v: F.max_pool1d(v[i].reshape(1, -1, v[i].shape[-1]), k, s)[0],
        )
    if kind == "conv":
        k = rng.choice([1, 2, 3, 5])
        w = torch.linspace(-1.0, 1.0, 2 * k, dtype=torch.float64).reshape(2, 1, k)
        return (
            f"conv1d(v{i}, {k})",
            lambda v: F.conv1d(v[i].reshape(-1, 1, v[i].shape[-1]), w.to(v[i].dtype)),
        )
    j = rng.choice(range(len(values)))
    return (
        f"v{i} @ v{j}.T",
        lambda v: v[i].reshape(-1, v[i].shape[-1]) @ v[j].reshape(-1, v[j].shape[-1]).T,
    )


def check(program: Program, jit: Callable[..., Any], seed: int = 0) -> list[str]:
    """What is wrong with the compiled program, in words; nothing if all is well.

    An error may be four times what PyTorch's own float32 result has against float64.

    Args:
        program: what to compile.
        jit: what compiles it.
        seed: of the numbers that it gets.
    """
    generator = torch.Generator().manual_seed(seed)
    inputs = [torch.randn(s, generator=generator) for s in program.shapes]

    def function(*arrays: Array) -> list[Array]:
        return program(*arrays)

    outputs = jit(compile_options={"strict_target": True})(function)(*inputs)
    exact = program(*[x.double() for x in inputs])
    eager = program(*inputs)
    problems = []
    for i, (ours, right, theirs) in enumerate(zip(outputs, exact, eager, strict=True)):
        if ours.shape != right.shape or not as_eager(ours, theirs, program, inputs, i):
            problems.append(f"output {i}: {ours.shape} {ours.stride()}, eager {theirs.stride()}")
            continue
        error = (ours - right).abs().max().item()
        allowed = 4 * (theirs - right).abs().max().item()
        allowed += 1e-5 * max(1.0, right.abs().max().item())
        if not error <= allowed and _signs_are_clear(program, inputs):
            problems.append(f"output {i}: error {error:.3g}, at most {allowed:.3g} is allowed")
    return problems


def _signs_are_clear(program: Program, inputs: list[Array]) -> bool:
    """Whether no sign that the program asks for is one of rounding errors alone.

    The sum of what a normalization gives is zero, and each order of adding has its own small number
    in the place of it.
    """
    exact = program.values(*[x.double() for x in inputs])
    eager = program.values(*inputs)
    for i in program.signs:
        small = exact[i].abs() <= 1e-5 * max(1.0, exact[i].abs().max().item())
        if (small & ((exact[i] != 0) | (eager[i] != 0))).any():
            return False
    return True
