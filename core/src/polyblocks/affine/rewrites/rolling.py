"""Steps that do the same a constant further on become iterations of a loop.

Buffers that such steps make become one buffer with a dimension more for each digit of the number
of the step: step 5 of 3 x 3 is the one at [1, 2]. A constant that is another one in every step is
loaded from a table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from polyblocks.affine import operation_cost as cost
from polyblocks.affine.analysis.dataflow import makers_of
from polyblocks.affine.element import element_bytes
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Buffer, Index, Load, Nest, Node, Op, Store, Value, around
from polyblocks.affine.ops import Ops, is_constant, like
from polyblocks.affine.rewrites.inlining import Candidate, Producer
from polyblocks.affine.users import Users


class NotAlikeError(Exception):
    """Steps differ by more than constants, or by such as no loop counts."""


def digit_shapes(count: int) -> Iterator[tuple[int, ...]]:
    """How a number of steps may be counted: by one digit or by two."""
    yield (count,)
    for inner in range(2, count):
        if count % inner == 0:
            yield count // inner, inner


@dataclass
class _Code:
    """The code for one element of all steps, while it is built.

    Attributes:
        makers: the nodes of every step, by what they result in.
        digits: the variables that count the steps.
        body: the code so far.
        known: values of it, by those of the steps.
        places: where it reads each new buffer.
    """

    makers: dict[Value, Node]
    digits: list[Var]
    body: list[Node] = field(default_factory=list)
    known: dict[tuple[Value, ...], Value] = field(default_factory=dict)
    places: dict[Buffer, set[tuple[Expr, ...]]] = field(default_factory=dict)


@dataclass
class Roller:
    """Makes buffers of all steps out of one for each step.

    Attributes:
        users: who reads and writes what.
        shape: how many steps there are, by digits.
        nests: what computes the new buffers, in order.
        gone: the nests that they replace.
        shared: buffers that all steps read.
        nodes: nodes of the nests that are gone.
        places: at how many places one piece of code reads each new buffer.
        operations: what it takes to compute an element of it, and those that it is made of.
    """

    users: Users
    shape: tuple[int, ...]
    nests: list[Nest] = field(default_factory=list)
    gone: set[Nest] = field(default_factory=set)
    shared: set[Buffer] = field(default_factory=set)
    nodes: int = 0
    places: dict[Buffer, int] = field(default_factory=dict)
    operations: dict[Buffer, int] = field(default_factory=dict)
    _made: dict[tuple[Buffer, ...], Buffer] = field(default_factory=dict)
    _tables: dict[tuple[Any, ...], Buffer] = field(default_factory=dict)

    def code(self, nodes: list[Node]) -> _Code:
        """A start for code that does what these nodes of all steps do."""
        makers = makers_of(nodes)
        return _Code(makers, [Var(extent) for extent in self.shape])

    def roll(self, values: tuple[Value, ...], code: _Code) -> Value:
        """The value of the step at the digits' values; ``values`` are those of all steps.

        Raises:
            NotAlikeError: there is no such code.
        """
        if values in code.known:
            return code.known[values]
        nodes = [code.makers.get(v) for v in values]
        first = nodes[0]
        if first is None:
            if any(v is not values[0] for v in values):
                raise NotAlikeError
            return values[0]
        result = Value(values[0].type)
        if isinstance(first, Load):
            node: Node = self._load([n for n in nodes if isinstance(n, Load)], result, code)
        elif isinstance(first, Index):
            exprs = [n.expr for n in nodes if isinstance(n, Index)]
            node = Index(result, self._expr(exprs, code))
        elif isinstance(first, Op):
            node = self._op([n for n in nodes if isinstance(n, Op)], result, code)
        else:
            raise NotAlikeError
        code.body.append(node)
        code.known[values] = result
        return result

    def _op(self, ops: list[Op], result: Value, code: _Code) -> Node:
        first = ops[0]
        if len(ops) != self.count or len(first.results) != 1:
            raise NotAlikeError
        types = [v.type for v in first.operands]
        for op in ops[1:]:
            if op.name != first.name or len(op.results) != 1:
                raise NotAlikeError
            if op.results[0].type != result.type or [v.type for v in op.operands] != types:
                raise NotAlikeError
        if any(op.attributes != first.attributes for op in ops):
            if first.name != "arith.constant":
                raise NotAlikeError
            return self._table([op.attributes["value"] for op in ops], result, code)
        operands = [self.roll(tuple(op.operands[i] for op in ops), code) for i in range(len(types))]
        return like(first, operands, result)

    def _table(self, numbers: list[Any], result: Value, code: _Code) -> Load:
        """A load of the step's own constant."""
        key = tuple(hash(n) for n in numbers)
        if key not in self._tables:
            size = element_bytes(result.type)
            table = Buffer(self.shape, result.type, "global", bytes_per_element=size)
            table.constant = numbers
            self._tables[key] = table
        return Load(result, self._tables[key], tuple(Expr.of(v) for v in code.digits))

    def _load(self, loads: list[Load], result: Value, code: _Code) -> Load:
        first = loads[0]
        buffers = tuple(load.buffer for load in loads)
        if len(loads) != self.count or any(load.where for load in loads):
            raise NotAlikeError
        index = tuple(
            self._expr([load.index[d] for load in loads], code) for d in range(len(first.index))
        )
        padding = first.padding.intersection(*(load.padding for load in loads))
        if all(b is first.buffer for b in buffers):
            self.shared.add(first.buffer)
            return Load(result, first.buffer, index, first.location, padding=padding)
        buffer = self._buffer(buffers)
        places = code.places.setdefault(buffer, set())
        places.add(index)
        self.places[buffer] = max(self.places.get(buffer, 0), len(places))
        place = (*(Expr.of(v) for v in code.digits), *index)
        return Load(result, buffer, place, first.location, padding=padding)

    def _expr(self, exprs: list[Expr], code: _Code) -> Expr:
        """One expression that equals each of these in its step."""
        first = exprs[0]
        if len(exprs) != self.count or any(len(e.terms) != len(first.terms) for e in exprs):
            raise NotAlikeError
        apart = [e - first for e in exprs]
        if not all(e.is_constant for e in apart):
            raise NotAlikeError
        found, inside = first, self.count
        factors: list[tuple[int, int]] = []
        for var, extent in zip(code.digits, self.shape, strict=True):
            inside //= extent
            factor = apart[inside].const if extent > 1 else 0
            factors.append((inside, factor))
            found = found + Expr.of(var) * factor
        for number, e in enumerate(apart):
            expected = 0
            for unit, factor in factors:
                expected += number // unit * factor
                number %= unit
            if e.const != expected:
                raise NotAlikeError
        return found

    @property
    def count(self) -> int:
        """The number of steps."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    def _buffer(self, buffers: tuple[Buffer, ...]) -> Buffer:
        """One buffer that replaces one for each step."""
        if buffers in self._made:
            return self._made[buffers]
        if len(set(buffers)) != self.count or any(b.kind != "alloc" for b in buffers):
            raise NotAlikeError
        first = buffers[0]
        if any(b.shape != first.shape or b.element != first.element for b in buffers):
            raise NotAlikeError
        index = [Var(extent) for extent in first.shape]
        at = tuple(Expr.of(v) for v in index)
        elements = [self._element(buffer, at) for buffer in buffers]
        _multiply_by_one(elements, buffers, at)
        nodes = [n for element in elements for n in element.body]
        code = self.code(nodes)
        value = self.roll(tuple(element.value for element in elements), code)
        new = Buffer(
            (*self.shape, *first.shape),
            first.element,
            "alloc",
            bytes_per_element=first.bytes_per_element,
        )
        place = (*(Expr.of(v) for v in code.digits), *at)
        body = [*code.body, Store(value, new, place)]
        nest = Nest(around([*code.digits, *index], body), [], changed=True)
        nests = [element.nest for element in elements if element.nest is not None]
        nest.sources = nests[0].sources
        self.nests.append(nest)
        self.gone.update(nests)
        self.nodes += len(nodes)
        self.operations[new] = cost.operations(code.body) + sum(
            self.operations[b] * len(places) for b, places in code.places.items()
        )
        self._made[buffers] = new
        return new

    def _element(self, buffer: Buffer, at: tuple[Expr, ...]) -> _Element:
        """How an element of a step's buffer is computed."""
        candidate = Candidate.of(self.users, buffer)
        if candidate is None or not candidate.only_nests_read:
            raise NotAlikeError
        producer = Producer.of(candidate)
        # Several loops along a dimension would be quotients and remainders of the index.
        if producer is None or len({d for d, _ in producer.digits.values()}) < len(producer.digits):
            raise NotAlikeError
        return _Element(*producer.body_at(at), candidate.producer)


