"""The mid-level's model of a program: nests as trees of loops, loads, stores and scalar ops.

It mirrors the affine dialect, without MLIR: types, attributes and locations are carried along as
opaque handles. A :class:`Sequence` is the body of ``@main``: nests in program order, and opaque
operations between which nothing may move. Bodies of loops and branches around whole nests are
sequences again; see :class:`ControlFlow`.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Set
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.swizzles import Swizzle

T = TypeVar("T")

_numbers = itertools.count()


class Buffer:
    """A memref: shape, element type and where it comes from.

    Attributes:
        shape: extents.
        element: MLIR element type.
        kind: ``input``, ``output``, ``global``, ``alloc``, ``carried`` (in the body of a loop or
            branch: one that lives outside of it, so it holds something before and after),
            ``local`` (inside a nest) or ``other`` (a view of another one, or anything unknown: may
            alias).
        value: the MLIR value, None while it has none yet.
        bytes_per_element: size of one element in memory.
        constant: the values of a small constant global as a flat list, else None.
        viewed: the buffer that it is a view of, or None.
        outer: in the body of a loop or branch, the same buffer in the sequence around it.
        lasting: whether it is an argument that holds the same at every call.
        space: memory of a ``local`` one: ``shared`` by the threads of a block, or the ``registers``
            of these; empty for the default.
        layout: of a ``local`` one, which of its elements change places.
        known_strides: those of ``memref_type``, when :func:`polyblocks.affine.access.strides` has
            been asked for them.
    """

    __slots__ = (
        "bytes_per_element",
        "constant",
        "element",
        "kind",
        "known_strides",
        "lasting",
        "layout",
        "memref_type",
        "number",
        "outer",
        "shape",
        "space",
        "value",
        "viewed",
    )

    def __init__(
        self,
        shape: tuple[int, ...],
        element: Any,
        kind: str,
        value: Any = None,
        *,
        bytes_per_element: int = 4,
        memref_type: Any = None,
        base: Buffer | None = None,
        space: str = "",
        layout: tuple[Swizzle, ...] = (),
    ) -> None:
        self.shape = shape
        self.element = element
        self.kind = kind
        self.value = value
        self.bytes_per_element = bytes_per_element
        self.memref_type = memref_type
        self.known_strides: tuple[int, ...] | None = None
        self.viewed = base
        self.constant: list[Any] | None = None
        self.outer: Buffer | None = None
        self.lasting = False
        self.space = space
        self.layout = layout
        self.number = next(_numbers)

    @property
    def base(self) -> Buffer:
        """The owner of the memory: itself, unless it is a view."""
        # Not an attribute: an object that holds itself lives until the garbage collector comes,
        # and with it MLIR handles of code that is long gone.
        return self if self.viewed is None else self.viewed.base

    def like(self) -> Buffer:
        """A new allocation of the same shape and element type."""
        return Buffer(self.shape, self.element, "alloc", bytes_per_element=self.bytes_per_element)

    @property
    def numel(self) -> int:
        """Number of elements."""
        n = 1
        for extent in self.shape:
            n *= extent
        return n

    @property
    def nbytes(self) -> int:
        """Bytes of its elements."""
        return self.numel * self.bytes_per_element

    def __repr__(self) -> str:
        return f"{self.kind}{self.number}{list(self.shape)}"


class Value:
    """One scalar SSA value. ``external`` is the MLIR value when it is defined outside the nest."""

    __slots__ = ("external", "number", "type")

    def __init__(self, type_: Any, external: Any = None) -> None:
        self.type = type_
        self.external = external
        self.number = next(_numbers)

    def __repr__(self) -> str:
        return f"%{self.number}"


class Node:
    """A loop, operation or access. By default it has no values, expressions and memory.

    Attributes:
        reads: whether it reads an element of its ``buffer``.
        writes: whether it writes an element of its ``buffer``.
        atomic: whether it does both in one piece, so that such accesses of several threads may come
            in any order.
    """

    __slots__ = ()

    reads: ClassVar[bool] = False
    writes: ClassVar[bool] = False
    atomic: ClassVar[bool] = False

    @property
    def uses(self) -> list[Value]:
        """The values that the node itself uses (a For: inits and yields)."""
        return []

    @property
    def defines(self) -> list[Value]:
        """The values that the node defines for those after it."""
        return []

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """Its affine expressions: of an index, of a condition, bounds besides 0 and the extent."""
        return ()

    def variables(self) -> Iterator[Var]:
        """The variables in its expressions; one may come several times."""
        for expr in self.exprs:
            yield from expr.variables()

    @property
    def marks(self) -> tuple[Hashable, ...]:
        """All else by which nodes of one class differ: names, attributes, flags."""
        return ()

    def copied(self, to: Renaming) -> Node:
        """A copy with fresh results, which ``to`` takes in."""
        raise NotImplementedError

    def replace_uses(self, use: Callable[[Value], Value]) -> None:
        """Use ``use(value)`` instead of every value, in place."""

    def replace_exprs(self, change: Callable[[Expr], Expr]) -> None:
        """Apply ``change`` to every affine expression, in place."""


@dataclass(slots=True)
class Renaming:
    """Replacements of values, variables and buffers in copies; each copied node adds its own."""

    values: dict[Value, Value]
    variables: dict[Var, Expr]
    buffers: dict[Buffer, Buffer]

    def use(self, value: Value) -> Value:
        """The replacement of a value."""
        return self.values.get(value, value)

    def all(self, values: Iterable[Value]) -> list[Value]:
        """The replacements of values."""
        return [self.values.get(v, v) for v in values]

    def fresh(self, value: Value) -> Value:
        """A new value that stands for a result."""
        new = self.values[value] = Value(value.type)
        return new

    def at(self, exprs: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The replacements of expressions."""
        return tuple([e.substitute(self.variables) for e in exprs])

    def buffer(self, buffer: Buffer) -> Buffer:
        """The replacement of a buffer."""
        return self.buffers.get(buffer, buffer)


