"""lower-group-units: descriptors of operands in shared memory, and calls of declared functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks import mlir
from polyblocks.codegen.gpu.plan import kernel_module, kernels
from polyblocks.codegen.walk import nested
from polyblocks_nvgpu.group_units import (
    ADDRESS_BITS,
    CALL,
    LINE,
    LINES,
    OPERAND,
    SHIFT,
    WAIT,
    WITH_REGISTERS,
    descriptor_bits,
    function_of,
    wait_of,
)


@dataclass(frozen=True)
class LowerGroupUnitsPass:
    """Calls of units that read shared memory get descriptors of their operands.

    Before::

        %r = llvm.call_intrinsic "llvm.polyblocks.wgmma.m64n256k16.f32.f16"(
               %a, %b, %false, %true, %c1024, %c8192, %sums...)

    After::

        %0 = llvm.ptrtoint %a : !llvm.ptr<3> to i32
        %1 = llvm.and %0, 0x3FFFF
        %2 = llvm.zext (llvm.lshr %1, 4) : i32 to i64
        %3 = llvm.or %2, layout
        ...
        %r = llvm.call @polyblocks.wgmma.m64n256k16.f32.f16.01(%sums..., %3, %4)

    Of a first operand in registers there is no descriptor, and sums that are constant zeros are no
    operands either.
    """

    name: ClassVar[str] = "lower-group-units"

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite the kernels in place; returns whether there were such calls."""
        del context
        found = False
        with module.context:
            for kernel in kernels(module):
                for op in list(nested(kernel)):
                    name = _intrinsic(op)
                    if name == WAIT:
                        found = True
                        pending, *sums = op.operands
                        name = wait_of(_number(pending), str(sums[0].type), len(sums))
                        _call(module, op, name, sums)
                    elif name.startswith(CALL):
                        found = True
                        _multiply(module, op, name)
        return found


def _intrinsic(op: Any) -> str:
    if op.name != "llvm.call_intrinsic":
        return ""
    return str(op.attributes["intrin"].value)


def _multiply(module: Any, op: Any, name: str) -> None:
    """Replace a call of a unit."""
    operands = list(op.operands)
    in_registers = name.startswith(WITH_REGISTERS)
    panels: tuple[bool | None, bool]
    if in_registers:
        second, by_columns, apart, *rest = operands
        given, sums = rest[:OPERAND], rest[OPERAND:]
        addresses, panels = [(second, apart)], (None, bool(_number(by_columns)))
    else:
        first, second, *layouts = operands[:6]
        given, sums = [], operands[6:]
        addresses = [(first, layouts[2]), (second, layouts[3])]
        panels = bool(_number(layouts[0])), bool(_number(layouts[1]))
    with op.location, mlir.ir.InsertionPoint(op):
        given += [_descriptor(pointer, _number(apart)) for pointer, apart in addresses]
    # Sums that begin are no operands: the unit takes zeros, and no register has to be set.
    new = all(map(_is_zero, sums))
    _call(module, op, function_of(name, panels, new), given if new else [*sums, *given])


def _is_zero(value: Any) -> bool:
    """Whether a value is the constant 0, and not -0: it would be a sum of zeros' sign."""
    if isinstance(value.owner, mlir.ir.Block) or value.owner.name != "llvm.mlir.constant":
        return False
    return str(value.owner.attributes["value"]) in (f"0.000000e+00 : {value.type}", "0 : i32")


def _descriptor(pointer: Any, leading: int) -> Any:
    """That of lines of 128 bytes, in groups of 8 of them, and panels ``leading`` bytes apart.

    Bytes behind a place are added to its descriptor, which calls of a tile have in common: shared
    memory ends before the bits of an address that a descriptor has.
    """
    ir = mlir.ir
    i32, i64 = (ir.IntegerType.get_signless(bits) for bits in (32, 64))

    def op(name: str, type_: Any, *operands: Any) -> Any:
        return ir.Operation.create(name, results=[type_], operands=list(operands)).results[0]

    def number(value: int, type_: Any) -> Any:
        attributes = {"value": ir.IntegerAttr.get(type_, value)}
        return ir.Operation.create(
            "llvm.mlir.constant", results=[type_], attributes=attributes
        ).result

    place, behind = _place(pointer)
    address = op("llvm.ptrtoint" if behind is None else "llvm.trunc", i32, place)
    address = op("llvm.and", i32, address, number(ADDRESS_BITS, i32))
    address = op("llvm.lshr", i32, address, number(SHIFT, i32))
    high, low = divmod(descriptor_bits(leading, LINES * LINE), 1 << 32)
    address = op("llvm.or", i32, address, number(low, i32))
    if behind:
        address = op("llvm.add", i32, address, number(behind >> SHIFT, i32))
    wide = op("llvm.zext", i64, address)
    return op("llvm.or", i64, wide, number(high << 32, i64))


def _place(pointer: Any) -> tuple[Any, int | None]:
    """A place (``i64``) and the bytes behind it at which a pointer is; None: the pointer itself."""
    if isinstance(pointer.owner, mlir.ir.Block) or pointer.owner.name != "llvm.inttoptr":
        return pointer, None
    place, behind = pointer.owner.operands[0], 0
    while not isinstance(place.owner, mlir.ir.Block) and place.owner.name == "llvm.add":
        first, second = place.owner.operands
        if isinstance(second.owner, mlir.ir.Block) or second.owner.name != "llvm.mlir.constant":
            break
        if (more := _number(second)) < 0 or more % (1 << SHIFT):
            break
        place, behind = first, behind + more
    return (place, behind) if str(place.type) == "i64" else (pointer, None)


def _call(module: Any, op: Any, name: str, operands: list[Any]) -> None:
    """Replace an op by a call of a declared function."""
    ir = mlir.ir
    (result,) = op.results
    _declare(module, name, [v.type for v in operands], result.type)
    with op.location, ir.InsertionPoint(op):
        made = ir.Operation.create(
            "llvm.call",
            results=[result.type],
            operands=operands,
            attributes={
                "callee": ir.FlatSymbolRefAttr.get(name),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
                "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
            },
        )
    result.replace_all_uses_with(made.results[0])
    op.erase()


def _declare(module: Any, name: str, types: list[Any], result: Any) -> None:
    ir = mlir.ir
    block = kernel_module(module).regions[0].blocks[0]
    for each in block.operations:
        attributes = each.operation.attributes
        if "sym_name" in attributes and attributes["sym_name"].value == name:
            return
    given = ", ".join(map(str, types))
    with ir.Location.unknown(), ir.InsertionPoint.at_block_begin(block):
        ir.Operation.create(
            "llvm.func",
            attributes={
                "sym_name": ir.StringAttr.get(name),
                "function_type": ir.TypeAttr.get(ir.Type.parse(f"!llvm.func<{result} ({given})>")),
                "linkage": ir.Attribute.parse("#llvm.linkage<external>"),
                "convergent": ir.UnitAttr.get(),
                "no_unwind": ir.UnitAttr.get(),
            },
            regions=1,
        )


def _number(value: Any) -> int:
    """A constant operand."""
    return int(value.owner.attributes["value"].value)
