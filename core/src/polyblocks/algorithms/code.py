"""Writes loops over elements of buffers, from outside in, as nodes of the mid-level's model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any

from polyblocks.affine.element import dtype_of, element_bytes
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    Alloca,
    Buffer,
    For,
    IndirectLoad,
    IndirectStore,
    Load,
    Node,
    Store,
    Value,
)
from polyblocks.affine.ops import Floats, Integers, Ops, integer

#: An index of an access: affine in the variables of loops around.
Index = Expr | int

#: Bytes of an array of an iteration of a loop over matrices that may be on its thread's stack.
LOCAL_BYTES = 1 << 14


@dataclass(frozen=True)
class Part:
    """A part of a buffer: what is behind the first indices.

    Attributes:
        buffer: the buffer.
        at: the first indices.
    """

    buffer: Buffer
    at: tuple[Index, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the part."""
        return self.buffer.shape[len(self.at) :]

    @property
    def element(self) -> Any:
        """The type of its elements."""
        return self.buffer.element


class Code:
    """Code that grows at its end.

    Attributes:
        nodes: all of it.
        repeated: those of the loops in it that are loops of the program.
    """

    def __init__(self, location: Any = None) -> None:
        self.nodes: list[Node] = []
        self.repeated: list[For] = []
        self._location = location
        self._body = self.nodes

    # Loops and buffers

    @contextmanager
    def loop(
        self, extent: int, *, lower: Index | None = None, upper: Index | None = None
    ) -> Iterator[Expr]:
        """A loop over ``max(0, lower) … min(extent, upper) - 1``; what is written inside is in it.

        A loop that runs just once is left out, and what is in one that never runs is, too.
        """
        low, high = Expr.of(lower or 0), Expr.of(extent if upper is None else upper)
        first = 0
        if low.is_constant:
            first, low = max(0, low.const), Expr(0)
        if high.is_constant:
            extent, high = min(extent, high.const), Expr(extent)
        extent -= first
        variable = not (low.is_constant and high.is_constant)
        around = self._body
        if extent <= 0:
            self._body = []
            yield Expr(first)
        elif extent == 1 and not variable:
            yield Expr(first)
        else:
            var = Var(extent)
            lows = () if low.is_constant else (low - first,)
            highs = () if high.is_constant else (high - first,)
            loop = For(var, [], lower=lows, upper=highs)
            self._body = loop.body
            yield Expr.of(var) + first
            if loop.body:
                around.append(loop)
        self._body = around

    @contextmanager
    def steps(self, extent: int) -> Iterator[Expr]:
        """A loop of the program over 0 … extent - 1, outside of all others.

        Loops in it are nests of their own, whose iterations threads share one nest after the other.
        """
        assert self._body is self.nodes
        with self.loop(extent) as step:
            inside = self._body
            yield step
        if inside is not self.nodes:
            loop = self.nodes[-1]
            assert isinstance(loop, For)
            self.repeated.append(loop)

    def groups(
        self, extent: int, end: Expr, size: int
    ) -> Iterator[tuple[AbstractContextManager[Expr], int]]:
        """Loops over 0 … end - 1, by groups of ``size`` and then one by one.

        Args:
            extent: more than ``end`` ever is.
            end: an index.
            size: of a group.

        Returns:
            For each loop, what opens it and gives the first number of a group; and how many it has.
        """
        whole = end // size
        if extent > size:
            yield self._group(extent // size, whole, size), size
        yield self.loop(extent, lower=whole * size, upper=end), 1

    @contextmanager
    def _group(self, extent: int, whole: Expr, size: int) -> Iterator[Expr]:
        with self.loop(extent, upper=whole) as number:
            yield number * size

    def array(self, shape: Sequence[int], element: Any, batch: int, b: Index) -> Part:
        """An array for one matrix of a batch, of the iteration that the code is in.

        Large ones are parts of a buffer that has room for all matrices. So are those of the only
        matrix: there is no loop for it.

        Args:
            shape: its extents.
            element: the type of its elements.
            batch: how many matrices there are.
            b: which of them this is for.
        """
        size = element_bytes(element)
        if batch > 1 and prod(shape) * size <= LOCAL_BYTES:
            return self.local(shape, element)
        return Part(Buffer((batch, *shape), element, "alloc", bytes_per_element=size), (b,))

    def local(self, shape: Sequence[int], element: Any) -> Part:
        """An array of the iteration that the code is in."""
        size = element_bytes(element)
        buffer = Buffer(tuple(shape), element, "local", bytes_per_element=size)
        self._body.append(Alloca(buffer))
        return Part(buffer)

    def load(self, part: Part, *index: Index) -> Value:
        """An element."""
        result = Value(part.element)
        where = tuple(Expr.of(e) for e in (*part.at, *index))
        self._body.append(Load(result, part.buffer, where, self._location))
        return result

    def store(self, value: Value, part: Part, *index: Index) -> None:
        """Write an element."""
        where = tuple(Expr.of(e) for e in (*part.at, *index))
        self._body.append(Store(value, part.buffer, where, self._location))

    def load_at(self, part: Part, *index: Index | Value) -> Value:
        """An element at an index that is known at run time."""
        result = Value(part.element)
        places = self._places((*part.at, *index))
        self._body.append(IndirectLoad(result, part.buffer, places, self._location))
        return result

    def store_at(self, value: Value, part: Part, *index: Index | Value) -> None:
        """Write an element at an index that is known at run time."""
        places = self._places((*part.at, *index))
        self._body.append(IndirectStore(value, part.buffer, places, self._location))

    def _places(self, index: Sequence[Index | Value]) -> list[Value]:
        return [e if isinstance(e, Value) else self._ops.index(e) for e in index]

    # Scalars

    @property
    def _ops(self) -> Ops:
        return Ops(self._body, self._location)

    def constant(self, number: float, type_: Any) -> Value:
        """A constant."""
        return self._ops.constant(number, type_)

    def like(self, number: float, value: Value) -> Value:
        """A constant of a value's type."""
        return self._ops.constant(number, value.type)

    def add(self, first: Value, second: Value) -> Value:
        """A sum of two floating-point numbers."""
        return self._ops.op("arith.addf", [first, second])

    def subtract(self, first: Value, second: Value) -> Value:
        """A difference of two floating-point numbers."""
        return self._ops.op("arith.subf", [first, second])

    def multiply(self, first: Value, second: Value) -> Value:
        """A product of two floating-point numbers."""
        return self._ops.op("arith.mulf", [first, second])

    def divide(self, first: Value, second: Value) -> Value:
        """A quotient of two floating-point numbers."""
        return self._ops.op("arith.divf", [first, second])

    def negate(self, value: Value) -> Value:
        """A number with the other sign."""
        return self._ops.op("arith.negf", [value])

    def maximum(self, first: Value, second: Value) -> Value:
        """The larger one of two numbers, or NaN."""
        return self._ops.op("arith.maximumf", [first, second])

    def sum(self, first: Value, second: Value) -> Value:
        """A sum of two integers."""
        return self._ops.op("arith.addi", [first, second])

    def plus(self, integer: Value, number: int) -> Value:
        """An integer plus a constant."""
        return self._ops.op("arith.addi", [integer, self.like(number, integer)])

    def bounded(self, integer: Value, extent: int) -> Value:
        """An integer, or the nearest one of 0 … extent - 1."""
        low = self._ops.op("arith.maxsi", [integer, self.like(0, integer)])
        return self._ops.op("arith.minsi", [low, self.like(extent - 1, integer)])

    def smaller(self, first: Value, second: Value) -> Value:
        """The smaller one of two integers."""
        return self._ops.op("arith.minsi", [first, second])

    def lift(self, size: Value) -> Value:
        """The factor for numbers before they are divided by one of this size.

        A power of two for numbers whose reciprocals could be infinite, else one.
        """
        exponent = 100 if dtype_of(size.type).bits == 32 else 900
        tiny = self.greater(self.like(2.0**-exponent, size), size)
        return self.select(tiny, self.like(2.0**exponent, size), self.like(1.0, size))

    def divisor(self, pivot: Value, number: Index, failed: Part) -> tuple[Value, Value]:
        """The factor and the divisor of the elements below a pivot; one of 0 is noted."""
        zero = self.equal_zero(pivot)
        self.note_first(zero, number, failed)
        # A column of zeros stays one.
        lift = self.lift(self.magnitude(pivot))
        return lift, self.multiply(self.select(zero, self.like(1.0, pivot), pivot), lift)

    def sqrt(self, value: Value) -> Value:
        """A square root."""
        return self._ops.op("math.sqrt", [value])

    def magnitude(self, value: Value) -> Value:
        """A number without its sign."""
        return self._ops.op("math.absf", [value])

    def with_sign_of(self, value: Value, sign: Value) -> Value:
        """The magnitude of one number with the sign of another one."""
        return self._ops.op("math.copysign", [value, sign])

    def reciprocal(self, value: Value) -> Value:
        """One over a number."""
        return self.divide(self.like(1.0, value), value)

    def greater(self, first: Value, second: Value) -> Value:
        """Whether a number is greater than another one; not where one is NaN."""
        return self._ops.compare(Floats.GREATER, first, second)

    def equal_zero(self, value: Value) -> Value:
        """Whether a number is zero."""
        return self._ops.compare(Floats.EQUAL, value, self.like(0.0, value))

    def same(self, first: Value, second: Value) -> Value:
        """Whether two integers are equal."""
        return self._ops.compare(Integers.EQUAL, first, second)

    def same_number(self, first: Value, second: Value) -> Value:
        """Whether two floating-point numbers are equal."""
        return self._ops.compare(Floats.EQUAL, first, second)

    def less(self, first: Index, second: Index) -> Value:
        """Whether an index is less than another one."""
        return self._ops.compare(Integers.LESS, self.number(first), self.number(second))

    def less_than(self, first: Value, second: Value) -> Value:
        """Whether an integer is less than another one."""
        return self._ops.compare(Integers.LESS, first, second)

    def either(self, first: Value, second: Value) -> Value:
        """Whether one of two truth values holds."""
        return self._ops.op("arith.ori", [first, second])

    def both(self, first: Value, second: Value) -> Value:
        """Whether both of two truth values hold."""
        return self._ops.op("arith.andi", [first, second])

    def negated(self, truth: Value) -> Value:
        """Whether a truth value does not hold."""
        true = self._ops.constant(1, integer(1))
        return self._ops.op("arith.xori", [truth, true])

    def select(self, condition: Value, first: Value, second: Value) -> Value:
        """``first`` where the condition holds, else ``second``."""
        return self._ops.select(condition, first, second)

    def number(self, index: Index) -> Value:
        """An index as an integer of 32 bits."""
        index = Expr.of(index)
        if index.is_constant:
            return self._ops.constant(index.const, integer(32))
        return self._ops.op("arith.index_cast", [self._ops.index(index)], integer(32))

    def real(self, index: Index, type_: Any) -> Value:
        """An index as a floating-point number."""
        return self._ops.op("arith.sitofp", [self.number(index)], type_)

    def place(self, number: Value) -> Value:
        """An integer as an index at run time."""
        from polyblocks.mlir import ir

        return self._ops.op("arith.index_cast", [number], ir.IndexType.get())

    # Elements of arrays

    def copy(self, source: Part, at: Sequence[Index], to: Part, there: Sequence[Index]) -> None:
        """Write one element where another one is."""
        self.store(self.load(source, *at), to, *there)

    def add_to(self, value: Value, part: Part, *index: Index) -> None:
        """Add a number to an element."""
        self.store(self.add(self.load(part, *index), value), part, *index)

    def raise_to(self, value: Value, part: Part, *index: Index) -> None:
        """Replace an element by a number that is greater."""
        self.store(self.maximum(value, self.load(part, *index)), part, *index)

    def subtract_from(self, value: Value, part: Part, *index: Index) -> None:
        """Subtract a number from an element."""
        self.store(self.subtract(self.load(part, *index), value), part, *index)

    def fill(self, number: float, part: Part, *index: Index) -> None:
        """Write a constant."""
        self.store(self.constant(number, part.element), part, *index)

    def note_first(self, holds: Value, number: Index, noted: Part) -> None:
        """Write a number to an array of one int32, if a condition holds and there is 0 yet."""
        before = self.load(noted, 0)
        none = self.same(before, self.like(0, before))
        first = self.both(none, holds)
        self.store(self.select(first, self.number(number), before), noted, 0)
