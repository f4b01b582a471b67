"""form-preparation: a branch for what depends on constant arguments alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks import signature
from polyblocks.attributes import PREPARATION, REGION_ATTRIBUTE
from polyblocks.passes import facts


@dataclass(frozen=True)
class FormPreparationPass:
    """Begin programs with constant arguments with a branch that is always taken, still empty.

    Later passes move there what depends on these arguments alone, see ``prepare-arguments`` and
    ``tile-contractions``. After S3 it becomes a program of its own, whose results are kept between
    calls. Until then a module means what it says: everything is computed.

    Before::

        func.func @main(%w: memref<4xf32> {polyblocks.arg = {constant = true, ...}}, ...) {
          ...

    After::

        func.func @main(%w: memref<4xf32> {polyblocks.arg = {constant = true, ...}}, ...) {
          %true = arith.constant true
          scf.if %true {
          } {polyblocks.region = "preparation"}
          ...
    """

    name: ClassVar[str] = "form-preparation"
    needs: ClassVar[frozenset[str]] = frozenset({facts.AFFINE_LOOPS, facts.BOUND_ARGUMENTS})

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite in place; returns whether there are constant arguments."""
        from polyblocks.mlir import dialect, ir

        del context
        if not any(row["constant"] and row["updates"] is None for row in signature.rows(module)):
            return False
        block = signature.main_of(module).body.blocks[0]
        with module.context, ir.Location.unknown(), ir.InsertionPoint.at_block_begin(block):
            true = ir.BoolAttr.get(True)
            i1 = ir.IntegerType.get_signless(1)
            condition = dialect("arith").ConstantOp(i1, true).result
            branch = dialect("scf").IfOp(condition)
            branch.operation.attributes[REGION_ATTRIBUTE] = ir.StringAttr.get(PREPARATION)
            with ir.InsertionPoint(branch.then_block):
                dialect("scf").YieldOp([])
        return True