class Pure(Node):
    """A node that makes values without memory effects: it may be computed anywhere, and again."""

    __slots__ = ()

    def signature(self) -> Hashable:
        """All but the operands that the results depend on."""
        return self.marks, self.exprs, tuple([hash(r.type) for r in self.defines])


@dataclass(eq=False, slots=True)
class Op(Pure):
    """A scalar operation without regions or memory effects."""

    name: str
    operands: list[Value]
    attributes: dict[str, Any]
    results: list[Value]
    location: Any = None
    #: The last :meth:`signature`, behind what it was made of.
    signed: tuple[Any, ...] | None = field(default=None, repr=False)

    @property
    def uses(self) -> list[Value]:
        return self.operands

    @property
    def defines(self) -> list[Value]:
        return self.results

    @property
    def marks(self) -> tuple[Hashable, ...]:
        attributes = self.attributes
        if not attributes:
            return (self.name,)
        return self.name, *[(name, hash(a)) for name, a in sorted(attributes.items())]

    def signature(self) -> Hashable:
        # Remembered, also in copies.
        signed, attributes, results = self.signed, self.attributes, self.results
        if len(results) != 1:
            return Pure.signature(self)
        name, type_ = self.name, results[0].type
        if (
            signed is not None
            and signed[1] is name
            and signed[2] is attributes
            and signed[3] is type_
            and signed[4] == len(attributes)
        ):
            return signed[0]
        found = self.marks, hash(type_)
        self.signed = found, name, attributes, type_, len(attributes)
        return found

    def copied(self, to: Renaming) -> Op:
        results = [to.fresh(r) for r in self.results]
        operands = to.all(self.operands)
        return type(self)(self.name, operands, self.attributes, results, self.location, self.signed)

    def replace_uses(self, use: Callable[[Value], Value]) -> None:
        self.operands = [use(v) for v in self.operands]


@dataclass(eq=False, slots=True)
class Index(Pure):
    """An affine expression as a value of type index."""

    result: Value
    expr: Expr

    @property
    def defines(self) -> list[Value]:
        return [self.result]

    @property
    def exprs(self) -> tuple[Expr, ...]:
        return (self.expr,)

    def copied(self, to: Renaming) -> Index:
        return Index(to.fresh(self.result), self.expr.substitute(to.variables))

    def replace_exprs(self, change: Callable[[Expr], Expr]) -> None:
        self.expr = change(self.expr)


