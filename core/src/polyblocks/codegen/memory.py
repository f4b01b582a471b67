"""Which memory a memref is: its root, its byte range, and whether two memrefs may overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from polyblocks.attributes import COPY, MULTIPLY

#: Ops that make a memref of another one (operand 0) without new memory.
VIEWS = frozenset(
    {
        "builtin.unrealized_conversion_cast",
        "memref.assume_alignment",
        "memref.cast",
        "memref.collapse_shape",
        "memref.expand_shape",
        "memref.memory_space_cast",
        "memref.reinterpret_cast",
        "memref.subview",
        "memref.transpose",
        "memref.view",
    }
)

_READERS = frozenset(
    {"affine.load", "memref.load", "memref.prefetch", "vector.load", "vector.maskedload"}
)
#: How ops begin that have no memref operands, and no regions: most ops are of these.
WITHOUT_MEMORY = (
    *("arith.", "math.", "affine.apply"),
    *(f"vector.{name}" for name in ("bitcast", "broadcast", "extract", "insert", "shuffle")),
)
#: Writers whose memref is operand 1, after the value.
_WRITERS = frozenset({"affine.store", "memref.store", "vector.store"})
#: Ops that store a value.
STORES = _WRITERS | {"vector.maskedstore"}


@dataclass(frozen=True)
class Extent:
    """A piece of memory: the value that owns it, and bytes [begin, end) if they are known."""

    root: Any
    begin: int | None = None
    end: int | None = None

    def overlaps(self, other: Extent) -> bool:
        """Whether both may share a byte; different roots are different memory."""
        if self.root != other.root:
            return False
        if None in (self.begin, self.end, other.begin, other.end):
            return True
        return bool(self.begin < other.end and other.begin < self.end)  # type: ignore[operator]


def extent_of(value: Any) -> Extent:
    """Follow views to the owner of the memory of a memref value."""
    begin: int | None = None
    end: int | None = None
    known = False
    while True:
        op = _defining_op(value)
        if op is None or op.name not in VIEWS:
            return Extent(value, begin, end) if known else Extent(value)
        if op.name == "memref.view":
            shift = constant_index(op.operands[1])
            size = static_bytes(value.type)
            if shift is None or size is None:
                known = False
            else:
                begin, end, known = shift, shift + size, True
        value = op.operands[0]


def static_bytes(type_: Any) -> int | None:
    """Bytes from the first to past the last element of a static memref, None if not static."""
    from polyblocks.mlir import ir

    memref = ir.MemRefType(type_)
    if not memref.has_static_shape:
        return None
    strides, offset = memref.get_strides_and_offset()
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    if offset == dynamic or dynamic in strides:
        return None
    size = element_bytes(memref.element_type)
    if size is None:
        return None
    if 0 in memref.shape:
        return 0
    return size * (
        offset + 1 + sum((e - 1) * s for e, s in zip(memref.shape, strides, strict=True))
    )


def element_bytes(type_: Any) -> int | None:
    """Bytes of one element in memory; None for a type that has no fixed size here."""
    from polyblocks.mlir import ir

    if isinstance(type_, ir.ComplexType):
        part = element_bytes(ir.ComplexType(type_).element_type)
        return None if part is None else 2 * part
    if isinstance(type_, ir.IntegerType):
        return (ir.IntegerType(type_).width + 7) // 8
    if isinstance(type_, ir.FloatType):
        return (ir.FloatType(type_).width + 7) // 8
    return None


def constant_index(value: Any) -> int | None:
    """The value of an ``arith.constant`` of index type, None for anything else."""
    from polyblocks.mlir import ir

    op = _defining_op(value)
    if op is None or op.name != "arith.constant":
        return None
    return int(ir.IntegerAttr(op.attributes["value"]).value)


def written_operands(op: Any) -> Sequence[Any]:
    """Memref operands of one op that it may write; an op that is not known writes all of them."""
    from polyblocks.mlir import ir

    name = op.name
    if name in _WRITERS or name in ("memref.copy", COPY):
        return (op.operands[1],)
    if name in _READERS or name in VIEWS or name.startswith(WITHOUT_MEMORY):
        return ()
    if name == "vector.maskedstore":
        return (op.operands[0],)
    if name == MULTIPLY:
        return (op.operands[2],)
    return [v for v in op.operands if isinstance(v.type, ir.MemRefType)]


def _defining_op(value: Any) -> Any:
    from polyblocks.mlir import ir

    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation
