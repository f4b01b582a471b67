"""Operations at an insertion point: index arithmetic, loops and branches of a kernel's body."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from polyblocks.affine.expr import Expr, Mod, Var
from polyblocks.attributes import LOOP_ATTRIBUTE
from polyblocks.mlir import ir

#: Predicates of ``arith.cmpi``.
_PREDICATES = {"eq": 0, "slt": 2, "sle": 3, "sge": 5, "ult": 6}
#: LLVM's loop attribute that keeps a loop from being unrolled.
_KEPT = f"#{LOOP_ATTRIBUTE}<unroll = <disable = true>>"
#: Operations of integers that are the same for the same operands, wherever they stand.
_PURE = frozenset(
    {
        *(
            f"arith.{name}"
            for name in ("addi", "andi", "cmpi", "divui", "floordivsi", "index_cast")
        ),
        *(f"arith.{name}" for name in ("index_castui", "minui", "muli", "remui", "subi", "xori")),
        "memref.extract_aligned_pointer_as_index",
    }
)


class Code:
    """Builds operations at the current insertion point of MLIR's Python bindings.

    Integer computations of this block and of enclosing ones are reused.

    Args:
        entry: the block around all others; operations are appended to it.
    """

    def __init__(self, entry: Any) -> None:
        self.entry = entry
        self.index = ir.IndexType.get()
        self.i1 = ir.IntegerType.get_signless(1)
        self.i32 = ir.IntegerType.get_signless(32)
        self.i64 = ir.IntegerType.get_signless(64)
        self._constants: dict[tuple[Any, int], Any] = {}
        self._numbers: dict[Any, int] = {}
        self._unknown = ir.Location.unknown()
        #: Attributes of calls, by the function's name and the number of operands.
        self._intrinsics: dict[tuple[str, int], dict[str, Any]] = {}
        #: Values available in each enclosing block, by operation and operands.
        self._known: list[dict[tuple[Any, ...], Any]] = [{}]

    def op(
        self,
        name: str,
        results: Sequence[Any],
        operands: Sequence[Any] = (),
        attributes: dict[str, Any] | None = None,
        location: Any = None,
        regions: int = 0,
    ) -> Any:
        """Any operation."""
        return ir.Operation.create(
            name,
            results=list(results),
            operands=list(operands),
            attributes=attributes or {},
            loc=location or self._unknown,
            regions=regions,
        )

    def value(self, name: str, type_: Any, *operands: Any, **attributes: Any) -> Any:
        """The result of an operation with one."""
        if name not in _PURE:
            return self.op(name, [type_], operands, attributes).results[0]
        key = (name, type_, *operands, *attributes.values())
        for known in self._known:
            if key in known:
                return known[key]
        found = self._known[-1][key] = self.op(name, [type_], operands, attributes).results[0]
        return found

    def intrinsic(
        self, name: str, results: Sequence[Any], operands: Sequence[Any], location: Any = None
    ) -> list[Any]:
        """The results of a function of LLVM's."""
        key = name, len(operands)
        if key not in self._intrinsics:
            self._intrinsics[key] = {
                "intrin": ir.StringAttr.get(name),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
                "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
            }
        op = self.op("llvm.call_intrinsic", results, operands, self._intrinsics[key], location)
        return list(op.results)

    def pointer(self, at: Any, space: int) -> Any:
        """An address (of type index) as LLVM's pointer into an address space."""
        number = self.value("arith.index_cast", self.i64, at)
        return self.value("llvm.inttoptr", ir.Type.parse(f"!llvm.ptr<{space}>"), number)

    def place(self, memref: Any, index: Sequence[Any]) -> Any:
        """Elements from the beginning of a memref without gaps to one of them."""
        total = index[0]
        for extent, at in zip(memref.type.shape[1:], index[1:], strict=True):
            total = self.add(self.times(total, extent), at)
        return total

    def address(self, memref: Any, elements: Any, size: int) -> Any:
        """The address ``elements`` elements, of ``size`` bytes, from the beginning of a memref."""
        begin = self.value("memref.extract_aligned_pointer_as_index", self.index, memref)
        return self.add(begin, self.times(elements, size))

    def elements(self, vector: Any) -> list[Any]:
        """The elements of a vector of one dimension."""
        type_ = vector.type.element_type
        places = (ir.DenseI64ArrayAttr.get([k]) for k in range(vector.type.shape[0]))
        return [
            self.value("vector.extract", type_, vector, static_position=place) for place in places
        ]

    def fields(self, struct: Any, types: Sequence[Any]) -> list[Any]:
        """The fields of a struct of LLVM's."""
        return [
            self.value("llvm.extractvalue", t, struct, position=ir.DenseI64ArrayAttr.get([k]))
            for k, t in enumerate(types)
        ]

    def id(self, of: str) -> Any:
        """Which ``thread`` of its block, or which ``block`` of the grid, along x."""
        return self.value(f"gpu.{of}_id", self.index, dimension=ir.Attribute.parse("#gpu<dim x>"))

    def integer(self, number: int, type_: Any = None) -> Any:
        """A constant, of type index unless said otherwise; all stand at the beginning."""
        key = (type_, number)
        if key not in self._constants:
            type_ = type_ or self.index
            with ir.InsertionPoint.at_block_begin(self.entry):
                attribute = ir.IntegerAttr.get(type_, number)
                value = self.value("arith.constant", type_, value=attribute)
            self._constants[key], self._numbers[value] = value, number
        return self._constants[key]

    def constant(self, attribute: Any) -> Any:
        """A constant of any type."""
        return self.value("arith.constant", attribute.type, value=attribute)

    def round_of(self, thread: Any, number: int, total: int, threads: int) -> tuple[Any, Any]:
        """The item that a thread takes in one of the rounds over ``total`` items.

        Args:
            thread: its number among ``threads``.
            number: of the round.
            total: things; every thread takes one in each round, neighbours take neighbours.
            threads: that take them.

        Returns:
            the number of its thing, and whether there is one for it; None if there is for all.
        """
        mine = self.add(thread, self.integer(number * threads)) if number else thread
        left = total - number * threads
        return mine, None if left >= threads else self.compare("ult", thread, self.integer(left))

    def add(self, a: Any, b: Any) -> Any:
        """Sum of two indices."""
        known, other = self._numbers.get(a), self._numbers.get(b)
        if known is not None and other is not None:
            return self.integer(known + other)
        if known == 0 or other == 0:
            return b if known == 0 else a
        return self.value("arith.addi", self.index, a, b)

    @contextmanager
    def behind(self, value: Any) -> Iterator[None]:
        """The place behind a value's definition, to be entered: an argument's is the beginning."""
        first = isinstance(value.owner, ir.Block)
        place = ir.InsertionPoint.at_block_begin(self.entry) if first else None
        # Values computed since do not dominate this block.
        known, self._known = self._known, [{}]
        with place or ir.InsertionPoint.after(value.owner):
            yield
        self._known = known

    @contextmanager
    def inside(self, block: Any) -> Iterator[None]:
        """The end of a block in the current one, to be entered."""
        self._known.append({})
        with ir.InsertionPoint(block):
            yield
        self._known.pop()

    def as_index(self, a: Any) -> Any:
        """A number that is not negative, of another integer type, as an index."""
        return self.value("arith.index_castui", self.index, a)

    def plus(self, a: Any, number: int) -> Any:
        """An index and a number."""
        return self.add(a, self.integer(number)) if number else a

    def times(self, a: Any, factor: int) -> Any:
        """An index times a number."""
        if factor == 1:
            return a
        if (known := self._numbers.get(a)) is not None:
            return self.integer(known * factor)
        return self.value("arith.muli", self.index, a, self.integer(factor))

    def quotient(self, a: Any, divisor: int) -> Any:
        """Quotient of an index that is not negative."""
        if divisor == 1:
            return a
        if (known := self._numbers.get(a)) is not None:
            return self.integer(known // divisor)
        return self.value("arith.divui", self.index, a, self.integer(divisor))

    def remainder(self, a: Any, divisor: int) -> Any:
        """Remainder of an index that is not negative."""
        if divisor == 1:
            return self.integer(0)
        if (known := self._numbers.get(a)) is not None:
            return self.integer(known % divisor)
        return self.value("arith.remui", self.index, a, self.integer(divisor))

    def compare(self, predicate: str, a: Any, b: Any) -> Any:
        """``i1`` of a comparison of integers: eq, slt, sle, sge, ult."""
        attribute = ir.IntegerAttr.get(self.i64, _PREDICATES[predicate])
        return self.value("arith.cmpi", self.i1, a, b, predicate=attribute)

    def both(self, conditions: Sequence[Any]) -> Any | None:
        """The conjunction of conditions; None if there are no conditions."""
        result = None
        for c in conditions:
            result = c if result is None else self.value("arith.andi", self.i1, result, c)
        return result

    def expr(self, expr: Expr, variable: Callable[[Var], Any]) -> Any:
        """An affine expression as a value of type index."""
        result = None
        for atom, factor in expr.terms:
            if isinstance(atom, Var):
                term = variable(atom)
            else:
                term = self._rounded(atom, variable)
            term = self.times(term, factor)
            result = term if result is None else self.add(result, term)
        if result is None:
            return self.integer(expr.const)
        return self.add(result, self.integer(expr.const)) if expr.const else result

    def _rounded(self, atom: Any, variable: Callable[[Var], Any]) -> Any:
        low, _ = atom.dividend.range()
        rest = isinstance(atom, Mod)
        inner = self.expr(atom.dividend, variable)
        if low >= 0:
            return (self.remainder if rest else self.quotient)(inner, atom.divisor)
        divisor = self.integer(atom.divisor)
        quotient = self.value("arith.floordivsi", self.index, inner, divisor)
        if not rest:
            return quotient
        whole = self.value("arith.muli", self.index, quotient, divisor)
        return self.value("arith.subi", self.index, inner, whole)

    def when(
        self,
        condition: Any | None,
        body: Callable[[], list[Any]],
        otherwise: Callable[[], list[Any]] | None = None,
        types: Sequence[Any] = (),
    ) -> list[Any]:
        """``scf.if``, or just the body for no condition; returns what was chosen."""
        if condition is None:
            return body()
        op = self.op("scf.if", types, [condition], regions=2)
        self._fill(op.regions[0], [], lambda _: body())
        if otherwise is not None or types:
            assert otherwise is not None
            self._fill(op.regions[1], [], lambda _: otherwise())
        return list(op.results)

    def loop(
        self,
        low: Any,
        high: Any,
        step: Any,
        inits: Sequence[Any],
        body: Callable[[Any, list[Any]], list[Any]],
        kept: bool = False,
    ) -> list[Any]:
        """``scf.for``; ``body(variable, carried)`` returns what is carried on.

        One that is ``kept`` stays a loop, however few iterations there are.
        """
        types = [v.type for v in inits]
        marks = {LOOP_ATTRIBUTE: ir.Attribute.parse(_KEPT)} if kept else None
        op = self.op("scf.for", types, [low, high, step, *inits], marks, regions=1)
        self._fill(op.regions[0], [self.index, *types], lambda a: body(a[0], a[1:]))
        return list(op.results)

    def _fill(
        self, region: Any, types: Sequence[Any], body: Callable[[list[Any]], list[Any]]
    ) -> None:
        block = region.blocks.append(*types, arg_locs=[ir.Location.unknown()] * len(types))
        with self.inside(block):
            self.op("scf.yield", [], body(list(block.arguments)))


def as_bound(condition: Expr) -> tuple[Expr, str, int]:
    """That an expression is not negative, as a bound of what varies in it.

    Two bounds of one sum are then seen to be a range.

    Returns:
        what varies, the predicate, and the number that it is compared with.
    """
    moving = Expr(0, dict(condition.terms))
    if moving.terms and moving.terms[0][1] < 0:
        return moving * -1, "sle", condition.const
    return moving, "sge", -condition.const
