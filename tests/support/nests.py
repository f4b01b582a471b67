"""Small nests of the model, a chip for them, and what passes see of a compilation."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from tests.support.nest_interpreter import Machine

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    Buffer,
    For,
    Load,
    Nest,
    Node,
    Op,
    Sequence,
    Store,
    Value,
    walk,
)
from polyblocks.affine.tiles.fusion_stages import FusionStage
from polyblocks.affine.tiles.slices import slices
from polyblocks.affine.tiles.tile_writer import tiled
from polyblocks.options import CompileOptions
from polyblocks.target import MemoryLevel, ParallelLevel, TargetDescription

TARGET = TargetDescription(
    name="toy",
    arch="toy",
    parallel=(ParallelLevel("team", 2, 1e-9), ParallelLevel("simd", 4)),
    memory=(
        MemoryLevel("L1", 1 << 10, 1e11),
        MemoryLevel("L2", 1 << 13, 5e10),
        MemoryLevel("main", 0, 1e9, shared_by=2),
    ),
    vector_bits=128,
    flops={"float32": 1e11},
)


class Context:
    """What a pass sees of a compilation."""

    def __init__(self) -> None:
        self.target = TARGET
        self.options = SimpleNamespace(**vars(CompileOptions()))
        self.decisions: list[tuple[str, dict[str, Any]]] = []

    def decide(self, pass_name: str, nest: str, what: str, **numbers: Any) -> None:
        del pass_name, nest
        self.decisions.append((what, numbers))


def buffer(*shape: int, kind: str = "alloc") -> Buffer:
    return Buffer(shape, "f32", kind)


def weighted(target: Buffer, place: tuple[int, ...], box: tuple[int, ...], *taps: Any) -> Nest:
    """``target[i + place] = sum of weight * source[i + offset]`` for i in the box.

    A tap is (source, offsets, weight); an extent of 0 stands for a dimension without a loop.
    """
    loops = [Var(n) if n else None for n in box]

    def at(offsets: tuple[int, ...]) -> tuple[Expr, ...]:
        return tuple(
            Expr.of(v) + o if v is not None else Expr(o)
            for v, o in zip(loops, offsets, strict=True)
        )

    body: list[Node] = []
    total: Value | None = None
    for source, offsets, weight in taps:
        loaded, factor, product = Value("f32"), Value("f32"), Value("f32")
        body.append(Load(loaded, source, at(offsets)))
        body.append(Op("arith.constant", [], {"value": weight}, [factor]))
        body.append(Op("arith.mulf", [loaded, factor], {}, [product]))
        if total is None:
            total = product
        else:
            new = Value("f32")
            body.append(Op("arith.addf", [total, product], {}, [new]))
            total = new
    assert total is not None
    body.append(Store(total, target, at(place)))
    for var in reversed(loops):
        if var is not None:
            body = [For(var, body)]
    return Nest(body, [], changed=True)


def row_sum(target: Buffer, source: Buffer) -> Nest:
    """``target[i] = sum over j of source[i, j]``."""
    i, j = Var(source.shape[0]), Var(source.shape[1])
    zero, argument, loaded, new, result = (Value("f32") for _ in range(5))
    inner = For(
        j,
        [
            Load(loaded, source, (Expr.of(i), Expr.of(j))),
            Op("arith.addf", [argument, loaded], {"fastmath": "reassoc"}, [new]),
        ],
        [zero],
        [argument],
        [result],
        [new],
    )
    body: list[Node] = [
        Op("arith.constant", [], {"value": 0.0}, [zero]),
        inner,
        Store(result, target, (Expr.of(i),)),
    ]
    return Nest([For(i, body)], [], changed=True)


def innermost(nodes: list[Node]) -> list[For]:
    """Loops without loops in them, in program order."""
    loops = [n for n in walk(nodes) if isinstance(n, For)]
    return [loop for loop in loops if not any(isinstance(n, For) for n in loop.body)]


def run(sequence: Sequence, inputs: dict[Buffer, np.ndarray], out: Buffer) -> np.ndarray:
    machine = Machine(inputs)
    machine.run(sequence)
    return machine.array(out)


def tiled_like(nests: list[Nest], tile: tuple[int, ...], out: Buffer) -> Nest:
    """All nests as one group with this tile."""
    stages = [FusionStage.of(n) for n in nests]
    assert all(s is not None for s in stages)
    found = slices(stages, out, set())
    assert found is not None
    local = {s.buffer for st in stages for s in st.stores} - {out}
    body = tiled(stages, found, tile, local)
    assert body is not None
    return Nest(body, [], changed=True)


def check(nests: list[Nest], inputs: dict[Buffer, np.ndarray], out: Buffer, tile: Any) -> Nest:
    """The tiled group computes what the nests compute one after the other."""
    expected = run(Sequence(list(nests), []), inputs, out)
    nest = tiled_like(nests, tile, out)
    np.testing.assert_array_equal(run(Sequence([nest], []), inputs, out), expected)
    return nest
