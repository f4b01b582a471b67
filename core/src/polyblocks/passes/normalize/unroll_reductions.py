"""unroll-reductions: reductions over a few elements become straight-line code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.access import address
from polyblocks.affine.analysis.reductions import ReductionNest, free_of_order
from polyblocks.affine.cleanup.constant_loads import fold_constant_load
from polyblocks.affine.expr import Expr
from polyblocks.affine.fusion.product_nests import ProductNests
from polyblocks.affine.model import (
    For,
    Load,
    Node,
    Sequence,
    Value,
    clone,
    remove_dead,
    replace_values,
    walk,
)
from polyblocks.affine.rewrites.simplify import eliminate_common
from polyblocks.affine.users import Users
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class UnrollReductionsPass(NestPass):
    """Unroll reduction loops of at most ``max_trips`` iterations in all, innermost first.

    A small stencil or window is then a point-wise nest: its taps are separate loads, constant
    weights are constants, and it can be fused like any other point-wise nest. Contractions that are
    large enough for register tiles are left as they are, also those whose products other nests
    still compute for them; and so are those that a matrix unit can compute.

    Before::

        %r = affine.for %k = 0 to 2 iter_args(%acc = %z) -> f32 {
          %x = affine.load %a[%i + %k]
          %s = arith.addf %acc, %x : f32
          affine.yield %s : f32 }

    After::

        %x0 = affine.load %a[%i]
        %s0 = arith.addf %z, %x0 : f32
        %x1 = affine.load %a[%i + 1]
        %s1 = arith.addf %s0, %x1 : f32
    """

    name: ClassVar[str] = "unroll-reductions"
    needs: ClassVar[frozenset[str]] = frozenset({facts.NESTS, facts.REDUCTIONS, facts.UNFUSED})
    breaks: ClassVar[frozenset[str]] = frozenset({facts.ROLLED_REDUCTIONS})
    #: Enough for a 5 x 5 window; more would cost compile time and registers.
    max_trips: int = 32
    #: The same for several loops, none of which is long enough to be worth its start: 7 x 7. On
    #: chips with blocks of threads such code in a loop takes the registers that other threads would
    #: have; by itself it is a stencil, whose tiles are in shared memory, where it slides. The sum
    #: of a whole image stays a reduction, which threads share.
    max_window: int = 64
    #: Nodes of the unrolled code.
    max_nodes: int = 400

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Unroll in every nest."""
        # It stays right: unrolled nests read and write what they did before.
        target = context.target
        tiles = target.has_register_tiles
        products = ProductNests(Users(sequence), target)
        for nest in sequence.nests():
            if not any(isinstance(n, For) and n.inits for n in walk(nest.body)):
                continue
            if (tiles and products.fits_tiles(nest)) or products.fits_unit(nest):
                continue
            mapping: dict[Value, Value] = {}
            body = self._unroll(nest.body, mapping, tiles)
            if mapping:
                replace_values(body, mapping)
                eliminate_common(body)
                remove_dead(body)
                nest.replace(body)

    def _unroll(
        self,
        nodes: list[Node],
        mapping: dict[Value, Value],
        tiles: bool,
        around: For | None = None,
    ) -> list[Node]:
        """The nodes, small reductions unrolled; ``mapping`` gets the values of their results."""
        out: list[Node] = []
        alone = around is None or not around.inits
        for node in nodes:
            if isinstance(node, For):
                trips, count = _size(node)
                small = node.inits and not (around is not None and _continues(around, node))
                small = small and not any(isinstance(n, For) and n.bounded for n in walk([node]))
                stencil = tiles or (alone and _slides(node))
                most = self.max_window if stencil and _is_window(node) else self.max_trips
                if small and trips <= most and count * trips <= self.max_nodes:
                    _free(node)
                    out.extend(_flat(node, mapping))
                    continue
                node.body = self._unroll(node.body, mapping, tiles, node)
            out.append(node)
        return out


def _continues(outer: For, inner: For) -> bool:
    """Whether a reduction's inner loop goes on in memory where its outer one moves.

    Both will be one long loop, and the short one has no meaning of its own.
    """
    if not outer.inits or outer.body != [inner]:
        return False
    exprs = [address(n.buffer, n.index) for n in walk(inner.body) if isinstance(n, Load)]
    factors = [(e.coefficient(outer.var), e.coefficient(inner.var)) for e in exprs]
    return any(b for _, b in factors) and all(
        a is not None and b is not None and a == b * inner.var.extent for a, b in factors
    )


def _is_window(loop: For) -> bool:
    """Whether loops in a loop run over a few neighbours each, in at least two directions."""
    loops = [n for n in walk([loop]) if isinstance(n, For) and n.var.extent > 1]
    return len(loops) > 1 and all(n.var.extent <= 8 for n in loops)


def _slides(loop: For) -> bool:
    """Whether what loops in a loop read moves along with the loops around, too."""
    inside = {n.var for n in walk([loop]) if isinstance(n, For)}
    loads = (n for n in walk([loop]) if isinstance(n, Load))
    moved = ({*e.variables()} for load in loads for e in load.index)
    return any(inside & found and found - inside for found in moved)


def _size(loop: For) -> tuple[int, int]:
    """Iterations of a loop and all loops in it, and nodes of their bodies."""
    trips, count = loop.var.extent, 0
    for n in walk(loop.body):
        if isinstance(n, For):
            trips *= n.var.extent
        else:
            count += 1
    return trips, count


def _free(loop: For) -> None:
    """Let the combiners of a reduction take any of two zeros, as they do in a loop."""
    shape = ReductionNest.of_nodes([loop])
    for op in (shape.combiners(any_order=False) if shape is not None else None) or ():
        free_of_order(op)


def _flat(loop: For, mapping: dict[Value, Value]) -> list[Node]:
    """The loop and all loops in it, unrolled; ``mapping`` gets the values of its results."""
    out: list[Node] = []
    current = list(loop.inits)
    for i in range(loop.var.extent):
        values = dict(zip(loop.arguments, current, strict=True))
        body = clone(loop.body, values, {loop.var: Expr(i)})
        inner_map: dict[Value, Value] = {}
        for node in body:
            if isinstance(node, For):
                out.extend(_flat(node, inner_map))
            else:
                if isinstance(node, Load):
                    node = fold_constant_load(node) or node
                out.append(node)
        if inner_map:
            replace_values(out, inner_map)
        current = [values.get(v, v) for v in loop.yields]
        current = [_resolve(v, inner_map) for v in current]
    mapping.update(zip(loop.results, current, strict=True))
    return out


def _resolve(value: Value, mapping: dict[Value, Value]) -> Value:
    while value in mapping:
        value = mapping[value]
    return value
