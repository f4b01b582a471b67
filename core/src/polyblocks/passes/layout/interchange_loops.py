"""interchange-loops: independent loops run in the order in which the result lies in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.access import address
from polyblocks.affine.analysis.parallel import is_parallel
from polyblocks.affine.expr import Var
from polyblocks.affine.model import For, Node, Sequence, Store, walk
from polyblocks.affine.subnests import parallel_shell
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class InterchangeLoopsPass(NestPass):
    """Order the independent outer loops of every nest, the one along which it stores last.

    Programs come with the loops of an operation in the order of its definition, such as channels
    inside of rows and columns. Fusion and tiling take the last loop for the one whose
    iterations become lanes.

    Before::

        affine.for %i = 0 to 56 { affine.for %j = 0 to 64 { affine.for %c = 0 to 192 {
          ... affine.store %v, %b[%c, %i, %j] } } }

    After::

        affine.for %c = 0 to 192 { affine.for %i = 0 to 56 { affine.for %j = 0 to 64 {
          ... affine.store %v, %b[%c, %i, %j] } } }
    """

    name: ClassVar[str] = "interchange-loops"

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Interchange the loops of every nest."""
        for nest in sequence.nests():
            loops, body = parallel_shell(nest.body)
            order = _order([loop.var for loop in loops], body)
            if order is None or any(loop.bounded or loop.level for loop in loops):
                continue
            if not all(is_parallel(loop, nest.body) for loop in loops):
                continue
            nodes = body
            for var in reversed(order):
                nodes = [For(var, nodes)]
            nest.replace(nodes)
            context.decide(self.name, nest.name, "interchanged", order=[v.extent for v in order])


def _order(variables: list[Var], body: list[Node]) -> list[Var] | None:
    """The variables as they move what is stored, the fastest last; None if they are in order.

    Stores must agree, and each variable has to move them.
    """
    found: list[Var] | None = None
    for node in walk(body):
        if not isinstance(node, Store):
            continue
        place = address(node.buffer, node.index)
        steps = {v: place.coefficient(v) for v in variables if v.extent > 1}
        if not all(steps.values()):
            return None
        order = sorted(variables, key=lambda v: abs(steps.get(v) or 1 << 62), reverse=True)
        if found not in (None, order):
            return None
        found = order
    return None if found in (None, variables) else found
