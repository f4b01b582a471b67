"""hoist-addresses: what a loop leaves unchanged of its addresses is computed before it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

#: Ops that access memory, and which operand the memref is; the indices follow it. Those on scalars
#: are not among them: upstream takes their indices and offsets for unsigned (``nuw``), but of a sum
#: that is not negative each of two parts may be.
_ACCESSES = {
    "vector.load": 0,
    "vector.maskedload": 0,
    "vector.maskedstore": 0,
    "vector.store": 1,
}


@dataclass(frozen=True)
class HoistAddressesPass:
    """Split the addresses of vector code into a view that starts anywhere, and a simple index.

    Within a loop an access is then one addressing mode: a register that the loop does not change,
    the loop's own counter, and a constant. LLVM's loop strength reduction finds the same, but it
    takes longer than all else that LLVM does for such a function. Accesses of one loop share what
    differs by constants only.

    Before::

        scf.for %j = ... {
          %i1 = arith.addi %i, %c1
          %v = vector.load %x[%i1, %j] : memref<8x64xf32>, vector<16xf32>
        }

    After::

        %offset = arith.muli %i, %c64
        %view = memref.reinterpret_cast %x to offset: [%offset], sizes: [8, 64], strides: [64, 1]
        scf.for %j = ... {
          %k = arith.addi %j, %c64
          %v = vector.load %view[%c0, %k]
        }

    Accesses of scalars stay as they are.
    """

    name: ClassVar[str] = "hoist-addresses"

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite the module in place; returns whether there was anything to do."""
        from polyblocks.mlir import ir

        del context
        changed = False
        with module.context, ir.Location.unknown():
            for function in module.body.operations:
                function = function.operation
                if function.name == "func.func" and len(function.regions[0].blocks):
                    changed |= _Function(function).run()
        return changed


#: A linear form: coefficients by value, and a constant.
Form = tuple[dict[Any, int], int]


@dataclass
class _Access:
    op: Any
    position: int
    loops: tuple[Any, ...]


