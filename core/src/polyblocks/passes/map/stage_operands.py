"""stage-operands: the copies and waits of contractions in tiles, as nodes of the nest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.gpu.plans.numbers import Numbers
from polyblocks.affine.gpu.scheduled import kind_of, scheduled_kernel
from polyblocks.affine.gpu.staged.nests import counted_steps, is_staged, stage
from polyblocks.affine.model import For, Nest, Sequence
from polyblocks.affine.plan.keys import PlanKind
from polyblocks.affine.plan.old_keys import read
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class StageOperandsPass(NestPass):
    """Write down how operands of contractions pass through shared memory and registers.

    A nest stays the loops over its rows and columns: nodes in it say what each element needs, and
    the threads of a block do it together for all of theirs. Taken are tiles by arithmetic of lanes
    and by matrix units. Operands go past the threads' registers where the chip can, as below;
    otherwise through them, which needs no waits. Sums by units go through shared memory where lanes
    can store neighbouring columns then. The number of a step counts the loops of a reduction.

    Before::

        affine.for %i = 0 to 512 { affine.for %j = 0 to 256 {
          %s = affine.for %k = 0 to 1024 iter_args(%t = %zero) {
            ... affine.load %a[%i, %k] ... affine.load %b[%k, %j] ... }
          affine.store %s, %c[%i, %j] } } {polyblocks.schedule = {unit = "mma", stages = 3, ...}}

    After::

        affine.for %i = 0 to 512 { affine.for %j = 0 to 256 {
          %at = memref.alloca() : memref<3x64x32xf16, "shared">
          ...
          %s = affine.for %t = 0 to 29 iter_args(%u = %before) {
            polyblocks.copy(%a, %at, %i, %t) {kind = "asynchronous", ...}
            polyblocks.copy(%b, %bt, %j, %t) {kind = "asynchronous", ...}
            %v = affine.for %k = ... iter_args(...) { ... } {polyblocks.unit_steps = "mma"}
            polyblocks.copy(%at, %ar, %t) {kind = "fragments", ...}
            ...
            polyblocks.commit()
            polyblocks.wait() {pending = 1}
            polyblocks.barrier() {scope = "block"}
            ... }
          affine.store %s, %c[%i, %j] } } {polyblocks.schedule = {steps = [[0, 1024]], ...}}

    Raises:
        UnsupportedError: the nest or the chip does not allow for a schedule; says why.
    """

    name: ClassVar[str] = "stage-operands"
    needs: ClassVar[frozenset[str]] = frozenset({facts.NESTS, facts.KERNELS})
    establishes: ClassVar[frozenset[str]] = frozenset({facts.STAGED_OPERANDS})

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Stage the operands of every nest whose schedule is of tiles."""
        for nest in sequence.nests():
            loop = nest.body[0] if len(nest.body) == 1 else None
            if isinstance(loop, For) and loop.schedule is not None:
                self._stage(nest, loop, loop.schedule, context.target)

    def _stage(self, nest: Nest, loop: For, given: dict[str, Any], target: Any) -> None:
        schedule = read(given, nest.name, target)
        if "steps" in schedule or kind_of(schedule) is PlanKind.GROUPS:
            return
        kernel, _ = scheduled_kernel(nest, Numbers(nest), schedule, target)
        plan = kernel.plan
        if is_staged(plan):
            loop.schedule = {**schedule.given, "steps": counted_steps(plan)}
            nest.replace(stage(nest.body, plan))
