"""extract-launches: ``@main`` becomes the launch plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks import signature
from polyblocks.affine.element import F32, F64, I1, I8, I16, I32, I64, INDEX
from polyblocks.codegen.gpu.host_program import Address, HostProgram, unsupported
from polyblocks.codegen.gpu.plan import kernel_module, kernels, name_of, write_launches

_BLOCK, _GRID = "known_block_size", "known_grid_size"
#: Types of numbers that kernels take -> dtypes in the launch plan.
_DTYPES = {INDEX.name: I64.array} | {t.name: t.array for t in (I1, I8, I16, I32, I64, F32, F64)}


@dataclass(frozen=True)
class ExtractLaunchesPass:
    """Execute ``@main`` on addresses and numbers, and keep what it launches as data.

    Loops of known length are unrolled into launches. Kernels learn the grid if all their launches
    have the same; constants of the program that are passed to kernels move into them. Neither
    ``@main`` nor kernels that nothing launches are left.

    Before::

        func.func @main(%x: memref<8xf32>, %ws: memref<64xi8> {polyblocks.arg = ...}) {
          %t = memref.view %ws[%c32][] : memref<64xi8> to memref<8xf32>
          gpu.launch_func @kernels::@neg blocks in (%c1, %c1, %c1) threads in (%c8, %c1, %c1)
              args(%x : memref<8xf32>, %t : memref<8xf32>)

    After::

        module attributes {polyblocks.launches = [{kernel = "neg", grid = [1, 1, 1],
            block = [8, 1, 1], arguments = [{argument = 0}, {workspace = 32}]}]}
    """

    name: ClassVar[str] = "extract-launches"

    def run(self, module: Any, context: Any) -> None:
        """Rewrite the module in place.

        Raises:
            UnsupportedError: ``@main`` does something that is not known before it runs.
            ValueError: a launch does not fit its kernel, or there is no ``@main``.
        """
        from polyblocks.mlir import ir

        del context
        main = signature.main_of(module)
        if "arg_attrs" not in main.operation.attributes:
            signature.infer(module)
        with module.context, ir.Location.unknown():
            plan = _Plan(module)
            addresses = _addresses(module, main)
            program = HostProgram(main.operation, addresses, lambda op: plan.add(op, program))
            program.run()
            plan.finish()
            signature.keep(module)
            main.operation.erase()
            # Kernels have copies of those that they read.
            for op in _globals(module.operation.regions[0]):
                op.operation.erase()
            write_launches(module, plan.launches)


def _addresses(module: Any, main: Any) -> dict[Any, Address]:
    """Where the arguments of ``@main`` are."""
    rows = signature.rows(module)
    return {
        argument: Address("workspace" if row["role"] == "workspace" else "argument", number)
        for number, (argument, row) in enumerate(
            zip(main.body.blocks[0].arguments, rows, strict=True)
        )
    }


class _Plan:
    """The launches so far."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._kernels = {name_of(op): op for op in kernels(module)}
        self._grids: dict[str, list[list[int]]] = {}
        self._constants: dict[tuple[str, int], set[str]] = {}
        self.launches: list[dict[str, Any]] = []

    def add(self, op: Any, program: HostProgram) -> None:
        """One ``gpu.launch_func``."""
        from polyblocks.mlir import ir

        name = _kernel_name(op)
        kernel = self._kernels[name]
        sizes = [int(s) for s in ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])]
        if sizes[0] or any(sizes[7:10]) or sizes[10]:
            raise unsupported(op, "a launch with dependences, clusters or dynamic memory", name)
        operands = list(op.operands)
        grid, block = ([_size(program.value(v)) for v in operands[k : k + 3]] for k in (0, 3))
        known = kernel.attributes.get(_BLOCK, None)
        if known is None:
            kernel.attributes[_BLOCK] = ir.DenseI32ArrayAttr.get(block)
        elif list(known) != block:
            raise ValueError(
                f"kernel '{name}' is for blocks of {list(known)}, and launched with {block}"
            )
        if 0 in grid:
            return
        self._grids.setdefault(name, []).append(grid)
        row: dict[str, Any] = {"kernel": name, "grid": grid, "block": block}
        row["arguments"] = []
        for i, operand in enumerate(operands[6 : 6 + sizes[11]]):
            value = program.value(operand)
            if not isinstance(value, Address):
                row["arguments"].append({"value": value, "dtype": _dtype(op, operand, name)})
                continue
            if value.kind == "constant":
                self._constants.setdefault((name, i), set()).add(value.name)
                row["arguments"].append({"constant": value.name})
            elif value.kind == "argument":
                offset = {"offset": value.offset} if value.offset else {}
                row["arguments"].append({"argument": value.number, **offset})
            else:
                row["arguments"].append({"workspace": value.offset})
        self.launches.append(row)

    def finish(self) -> None:
        """Tell kernels what is known of all their launches."""
        from polyblocks.mlir import ir

        for name, kernel in self._kernels.items():
            grids = self._grids.get(name)
            if grids is None:
                kernel.erase()
            elif all(grid == grids[0] for grid in grids):
                kernel.attributes[_GRID] = ir.DenseI32ArrayAttr.get(grids[0])
            elif _GRID in kernel.attributes:
                del kernel.attributes[_GRID]
        for name, i in sorted(self._constants, reverse=True):
            names = self._constants[name, i]
            if len(names) > 1:
                raise ValueError(f"kernel '{name}' gets different constants as argument {i}")
            self._sink_constant(name, i, names.pop())

    def _sink_constant(self, name: str, position: int, symbol: str) -> None:
        """Let the kernel read a ``memref.global`` itself instead of getting its address."""
        from polyblocks.mlir import dialect, ir

        kernel = self._kernels[name]
        holder = kernel_module(self._module)
        present = {o.operation.attributes["sym_name"].value for o in _globals(holder.regions[0])}
        if symbol not in present:
            for op in _globals(self._module.operation.regions[0]):
                if op.operation.attributes["sym_name"].value == symbol:
                    first = holder.regions[0].blocks[0].operations[0]
                    op.operation.clone(ip=ir.InsertionPoint(first))
        block = kernel.regions[0].blocks[0]
        argument = block.arguments[position]
        with ir.InsertionPoint.at_block_begin(block):
            read = dialect("memref").GetGlobalOp(argument.type, symbol).result
        argument.replace_all_uses_with(read)
        block.erase_argument(position)
        drop_argument(kernel, position)
        for row in self.launches:
            if row["kernel"] == name:
                del row["arguments"][position]


def drop_argument(kernel: Any, position: int) -> None:
    """Take an argument out of the type and the attributes of a ``gpu.func``."""
    from polyblocks.mlir import ir

    old = kernel.attributes["function_type"].value
    inputs = [t for i, t in enumerate(old.inputs) if i != position]
    kernel.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, old.results))
    if "arg_attrs" in kernel.attributes:
        attributes = list(ir.ArrayAttr(kernel.attributes["arg_attrs"]))
        del attributes[position]
        kernel.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)


def _globals(region: Any) -> list[Any]:
    return [op for op in region.blocks[0].operations if op.operation.name == "memref.global"]


def _kernel_name(op: Any) -> str:
    text = str(op.attributes["kernel"])
    return text.rpartition("@")[2].strip('"')


def _size(value: int | float | Address) -> int:
    assert isinstance(value, int), "MLIR verifies that sizes of a launch have type index"
    return value


def _dtype(op: Any, operand: Any, kernel: str) -> str:
    found = _DTYPES.get(str(operand.type))
    if found is None:
        raise unsupported(op, f"an argument of type {operand.type}", kernel)
    return found