@dataclass
class _Element:
    """The code for an element of a step's buffer, and its nest, if it is all that this does."""

    body: list[Node]
    value: Value
    nest: Nest | None


def _multiply_by_one(
    elements: list[_Element], buffers: tuple[Buffer, ...], at: tuple[Expr, ...]
) -> None:
    """Write products by one out where the others are products by constants.

    Multiplications by one were removed before.
    """

    products = [op for element in elements if (op := _multiplies(element)) is not None]
    if 2 * len(products) <= len(elements):
        return
    model = products[0]
    for element, buffer in zip(elements, buffers, strict=True):
        if _multiplies(element) is None:
            loaded = Value(element.value.type)
            ops = Ops([Load(loaded, buffer, at)])
            one = ops.constant(1.0, loaded.type)
            first = any(_is_constant(model.operands[0], e.body) for e in elements)
            element.value = ops.like(model, [one, loaded] if first else [loaded, one])
            element.body, element.nest = ops.out, None


def _multiplies(element: _Element) -> Op | None:
    """The operation by which all that is done to a number is to multiply it by a constant."""
    ops = [n for n in element.body if isinstance(n, Op) and n.name != "arith.constant"]
    if len(ops) != 1 or ops[0].name != "arith.mulf" or ops[0].results != [element.value]:
        return None
    constants = sum(_is_constant(v, element.body) for v in ops[0].operands)
    return ops[0] if constants == 1 else None


def _is_constant(value: Value, body: list[Node]) -> bool:
    return any(is_constant(n) and value in n.results for n in body)
