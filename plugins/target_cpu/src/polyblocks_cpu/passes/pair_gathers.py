"""pair-gathers: lanes that load two neighbours from a place each load them as one number."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from polyblocks import mlir
from polyblocks.codegen.walk import nested

#: Of the LLVM dialect.
GATHER, _ADDRESS, _CONSTANT = (
    "llvm.intr.masked.gather",
    "llvm.getelementptr",
    "llvm.mlir.constant",
)
#: Operations with results that may write to memory; those without results may as well.
_WRITING = {"llvm.call", "llvm.atomicrmw", "llvm.cmpxchg", "llvm.inline_asm"}
#: Terms of a sum, beyond which it is taken for one number.
_MOST_TERMS = 8
#: A number and the values of a sum, with their factors.
_Sum = tuple[int, dict[Any, int]]


@dataclass(frozen=True)
class PairGathersPass:
    """Load lanes of twice the length where two gathers are one element apart.

    A gather takes its time for every lane, whether that has 32 bits or 64: 16 lanes of 32 take
    6.5 ns on Zen 4, and 16 lanes of 64 bits with the two shuffles that take them apart 7.0.

    Before::

        %p = llvm.getelementptr %x[%i] : (!llvm.ptr, vector<16xi32>) -> vector<16x!llvm.ptr>, f32
        %a = llvm.intr.masked.gather %p, %mask, %zero : ... -> vector<16xf32>
        %j = llvm.add %i, %one : vector<16xi32>
        %q = llvm.getelementptr %x[%j] : (!llvm.ptr, vector<16xi32>) -> vector<16x!llvm.ptr>, f32
        %b = llvm.intr.masked.gather %q, %mask, %zero : ... -> vector<16xf32>

    After::

        %w = llvm.intr.masked.gather %p, %mask, %zero64 {alignment = 4} : ... -> vector<16xi64>
        %f = llvm.bitcast %w : vector<16xi64> to vector<32xf32>
        %a = llvm.shufflevector %f, %f [0, 2, 4, ...] : vector<32xf32>
        %b = llvm.shufflevector %f, %f [1, 3, 5, ...] : vector<32xf32>
    """

    name: ClassVar[str] = "pair-gathers"

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite the module in place; returns whether there was a pair."""
        del context
        changed = False
        with module.context, mlir.ir.Location.unknown():
            for block in _blocks(module.operation):
                changed |= _Block().run(block)
        return changed


def _blocks(module: Any) -> list[Any]:
    """The blocks with gathers."""
    found: list[Any] = []
    for op in nested(module):
        if op.name == GATHER and op.block not in found:
            found.append(op.block)
    return found


@dataclass(frozen=True)
class _Gather:
    """A gather of numbers of 32 bits, at ``const`` elements behind a place."""

    op: Any
    address: Any
    const: int


@dataclass
class _Block:
    """The gathers of a block since memory was written, by all but the constant of their index."""

    sums: dict[Any, _Sum] = field(default_factory=dict)

    def run(self, block: Any) -> bool:
        waiting: dict[Any, list[_Gather]] = {}
        pairs: list[tuple[_Gather, _Gather]] = []
        for op in block.operations:
            op = op.operation
            if op.name in _WRITING or not len(op.results):
                waiting.clear()
            elif op.name == GATHER and (found := self._gather(op)) is not None:
                key, gather = found
                others = waiting.setdefault(key, [])
                match = next((o for o in others if abs(o.const - gather.const) == 1), None)
                if match is None:
                    others.append(gather)
                else:
                    others.remove(match)
                    pairs.append((match, gather))
        for first, second in pairs:
            _join(first, second)
        return bool(pairs)

    def _gather(self, op: Any) -> tuple[Any, _Gather] | None:
        pointers, mask, rest = op.operands
        type_ = op.results[0].type
        address = _maker(pointers)
        if address is None or address.name != _ADDRESS or len(address.operands) != 2:
            return None
        if str(type_.element_type) not in ("f32", "i32") or not _is_zero(rest):
            return None
        if str(address.attributes["elem_type"]) != f"{type_.element_type}":
            return None
        base, index = address.operands
        if not isinstance(index.type, mlir.ir.VectorType):
            return None
        const, terms = self._sum(index)
        key = base, mask, frozenset(terms.items()), str(type_), str(index.type)
        return key, _Gather(op, address, const)

    def _sum(self, value: Any) -> _Sum:
        """An index as a sum; it does not wrap around, since there is memory where it points."""
        if value not in self.sums:
            self.sums[value] = self._sum_of(value) or (0, {value: 1})
        return self.sums[value]

    def _sum_of(self, value: Any) -> _Sum | None:
        if (number := _splat(value)) is not None:
            return number, {}
        op = _maker(value)
        if op is None or op.name not in ("llvm.add", "llvm.sub", "llvm.mul", "llvm.shl"):
            return None
        left, right = (self._sum(v) for v in op.operands)
        if op.name in ("llvm.add", "llvm.sub"):
            return _plus(left, right, 1 if op.name == "llvm.add" else -1)
        if op.name == "llvm.mul" and not left[1]:
            left, right = right, left
        if right[1]:
            return None
        factor = right[0] if op.name == "llvm.mul" else 1 << right[0]
        return _plus((0, {}), left, factor)


