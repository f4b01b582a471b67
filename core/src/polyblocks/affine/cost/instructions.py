"""Instructions of a loop as it is written: vectors, shuffles, what is loaded and what is stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import log2
from typing import Any

from polyblocks.affine import operation_cost as cost
from polyblocks.affine.access import address
from polyblocks.affine.analysis.dataflow import ops_of
from polyblocks.affine.cost.constants import VECTOR_CHECK
from polyblocks.affine.element import dtype_of
from polyblocks.affine.model import (
    Access,
    AffineAccess,
    Alloca,
    AnyLoad,
    Check,
    For,
    Index,
    IndirectLoad,
    Load,
    Node,
    Op,
    Value,
)
from polyblocks.affine.multiply import Multiply
from polyblocks.affine.ops import constant_number, has_flag
from polyblocks.affine.vectors.interleaves import Interleave
from polyblocks.affine.vectors.lanes import Lanes, lanes_of
from polyblocks.affine.vectors.neighbours import Window, windows

#: Additions and what their units do besides: conversions, roundings.
_ADDITIONS = frozenset(
    f"arith.{name}" for name in "addf subf sitofp uitofp fptosi fptoui extf truncf".split()
) | {"math.floor", "math.ceil", "math.trunc", "math.roundeven", "math.round"}
#: Further operations of the multiply-add units: comparisons, minima and maxima.
_PRODUCTS = frozenset(
    f"arith.{name}" for name in "mulf cmpf maximumf minimumf maxnumf minnumf".split()
) | {"math.fma"}
#: Instructions of the smaller or larger of two numbers where a NaN is to come out, or is not to.
_EXTREMES = {
    "arith.maximumf": 6,
    "arith.minimumf": 6,
    "arith.maxnumf": 3,
    "arith.minnumf": 3,
}
#: No instructions: they are constants, or another view of the same bits.
_FREE = frozenset({"arith.constant", "arith.bitcast", "arith.index_cast", "arith.index_castui"})
#: Powers, and the largest exponent that is done by products in its own type.
_POWERS = frozenset({"math.powf", "math.fpowi"})
_MOST_PRODUCTS = 3
#: Operations on floating-point numbers besides these.
_FLOATS = _PRODUCTS | {"arith.divf", "arith.negf", "arith.remf"}


@dataclass
class Mix:
    """Instructions by what executes them; vectors are counted in whole registers.

    Attributes:
        products: multiplications and multiply-adds, comparisons.
        sums: additions, conversions, roundings.
        others: logic, integers, choices.
        shuffles: lanes put elsewhere.
        quotients, roots: divisions and square roots.
        inverse_roots: quotients by square roots.
        gathered: lanes loaded from a place each.
        scalars: scalar instructions, accesses among them.
        waits: slots in which an iteration waits for what the one before has made.
        loaded, stored: bytes, those of the other line of a vector that lies in two among them.
    """

    products: float = 0.0
    sums: float = 0.0
    others: float = 0.0
    shuffles: float = 0.0
    quotients: float = 0.0
    roots: float = 0.0
    inverse_roots: float = 0.0
    gathered: float = 0.0
    scalars: float = 0.0
    waits: float = 0.0
    units: float = 0.0
    loaded: float = 0.0
    stored: float = 0.0

    def add(self, other: Mix, times: float = 1.0) -> None:
        """Add another one's counts, times a factor."""
        mine = self.__dict__
        for name, value in other.__dict__.items():
            if value:
                mine[name] += times * value


@dataclass(frozen=True)
class Registers:
    """The vector registers.

    Attributes:
        bits: of a register.
        narrow: the part of a register for which an instruction counts at least.
        line: bytes of a line of the fastest memory.
        pairs: whether gathers of neighbours are one.
    """

    bits: int
    narrow: float
    line: int
    pairs: bool = False


