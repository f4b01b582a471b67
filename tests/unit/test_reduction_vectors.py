"""Operations of reductions whose order is free."""

from __future__ import annotations

import pytest

from polyblocks import mlir
from polyblocks.affine.analysis.reductions import free_of_order
from polyblocks.affine.model import Op, Value
from polyblocks.mlir import ir


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("arith.maximumf", None, {"nsz"}),
        ("arith.minimumf", "none", {"nsz"}),
        ("arith.maximumf", "nsz", {"nsz"}),
        ("arith.maximumf", "reassoc,contract", {"reassoc", "contract", "nsz"}),
        ("arith.addf", "reassoc", {"reassoc"}),
        ("arith.mulf", None, set()),
        ("arith.maxnumf", None, set()),
        ("arith.maxsi", None, set()),
    ],
)
def test_extremes_may_take_either_zero(name: str, before: str | None, after: set[str]) -> None:
    """What else is said of an operation stays; others are left, NaN is nowhere excluded."""
    with mlir.parse("module {}").context:
        attributes = {} if before is None else {"fastmath": ir.Attribute.parse(_flags(before))}
        op = Op(name, [Value("f32"), Value("f32")], attributes, [Value("f32")])
        free_of_order(op)
        if not after:
            assert op.attributes is attributes
            return
        flags = str(op.attributes["fastmath"])
        assert set(flags[flags.index("<") + 1 : -1].split(",")) == after
        # Another op may have the same dictionary.
        assert str(attributes.get("fastmath", _flags(before or ""))) == _flags(before or "")


def _flags(names: str) -> str:
    return f"#arith.fastmath<{names}>"