class Access(Node):
    """A read or write of one element of a buffer, wherever its index comes from."""

    __slots__ = ("buffer", "index", "location")

    buffer: Buffer
    index: tuple[Expr, ...] | list[Value]
    location: Any

    def index_by(self, expr: Callable[[Expr], T], value: Callable[[Value], T]) -> list[T]:
        """The index, by one function of affine expressions and another one of run-time values."""
        raise NotImplementedError

    def permute(self, order: Iterable[int]) -> None:
        """Let dimension ``i`` of the index be what dimension ``order[i]`` is, in place."""
        raise NotImplementedError


class AffineAccess(Access):
    """An access with affine indices."""

    __slots__ = ()

    index: tuple[Expr, ...]

    @property
    def where(self) -> tuple[Expr, ...]:
        """It is done only where none of these is negative; see :class:`Load`."""
        return ()

    def index_by(self, expr: Callable[[Expr], T], value: Callable[[Value], T]) -> list[T]:
        return [expr(e) for e in self.index]

    def permute(self, order: Iterable[int]) -> None:
        self.index = tuple(self.index[d] for d in order)

    @property
    def exprs(self) -> tuple[Expr, ...]:
        return self.index

    def replace_exprs(self, change: Callable[[Expr], Expr]) -> None:
        self.index = tuple(change(e) for e in self.index)


class IndirectAccess(Access):
    """An access with indices known only at run time."""

    __slots__ = ()

    index: list[Value]

    def index_by(self, expr: Callable[[Expr], T], value: Callable[[Value], T]) -> list[T]:
        return [value(v) for v in self.index]

    def permute(self, order: Iterable[int]) -> None:
        self.index = [self.index[d] for d in order]

    @property
    def uses(self) -> list[Value]:
        return self.index

    def replace_uses(self, use: Callable[[Value], Value]) -> None:
        self.index = [use(v) for v in self.index]


class AnyLoad(Access):
    """An access that yields what it reads."""

    __slots__ = ("result",)

    reads = True
    result: Value

    @property
    def defines(self) -> list[Value]:
        return [self.result]


class AnyStore(Access):
    """An access that writes, a value or what it makes of the value and the element."""

    __slots__ = ("value",)

    writes = True
    value: Value


@dataclass(eq=False, slots=True)
class Load(AnyLoad, AffineAccess):
    """``result = buffer[index]`` with affine indices.

    Nothing is read where one of ``where`` is negative: the result is zero there. ``padding`` has
    the numbers of the paddings that are its own operation's: products with their zeros may be left
    out.
    """

    result: Value
    buffer: Buffer
    index: tuple[Expr, ...]
    location: Any = None
    where: tuple[Expr, ...] = ()
    padding: frozenset[int] = frozenset()

    @property
    def exprs(self) -> tuple[Expr, ...]:
        return (*self.index, *self.where) if self.where else self.index

    def copied(self, to: Renaming) -> Load:
        where = to.at(self.where) if self.where else ()
        result, buffer, index = to.fresh(self.result), to.buffer(self.buffer), to.at(self.index)
        return Load(result, buffer, index, self.location, where, self.padding)

    def replace_exprs(self, change: Callable[[Expr], Expr]) -> None:
        self.index = tuple(change(e) for e in self.index)
        self.where = tuple(change(e) for e in self.where)


@dataclass(eq=False, slots=True)
class Store(AnyStore, AffineAccess):
    """``buffer[index] = value`` with affine indices.

    ``stream`` is the alignment in bytes with which whole vectors may pass the caches, if the buffer
    is aligned so; 0 for a store as any other. With ``peel`` rows begin anywhere, and the loop comes
    to an aligned element first. ``padding`` has the numbers of the paddings that the element is
    part of, if it is a zero of an operation's own.
    """

    value: Value
    buffer: Buffer
    index: tuple[Expr, ...]
    location: Any = None
    stream: int = 0
    peel: bool = False
    padding: frozenset[int] = frozenset()

    @property
    def uses(self) -> list[Value]:
        return [self.value]

    @property
    def marks(self) -> tuple[Hashable, ...]:
        return self.stream, self.peel

    def copied(self, to: Renaming) -> Store:
        value, buffer, index = to.use(self.value), to.buffer(self.buffer), to.at(self.index)
        marks = self.stream, self.peel, self.padding
        return Store(value, buffer, index, self.location, *marks)

    def replace_uses(self, use: Callable[[Value], Value]) -> None:
        self.value = use(self.value)