class ScalarMix:
    """Instructions of straight-line nodes, one element each, node by node.

    Args:
        nodes: straight-line nodes; loops among them are left out.
        registers: what numbers are held in.
    """

    def __init__(self, nodes: Iterable[Node], registers: Registers) -> None:
        self.nodes = [n for n in nodes if not isinstance(n, (For, Alloca))]
        self._registers = registers
        self._users, self._makers = _users(self.nodes), ops_of(self.nodes)
        free = _free(self.nodes, self._users)
        self.nodes = [n for n in self.nodes if n not in free]

    def of(self, node: Node) -> Mix:
        """Instructions of one of the nodes."""
        mix = Mix()
        if isinstance(node, Op):
            if node.name.startswith("math.") or node.name in _ADDITIONS or node.name in _FLOATS:
                count(node, self._registers.narrow, mix, self._users, self._makers)
            elif node.name not in _FREE:
                mix.scalars += max(1, cost.operation_cost(node.name))
            return mix
        if isinstance(node, Access):
            mix.loaded += node.reads * node.buffer.bytes_per_element
            mix.stored += node.writes * node.buffer.bytes_per_element
        # A check compares and branches; where an access is belongs to its instruction.
        mix.scalars += 2 if isinstance(node, Check) else 1
        return mix


class VectorMix:
    """Instructions of a loop with ``simd``.

    Attributes:
        each: of one vector of its iterations.
        once: of all of them together: what no lane has of its own.
        inner: loops inside, which all lanes go through together, and those of one of their turns.
    """

    def __init__(
        self,
        loop: For,
        registers: Registers,
        constants: Mapping[Value, Op] | None = None,
        units: Mapping[str, float] | None = None,
    ) -> None:
        assert loop.simd is not None
        self._units = units or {}
        self._constants = constants or {}
        self.loop, self.registers = loop, registers
        self.width = loop.simd.width
        self.lanes: Lanes = lanes_of(loop)
        self.windows = windows(loop, self.width, loop.simd.line)
        self.each, self.once = Mix(), Mix()
        self._seen: set[Interleave | Window] = set()
        self._body(loop.body, self.each, self.once)

    def _body(self, nodes: list[Node], each: Mix, once: Mix) -> None:
        users, makers = _users(nodes), {**self._constants, **ops_of(nodes)}
        free = _free(nodes, users)
        if self.registers.pairs and self.lanes.gathered:
            free |= self._second_of_pairs(nodes, makers)
        varying = self.lanes.varying
        for node in nodes:
            if node in free or isinstance(node, Alloca):
                continue
            elif self.lanes.scan and node in self.lanes.combiners:
                self._running(node, each)
            elif isinstance(node, Multiply):
                each.products += self._registers(node) * self._units.get(node.unit, 1.0)
            elif isinstance(node, Op):
                if any(v in varying for v in node.operands):
                    count(node, self._registers(node), each, users, makers)
                else:
                    once.scalars += max(1, cost.operation_cost(node.name))
            elif isinstance(node, Index):
                (each if node.result in varying else once).others += 1
            elif isinstance(node, AnyLoad) and node.result not in varying:
                once.scalars += 1
                once.loaded += node.buffer.bytes_per_element
            elif isinstance(node, Check):
                (each if node.condition in varying else once).scalars += VECTOR_CHECK
            elif isinstance(node, Access):
                self._access(node, each)

    def _second_of_pairs(self, nodes: list[Node], makers: dict[Value, Op]) -> set[Node]:
        """Gathers that come with another one of the element before or behind."""
        waiting: dict[Any, list[int]] = {}
        second: set[Node] = set()
        for node in nodes:
            if node not in self.lanes.gathered or not isinstance(node, IndirectLoad):
                continue
            if node.buffer.bytes_per_element != 4:
                continue
            const, terms = _sum(self.lanes.gathered[node], makers)
            key = (node.buffer, tuple(node.index[:-1]), frozenset(terms.items()))
            others = waiting.setdefault(key, [])
            match = next((c for c in others if abs(c - const) == 1), None)
            if match is None:
                others.append(const)
            else:
                others.remove(match)
                second.add(node)
        return second

    def _running(self, node: Node, mix: Mix) -> None:
        """A scan: every step of the tree is a shuffle and an operation."""
        steps = log2(self.width) + 1
        mix.shuffles += steps
        mix.sums += steps

    def _registers(self, node: Op) -> float:
        """Registers that the lanes of an operation fill."""
        bits = max(dtype_of(v.type).bits for v in (*node.operands, *node.results))
        return self._filled(bits)

    def _filled(self, bits: int) -> float:
        return max(self.registers.narrow, self.width * bits / self.registers.bits)

    def _access(self, node: Access, mix: Mix) -> None:
        size = node.buffer.bytes_per_element
        moved = self.width * size
        filled = self._filled(8 * size)
        store = node.writes
        if isinstance(node, IndirectLoad) and node in self.lanes.gathered:
            mix.gathered += self.width
            return
        if isinstance(node, AffineAccess) and node in self.lanes.interleaved:
            group, _ = self.lanes.interleaved[node]
            if group not in self._seen:
                self._seen.add(group)
                backward = group.step if group.backward else 0
                mix.shuffles += (shuffles_of(group.step) + backward) * filled
                self._moved(mix, moved * group.step, store)
            return
        if isinstance(node, Load) and node in self.windows:
            window, offset = self.windows[node]
            if window not in self._seen:
                self._seen.add(window)
                self._moved(mix, 2 * moved, False)
            mix.shuffles += filled if offset else 0
            return
        # One that lies in two lines takes two accesses.
        self._moved(mix, moved if self._aligned(node, moved) else 2 * moved, store)

    def _moved(self, mix: Mix, nbytes: float, store: bool) -> None:
        if store:
            mix.stored += nbytes
        else:
            mix.loaded += nbytes

    def _aligned(self, node: Access, moved: int) -> bool:
        """Whether no vector of an access lies in two lines, or but a few do."""
        line = self.registers.line
        if moved < line:
            return True
        if not isinstance(node, AffineAccess):
            return False
        rest = address(node.buffer, node.index)
        size = node.buffer.bytes_per_element
        return rest.const * size % line == 0 and all(
            factor * size % line == 0 for atom, factor in rest.terms if atom is not self.loop.var
        )


