"""guard-indices: an index that is computed at run time is checked before memory is touched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

#: What computes an index that is in bounds by construction.
SAFE = {"affine.apply", "arith.constant"}
LOOPS = {"affine.for", "affine.parallel", "scf.for", "scf.parallel", "scf.forall"}
#: How far to look for a check that the frontend has already put on the value.
DEPTH = 4


@dataclass(frozen=True)
class GuardIndicesPass:
    """Put an assertion in front of every load and store at run-time indices.

    Loop variables and affine indices are in bounds by construction, and so is what was clamped; a
    value that an assertion already looks at is left to it.

    Before::

        %x = memref.load %table[%i] : memref<10xf32>

    After::

        %ok = arith.cmpi ult, %i, %c10 : index
        cf.assert %ok, "index out of range: it must be at least 0 and less than 10"
        %x = memref.load %table[%i] : memref<10xf32>
    """

    name: ClassVar[str] = "guard-indices"

    def run(self, module: Any, context: Any) -> None:
        """Rewrite in place."""
        from polyblocks.affine.mlir.value_ranges import range_of
        from polyblocks.mlir import ir

        del context
        accesses: list[Any] = []
        checked: set[Any] = set()

        on = ir.WalkResult.ADVANCE

        def visit(op: Any) -> Any:
            name = op.name
            if name in ("memref.load", "memref.store"):
                accesses.append(op)
            elif name == "cf.assert":
                _collect(op.operands[0], checked, DEPTH)
            return on

        module.operation.walk(visit)
        with module.context, ir.Location.unknown():
            for op in accesses:
                first = 1 if op.name == "memref.load" else 2
                shape = op.operands[first - 1].type.shape
                seen: set[Any] = set()
                for index, extent in zip(list(op.operands)[first:], shape, strict=True):
                    if index in seen or _is_safe(index, checked):
                        continue
                    seen.add(index)
                    known = range_of(index)
                    if known is not None and known[0] >= 0 and known[1] < extent:
                        continue
                    if extent >= 0:
                        _guard(op, index, extent)


def _collect(value: Any, checked: set[Any], depth: int) -> None:
    """Values that a condition is computed from."""
    from polyblocks.mlir import ir

    owner = value.owner
    if depth == 0 or isinstance(owner, ir.Block):
        return
    for operand in owner.operation.operands:
        checked.add(operand)
        _collect(operand, checked, depth - 1)


def _is_safe(index: Any, checked: set[Any]) -> bool:
    from polyblocks.mlir import ir

    value = index
    for _ in range(DEPTH):
        if value in checked and not isinstance(value.owner, ir.Block):
            return value.owner.operation.name != "arith.constant"
        owner = value.owner
        if isinstance(owner, ir.Block):
            return owner.owner.operation.name in LOOPS and value == owner.arguments[0]
        name = owner.operation.name
        if name in SAFE:
            return True
        if name not in ("arith.index_cast", "arith.index_castui", "arith.extsi", "arith.trunci"):
            return False
        value = owner.operation.operands[0]
    return False


def _guard(op: Any, index: Any, extent: int) -> None:
    from polyblocks.mlir import dialect, ir

    arith, cf = dialect("arith"), dialect("cf")
    with ir.InsertionPoint(op):
        limit = arith.ConstantOp(ir.IndexType.get(), extent)
        # As an unsigned number, a negative index is too large as well.
        fits = arith.CmpIOp(arith.CmpIPredicate.ult, index, limit)
        message = f"index out of range: it must be at least 0 and less than {extent}"
        cf.AssertOp(fits, message, loc=op.location)