@dataclass(eq=False, slots=True)
class IndirectLoad(AnyLoad, IndirectAccess):
    """``result = buffer[values]``: indices known only at run time (a gather)."""

    result: Value
    buffer: Buffer
    index: list[Value]
    location: Any = None

    def copied(self, to: Renaming) -> IndirectLoad:
        index = to.all(self.index)
        return IndirectLoad(to.fresh(self.result), to.buffer(self.buffer), index, self.location)


class _IndirectWrite(AnyStore, IndirectAccess):
    """One that uses its indices and its value."""

    __slots__ = ()

    @property
    def uses(self) -> list[Value]:
        return [*self.index, self.value]

    def replace_uses(self, use: Callable[[Value], Value]) -> None:
        self.index = [use(v) for v in self.index]
        self.value = use(self.value)


@dataclass(eq=False, slots=True)
class IndirectStore(_IndirectWrite):
    """``buffer[values] = value``: indices known only at run time (a scatter)."""

    value: Value
    buffer: Buffer
    index: list[Value]
    location: Any = None

    def copied(self, to: Renaming) -> IndirectStore:
        index = to.all(self.index)
        return IndirectStore(to.use(self.value), to.buffer(self.buffer), index, self.location)


@dataclass(eq=False, slots=True)
class GuardedStore(_IndirectWrite):
    """``buffer[values] = value`` where a condition holds, in the order of the iterations.

    In vectors the updates that hold are listed first, and stored one after the other then.
    """

    condition: Value
    value: Value
    buffer: Buffer
    index: list[Value]
    location: Any = None

    @property
    def uses(self) -> list[Value]:
        return [*self.index, self.value, self.condition]

    def replace_uses(self, use: Callable[[Value], Value]) -> None:
        self.index = [use(v) for v in self.index]
        self.value, self.condition = use(self.value), use(self.condition)

    def copied(self, to: Renaming) -> GuardedStore:
        condition, value, index = to.use(self.condition), to.use(self.value), to.all(self.index)
        return GuardedStore(condition, value, to.buffer(self.buffer), index, self.location)


@dataclass(eq=False, slots=True)
class IndirectAtomic(_IndirectWrite):
    """``buffer[values] = op(buffer[values], value)`` in one piece.

    ``op`` is the name of an operation whose operands may be exchanged.
    """

    reads = True
    atomic = True

    op: str
    value: Value
    buffer: Buffer
    index: list[Value]
    location: Any = None

    @property
    def marks(self) -> tuple[Hashable, ...]:
        return (self.op,)

    def copied(self, to: Renaming) -> IndirectAtomic:
        value, buffer, index = to.use(self.value), to.buffer(self.buffer), to.all(self.index)
        return IndirectAtomic(self.op, value, buffer, index, self.location)


@dataclass(eq=False, slots=True)
class Alloca(Node):
    """A buffer that lives in one iteration of the enclosing loop."""

    buffer: Buffer

    def copied(self, to: Renaming) -> Alloca:
        b = self.buffer
        new = Buffer(
            *(b.shape, b.element, b.kind),
            bytes_per_element=b.bytes_per_element,
            space=b.space,
            layout=b.layout,
        )
        to.buffers[b] = new
        return Alloca(new)


@dataclass(eq=False, slots=True)
class Check(Node):
    """The program fails with ``message`` unless ``condition`` holds."""

    condition: Value
    message: Any
    location: Any = None

    @property
    def uses(self) -> list[Value]:
        return [self.condition]

    def copied(self, to: Renaming) -> Check:
        return Check(to.use(self.condition), self.message, self.location)

    def replace_uses(self, use: Callable[[Value], Value]) -> None:
        self.condition = use(self.condition)


@dataclass(frozen=True)
class Simd:
    """How an innermost loop, or a loop around it, is written in vectors.

    Attributes:
        width: lanes of one vector, a power of two.
        accumulators: vectors that each carried value is spread over, a power of two.
        interleaved: vectors that every operation works on at a time, a power of two; several for
            long chains of operations, which would have to wait for each other.
        masked: whether the last iterations are one vector under a mask; else a scalar loop.
        square: whether the loop and the one in it are one tile of as many vectors as lanes, in
            which what is in order along the other loop is transposed.
        line: bytes of a line of the target's fastest memory.
        compress: of a loop with a guarded store, the target's function that moves the lanes of a
            mask to the front.
    """

    width: int
    accumulators: int = 1
    masked: bool = True
    interleaved: int = 1
    square: bool = False
    line: int = 64
    compress: str = ""


