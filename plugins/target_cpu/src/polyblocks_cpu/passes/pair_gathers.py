"""pair-gathers: two gathers of neighbouring elements are one gather of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.vectors.vector_ops import shuffle
from polyblocks.codegen.straight_line import is_straight_line, is_write
from polyblocks.codegen.walk import nested
from polyblocks.mlir import ir

#: Bits of the elements that are gathered as pairs: instructions gather 32 and 64 bits.
_BITS = 32
#: What may stand between two gathers besides arithmetic and loads.
_HARMLESS = ("vector.extract", "vector.insert", "vector.bitcast", "memref.reinterpret_cast")


@dataclass(frozen=True)
class PairGathersPass:
    """Gather what lies side by side in memory at once, and take the pairs apart.

    What interpolates in a table reads two neighbours. A gather loads element by element, in about
    the same time whether these have 32 bits or 64: on Zen 4, 16 floats took 6.0 ns, 16 pairs
    6.2 ns, and the two shuffles that take the pairs apart hardly anything.

    Before::

        %a = vector.gather %t[%c0] [%i], %mask, %zero : ... into vector<16xf32>
        %k = arith.addi %i, %ones : vector<16xi32>
        %b = vector.gather %t[%c0] [%k], %mask, %zero : ... into vector<16xf32>

    After::

        %places = llvm.getelementptr %pointer[%i] : (!llvm.ptr, vector<16xi32>) -> ..., f32
        %pairs = llvm.intr.masked.gather %places, %mask, %zero : ... -> vector<16xi64>
        %both = vector.bitcast %pairs : vector<16xi64> to vector<32xf32>
        %a = vector.shuffle %both, %both [0, 2, ...]
        %b = vector.shuffle %both, %both [1, 3, ...]
    """

    name: ClassVar[str] = "pair-gathers"

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite the module in place; returns whether there was anything to do."""
        del context
        with module.context, ir.Location.unknown():
            return _run(module)


def _run(module: Any) -> bool:
    found: dict[Any, list[Any]] = {}
    for op in nested(module.operation):
        if op.name == "vector.gather" and _is_simple(op):
            found.setdefault(op.block, []).append(op)
    changed = False
    for block, gathers in found.items():
        runs = _runs(block) if len(gathers) > 1 else {}
        while len(gathers) > 1:
            first = gathers.pop(0)
            beside = {1, -1}
            alike = (g for g in gathers if runs[g] == runs[first])
            partner = next((g for g in alike if _distance(first, g) in beside), None)
            if partner is not None:
                gathers.remove(partner)
                _pair(first, partner, _distance(first, partner) == 1)
                changed = True
    return changed


def _runs(block: Any) -> dict[Any, int]:
    """The gathers of a block; those with the same number have no write between them."""
    number, found = 0, {}
    for op in block.operations:
        op = op.operation
        if op.name == "vector.gather":
            found[op] = number
        elif is_write(op) or not is_straight_line(op):
            number += op.name not in _HARMLESS
    return found


def _is_simple(op: Any) -> bool:
    """Whether it loads elements of 32 bits of a row, and zeros where it does not."""
    memref = ir.MemRefType(op.operands[0].type)
    if memref.rank != 1 or memref.memory_space is not None:
        return False
    strides, offset = memref.get_strides_and_offset()
    element = memref.element_type
    bits = getattr(element, "width", 0)
    return strides == [1] and offset == 0 and bits == _BITS and _is_zero(op.operands[-1])


def _is_zero(value: Any) -> bool:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return False
    number = ir.DenseElementsAttr(owner.attributes["value"])
    if not number.is_splat:
        return False
    return bool(number.get_splat_value().value == 0)


def _distance(first: Any, second: Any) -> int | None:
    """How many elements the places of one gather are behind those of another one.

    None if that differs from lane to lane, or they load of different arrays or in different lanes.
    """
    if [*first.operands[:2], *first.operands[3:]] != [*second.operands[:2], *second.operands[3:]]:
        return None
    if first.results[0].type != second.results[0].type:
        return None
    if first.operands[2].type != second.operands[2].type:
        return None
    (terms, number), (others, other) = (_form(g.operands[2]) for g in (first, second))
    return other - number if terms == others else None


def _form(value: Any) -> tuple[dict[Any, int], int]:
    """Values that are added up, how often each, and a number."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return {value: 1}, 0
    if owner.name == "arith.constant":
        numbers = ir.DenseElementsAttr(owner.attributes["value"])
        if numbers.is_splat:
            return {}, numbers.get_splat_value().value
    if owner.name != "arith.addi":
        return {value: 1}, 0
    (terms, number), (others, other) = (_form(v) for v in owner.operands)
    return {v: terms.get(v, 0) + others.get(v, 0) for v in (*terms, *others)}, number + other


def _pair(first: Any, second: Any, upwards: bool) -> None:
    """Replace two gathers, the first of which is at the lower place if ``upwards``.

    The pairs are gathered in the place of the first one: where it runs the second one does too, so
    that both of its elements are there.
    """
    memref, offset, index, mask, _ = first.operands
    vector = ir.VectorType(first.results[0].type)
    (lanes,), element = vector.shape, vector.element_type
    i64 = ir.IntegerType.get_signless(64)
    pair, both = ir.VectorType.get([lanes], i64), ir.VectorType.get([2 * lanes], element)
    with first.location, ir.InsertionPoint(first):
        if not upwards:
            index = _op("arith.addi", index.type, index, _splat(index.type, -1))
        pointers = _places(memref, offset, index, lanes, element)
        alignment = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), _BITS // 8)
        pairs = _op(
            *("llvm.intr.masked.gather", pair, pointers, mask, _splat(pair, 0)), alignment=alignment
        )
        flat = _op("vector.bitcast", both, pairs)
        parts = [shuffle(flat, flat, list(range(part, 2 * lanes, 2))) for part in (0, 1)]
    for op, value in zip((first, second) if upwards else (second, first), parts, strict=True):
        op.results[0].replace_all_uses_with(value)
        op.erase()


def _places(memref: Any, offset: Any, index: Any, lanes: int, element: Any) -> Any:
    """The address of each lane's element."""
    pointer, i64 = ir.Type.parse("!llvm.ptr"), ir.IntegerType.get_signless(64)
    start = _op("memref.extract_aligned_pointer_as_index", ir.IndexType.get(), memref)
    start = _op("llvm.inttoptr", pointer, _op("arith.index_cast", i64, start))
    dynamic = ir.DenseI32ArrayAttr.get([-(1 << 31)])
    typed = {"rawConstantIndices": dynamic, "elem_type": ir.TypeAttr.get(element)}
    row = _op("llvm.getelementptr", pointer, start, _op("arith.index_cast", i64, offset), **typed)
    return _op(
        "llvm.getelementptr", ir.Type.parse(f"vector<{lanes}x!llvm.ptr>"), row, index, **typed
    )


def _op(name: str, result: Any, *operands: Any, **attributes: Any) -> Any:
    made = ir.Operation.create(
        name, results=[result], operands=list(operands), attributes=attributes
    )
    return made.results[0]


def _splat(type_: Any, number: int) -> Any:
    attribute = ir.IntegerAttr.get(ir.VectorType(type_).element_type, number)
    return _op("arith.constant", type_, value=ir.DenseElementsAttr.get_splat(type_, attribute))
