"""place-shared-memory: large shared buffers of a kernel are asked for by the launch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks import mlir
from polyblocks.attributes import SHARED_ALIGNMENT_ATTRIBUTE
from polyblocks.codegen.gpu.host_program import unsupported
from polyblocks.codegen.gpu.passes.assign_memory_spaces import WORKGROUP
from polyblocks.codegen.gpu.plan import kernels, name_of, read_launches, write_launches
from polyblocks.codegen.memory import static_bytes

#: Alignment of shared buffers, in bytes, unless a kernel asks for more: of the widest access.
ALIGNMENT = 16


@dataclass(frozen=True)
class PlaceSharedMemoryPass:
    """Align the shared buffers of kernels for the widest accesses, and see that they fit.

    Declared shared memory is limited (``multiprocessor.shared_per_block``). If all buffers together
    are larger, they become views of one buffer whose size the plan's launches give.

    Before::

        gpu.func @k() workgroup(%s : memref<32768xf32, #gpu.address_space<workgroup>>) kernel

    After::

        gpu.func @k() kernel {
          %all = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
          %s = memref.view %all[%c0][] : ... to memref<32768xf32, #gpu.address_space<workgroup>>
    """

    name: ClassVar[str] = "place-shared-memory"

    def run(self, module: Any, context: Any) -> None:
        """Rewrite the kernels and the plan in place.

        Raises:
            UnsupportedError: a kernel needs more shared memory than a block can have.
        """
        ir = mlir.ir
        chip = context.target.multiprocessor
        static = chip.shared_per_block if chip else 0
        most = max(static, chip.shared_per_block_optin) if chip else 0
        sizes: dict[str, int] = {}
        with module.context, ir.Location.unknown():
            for kernel in kernels(module):
                alignment = shared_alignment(kernel)
                offsets, total = offsets_of([b.type for b in workgroup_buffers(kernel)], alignment)
                if chip and total > most:
                    what = f"{total} bytes of shared memory, where a block has at most {most},"
                    raise unsupported(kernel, what, name_of(kernel))
                dynamic = total if chip and total > static else 0
                if dynamic:
                    _use_dynamic(kernel, offsets)
                elif offsets:
                    bytes_ = ir.IntegerAttr.get(_integer(64), alignment)
                    aligned = [ir.DictAttr.get({"llvm.align": bytes_})] * len(offsets)
                    kernel.attributes["workgroup_attrib_attrs"] = ir.ArrayAttr.get(aligned)
                sizes[name_of(kernel)] = dynamic
        launches = read_launches(module)
        for row in launches:
            row["shared_bytes"] = sizes[row["kernel"]]
        write_launches(module, launches)


def workgroup_buffers(kernel: Any) -> list[Any]:
    """The block arguments of a ``gpu.func`` that are its shared buffers."""
    ir = mlir.ir
    if "workgroup_attributions" not in kernel.attributes:
        return []
    first = len(kernel.attributes["function_type"].value.inputs)
    count = ir.IntegerAttr(kernel.attributes["workgroup_attributions"]).value
    return list(kernel.regions[0].blocks[0].arguments)[first : first + count]


def shared_alignment(kernel: Any) -> int:
    """The alignment of the shared buffers of a kernel, in bytes."""
    if SHARED_ALIGNMENT_ATTRIBUTE not in kernel.attributes:
        return ALIGNMENT
    return max(ALIGNMENT, int(kernel.attributes[SHARED_ALIGNMENT_ATTRIBUTE].value))


def offsets_of(types: list[Any], alignment: int) -> tuple[list[int], int]:
    """Where shared buffers of these types lie one behind the other, and the bytes of all."""
    offsets = []
    total = 0
    for type_ in types:
        size = static_bytes(type_)
        if size is None:
            raise ValueError(f"a shared buffer has a static size, not {type_}")
        offsets.append(total)
        total += -(-size // alignment) * alignment
    return offsets, total


def _use_dynamic(kernel: Any, offsets: list[int]) -> None:
    ir = mlir.ir
    arith, memref = mlir.dialect("arith"), mlir.dialect("memref")
    block = kernel.regions[0].blocks[0]
    buffers = workgroup_buffers(kernel)
    i8 = _integer(8)
    unknown = ir.ShapedType.get_dynamic_size()
    bytes_ = ir.MemRefType.get([unknown], i8, memory_space=ir.Attribute.parse(WORKGROUP))
    with ir.InsertionPoint.at_block_begin(block):
        all_ = ir.Operation.create("gpu.dynamic_shared_memory", results=[bytes_]).result
        views = []
        for buffer, offset in zip(buffers, offsets, strict=True):
            shift = arith.ConstantOp(ir.IndexType.get(), offset)
            views.append(memref.ViewOp(buffer.type, all_, shift, []).result)
    first = len(kernel.attributes["function_type"].value.inputs)
    for buffer, view in zip(buffers, views, strict=True):
        buffer.replace_all_uses_with(view)
    for _ in buffers:
        block.erase_argument(first)
    kernel.attributes["workgroup_attributions"] = ir.IntegerAttr.get(_integer(64), 0)


def _integer(width: int) -> Any:
    return mlir.ir.IntegerType.get_signless(width)