@dataclass(eq=False, slots=True)
class Prefetch:
    """Fetch the line of ``buffer[index]`` ahead; no element need be there.

    ``write`` says that it will be stored to, ``level`` is the cache, counted from the fastest.
    """

    buffer: Buffer
    index: tuple[Expr, ...]
    write: bool
    level: int

    def copied(self, to: Renaming) -> Prefetch:
        """A copy at the replacement of its place."""
        return Prefetch(to.buffer(self.buffer), to.at(self.index), self.write, self.level)


@dataclass(eq=False, slots=True)
class For(Node):
    """A loop ``var = max(0, *lower) … min(extent, *upper) - 1`` with loop-carried values.

    Attributes:
        inits: values that the carried arguments start with.
        arguments: the carried values inside the body.
        results: their values after the loop.
        yields: what the body hands to the next iteration.
        level: the parallel level that it is mapped to (``team``), None for a serial loop.
        lower: it starts at the largest of these and 0.
        upper: it ends before the smallest of these and the extent.
        tile: whether its body holds sub-nests, which passes treat as if each stood alone.
        lanes: of the loop around the rows of a register tile, how many of its iterations are lanes
            of vectors at a time; 0 of any other loop. Its body stays as it is made.
        schedule: the tiling of the contraction that it is the outermost loop of, see
            :mod:`polyblocks.affine.plan.keys`; None for nothing.
        unit: the matrix unit that goes through it and the loops in it by itself, see
            :class:`polyblocks.affine.multiply.UnitTile` and
            :class:`polyblocks.affine.multiply.UnitSteps`. Empty for any other loop.
        copy: the kind of the copy that it and the loops in it are, see
            :class:`polyblocks.affine.buffers.copies.BoxCopy`. Empty for any other loop.
        simd: how it is written in vectors; None for a scalar loop.
        prefetches: what each of its vectors fetches, or in a register tile each of its steps; only
            for loops with ``simd`` and in these.
    """

    var: Var
    body: list[Node]
    inits: list[Value] = field(default_factory=list)
    arguments: list[Value] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)
    yields: list[Value] = field(default_factory=list)
    level: str | None = None
    lower: tuple[Expr, ...] = ()
    upper: tuple[Expr, ...] = ()
    tile: bool = False
    lanes: int = 0
    schedule: dict[str, Any] | None = None
    unit: str = ""
    copy: str = ""
    simd: Simd | None = None
    prefetches: list[Prefetch] = field(default_factory=list)

    @property
    def uses(self) -> list[Value]:
        return [*self.inits, *self.yields]

    @property
    def defines(self) -> list[Value]:
        return self.results

    @property
    def exprs(self) -> tuple[Expr, ...]:
        return self.bounds

    @property
    def marks(self) -> tuple[Hashable, ...]:
        made_for = self.lanes, self.unit, self.copy, self.simd
        return self.level, len(self.lower), self.tile, repr(self.schedule), *made_for

    def copied(self, to: Renaming) -> For:
        """A copy with a fresh variable, and copies of the nodes in it."""
        var = Var(self.var.extent, self.var.name)
        to.variables[self.var] = Expr.of(var)
        inits = to.all(self.inits)
        arguments = [to.fresh(a) for a in self.arguments]
        body = [node.copied(to) for node in self.body]
        yields = to.all(self.yields)
        results = [to.fresh(r) for r in self.results]
        return For(
            *(var, body, inits, arguments, results, yields),
            level=self.level,
            lower=to.at(self.lower),
            upper=to.at(self.upper),
            tile=self.tile,
            lanes=self.lanes,
            schedule=self.schedule,
            unit=self.unit,
            copy=self.copy,
            simd=self.simd,
            prefetches=[f.copied(to) for f in self.prefetches],
        )

    def replace_uses(self, use: Callable[[Value], Value]) -> None:
        self.inits = [use(v) for v in self.inits]
        self.yields = [use(v) for v in self.yields]

    def replace_exprs(self, change: Callable[[Expr], Expr]) -> None:
        self.lower = tuple(change(e) for e in self.lower)
        self.upper = tuple(change(e) for e in self.upper)

    @property
    def bounds(self) -> tuple[Expr, ...]:
        """The bounds besides 0 and the extent."""
        return (*self.lower, *self.upper)

    @property
    def bounded(self) -> bool:
        """Whether it runs over a part of its variable's values only."""
        return bool(self.lower or self.upper)

    @property
    def origin(self) -> Expr:
        """The bound from which all its iterations are within the next ``trips`` values.

        0 or one of ``lower``; the others may cut off the first of these values.
        """
        if not self.lower:
            return Expr(0)
        return min((Expr(0), *self.lower), key=lambda low: (self._reach(low), -sum(low.range())))

    @property
    def trips(self) -> int:
        """The largest number of iterations that it can have."""
        if not self.bounded:
            return self.var.extent
        return max(0, min(map(self._reach, (Expr(0), *self.lower))))

    def _reach(self, low: Expr) -> int:
        """How far from ``low`` it ends, at most."""
        upper = (Expr(self.var.extent), *self.upper)
        return min((high - low).range()[1] for high in upper)


