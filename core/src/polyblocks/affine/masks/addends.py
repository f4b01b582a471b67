"""Addends that are either zero or a large negative number, by a condition."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from polyblocks.affine.analysis.dataflow import makers_of, slice_of
from polyblocks.affine.element import I1, dtype_of
from polyblocks.affine.masks.absence import constants_of
from polyblocks.affine.model import (
    Buffer,
    For,
    Load,
    Nest,
    Node,
    Op,
    Pure,
    Sequence,
    Value,
    clone,
    reads,
    writes,
)
from polyblocks.affine.ops import Ops
from polyblocks.affine.rewrites.inlining import Candidate, Producer, inline_into
from polyblocks.affine.users import Users

#: Nodes of the code of an addend, at most.
_NODES = 32
_TRUTHS = ("arith.uitofp", "arith.extui", "arith.select")


@dataclass
class Addend:
    """An operand of a sum that was spelled out as a choice by a condition.

    Attributes:
        nest: where it is.
        op: the sum, or the difference that has become one.
        select: the choice.
        nodes: the code around the sum.
        before: the sum's name and operands.
        made: what was put in front of it.
    """

    nest: Nest
    op: Op
    select: Op
    nodes: list[Node]
    before: tuple[str, list[Value]]
    made: list[Node]

    def undo(self) -> None:
        """Make the sum what it was."""
        self.op.name, self.op.operands = self.before
        made = set(map(id, self.made))
        self.nodes[:] = [n for n in self.nodes if id(n) not in made]
        self.nest.replace()


def arrays_of_indices(sequence: Sequence) -> set[Buffer]:
    """The arrays that are computed of indices and constants alone; all others depend on more."""
    found: set[Buffer] = set()
    for item in sequence.items:
        known = isinstance(item, Nest) and all(b.base in found for b in reads(item))
        written = {b.base for b in writes(item)}
        found = found | written if known else found - written
    return found


def spell_out(nest: Nest, users: Users, known: Set[Buffer], least: float) -> list[Addend]:
    """Make addends of a nest choices between zero and a number up to ``least``, where they are.

    ``known`` are the :func:`arrays_of_indices`.

    Before, with ``%k`` of zeros and ones that a condition of places gives::

        %a = affine.load %k[%i, %j]
        %b = arith.mulf %a, -1e9
        %s = arith.addf %x, %b

    After::

        %m = arith.cmpi sge, %i, %j
        %b = arith.select %m, 0.0, -1e9
        %s = arith.addf %x, %b
    """
    found = []
    for nodes in _bodies(nest.body):
        makers = makers_of(nodes)
        for op in list(nodes):
            if not isinstance(op, Op) or op.name not in ("arith.addf", "arith.subf"):
                continue
            operands = (1,) if op.name == "arith.subf" else (0, 1)
            for number in operands:
                sign = -1.0 if op.name == "arith.subf" else 1.0
                made = _choice(op.operands[number], makers, nest, users, known, sign, least)
                if made is not None:
                    found.append(_put(nest, op, number, nodes, made))
                    break
    return found


def _put(nest: Nest, op: Op, number: int, nodes: list[Node], made: list[Node]) -> Addend:
    select = made[-1]
    assert isinstance(select, Op)
    addend = Addend(nest, op, select, nodes, (op.name, list(op.operands)), made)
    at = next(i for i, n in enumerate(nodes) if n is op)
    nodes[at:at] = made
    op.name = "arith.addf"
    op.operands = list(op.operands)
    op.operands[number] = select.results[0]
    nest.replace()
    return addend


def _bodies(nodes: list[Node]) -> Iterator[list[Node]]:
    yield nodes
    for node in nodes:
        if isinstance(node, For):
            yield from _bodies(node.body)


def _choice(
    value: Value,
    makers: Mapping[Value, Node],
    nest: Nest,
    users: Users,
    known: Set[Buffer],
    sign: float,
    least: float,
) -> list[Node] | None:
    """Code that ends with a choice of what an addend is, times ``sign``."""
    before = slice_of([value], makers)
    if not before or not all(
        isinstance(n, Pure) or (isinstance(n, Load) and n.buffer.base in known) for n in before
    ):
        return None
    if not any(isinstance(n, Load) for n in before) and any(
        isinstance(n, Op) and n.name == "arith.select" and value in n.results for n in before
    ):
        return None
    # In program order.
    order = {id(n): i for i, n in enumerate(makers.values())}
    values: dict[Value, Value] = {}
    code = clone(sorted(before, key=lambda n: order[id(n)]), values, {})
    result = values[value]
    code, result = _without_loads(code, result, nest, users)
    roots = _roots(code)
    if len(code) > _NODES or len(roots) != 1 or not all(isinstance(n, Pure) for n in code):
        return None
    (root,) = roots
    numbers = [_evaluated(code, result, root, truth) for truth in (True, False)]
    if_true, if_false = (None if n is None else n * sign for n in numbers)
    if if_true is None or if_false is None:
        return None
    zero, low = sorted((if_true, if_false), reverse=True)
    if zero != 0 or not -math.inf < low <= least:
        return None
    needed = slice_of([root], makers_of(code))
    ops = Ops([n for n in code if n in needed])
    ops.select(root, ops.constant(if_true, value.type), ops.constant(if_false, value.type))
    return ops.out


def _without_loads(
    code: list[Node], result: Value, nest: Nest, users: Users
) -> tuple[list[Node], Value]:
    """Code that computes what arrays hold instead of loading it, where that takes indices only."""
    ops = Ops(code)
    # A use of the result, which is renamed with all others.
    ops.op("arith.negf", [result])
    seen = set()
    while True:
        loads = [n for n in code if isinstance(n, Load) and n.buffer not in seen]
        if not loads or len(code) > _NODES:
            break
        buffer = loads[0].buffer
        seen.add(buffer)
        if buffer.kind != "alloc" or not users.is_only_accessed(buffer.base):
            break
        candidate = Candidate.of(users, buffer)
        if candidate is None or not candidate.may_inline(users, nest):
            break
        producer = Producer.of(candidate)
        if producer is None or not producer.is_plain_in(code):
            break
        inline_into(code, producer)
    last = code.pop()
    assert isinstance(last, Op)
    return code, last.operands[0]


def _roots(code: list[Node]) -> list[Value]:
    """The conditions that numbers are made from."""
    found: dict[Value, None] = {}
    for node in code:
        if isinstance(node, Op) and node.name in _TRUTHS and dtype_of(node.operands[0].type) is I1:
            found[node.operands[0]] = None
    return list(found)


def _evaluated(code: list[Node], result: Value, root: Value, truth: bool) -> float | None:
    """The number that code gives where a condition holds, or where it does not."""
    known = {v: float(n.value) for v, n in constants_of(code).items()} | {root: float(truth)}
    for node in code:
        if not isinstance(node, Op) or len(node.results) != 1 or node.results[0] in known:
            continue
        given = [known.get(v) for v in node.operands]
        number = _number(node.name, given)
        if number is not None:
            known[node.results[0]] = number
    return known.get(result)


def _number(name: str, given: list[float | None]) -> float | None:
    if name == "arith.select" and given[0] is not None:
        return given[1 if given[0] else 2]
    numbers = [g for g in given if g is not None]
    if not given or len(numbers) < len(given):
        return None
    first, second = numbers[0], numbers[-1]
    results = {
        "arith.addf": first + second,
        "arith.subf": first - second,
        "arith.mulf": first * second,
        "arith.negf": -first,
    }
    if name in ("arith.uitofp", "arith.extui", "arith.sitofp", "arith.extf"):
        return first
    return results.get(name)
