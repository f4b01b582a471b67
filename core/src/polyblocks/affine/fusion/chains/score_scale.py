"""The constant by which all scores of a chain are scaled: exponents can be scaled in its place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, isfinite

from polyblocks.affine.fusion.chains.chained_products import Link, ProductChain
from polyblocks.affine.fusion.chains.row_kinds import Rescaling
from polyblocks.affine.fusion.rescaling import Kind
from polyblocks.affine.model import Buffer, Load, Node, Op, Store, Value, walk
from polyblocks.affine.ops import constant_number, has_flag


@dataclass(frozen=True)
class ScoreScale:
    """A product with a constant that the largest score and exponents can do without.

    Attributes:
        product: the operation.
        operand: what it scales.
        factor: the constant, a positive one: larger scores stay larger.
    """

    product: Op
    operand: Value
    factor: float


def score_scale(chain: ProductChain, rescaling: Rescaling) -> ScoreScale | None:
    """The scale of a chain's scores; None if no constant scales them, or others use them.

    ``max(c x)`` is ``c max(x)``, and ``exp(c x - c max(x))`` is a power of two of ``x`` times a
    constant, less a number of the row. Scores may be minus infinity by a condition.
    """
    maximum = rescaling.maximum
    if maximum is None or maximum.reduction is None:
        return None
    loads = [n for n in maximum.reduction.body if isinstance(n, Load)]
    scores = {n.buffer for n in loads if n.buffer in chain.passed}
    if len(scores) != 1 or not _starts_with_nothing(maximum):
        return None
    (buffer,) = scores
    if not all(_only_exponents(link, buffer, rescaling) for link in chain.links):
        return None
    if any(isinstance(n, Load) and n.buffer is buffer for n in walk(chain.last.body)):
        return None
    stores = [(n, link) for link in chain.links for n in _stores(link.body, buffer)]
    if len(stores) != 1:
        return None
    ((store, link),) = stores
    return _scaled(store.value, list(walk(link.body)))


def _stores(nodes: Iterable[Node], buffer: Buffer) -> list[Store]:
    return [n for n in walk(list(nodes)) if isinstance(n, Store) and n.buffer is buffer]


def _starts_with_nothing(maximum: Link) -> bool:
    """Whether the largest score of no steps is minus infinity."""
    assert maximum.reduction is not None
    (init,) = maximum.reduction.inits
    made = next((n for n in maximum.body if init in n.defines), None)
    return made is not None and constant_number(made) == -inf


def _only_exponents(link: Link, buffer: Buffer, rescaling: Rescaling) -> bool:
    """Whether a link finds the largest of the scores, subtracts it from them, or has none."""
    nodes = list(walk(link.body))
    loaded = {n.result for n in nodes if isinstance(n, Load) and n.buffer is buffer}
    for node in nodes:
        used = loaded.intersection(node.uses)
        if not used:
            continue
        if not isinstance(node, Op):
            return False
        largest = link is rescaling.maximum and "arith.max" in node.name
        less = node.name == "arith.subf" and rescaling.of(node.results[0]) is Kind.EXPONENT
        if not largest and not (less and node.operands[1] not in loaded):
            return False
    return True


def _scaled(value: Value, nodes: list[Node]) -> ScoreScale | None:
    """The product that a score is, through choices between it and minus infinity."""
    made = {v: n for n in nodes for v in n.defines}
    numbers = {v: constant_number(n) for v, n in made.items()}
    while True:
        op = made.get(value)
        users = [n for n in nodes if value in n.uses]
        if not isinstance(op, Op) or len(users) != 1:
            return None
        if op.name == "arith.select":
            ways = [v for v in op.operands[1:] if numbers.get(v) != -inf]
            if len(ways) != 1:
                return None
            (value,) = ways
            continue
        if op.name != "arith.mulf" or not has_flag(op, "reassoc"):
            return None
        for operand, other in (op.operands, reversed(op.operands)):
            factor = numbers.get(other)
            if factor is not None and isfinite(factor) and factor > 0:
                return ScoreScale(op, operand, float(factor))
        return None