class Nest:
    """One top-level loop nest (or straight-line code) of ``@main``.

    Attributes:
        body: its nodes; usually one For.
        name: readable name, unique in the program, for kernels and reports.
        source: the MLIR operations that it was read from; empty when it is new.
        changed: whether it must be written back: it is new, or was replaced since.
        kind: what ``classify-nests`` found it to be.
        sources: ``op file:line`` of the framework's ops in it.
        estimate: the attribute that ``estimate-nests`` gave it.
    """

    def __init__(self, body: list[Node], source: list[Any], changed: bool = False) -> None:
        self._body = body
        self._changed = changed
        self._derived: dict[Any, Any] = {}
        self.name = ""
        self.source = source
        self.kind = ""
        self.sources: list[str] = []
        self.estimate: Any = None

    @property
    def body(self) -> list[Node]:
        return self._body

    @property
    def changed(self) -> bool:
        return self._changed

    def replace(self, body: list[Node] | None = None) -> None:
        """Give it another body, or say that nodes of its own were changed in place.

        Data derived from the old body is dropped.
        """
        if body is not None:
            self._body = body
        self._changed = True
        self._derived.clear()

    def rename(self, name: str, kind: str) -> None:
        """Give it another name and kind; its body and what is derived from that stay."""
        self._changed = self._changed or (name, kind) != (self.name, self.kind)
        self.name, self.kind = name, kind

    def edge(self, nodes: list[Node]) -> Nest:
        """A nest of its own for iterations that are left over."""
        nest = Nest(nodes, [], changed=True)
        nest.name, nest.kind, nest.sources = f"{self.name}_edge", self.kind, self.sources
        return nest

    def written(self, operations: list[Any]) -> None:
        """Take note of the MLIR operations that say what the body says."""
        self.source, self._changed = operations, False

    def derived(self, derive: Callable[[list[Node]], T]) -> T:
        """The result of a function of the body, remembered until the next change."""
        if derive not in self._derived:
            self._derived[derive] = derive(self._body)
        found: T = self._derived[derive]
        return found

    def outdated(self) -> bool:
        """Whether effects that are remembered are those of another body than it has."""
        found = self._derived.get(_effects)
        return found is not None and found != _effects(self._body)

    def touching(self, buffer: Buffer) -> list[Access]:
        """Accesses of a buffer or a view of it, in order, cached until the next change."""
        return self.derived(_accesses_by_base).get(buffer, [])

    def effects(self) -> tuple[frozenset[Buffer], frozenset[Buffer]]:
        """Buffers read and buffers written, remembered until the next change."""
        return self.derived(_effects)


def _accesses_by_base(body: list[Node]) -> dict[Buffer, list[Access]]:
    found: dict[Buffer, list[Access]] = {}
    for node in walk(body):
        if isinstance(node, Access):
            found.setdefault(node.buffer.base, []).append(node)
    return found


def _effects(body: list[Node]) -> tuple[frozenset[Buffer], frozenset[Buffer]]:
    # Tests ask for them behind every pass.
    read, written = set(), set()
    waiting = [body]
    while waiting:
        for node in waiting.pop():
            if type(node) is For:
                waiting.append(node.body)
            elif isinstance(node, Access):
                if node.reads:
                    read.add(node.buffer)
                if node.writes:
                    written.add(node.buffer)
    return frozenset(read), frozenset(written)


@dataclass(eq=False)
class Opaque:
    """Operations that the model does not describe, with the buffers that they touch."""

    operation: Any
    reads: set[Buffer]
    writes: set[Buffer]


