"""Lowering of scans: one ``linalg.generic`` that carries the running values in its results.

A cumulative sum along dimension 1 becomes::

    %s, %last = linalg.generic {maps = [(i, k) -> (i, k), (i, k) -> (i, k), (i, k) -> (i)],
                                iterators = [parallel, reduction]}
        ins(%x : tensor<4x8xf32>) outs(%empty : tensor<4x8xf32>, %zeros : tensor<4xf64>) {
      ^bb0(%b: f32, %unused: f32, %a: f64):
        %w = arith.extf %b : f32 to f64
        %t = arith.addf %a, %w : f64
        %r = arith.truncf %t : f64 to f32
        linalg.yield %r, %t : f32, f64 }

Sums, products and logarithms of sums of float32 are carried in float64, as eager does on CPUs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from polyblocks import mlir
from polyblocks_torch.importing.torch_dialect import (
    Lowering,
    builtin_type,
    from_builtin,
    tensor_type,
    to_builtin,
)

#: From the carried values, the element (as wide as the first of them) and its position along the
#: scanned dimension (an i64) to the new carried values.
Step = Callable[[list[Any], Any, Any], list[Any]]


@dataclass(frozen=True)
class _Scan:
    """How an op scans.

    Attributes:
        step: the scalar code of one iteration.
        start: the first carried value, from its element type.
        widens: whether float32 is carried as float64.
        positions: whether the second result is the position of the element in the first one.
    """

    step: Step
    start: Callable[[Any], float]
    widens: bool = True
    positions: bool = False


def _applies(op: Any) -> bool:
    return builtin_type(op.operands[0].type) is not None


def _replace(scan: _Scan, op: Any) -> None:
    ir = mlir.ir
    linalg, tensor = mlir.dialect("linalg"), mlir.dialect("tensor")
    kinds = [tensor_type(r.type) for r in op.results]
    shape, element = list(kinds[0].shape), kinds[0].element_type
    dim = int(op.operands[1].owner.attributes["value"].value) % len(shape)
    others = shape[:dim] + shape[dim + 1 :]
    with ir.InsertionPoint(op), op.location:
        i64 = ir.IntegerType.get_signless(64)
        wide = ir.F64Type.get() if scan.widens and str(element) == "f32" else element
        carried = [wide, i64] if scan.positions else [wide]
        starts = [
            _constant(kind, start)
            for kind, start in zip(carried, (scan.start(wide), 0), strict=False)
        ]
        outs = [tensor.EmptyOp(shape, kind.element_type).result for kind in kinds]
        outs += [
            linalg.fill(start, outs=[tensor.EmptyOp(others, kind).result])
            for start, kind in zip(starts, carried, strict=True)
        ]
        dims = [ir.AffineDimExpr.get(i) for i in range(len(shape))]
        every = ir.AffineMapAttr.get(ir.AffineMap.get(len(shape), 0, dims))
        row = ir.AffineMapAttr.get(ir.AffineMap.get(len(shape), 0, dims[:dim] + dims[dim + 1 :]))
        kinds_of_loop = ["parallel"] * len(shape)
        kinds_of_loop[dim] = "reduction"
        generic = linalg.GenericOp(
            [o.type for o in outs],
            [to_builtin(op.operands[0])],
            outs,
            ir.ArrayAttr.get([every] * (1 + len(kinds)) + [row] * len(carried)),
            ir.ArrayAttr.get(
                [ir.Attribute.parse(f"#linalg.iterator_type<{k}>") for k in kinds_of_loop]
            ),
        )
        types = [element, *(k.element_type for k in kinds), *carried]
        block = ir.Block.create_at_start(
            generic.regions[0], types, arg_locs=[op.location] * len(types)
        )
        with ir.InsertionPoint(block):
            arith = mlir.dialect("arith")
            x, running = block.arguments[0], list(block.arguments)[1 + len(kinds) :]
            if wide != element:
                x = arith.ExtFOp(wide, x).result
            position = arith.IndexCastOp(i64, linalg.IndexOp(dim).result).result
            new = scan.step(running, x, position)
            shown = list(new)
            if wide != element:
                shown[0] = arith.TruncFOp(element, new[0]).result
            linalg.YieldOp([*shown, *new])
        results = list(generic.results)[: len(kinds)]
        for old, result in zip(op.results, results, strict=True):
            old.replace_all_uses_with(from_builtin(result, old.type))
    op.erase()


def _constant(kind: Any, value: float) -> Any:
    ir = mlir.ir
    is_float = isinstance(kind, (ir.F32Type, ir.F64Type))
    attribute = ir.FloatAttr.get(kind, value) if is_float else ir.IntegerAttr.get(kind, int(value))
    return mlir.dialect("arith").ConstantOp(kind, attribute).result


def _is_float(value: Any) -> bool:
    return isinstance(value.type, (mlir.ir.F32Type, mlir.ir.F64Type))


def _sum(running: list[Any], x: Any, position: Any) -> list[Any]:
    arith = mlir.dialect("arith")
    add = arith.AddFOp if _is_float(x) else arith.AddIOp
    return [add(running[0], x).result]


def _product(running: list[Any], x: Any, position: Any) -> list[Any]:
    arith = mlir.dialect("arith")
    multiply = arith.MulFOp if _is_float(x) else arith.MulIOp
    return [multiply(running[0], x).result]


def _log_sum_exp(running: list[Any], x: Any, position: Any) -> list[Any]:
    arith, math_ = mlir.dialect("arith"), mlir.dialect("math")
    low, high = arith.MinimumFOp(running[0], x).result, arith.MaximumFOp(running[0], x).result
    # Two equal infinities differ by nothing; their difference would be NaN.
    equal = arith.CmpFOp(arith.CmpFPredicate.OEQ, low, high).result
    difference = arith.SubFOp(low, high).result
    difference = arith.SelectOp(equal, _constant(x.type, 0.0), difference).result
    tail = math_.Log1pOp(math_.ExpOp(difference).result).result
    return [arith.AddFOp(high, tail).result]


def _extremum(ordered: str) -> Step:
    """The running extremum: the later of two equal elements wins, and NaN wins over all."""

    def step(running: list[Any], x: Any, position: Any) -> list[Any]:
        arith = mlir.dialect("arith")
        best, place = running
        if _is_float(x):
            # Unordered or equal or beyond: also true where either of them is NaN ...
            take = arith.CmpFOp(getattr(arith.CmpFPredicate, f"U{ordered}"), x, best).result
            # ... but what is NaN already gives way to NaN only.
            nan = arith.CmpFOp(arith.CmpFPredicate.UNO, x, x).result
            number = arith.CmpFOp(arith.CmpFPredicate.ORD, best, best).result
            take = arith.AndIOp(take, arith.OrIOp(nan, number).result).result
        else:
            take = arith.CmpIOp(getattr(arith.CmpIPredicate, f"s{ordered.lower()}"), x, best).result
        return [
            arith.SelectOp(take, x, best).result,
            arith.SelectOp(take, position, place).result,
        ]

    return step


def _smallest_number(kind: Any) -> float:
    ir = mlir.ir
    return -(2 ** (kind.width - 1)) if isinstance(kind, ir.IntegerType) else -math.inf


def _greatest(kind: Any) -> float:
    ir = mlir.ir
    return 2 ** (kind.width - 1) - 1 if isinstance(kind, ir.IntegerType) else math.inf


_SCANS: dict[str, _Scan] = {
    "aten.cumsum": _Scan(_sum, lambda kind: 0),
    "aten.cumprod": _Scan(_product, lambda kind: 1),
    "aten.logcumsumexp": _Scan(_log_sum_exp, lambda kind: -math.inf),
    "aten.cummax": _Scan(_extremum("GE"), _smallest_number, widens=False, positions=True),
    "aten.cummin": _Scan(_extremum("LE"), _greatest, widens=False, positions=True),
}

#: Op name (torch-mlir's spelling) -> its lowering. The decompositions of this package leave operand
#: and result of one dtype: float32, float64 or a signed integer of 16 bits or more.
SCANS = {name: Lowering(partial(_replace, scan), _applies) for name, scan in _SCANS.items()}
