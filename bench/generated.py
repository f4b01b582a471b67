"""Generated programs of any length, for measuring how compile time grows."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

#: Rows and columns of the arrays.
EXTENTS = (24, 32, 40, 48)
#: Operands are mostly among so many of the newest values, so that the graph is long and branches.
RECENT = 8

UNARY = ("tanh", "sigmoid", "neg", "abs", "relu", "sin", "exp")
BINARY = ("add", "mul", "sub", "maximum", "minimum")


@dataclass
class Generated:
    """A function of so many operations.

    Attributes:
        function: takes :attr:`inputs` apart, returns every value that nothing else used.
        inputs: float32 arrays.
        text: the function's source.
    """

    function: Callable[..., Any]
    inputs: tuple[torch.Tensor, ...]
    text: str


def generate(operations: int, seed: int = 0) -> Generated:
    """A program of PyTorch operations: point-wise ones, reductions, contractions, shapes.

    The same numbers give the same program, and a longer one of the same seed begins like a shorter
    one. It has branches that meet again, near and far, and values stay small.

    Args:
        operations: how many calls of PyTorch it makes.
        seed: of the choices.
    """
    return _Generator(random.Random(seed)).run(operations)


@dataclass
class _Generator:
    rng: random.Random
    shapes: list[tuple[int, int]] = field(default_factory=list)
    unused: dict[int, None] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    weights: dict[tuple[int, int], str] = field(default_factory=dict)
    calls: int = 0

    def run(self, operations: int) -> Generated:
        inputs = [(self.rng.choice(EXTENTS), self.rng.choice(EXTENTS)) for _ in range(4)]
        for shape in inputs:
            self.new(shape)
        while self.calls < operations:
            self.step()
        names = [f"v{i}" for i in range(len(inputs))] + list(self.weights.values())
        results = ", ".join(f"v{i}" for i in self.unused)
        text = "\n".join(
            [f"def generated({', '.join(names)}):"]
            + [f"    {line}" for line in self.lines]
            + [f"    return {results},\n"]
        )
        scope: dict[str, Any] = {"torch": torch, "F": torch.nn.functional}
        exec(compile(text, "generated.py", "exec"), scope)
        generator = torch.Generator().manual_seed(0)
        arrays = [torch.randn(shape, generator=generator) for shape in inputs]
        arrays += [torch.randn(s, generator=generator) / s[0] ** 0.5 for s in self.weights]
        return Generated(scope["generated"], tuple(arrays), text)

    def new(self, shape: tuple[int, int]) -> int:
        self.shapes.append(shape)
        self.unused[len(self.shapes) - 1] = None
        return len(self.shapes) - 1

    def emit(self, shape: tuple[int, int], expression: str, *operands: int, calls: int = 1) -> None:
        self.calls += calls
        for operand in operands:
            self.unused.pop(operand, None)
        self.lines.append(f"v{self.new(shape)} = {expression}")

    def pick(self) -> int:
        """A recent value, rather one that nobody used, now and then an old one."""
        if self.rng.random() < 0.1:
            return self.rng.randrange(len(self.shapes))
        waiting = list(self.unused)
        if len(waiting) > RECENT:
            return waiting[0]
        first = max(0, len(self.shapes) - RECENT)
        return self.rng.choice(waiting + list(range(first, len(self.shapes))))

    def step(self) -> None:
        x = self.pick()
        rows, columns = shape = self.shapes[x]
        kind = self.rng.choice(
            "unary unary unary binary binary binary reduce reduce softmax norm matmul matmul "
            "transpose join shift".split()
        )
        if kind == "unary":
            f = self.rng.choice(UNARY)
            # The exponential of the exponential ... would not stay small.
            at = f"-torch.abs(v{x})" if f == "exp" else f"v{x}"
            self.emit(shape, f"torch.{f}({at})", x, calls=3 if f == "exp" else 1)
        elif kind == "binary":
            same = [i for i in self.unused if self.shapes[i] == shape and i != x]
            same = same or [i for i, s in enumerate(self.shapes) if s == shape][-RECENT:]
            y = self.rng.choice(same)
            self.emit(shape, f"torch.{self.rng.choice(BINARY)}(v{x}, v{y})", x, y)
        elif kind == "reduce":
            f = self.rng.choice(("mean", "amax", "amin"))
            dim = self.rng.randrange(2)
            self.emit(shape, f"v{x} - v{x}.{f}(dim={dim}, keepdim=True)", x, calls=2)
        elif kind == "softmax":
            self.emit(shape, f"torch.softmax(v{x}, dim={self.rng.randrange(2)})", x)
        elif kind == "norm":
            self.emit(shape, f"F.layer_norm(v{x}, ({columns},))", x)
        elif kind == "matmul":
            width = self.rng.choice(EXTENTS)
            weight = self.weights.setdefault((columns, width), f"w{columns}_{width}")
            self.emit((rows, width), f"torch.tanh(v{x} @ {weight})", x, calls=2)
        elif kind == "transpose":
            self.emit((columns, rows), f"v{x}.t() + 1.0", x, calls=2)
        elif kind == "join":
            cut = columns // 2
            halves = f"[v{x}[:, {cut}:], v{x}[:, :{cut}]]"
            self.emit(shape, f"torch.cat({halves}, dim=1)", x, calls=3)
        else:
            self.emit(shape, f"F.pad(v{x}[1:], (0, 0, 0, 1))", x, calls=2)
