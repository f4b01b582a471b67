"""Long sums of one thread: as sums of sums, so that rounding errors stay small."""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt, prod
from typing import Any

from polyblocks.affine.analysis.reductions import ROUNDING, ReductionNest, identity
from polyblocks.affine.gpu.mapping.distribution import chain_of
from polyblocks.affine.model import For, Op
from polyblocks.affine.vectors.reduction_vectors import IDEMPOTENT, combine
from polyblocks.codegen.gpu.emission.code import Code

#: Terms that are added up before a sum starts anew, at least.
LEAST = 64


def combiners_of(loop: For) -> list[Op]:
    """The ops of a loop that adds or multiplies on and may start anew; none for other loops."""
    if not loop.inits:
        return []
    chain = chain_of(loop)
    ops = ReductionNest([], [], chain, chain[-1].body, []).combiners()
    if ops is None or any(f.bounded for f in chain):
        return []
    able = all(op.name in IDEMPOTENT or identity(op.name, op.results[0].type) for op in ops)
    return ops if able and any(op.name in ROUNDING for op in ops) else []


def terms_inside(loop: For, ends: Callable[[For], bool]) -> int:
    """Terms that one iteration of a loop adds one by one, up to a loop where a chain ``ends``."""
    inside: list[For] = []
    for inner in chain_of(loop)[1:]:
        if ends(inner):
            break
        inside.append(inner)
    return prod(inner.var.extent for inner in inside)


def block_of(count: int, inside: int = 1) -> int:
    """Iterations after which a sum starts anew; ``count`` if never.

    The error of a chain of additions grows with its length: the sum of a block and the sum of the
    blocks are chains of about the same length.

    Args:
        count: iterations of the loop.
        inside: terms of one iteration.
    """
    block = max(1, max(LEAST, isqrt(count * inside)) // inside)
    if count <= 2 * block:
        return count
    # Blocks of the same length, where there are some.
    return next((n for n in range(block, 2 * block) if count % n == 0), block)


def cascade(
    code: Code,
    ops: list[Op],
    count: int,
    block: int,
    carried: list[Any],
    body: Callable[[Any, list[Any]], list[Any]],
) -> list[Any]:
    """A loop of ``count`` iterations, whose sums start anew after each ``block``.

    Args:
        code: where it is written.
        ops: what combines the values that are carried.
        count: iterations.
        block: of :func:`block_of`.
        carried: what the sums begin with.
        body: one iteration: its number and what is carried -> what is carried on.
    """
    zero, one = code.integer(0), code.integer(1)
    if block == count:
        return code.loop(zero, code.integer(count), one, carried, body)

    def inner(number: Any, sums: list[Any]) -> list[Any]:
        first = code.times(number, block)
        end: Any = code.integer(block)
        if count % block:
            rest = code.value("arith.subi", code.index, code.integer(count), first)
            end = code.value("arith.minui", code.index, end, rest)
        starts = [
            value if op.name in IDEMPOTENT else code.constant(identity(op.name, op.results[0].type))
            for op, value in zip(ops, sums, strict=True)
        ]
        found = code.loop(zero, end, one, starts, lambda k, s: body(code.add(first, k), s))
        return [
            value if op.name in IDEMPOTENT else combine(op, before, value)
            for op, before, value in zip(ops, sums, found, strict=True)
        ]

    return code.loop(zero, code.integer(-(-count // block)), one, carried, inner)