@dataclass(eq=False)
class ControlFlow(Opaque):
    """A loop or branch around sequences, each of which passes change as they change ``@main``.

    To the sequence that it stands in it is opaque. It reads and writes what its bodies do;
    as a body may not run at all, what is written counts as read.

    Attributes:
        bodies: one sequence for each block.
    """

    bodies: list[Sequence] = field(default_factory=list)

    def effects(self) -> tuple[set[Buffer], set[Buffer]]:
        """Buffers of the sequence around that are read, and those that are written."""
        read, written = set(self.reads), set(self.writes)
        for body in self.bodies:
            for item in body.items:
                read |= {b for b in map(_around, reads(item)) if b is not None}
                written |= {b for b in map(_around, writes(item)) if b is not None}
        return read | written, written


@dataclass(eq=False)
class Sequence:
    """The body of ``@main``, or of a loop or branch, in program order.

    Attributes:
        items: what it does.
        buffers: what its items touch.
        block: the MLIR block.
        name: what names of nests in it begin with; empty for ``@main``.
        memos: results that passes leave for later ones, by what they are; each says by all that it
            depends on.
    """

    items: list[Nest | Opaque]
    buffers: list[Buffer]
    block: Any = None
    name: str = ""
    memos: dict[Any, dict[Hashable, Any]] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Weak, so that no model holds itself, and MLIR handles of code that is long gone.
        self._around: weakref.ref[Sequence] | None = None

    @property
    def around(self) -> Sequence | None:
        """The sequence that the loop or branch is in whose body this is; None for ``@main``."""
        return None if self._around is None else self._around()

    def contains(self, body: Sequence) -> None:
        """Say that ``body`` is that of a loop or branch in this sequence."""
        body._around = weakref.ref(self)

    def nests(self) -> list[Nest]:
        """The nests, without what is opaque."""
        return [item for item in self.items if isinstance(item, Nest)]

    def all(self) -> Iterator[Sequence]:
        """This sequence and those in it, outer before inner."""
        yield self
        for item in self.items:
            if isinstance(item, ControlFlow):
                for body in item.bodies:
                    yield from body.all()

    def viewed(self) -> set[Buffer]:
        """The buffers with views: they may be accessed by another name."""
        return {b.base for b in self.buffers if b.base is not b}


def _around(buffer: Buffer) -> Buffer | None:
    """The buffer around that a buffer of a body is, or views; None if it is new."""
    seen: Buffer | None = buffer
    while seen is not None and seen.outer is None:
        seen = seen.viewed
    return None if seen is None else seen.outer


def around(variables: Iterable[Var], nodes: list[Node]) -> list[Node]:
    """Loops around nodes, the first variable outermost; none for a variable with one value."""
    return nested([var for var in variables if var.extent != 1], nodes)


def nested(variables: list[Var], nodes: list[Node]) -> list[Node]:
    """Loops around nodes, the first variable outermost, whatever their extents."""
    for var in reversed(variables):
        nodes = [For(var, nodes)]
    return nodes


def walk_with_trips(nodes: Iterable[Node], trips: int = 1) -> Iterator[tuple[Node, int]]:
    """All nodes as :func:`walk` gives them, each with how often it runs, at most."""
    for node in nodes:
        yield node, trips
        if isinstance(node, For):
            yield from walk_with_trips(node.body, trips * max(node.trips, 1))


def walk(nodes: Iterable[Node]) -> Iterator[Node]:
    """All nodes, outer before inner, in program order."""
    stack = [iter(nodes)]
    while stack:
        for node in stack[-1]:
            yield node
            if type(node) is For:
                stack.append(iter(node.body))
                break
        else:
            stack.pop()


def local_buffers(nodes: Iterable[Node]) -> set[Buffer]:
    """The buffers that nodes have for themselves, at any depth."""
    return {n.buffer for n in walk(nodes) if isinstance(n, Alloca)}


def reads(item: Nest | Opaque) -> Set[Buffer]:
    """Buffers that an item reads."""
    if isinstance(item, ControlFlow):
        return item.effects()[0]
    return item.reads if isinstance(item, Opaque) else item.effects()[0]


def writes(item: Nest | Opaque) -> Set[Buffer]:
    """Buffers that an item writes."""
    if isinstance(item, ControlFlow):
        return item.effects()[1]
    return item.writes if isinstance(item, Opaque) else item.effects()[1]


