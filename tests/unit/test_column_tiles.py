"""Tiles of column reductions: memory is walked in runs that are long enough."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Buffer, For, Load, Nest, Op, Sequence, Store, Value
from polyblocks.options import CompileOptions
from polyblocks.passes.fuse.fuse_tiles import FuseTilesPass
from polyblocks.target import MemoryLevel, ParallelLevel, TargetDescription

TARGET = TargetDescription(
    name="toy",
    arch="toy",
    parallel=(ParallelLevel("team", 2, 3e-6), ParallelLevel("simd", 16)),
    memory=(
        MemoryLevel("L1", 1 << 15, 5e11),
        MemoryLevel("L2", 1 << 20, 2e11),
        MemoryLevel("L3", 1 << 25, 2e11, shared_by=2),
        MemoryLevel("main", 0, 6e10, shared_by=2),
    ),
    vector_bits=512,
    flops={"float32": 5e11},
)


def reduction(source: Buffer, target: Buffer, rows: bool, other: Buffer | None = None) -> Nest:
    """``target[j] = sum over i of source[i, j] (- other[j])``, or along rows."""
    j, i = Var(target.shape[0]), Var(source.shape[1 if rows else 0])
    loaded, zero, carried, total, result = (Value("f32") for _ in range(5))
    index = (Expr.of(j), Expr.of(i)) if rows else (Expr.of(i), Expr.of(j))
    body: list[Any] = [Load(loaded, source, index)]
    term = loaded
    if other is not None:
        mean, term = Value("f32"), Value("f32")
        body += [Load(mean, other, (Expr.of(j),)), Op("arith.subf", [loaded, mean], {}, [term])]
    body.append(Op("arith.addf", [carried, term], {"fastmath": "reassoc"}, [total]))
    chain = For(i, body, [zero], [carried], [result], [total])
    start = Op("arith.constant", [], {"value": 0.0}, [zero])
    nest = Nest([For(j, [start, chain, Store(result, target, (Expr.of(j),))])], [])
    nest.name = "sum"
    return nest


def tiles(rows: bool) -> list[list[int]]:
    """Tiles of what was fused, of two reductions of which the second one needs the first."""
    source = Buffer((4096, 4096), "f32", "input")
    first, second = Buffer((4096,), "f32", "alloc"), Buffer((4096,), "f32", "output")
    nests = [reduction(source, first, rows), reduction(source, second, rows, first)]
    found: list[list[int]] = []

    def decide(name: str, nest: str, what: str, **numbers: Any) -> None:
        if what == "fused":
            found.append(numbers["tile"])

    context = SimpleNamespace(target=TARGET, options=CompileOptions(), decide=decide)
    FuseTilesPass().transform(Sequence([*nests], [source, first, second]), context)
    return found


def test_rows_are_reduced_twice_while_they_are_cached() -> None:
    assert tiles(rows=True)


def test_columns_are_not_walked_element_by_element() -> None:
    assert all(tile[-1] * 4 >= 1024 for tile in tiles(rows=False))
