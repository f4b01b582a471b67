"""Arrays of which boxes are copied: what a description by address and strides can say."""

import pytest

from polyblocks import mlir
from polyblocks.affine.expr import Expr
from polyblocks.affine.gpu.plans.boxed_arrays import boxed
from polyblocks.affine.model import Buffer, Load, Value, Var
from polyblocks_nvgpu.bulk.copies import BULK_COPIES


@pytest.mark.parametrize(
    ("layout", "is_boxed"),
    [
        ("strided<[64, 1]>", True),
        ("strided<[66, 1]>", False),
        # The driver gets the address at which the memory begins.
        ("strided<[64, 1], offset: ?>", False),
        ("strided<[64, 1], offset: 64>", False),
    ],
)
def test_an_array_begins_where_its_memory_does(layout: str, is_boxed: bool) -> None:
    with mlir.make_context():
        half = mlir.ir.F16Type.get()
        whole = Buffer((128, 64), half, "output", bytes_per_element=2)
        type_ = mlir.ir.Type.parse(f"memref<32x64xf16, {layout}>")
        view = Buffer(
            *((32, 64), half, "other"),
            bytes_per_element=2,
            memref_type=mlir.ir.MemRefType(type_),
            base=whole,
        )
        i, j = Var(32, "i"), Var(64, "j")
        load = Load(Value(half), view, (Expr.of(i), Expr.of(j)))
        assert (boxed(load, [[j], [i]], BULK_COPIES) is not None) == is_boxed