def reads_from(item: Nest | Opaque, buffer: Buffer) -> bool:
    """Whether an item reads the buffer or a view of it."""
    return any(b.base is buffer for b in reads(item))


def index_exprs(nodes: Iterable[Node]) -> dict[Value, Expr]:
    """The values that nodes and those in them make of affine expressions."""
    return {n.result: n.expr for n in walk(nodes) if isinstance(n, Index)}


def stored_bases(nodes: Iterable[Node]) -> set[Buffer]:
    """The buffers that nodes and those in them store to, with views resolved."""
    return {n.buffer.base for n in walk(nodes) if isinstance(n, AnyStore)}


def clone(
    nodes: Iterable[Node],
    values: dict[Value, Value],
    variables: dict[Var, Expr],
    buffers: dict[Buffer, Buffer] | None = None,
) -> list[Node]:
    """Copy nodes with fresh results; ``values`` and ``variables`` say what is replaced.

    ``values`` is extended by the copies, so that the caller finds the new values in it. Loops of
    the copied nodes get fresh variables.
    """
    to = Renaming(values, variables, {} if buffers is None else buffers)
    return [node.copied(to) for node in nodes]


def replace_values(nodes: Iterable[Node], mapping: dict[Value, Value]) -> None:
    """Use ``mapping[v]`` in place of ``v`` everywhere in these nodes, in place."""

    def use(value: Value) -> Value:
        while value in mapping:
            value = mapping[value]
        return value

    for node in walk(nodes):
        if not mapping.keys().isdisjoint(node.uses):
            node.replace_uses(use)


def transform_indices(nodes: Iterable[Node], change: Callable[[Expr], Expr]) -> None:
    """Apply ``change`` to every affine expression in these nodes, in place."""
    for node in walk(nodes):
        node.replace_exprs(change)


def program_buffers(nodes: Iterable[Node]) -> list[Buffer]:
    """The buffers that nodes touch and that live longer than an iteration, as they are met."""
    touched = (n.buffer for n in walk(nodes) if isinstance(n, Access))
    return list(dict.fromkeys(b for b in touched if b.kind != "local"))


def remove_dead(nodes: list[Node]) -> None:
    """Remove ops, loads, carried values and loops that no store depends on, in place."""
    live = _live_values(nodes)
    _sweep(nodes, live)
    if any(isinstance(n, Alloca) for n in walk(nodes)):
        used = {n.buffer for n in walk(nodes) if isinstance(n, Access)}
        _drop_allocas(nodes, used)


def _live_values(nodes: list[Node]) -> set[Value]:
    """Values that a store depends on, also through loops."""
    needs: dict[Value, list[Value]] = {}
    pending: list[Value] = []
    for node in walk(nodes):
        if isinstance(node, For):
            carried = zip(node.inits, node.arguments, node.results, node.yields, strict=True)
            for init, argument, result, yielded in carried:
                needs[argument] = [init, yielded]
                needs[result] = [init, yielded]
                # The argument is what the yield of the iteration before was.
                needs.setdefault(yielded, [])
        elif made := node.defines:
            needs.update(dict.fromkeys(made, node.uses))
        else:
            pending.extend(node.uses)
    live: set[Value] = set()
    while pending:
        value = pending.pop()
        if value not in live:
            live.add(value)
            pending.extend(needs.get(value, ()))
    return live


def _sweep(nodes: list[Node], live: set[Value]) -> None:
    kept: list[Node] = []
    for node in nodes:
        if isinstance(node, For):
            alive = [
                i
                for i, (a, r) in enumerate(zip(node.arguments, node.results, strict=True))
                if a in live or r in live
            ]
            if len(alive) != len(node.inits):
                node.inits = [node.inits[i] for i in alive]
                node.arguments = [node.arguments[i] for i in alive]
                node.results = [node.results[i] for i in alive]
                node.yields = [node.yields[i] for i in alive]
            _sweep(node.body, live)
            if not node.body and not node.results:
                continue
        elif (made := node.defines) and live.isdisjoint(made):
            continue
        kept.append(node)
    nodes[:] = kept


def _drop_allocas(nodes: list[Node], live: set[Buffer]) -> None:
    nodes[:] = [n for n in nodes if not (isinstance(n, Alloca) and n.buffer not in live)]
    for node in nodes:
        if isinstance(node, For):
            _drop_allocas(node.body, live)