def square_mix(loop: For, registers: Registers) -> Mix:
    """Instructions of a loop and the one in it that are a tile of as many vectors as lanes.

    Elements in order along the outer one are transposed: every vector goes through as many
    shuffles as the number of lanes has bits.
    """
    (inner,) = loop.body
    assert isinstance(inner, For)
    width = inner.var.extent
    users, makers = _users(inner.body), ops_of(inner.body)
    crossed = lanes_of(inner, loop.var).crossed
    mix = Mix()
    for node in inner.body:
        if isinstance(node, Op):
            bits = max(dtype_of(v.type).bits for v in (*node.operands, *node.results))
            filled = max(registers.narrow, width * bits / registers.bits)
            count(node, width * filled, mix, users, makers)
        elif isinstance(node, AffineAccess):
            moved = width * node.buffer.bytes_per_element
            mix.stored += width * moved * node.writes
            mix.loaded += width * moved * node.reads
            if node in crossed:
                filled = max(registers.narrow, 8 * moved / registers.bits)
                mix.shuffles += width * filled * log2(width)
    return mix


def shuffles_of(step: int) -> int:
    """Shuffles that interleave or deinterleave ``step`` vectors, two at a time."""
    if step == 1:
        return 0
    factor = next(k for k in range(2, step + 1) if step % k == 0)
    if factor == step:
        return step * (step - 1)
    return step * (factor - 1) + factor * shuffles_of(step // factor)


def count(
    node: Op,
    registers: float,
    mix: Mix,
    users: dict[Value, list[Node]],
    makers: dict[Value, Op],
) -> None:
    """Add a vector operation that fills a number of registers."""
    name = node.name
    if name in _FREE:
        return
    if name == "arith.mulf" and _fused(node, users):
        # A part of a multiply-add, which takes the units of products.
        mix.products += registers
    elif name == "arith.divf":
        if _by_root(node, makers):
            mix.inverse_roots += registers
        else:
            mix.quotients += registers
    elif name in ("math.sqrt", "math.rsqrt"):
        mix.roots += registers
    elif name in _EXTREMES:
        mix.products += 2 * registers
        mix.others += (_EXTREMES[name] - 2) * registers
    elif name in _ADDITIONS:
        mix.sums += registers
    elif name in _PRODUCTS:
        mix.products += registers
    elif name in _POWERS and (exponent := _constant(node.operands[1], makers)) is not None:
        _power(abs(exponent), registers, mix)
        mix.quotients += registers if exponent < 0 else 0
    elif name == "arith.select" and _chooses_compared(node, makers):
        # The smaller or the larger of both.
        mix.products += registers
    else:
        # Functions are of products and of what runs beside them.
        operations = cost.operation_cost(name) * registers
        if name.startswith("math."):
            mix.products += operations / 2
            mix.others += operations / 2
        else:
            mix.others += operations


def _sum(value: Value, makers: dict[Value, Op], depth: int = 8) -> tuple[int, dict[Value, int]]:
    """An integer as a number and the values of a sum, with their factors."""
    maker = makers.get(value)
    if maker is None or not depth:
        return 0, {value: 1}
    if maker.name == "arith.constant":
        return int(getattr(maker.attributes["value"], "value", 0)), {}
    if maker.name == "arith.index_cast":
        return _sum(maker.operands[0], makers, depth - 1)
    if maker.name not in ("arith.addi", "arith.muli"):
        return 0, {value: 1}
    (first, mine), (second, other) = (_sum(v, makers, depth - 1) for v in maker.operands)
    if maker.name == "arith.addi":
        both = {v: mine.get(v, 0) + other.get(v, 0) for v in {**mine, **other}}
        return first + second, {v: factor for v, factor in both.items() if factor}
    if mine and other:
        return 0, {value: 1}
    terms, factor = (mine, second) if mine else (other, first)
    return first * second, {v: f * factor for v, f in terms.items()}


def _power(exponent: float, registers: float, mix: Mix) -> None:
    """Add a power that is known: products of squares, and a root for a half."""
    whole = int(exponent)
    if exponent != whole:
        mix.roots += registers
    mix.products += registers * max(0, whole.bit_length() + whole.bit_count() - 2)


def _constant(value: Value, makers: dict[Value, Op]) -> float | None:
    """The number that a value always is, if that is a small one whose power products give."""
    number = constant_number(makers.get(value))
    # Neither is NaN.
    if number is None or not abs(number) <= _MOST_PRODUCTS:
        return None
    return float(number) if 2 * number == int(2 * number) else None


def _users(nodes: Iterable[Node]) -> dict[Value, list[Node]]:
    users: dict[Value, list[Node]] = {}
    for node in nodes:
        for value in node.uses:
            users.setdefault(value, []).append(node)
    return users


def _fused(node: Op, users: dict[Value, list[Node]]) -> bool:
    """Whether a product is a part of multiply-adds only."""
    using = users.get(node.results[0], [])
    return bool(using) and all(
        isinstance(u, Op) and u.name in ("arith.addf", "arith.subf") for u in using
    )


def _free(nodes: Iterable[Node], users: dict[Value, list[Node]]) -> set[Node]:
    """Operations that are a part of others.

    Sums with a product of their own are multiply-adds; a comparison used only to select between
    the compared numbers is part of a minimum or maximum.
    """
    free: set[Node] = set()
    makers = ops_of(nodes)
    taken: set[Node] = set()
    for node in nodes:
        if not isinstance(node, Op):
            continue
        if node.name in ("arith.addf", "arith.subf"):
            for value in node.operands:
                maker = makers.get(value)
                if (
                    maker is not None
                    and maker.name == "arith.mulf"
                    and maker not in taken
                    and _fused(maker, users)
                ):
                    taken.add(maker)
                    free.add(node)
                    break
        elif node.name == "arith.cmpf":
            using = users.get(node.results[0], [])
            if using and all(isinstance(u, Op) and _chooses_compared(u, makers) for u in using):
                free.add(node)
        elif node.name == "arith.divf" and _by_root(node, makers):
            divisor = makers[node.operands[1]]
            parts = [divisor, *(makers[v] for v in divisor.operands if v in makers)]
            free.update(
                n
                for n in parts
                if n is divisor or (n.name == "math.sqrt" and len(users[n.results[0]]) == 1)
            )
    return free


def _chooses_compared(node: Op, makers: dict[Value, Op]) -> bool:
    """Whether an operation chooses one of two numbers by comparing them."""
    maker = makers.get(node.operands[0]) if node.name == "arith.select" else None
    return (
        maker is not None
        and maker.name == "arith.cmpf"
        and set(maker.operands) == set(node.operands[1:])
    )


def _by_root(node: Op, makers: dict[Value, Op]) -> bool:
    """Whether a quotient whose terms may be rearranged is by ``sqrt(s)`` or ``s * sqrt(s)``."""
    if not has_flag(node, "reassoc"):
        return False
    divisor = makers.get(node.operands[1])
    if divisor is None or divisor.name != "arith.mulf":
        return divisor is not None and divisor.name == "math.sqrt"
    for root, factor in (divisor.operands, reversed(divisor.operands)):
        maker = makers.get(root)
        if maker is not None and maker.name == "math.sqrt" and maker.operands[0] == factor:
            return True
    return False
