"""Element types as MLIR has them, and operations that are made of them."""

from __future__ import annotations

import numpy as np
import pytest

from polyblocks import mlir
from polyblocks.affine.element import DTYPES, F32, I1, INDEX, DType, dtype_of, element_bytes
from polyblocks.affine.expr import Expr
from polyblocks.affine.model import Op, Value
from polyblocks.affine.ops import Floats, Integers, Ops, has_flag
from polyblocks.mlir import ir


@pytest.mark.parametrize("name", DTYPES)
def test_a_dtype_is_that_of_mlir(name: str) -> None:
    with mlir.make_context():
        type_ = ir.Type.parse(name)
        dtype = dtype_of(type_)
        assert dtype == DTYPES[name]
        assert dtype.is_whole == isinstance(type_, (ir.IntegerType, ir.IndexType))
        assert dtype.bits == getattr(type_, "width", 64)
        assert element_bytes(type_) == max(dtype.bits, 8) // 8


@pytest.mark.parametrize(("name", "kind"), [("f32", np.float32), ("f64", np.float64), ("f16", "e")])
def test_the_precision_is_that_of_the_format(name: str, kind: str) -> None:
    assert DTYPES[name].precision == np.finfo(kind).nmant + 1


@pytest.mark.parametrize("name", ["i4", "complex<f32>", "!llvm.ptr", "vector<4xf32>"])
def test_other_types_have_no_bits(name: str) -> None:
    assert dtype_of(name) == DType(name)
    assert not DType(name).bits


def test_operations_stand_in_order_and_have_the_types_that_follow() -> None:
    with mlir.make_context(), ir.Location.unknown():
        f32 = ir.F32Type.get()
        x, ops = Value(f32), Ops(location="here")
        double = ops.op("arith.addf", [x, x])
        small = ops.compare(Floats.LESS, double, ops.constant(2.5, f32))
        first = ops.compare(Integers.EQUAL, ops.index(3), ops.index(Expr(4)))
        both = ops.op("arith.andi", [small, first])
        chosen = ops.select(both, double, x)
        copy = ops.like(ops.out[0], [chosen, x])
    made = [n.name if isinstance(n, Op) else "index" for n in ops.out]
    arithmetic = ["arith.addf", "arith.constant", "arith.cmpf", "index", "index", "arith.cmpi"]
    assert made == [*arithmetic, "arith.andi", "arith.select", "arith.addf"]
    assert [dtype_of(v.type) for v in (double, small, both, chosen, copy)] == [
        F32,
        I1,
        I1,
        F32,
        F32,
    ]
    assert dtype_of(ops.out[3].defines[0].type) == INDEX
    assert ops.out[1].attributes["value"].value == 2.5
    assert [ops.out[i].attributes["predicate"].value for i in (2, 5)] == [4, 0]


def test_flags_are_read_from_the_attribute() -> None:
    assert has_flag(Op("arith.addf", [], {"fastmath": "#arith.fastmath<reassoc>"}, []), "reassoc")
    assert not has_flag(Op("arith.addf", [], {"fastmath": "#arith.fastmath<nsz>"}, []), "reassoc")
    assert not has_flag(Op("arith.addf", [], {}, []), "reassoc")