@dataclass
class _Function:
    op: Any
    #: How many loops are around the definition of a value.
    depths: dict[Any, int] = field(default_factory=dict)
    forms: dict[Any, Form] = field(default_factory=dict)
    numbers: dict[int, Any] = field(default_factory=dict)
    offsets: dict[Any, Any] = field(default_factory=dict)
    views: dict[Any, Any] = field(default_factory=dict)
    indices: dict[Any, Any] = field(default_factory=dict)
    accesses: list[_Access] = field(default_factory=list)

    def run(self) -> bool:
        """Rewrite the accesses in loops; returns whether there are any."""
        self._collect(self.op, ())
        for access in self.accesses:
            self._rewrite(access)
        return bool(self.accesses)

    def _collect(self, parent: Any, loops: tuple[Any, ...]) -> None:
        for region in parent.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    self.depths[argument] = len(loops)
                for op in block.operations:
                    op = op.operation
                    name = op.name
                    if loops and name in _ACCESSES:
                        self.accesses.append(_Access(op, _ACCESSES[name], loops))
                    for result in op.results:
                        self.depths[result] = len(loops)
                    if len(op.regions):
                        is_loop = name in ("scf.for", "scf.while")
                        self._collect(op, (*loops, op) if is_loop else loops)

    def _rewrite(self, access: _Access) -> None:
        from polyblocks.mlir import ir

        op, at, loops = access.op, access.position, access.loops
        memref = op.operands[at]
        type_ = ir.MemRefType(memref.type)
        depth = len(loops)
        if not type_.has_static_shape or not type_.rank or self.depths[memref] >= depth:
            return
        strides, offset = type_.get_strides_and_offset()
        if offset:
            return
        terms: dict[Any, int] = {}
        const = 0
        for k, stride in enumerate(strides):
            inner, number = self._form(op.operands[at + 1 + k])
            const += stride * number
            for value, factor in inner.items():
                terms[value] = terms.get(value, 0) + stride * factor
        fixed = [(v, c) for v, c in terms.items() if c and self.depths[v] < depth]
        varying = tuple((v, c) for v, c in terms.items() if c and self.depths[v] >= depth)
        if not fixed:
            return
        fixed.sort(key=lambda term: self.depths[term[0]])
        view = self._view(memref, type_, tuple(strides), self._offset(fixed, loops), loops[-1])
        op.operands[at] = view
        zero = self._number(0)
        for k in range(type_.rank - 1):
            op.operands[at + 1 + k] = zero
        op.operands[at + type_.rank] = self._index(op, varying, const)

    def _form(self, value: Any) -> Form:
        found = self.forms.get(value)
        if found is None:
            found = self.forms[value] = self._decompose(value)
        return found

    def _decompose(self, value: Any) -> Form:
        from polyblocks.mlir import ir

        owner = value.owner
        if isinstance(owner, ir.Block):
            return {value: 1}, 0
        name = owner.name
        if name == "arith.constant":
            return {}, ir.IntegerAttr(owner.attributes["value"]).value
        if name not in ("arith.addi", "arith.subi", "arith.muli"):
            return {value: 1}, 0
        (left, a), (right, b) = (self._form(v) for v in owner.operands)
        if name == "arith.muli":
            if left and right:
                return {value: 1}, 0
            factor, scaled, number = (b, left, a) if not right else (a, right, b)
            return {v: c * factor for v, c in scaled.items()}, number * factor
        sign = 1 if name == "arith.addi" else -1
        terms = dict(left)
        for v, c in right.items():
            terms[v] = terms.get(v, 0) + sign * c
        return terms, a + sign * b

    def _offset(self, terms: list[tuple[Any, int]], loops: tuple[Any, ...]) -> Any:
        """The sum of terms, each added before the outermost loop that leaves it unchanged."""
        from polyblocks.mlir import ir

        total: Any = None
        key: tuple[Any, ...] = ()
        for value, factor in terms:
            loop = loops[self.depths[value]]
            key = (*key, (value, factor))
            known = self.offsets.get((key, loop))
            if known is None:
                with ir.InsertionPoint(loop):
                    known = self._plus(total, value, factor)
                self.offsets[key, loop] = known
            total = known
        return total

    def _view(
        self, memref: Any, type_: Any, strides: tuple[int, ...], offset: Any, loop: Any
    ) -> Any:
        from polyblocks.mlir import ir

        key = (memref, offset, loop)
        view = self.views.get(key)
        if view is None:
            dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
            layout = ir.StridedLayoutAttr.get(dynamic, list(strides))
            result = ir.MemRefType.get(type_.shape, type_.element_type, layout, type_.memory_space)
            i64s = ir.DenseI64ArrayAttr.get
            with ir.InsertionPoint(loop):
                view = ir.Operation.create(
                    "memref.reinterpret_cast",
                    results=[result],
                    operands=[memref, offset],
                    attributes={
                        "static_offsets": i64s([dynamic]),
                        "static_sizes": i64s(list(type_.shape)),
                        "static_strides": i64s(list(strides)),
                        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 0, 0]),
                    },
                ).results[0]
            self.views[key] = view
        return view

    def _index(self, op: Any, terms: tuple[tuple[Any, int], ...], const: int) -> Any:
        from polyblocks.mlir import ir

        if not terms:
            return self._number(const)
        key = (op.block, terms, const)
        index = self.indices.get(key)
        if index is None:
            with ir.InsertionPoint(op):
                total: Any = None
                for value, factor in terms:
                    total = self._plus(total, value, factor)
                index = self._plus(total, self._number(const), 1) if const else total
            self.indices[key] = index
        return index

    def _plus(self, total: Any, value: Any, factor: int) -> Any:
        if factor != 1:
            value = _arith("arith.muli", value, self._number(factor))
        return value if total is None else _arith("arith.addi", total, value)

    def _number(self, number: int) -> Any:
        from polyblocks.mlir import ir

        found = self.numbers.get(number)
        if found is None:
            index = ir.IndexType.get()
            with ir.InsertionPoint.at_block_begin(self.op.regions[0].blocks[0]):
                found = ir.Operation.create(
                    "arith.constant",
                    results=[index],
                    attributes={"value": ir.IntegerAttr.get(index, number)},
                ).results[0]
            self.numbers[number] = found
        return found


def _arith(name: str, left: Any, right: Any) -> Any:
    from polyblocks.mlir import ir

    return ir.Operation.create(name, results=[left.type], operands=[left, right]).results[0]
