"""align-vectors: vector accesses say how they are aligned."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any, ClassVar

from polyblocks import mlir
from polyblocks.affine.mlir.json_attributes import write_json
from polyblocks.attributes import ALIGNMENTS_ATTRIBUTE
from polyblocks.codegen.gpu.passes.place_shared_memory import workgroup_buffers
from polyblocks.codegen.gpu.plan import kernels, name_of, read_launches
from polyblocks.codegen.memory import VIEWS, element_bytes
from polyblocks.codegen.walk import nested
from polyblocks.errors import PassError
from polyblocks.mlir import constant_integer

#: Position of the memref and of its first index.
_ACCESSES = {"vector.load": (0, 1), "vector.store": (1, 2)}
#: The author of an access of another kind relies on it.
_ASSUMED = "memref.assume_alignment"
#: The workspace's buffers begin at multiples of this.
_WORKSPACE = 64


@dataclass(frozen=True)
class AlignVectorsPass:
    """Set the alignment of loads and stores of vectors as far as it can be proved.

    Without one they are aligned like an element, and a chip loads element by element. Indices are
    sums and products, so what divides them is known. That the program's arguments begin at
    multiples of a vector is what the launch has to see to: how much is relied on is noted.

    Before::

        %i = arith.muli %thread, %c4 : index
        %v = vector.load %x[%i] : memref<1024xf32, ...>, vector<4xf32>

    After::

        %v = vector.load %x[%i] {alignment = 16 : i64} : memref<1024xf32, ...>, vector<4xf32>
    """

    name: ClassVar[str] = "align-vectors"

    def run(self, module: Any, context: Any) -> bool:
        """Annotate the kernels in place; returns whether there were accesses of vectors."""
        ir = mlir.ir
        chip = context.target.multiprocessor
        widest = chip.access_bits // 8 if chip else 16
        launches = read_launches(module)
        needed: dict[int, int] = {}
        found = False
        with module.context:
            i64 = ir.IntegerType.get_signless(64)
            for kernel in kernels(module):
                rows = [r for r in launches if r["kernel"] == name_of(kernel)]
                facts = _Alignments(kernel, rows, widest)
                for op in list(nested(kernel)):
                    if op.name == _ASSUMED:
                        alignment = int(op.attributes["alignment"].value)
                        facts.check_base(op.operands[0], alignment)
                        for number in facts.arguments(op.operands[0]):
                            needed[number] = max(needed.get(number, 1), alignment)
                        op.results[0].replace_all_uses_with(op.operands[0])
                        op.erase()
                        continue
                    if op.name not in _ACCESSES:
                        continue
                    found = True
                    memref, first = _ACCESSES[op.name]
                    vector = op.results[0] if op.name == "vector.load" else op.operands[0]
                    alignment = facts.of_access(op.operands[memref], list(op.operands)[first:])
                    alignment = min(alignment, _bytes(vector.type), widest)
                    element = element_bytes(vector.type.element_type) or 1
                    if "alignment" in op.attributes or alignment <= element:
                        continue
                    op.attributes["alignment"] = ir.IntegerAttr.get(i64, alignment)
                    for number in facts.arguments(op.operands[memref]):
                        needed[number] = max(needed.get(number, 1), alignment)
        if needed:
            rows = [{"argument": n, "bytes": a} for n, a in sorted(needed.items())]
            write_json(module, ALIGNMENTS_ATTRIBUTE, rows)
        return found


class _Alignments:
    """Divisors of the addresses and indices of one kernel.

    Args:
        kernel: the ``gpu.func``.
        launches: those of the plan that run it.
        widest: bytes of the widest access, to which arguments are supposed to be aligned.
    """

    def __init__(self, kernel: Any, launches: list[dict[str, Any]], widest: int) -> None:
        block = kernel.regions[0].blocks[0]
        count = len(kernel.attributes["function_type"].value.inputs)
        self._widest = widest
        self._bases: dict[Any, int] = dict.fromkeys(workgroup_buffers(kernel), widest)
        self._numbers: dict[Any, set[int]] = {}
        self._divisors: dict[Any, int] = {}
        for i, argument in enumerate(list(block.arguments)[:count]):
            given = [row["arguments"][i] for row in launches]
            base = 0
            for place in given:
                if "workspace" in place:
                    base = gcd(base, _WORKSPACE, place["workspace"])
                elif "argument" in place:
                    base = gcd(base, widest, place.get("offset", 0))
                    self._numbers.setdefault(argument, set()).add(place["argument"])
            self._bases[argument] = base or 1

    def arguments(self, memref: Any) -> set[int]:
        """Numbers of the program's arguments that a memref may be in."""
        return self._numbers.get(_root(memref), set())

    def check_base(self, memref: Any, alignment: int) -> None:
        """Raise a PassError if a base pointer may be no multiple of ``alignment`` bytes."""
        known = self._base(memref)
        if known % alignment:
            raise PassError(
                "align-vectors",
                "S4",
                f"a copy needs memory aligned to {alignment} bytes, and its buffer begins at a "
                f"multiple of {known}",
            )

    def of_access(self, memref: Any, indices: list[Any]) -> int:
        """Bytes that the address of an element is a multiple of."""
        ir = mlir.ir
        strides, offset = memref.type.get_strides_and_offset()
        dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
        size = element_bytes(memref.type.element_type)
        if size is None or dynamic in strides or offset == dynamic:
            return 1
        divisor = offset
        for index, stride in zip(indices, strides, strict=True):
            divisor = gcd(divisor, stride * self.divisor(index))
        return gcd(self._base(memref), divisor * size) or self._widest

    def _base(self, memref: Any) -> int:
        """Bytes that a memref's base pointer is a multiple of."""
        if memref in self._bases:
            return self._bases[memref]
        owner = memref.owner
        if isinstance(owner, mlir.ir.Block):
            return 1
        op = owner.operation
        if op.name == "memref.view":
            return gcd(self._base(op.operands[0]), self.divisor(op.operands[1]))
        if op.name in VIEWS:
            return self._base(op.operands[0])
        return self._widest if op.name == "gpu.dynamic_shared_memory" else 1

    def divisor(self, value: Any) -> int:
        """The largest known divisor of an integer; 0 for zero, which everything divides."""
        if value not in self._divisors:
            self._divisors[value] = 1  # of a value that depends on itself
            self._divisors[value] = self._divisor(value)
        return self._divisors[value]

    def _divisor(self, value: Any) -> int:
        ir = mlir.ir
        owner = value.owner
        if isinstance(owner, ir.Block):
            loop = owner.owner.operation
            if loop.name == "scf.for" and value == owner.arguments[0]:
                return gcd(self.divisor(loop.operands[0]), self.divisor(loop.operands[2]))
            return 1
        op = owner.operation
        if op.name == "arith.constant":
            attribute = op.attributes["value"]
            return abs(attribute.value) if isinstance(attribute, ir.IntegerAttr) else 1
        if op.name in ("arith.addi", "arith.subi"):
            return gcd(*(self.divisor(v) for v in op.operands))
        if op.name in ("arith.ori", "arith.xori"):
            both = gcd(*(self.divisor(v) for v in op.operands))
            return both & -both
        if op.name in ("arith.minsi", "arith.maxsi", "arith.minui", "arith.maxui"):
            return gcd(*(self.divisor(v) for v in op.operands))
        if op.name == "arith.select":
            return gcd(*(self.divisor(v) for v in list(op.operands)[1:]))
        if op.name == "arith.muli":
            a, b = (self.divisor(v) for v in op.operands)
            return a * b
        if op.name in ("arith.index_cast", "arith.index_castui", "arith.extsi", "arith.extui"):
            return self.divisor(op.operands[0])
        by = constant_integer(op.operands[1]) if len(op.operands) == 2 else None
        if by is None or by < 0:
            return 1
        inner = self.divisor(op.operands[0])
        if op.name == "arith.shli" and by < 64:
            return inner << by
        if op.name in ("arith.remsi", "arith.remui"):
            return gcd(inner, by)
        if op.name in ("arith.divsi", "arith.divui") and by:
            return inner // by if inner % by == 0 else 1
        return 1


def _root(memref: Any) -> Any:
    while not isinstance(memref.owner, mlir.ir.Block) and memref.owner.operation.name in VIEWS:
        memref = memref.owner.operation.operands[0]
    return memref


def _bytes(vector: Any) -> int:
    """Bytes of a vector, down to a power of two."""
    size = element_bytes(vector.element_type) or 1
    for extent in vector.shape:
        size *= extent
    return 1 << (int(size).bit_length() - 1)
