"""multiply-reciprocals: what a loop divides by again and again is inverted once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.cleanup.reciprocals import RANGES, invert_divisors, is_division
from polyblocks.affine.element import F32, as_float32, dtype_of
from polyblocks.affine.model import For, Node, Op, Sequence, Value, walk
from polyblocks.affine.ops import Ops, is_constant
from polyblocks.affine.subnests import parallel_shell
from polyblocks.passes.base import NestPass


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
        return invert_divisors(shell) if shell[-1].trips >= self.min_trips else ([], 0)


def _multiply(loop: For, constants: dict[Value, Any]) -> int:
    """Replace divisions by constants, in place; how many."""
    count = 0
    body: list[Node] = []
    for node in loop.body:
        reciprocal = None
        if isinstance(node, Op) and is_division(node) and node.operands[1] in constants:
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
    low, high, _ = RANGES[dtype]
    number = float(attribute.value)
    if not 2.0**low <= abs(number) <= 2.0**high:
        return None
    return as_float32(1.0 / number) if dtype == F32 else 1.0 / number
