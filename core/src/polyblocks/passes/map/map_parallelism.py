"""map-parallelism: independent outer iterations become one loop over the threads of a team."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from polyblocks.affine.analysis.parallel import is_parallel
from polyblocks.affine.cost.estimate import Estimator
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.likeness import Remembered
from polyblocks.affine.model import For, Nest, Sequence, transform_indices, walk
from polyblocks.affine.rewrites.blocks import in_blocks
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class MapParallelismPass(NestPass):
    """Collapse the outer parallel loops of a nest into one ``affine.parallel`` of level ``team``.

    Where masks leave tiles unequal work, a thread's tiles are as far apart as there are threads. A
    nest for which the other threads save less time than it takes to wake them stays a loop. Where
    the target's description lacks a rate to tell, every nest is worth it. The innermost
    loop of a nest stays a loop of its own unless it is the only one, so that it can be vectorized;
    where the others are so few that threads would wait for each other, its blocks are shared too.

    Before::

        affine.for %i = 0 to 4 { affine.for %j = 0 to 8 { affine.for %k = 0 to 512 { ... } } }

    After::

        affine.parallel (%t) = (0) to (32) { affine.for %k = 0 to 512 { ... } }
          {polyblocks.level = "team"}
    """

    name: ClassVar[str] = "map-parallelism"
    #: Iterations for each thread that are enough: no thread waits longer than one of them for the
    #: others, and loops that stay inside keep their variables apart.
    shares: int = 64
    #: Part by which the thread with most to do may have more than its share.
    waiting: float = 1.1
    #: Iterations of a block of the innermost loop that threads share where the others are few.
    block: int = 8192

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Map every nest."""
        level = context.target.shared_level
        estimator = Estimator(context.target, sequence.buffers)
        # Iterations depend on each other through what is stored only.
        known: Remembered[tuple[int, float | None]] = Remembered(sequence.nests(), anywhere=True)
        for nest in sequence.nests():
            if len(nest.body) != 1 or not isinstance(nest.body[0], For):
                continue
            # Pieces of tiled contractions are shared out where these are tiled.
            if nest.body[0].level is not None:
                continue
            depth, seconds = known.get(nest, nest.body, partial(_looked_at, nest, estimator))
            loops = _enough(_outermost(nest, depth), self.shares * level.size)
            if not loops:
                continue
            # The time that the other threads save.
            saved = seconds and seconds - seconds / min(level.size, _product(loops))
            worth = level.size > 1 and (saved is None or saved > level.overhead)
            if worth and self._wait(loops, level.size):
                loops = self._cut_inner(nest, loops)
            context.decide(
                self.name,
                nest.name,
                level.name if worth else "serial",
                iterations=_product(loops),
                predicted_seconds=seconds,
                overhead_seconds=level.overhead,
            )
            if worth:
                _collapse(nest, loops, level.name, level.size)

    def _wait(self, loops: list[For], threads: int) -> bool:
        """Whether threads wait long for others, which have one iteration of the loops more."""
        iterations = _product(loops)
        most = -(-iterations // threads)
        return bool(loops) and most * threads > self.waiting * iterations

    def _cut_inner(self, nest: Nest, loops: list[For]) -> list[For]:
        """The loops, and one around blocks of the innermost one, if that can be cut."""
        if len(loops[-1].body) != 1 or not isinstance(loops[-1].body[0], For):
            return loops
        inner = loops[-1].body[0]
        if inner.inits or inner.bounded or inner.var.extent < 2 * self.block:
            return loops
        if any(isinstance(n, For) for n in inner.body) or not is_parallel(inner, nest.body):
            return loops
        outer = in_blocks(inner, self.block)
        loops[-1].body = [outer]
        return [*loops, outer]


def parallel_loops(nest: Nest) -> list[For]:
    """The outermost loops, nested perfectly, whose iterations are independent."""
    loops: list[For] = []
    body = nest.body
    while len(body) == 1 and isinstance(body[0], For) and not body[0].inits:
        loop = body[0]
        if loop.bounded or loop.lanes or not is_parallel(loop, nest.body):
            break
        loops.append(loop)
        body = loop.body
    # The innermost loop is for the vector unit, if there is another one for the threads.
    if len(loops) > 1 and not any(isinstance(n, For) for n in body) and not loops[-1].tile:
        loops.pop()
    return loops


def _looked_at(nest: Nest, estimator: Estimator) -> tuple[int, float | None]:
    """How many outer loops are parallel, and the predicted time if there are some."""
    depth = len(parallel_loops(nest))
    return depth, estimator.estimate(nest).predicted_seconds if depth else None


def _outermost(nest: Nest, depth: int) -> list[For]:
    """The outermost ``depth`` loops, nested perfectly."""
    loops: list[For] = []
    body = nest.body
    while len(loops) < depth:
        loop = body[0]
        assert isinstance(loop, For)
        loops.append(loop)
        body = loop.body
    return loops


def _enough(loops: list[For], iterations: int) -> list[For]:
    """The outer loops that together have ``iterations`` iterations; all if they have fewer."""
    for count in range(1, len(loops)):
        if _product(loops[:count]) >= iterations:
            return loops[:count]
    return loops


def _product(loops: list[For]) -> int:
    n = 1
    for loop in loops:
        n *= loop.var.extent
    return n


def _collapse(nest: Nest, loops: list[For], level: str, threads: int) -> None:
    total = Var(_product(loops), "t")
    values: dict[Var, Expr] = {}
    rest = Expr.of(total)
    for loop in reversed(loops):
        extent = loop.var.extent
        at = rest % extent
        if loop.tile and extent % threads == 0 and _weighs(loop):
            each = extent // threads
            at = (at % each) * threads + at // each
        values[loop.var] = at
        rest = rest // extent
    body = loops[-1].body
    transform_indices(body, lambda e: e.substitute(values))
    nest.replace([For(total, body, level=level)])


def _weighs(loop: For) -> bool:
    """Whether loops inside run longer in some iterations of a loop than in others."""
    return any(
        bound.depends_on(loop.var)
        for inner in walk(loop.body)
        if isinstance(inner, For)
        for bound in inner.bounds
    )