def _plus(left: _Sum, right: _Sum, factor: int) -> _Sum | None:
    terms = dict(left[1])
    for value, times in right[1].items():
        terms[value] = terms.get(value, 0) + factor * times
    if len(terms) > _MOST_TERMS:
        return None
    return left[0] + factor * right[0], {v: n for v, n in terms.items() if n}


def _join(first: _Gather, second: _Gather) -> None:
    """Load both at the first one, where both places are known."""
    ir = mlir.ir
    op, (_, mask, _) = first.op, first.op.operands
    narrow = op.results[0].type
    (lanes,) = narrow.shape
    wide = ir.VectorType.get([lanes], ir.IntegerType.get_signless(64))
    both = ir.VectorType.get([2 * lanes], narrow.element_type)
    with op.location, ir.InsertionPoint(op):
        pointers = op.operands[0]
        if second.const < first.const:
            pointers = _before(first.address)
        zero = _constant(
            ir.DenseElementsAttr.get_splat(wide, ir.IntegerAttr.get(wide.element_type, 0))
        )
        loaded = ir.Operation.create(
            GATHER,
            results=[wide],
            operands=[pointers, mask, zero],
            attributes={"alignment": op.attributes["alignment"]},
        ).results[0]
        flat = ir.Operation.create("llvm.bitcast", results=[both], operands=[loaded]).results[0]
        parts = []
        for part in range(2):
            picked = ir.DenseI32ArrayAttr.get([2 * k + part for k in range(lanes)])
            parts.append(
                ir.Operation.create(
                    "llvm.shufflevector",
                    results=[narrow],
                    operands=[flat, flat],
                    attributes={"mask": picked},
                ).results[0]
            )
    low, high = (first, second) if first.const < second.const else (second, first)
    low.op.results[0].replace_all_uses_with(parts[0])
    high.op.results[0].replace_all_uses_with(parts[1])
    for gather in (first, second):
        gather.op.erase()


def _before(address: Any) -> Any:
    """The places one element in front of some others."""
    ir = mlir.ir
    base, index = address.operands
    one = ir.DenseElementsAttr.get_splat(
        index.type, ir.IntegerAttr.get(index.type.element_type, -1)
    )
    moved = ir.Operation.create(
        "llvm.add", results=[index.type], operands=[index, _constant(one)]
    ).results[0]
    return ir.Operation.create(
        _ADDRESS,
        results=[address.results[0].type],
        operands=[base, moved],
        attributes={n: address.attributes[n] for n in ("elem_type", "rawConstantIndices")},
    ).results[0]


def _constant(attribute: Any) -> Any:
    return mlir.ir.Operation.create(
        _CONSTANT, results=[attribute.type], attributes={"value": attribute}
    ).results[0]


def _maker(value: Any) -> Any:
    owner = value.owner
    return None if isinstance(owner, mlir.ir.Block) else owner.operation


def _splat(value: Any) -> int | None:
    """The number in all lanes of a constant vector of integers."""
    ir = mlir.ir
    op = _maker(value)
    if op is None or op.name != _CONSTANT:
        return None
    attribute = op.attributes["value"]
    if not isinstance(attribute, ir.DenseIntElementsAttr) or not attribute.is_splat:
        return None
    return int(attribute.get_splat_value().value)


def _is_zero(value: Any) -> bool:
    ir = mlir.ir
    op = _maker(value)
    if op is None:
        return False
    if op.name == "llvm.mlir.zero":
        return True
    attribute = op.attributes["value"] if op.name == _CONSTANT else None
    if not isinstance(attribute, ir.DenseElementsAttr) or not attribute.is_splat:
        return False
    return float(attribute.get_splat_value().value) == 0
