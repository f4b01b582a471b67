"""multiply-reciprocals: what a loop divides by again and again is inverted once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.cleanup.invariants import invariants
from polyblocks.affine.element import F32, F64, as_float32, dtype_of
from polyblocks.affine.model import For, Node, Op, Sequence, Value, walk
from polyblocks.affine.ops import Floats, Ops, has_flag, is_constant
from polyblocks.affine.subnests import parallel_shell
from polyblocks.passes.base import NestPass

#: For each type the exponents (of two) between which a number and its reciprocal are normal, and
#: by how much others are moved first.
_RANGES = {F32: (-126, 126, 64), F64: (-1022, 1022, 512)}


@dataclass(frozen=True)
class MultiplyReciprocalsPass(NestPass):
    """Replace divisions by a number that a loop does not change by two multiplications.

    ``x / d`` becomes ``(x * s) * (1 / (d * s))``, where the power of two ``s`` is 1 unless ``d`` is
    so small or large that ``1 / d`` is not a normal number. Infinities, NaN and zeros on either
    side come out as from the division; the result is off by at most 1.5 units in the last place
    instead of 0.5, so the operation must allow that its terms are rearranged. The reciprocal of a
    constant is a constant where the division is: nothing comes to stand between loops.

    Before::

        affine.for %j = 0 to 1024 {
          %d = affine.load %sums[%i]
          %q = arith.divf %x, %d fastmath<reassoc> : f32 ... }

    After::

        %d = affine.load %sums[%i]
        %s = arith.select ... ; %t = arith.mulf %d, %s ; %r = arith.divf %one, %t
        affine.for %j = 0 to 1024 {
          %y = arith.mulf %x, %s ; %q = arith.mulf %y, %r ... }
    """

    name: ClassVar[str] = "multiply-reciprocals"
    #: Iterations that pay for what is done in front of the loop.
    min_trips: int = 32
    #: Whether perfect nests may get something between their loops; else it stands in front of all
    #: of them, and a nest that is perfect as a whole is left as it is.
    between: bool = True

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Rewrite the innermost loops of every nest."""
        if context.options.polyblocks_disable_unsafe_math_canonicalizations:
            return
        if context.options.mlir_disable_fast_math:
            return
        for nest in sequence.nests():
            constants = {
                n.results[0]: n.attributes["value"] for n in walk(nest.body) if is_constant(n)
            }
            loops = [node for node in nest.body if isinstance(node, For)]
            if not self.between:
                loops = [self._shell(loop)[-1] for loop in loops]
            count = sum(self._inside(loop, constants) for loop in loops)
            if count:
                nest.replace()
                context.decide(self.name, nest.name, "reciprocals", divisions=count)

    def _shell(self, loop: For) -> list[For]:
        """The loops that stay nested perfectly, from this one on."""
        shell, _ = parallel_shell([loop])
        return [loop] if self.between or not shell else shell

    def _inside(self, loop: For, constants: dict[Value, Any]) -> int:
        """Rewrite the loops in the body of ``loop``; the number of divisions."""
        count = _multiply(loop, constants) if loop.trips >= self.min_trips else 0
        out: list[Node] = []
        for node in loop.body:
            if isinstance(node, For):
                shell = self._shell(node)
                count += self._inside(shell[-1], constants)
                if not any(isinstance(n, For) for n in shell[-1].body):
                    front, divisions = self._rewrite(shell)
                    out.extend(front)
                    count += divisions
            out.append(node)
        loop.body = out
        return count

    def _rewrite(self, shell: list[For]) -> tuple[list[Node], int]:
        """Reciprocals in front of innermost loops, and the number of divisions they replace."""
        loop = shell[-1]
        if loop.trips < self.min_trips:
            return [], 0
        taken, kept = _invariants(shell)
        varying = {r for n in kept for r in n.defines} | set(loop.arguments)
        divisions = [n for n in kept if isinstance(n, Op) and _is_division(n)]
        divisions = [n for n in divisions if n.operands[1] not in varying]
        if not divisions:
            return [], 0
        front = list(taken)
        known: dict[Value, tuple[Value, Value]] = {}
        body: list[Node] = []
        for node in kept:
            if not isinstance(node, Op) or node not in divisions:
                body.append(node)
                continue
            x, d = node.operands
            if d not in known:
                known[d] = _invert(d, front)
            scale, reciprocal = known[d]
            # Without flags: rearranged, the factors would overflow again.
            moved = Ops(body, node.location).op("arith.mulf", [x, scale])
            body.append(Op("arith.mulf", [moved, reciprocal], {}, node.results, node.location))
        loop.body = body
        return front, len(divisions)


def _is_division(op: Op) -> bool:
    reassociates = op.name == "arith.divf" and has_flag(op, "reassoc")
    return reassociates and dtype_of(op.results[0].type) in _RANGES


def _invariants(shell: list[For]) -> tuple[list[Node], list[Node]]:
    """The nodes in the innermost of these loops that depend on none of them, and the others."""
    inner = shell[-1]
    taken, kept = invariants(inner)
    for loop in reversed(shell[:-1]):
        taken, inside = invariants(For(loop.var, taken, lower=loop.lower, upper=loop.upper))
        kept = [*inside, *kept]
    return taken, kept


def _multiply(loop: For, constants: dict[Value, Any]) -> int:
    """Replace divisions by constants, in place; how many."""
    count = 0
    body: list[Node] = []
    for node in loop.body:
        reciprocal = None
        if isinstance(node, Op) and _is_division(node) and node.operands[1] in constants:
            reciprocal = _reciprocal(constants[node.operands[1]])
        if reciprocal is not None and isinstance(node, Op):
            factor = Ops(body, node.location).constant(reciprocal, node.results[0].type)
            node = Op("arith.mulf", [node.operands[0], factor], {}, node.results, node.location)
            count += 1
        body.append(node)
    loop.body = body
    return count


def _reciprocal(attribute: Any) -> float | None:
    """One over a constant, rounded; None if it or the constant is not a normal number."""
    dtype = dtype_of(attribute.type)
    low, high, _ = _RANGES[dtype]
    number = float(attribute.value)
    if not 2.0**low <= abs(number) <= 2.0**high:
        return None
    return as_float32(1.0 / number) if dtype == F32 else 1.0 / number


def _invert(d: Value, front: list[Node]) -> tuple[Value, Value]:
    """The scale and the reciprocal of the scaled divisor; their operations go to ``front``."""
    low, high, shift = _RANGES[dtype_of(d.type)]
    ops = Ops(front)

    def constant(number: float) -> Value:
        return ops.constant(number, d.type)

    size = ops.op("math.absf", [d])
    small = ops.compare(Floats.LESS, size, constant(2.0**low))
    large = ops.compare(Floats.GREATER, size, constant(2.0**high))
    one = constant(1.0)
    scale = ops.select(large, constant(2.0**-shift), one)
    scale = ops.select(small, constant(2.0**shift), scale)
    reciprocal = ops.op("arith.divf", [one, ops.op("arith.mulf", [d, scale])])
    return scale, reciprocal
