"""A kernel as a ``gpu.func``, and its launch in the place of the nest."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from polyblocks.affine.expr import Var
from polyblocks.affine.model import (
    Alloca,
    Buffer,
    For,
    Index,
    Load,
    LoadAt,
    Store,
    StoreAt,
    operands,
    walk,
)
from polyblocks.affine.views import VIEWS
from polyblocks.affine.writer import ESTIMATE_ATTRIBUTE, KIND_ATTRIBUTE, SOURCES_ATTRIBUTE
from polyblocks.codegen.gpu.atomics import AtomicAt
from polyblocks.codegen.gpu.banks import padded_shape
from polyblocks.codegen.gpu.code import Code
from polyblocks.codegen.gpu.combine import Joiner
from polyblocks.codegen.gpu.contraction import Operand, TiledKernel
from polyblocks.codegen.gpu.emit import Emitter
from polyblocks.codegen.gpu.emit_contraction import ContractionEmitter, tile_types
from polyblocks.codegen.gpu.kernel import Kernel, Place, Shared
from polyblocks.codegen.gpu.placement import own_turns
from polyblocks.mlir import ir

#: The module that holds the kernels.
MODULE = "kernels"
#: Made again in a kernel instead of being handed over.
_REPEATED = ("arith.constant", "complex.constant", "memref.get_global")


@dataclass
class Kernels:
    """The kernels of a program.

    Attributes:
        module: the program.
        kernels: its ``gpu.module``.
        names: names that are taken.
    """

    module: Any
    kernels: Any
    names: set[str] = field(default_factory=set)

    @classmethod
    def create(cls, module: Any) -> Kernels:
        """Add an empty ``gpu.module`` to a program."""
        module.operation.attributes["gpu.container_module"] = ir.UnitAttr.get()
        with ir.InsertionPoint.at_block_begin(module.body):
            op = ir.Operation.create(
                "gpu.module", attributes={"sym_name": ir.StringAttr.get(MODULE)}, regions=1
            )
            op.regions[0].blocks.append()
        return cls(module, op)

    def add(self, kernel: Kernel, before: Any) -> str:
        """Write a kernel, and its launch before an operation; returns its name."""
        name = self._unique(kernel.nest.name)
        passed = _Captures(kernel)
        arguments = list(passed.arguments)
        self._function(kernel, name, passed, arguments)
        self._launch(kernel, name, arguments, before)
        return name

    def _unique(self, wish: str) -> str:
        base = re.sub(r"[^A-Za-z0-9_]", "_", wish) or "kernel"
        if base[0].isdigit():
            base = f"k{base}"
        name, number = base, 0
        while name in self.names:
            number += 1
            name = f"{base}_{number}"
        self.names.add(name)
        return name

    def _function(self, kernel: Kernel, name: str, passed: _Captures, arguments: list[Any]) -> None:
        memory = _Memory(kernel)
        types = [v.type for v in arguments]
        with ir.InsertionPoint(self.kernels.regions[0].blocks[0]):
            op = ir.Operation.create(
                "gpu.func",
                attributes={
                    "sym_name": ir.StringAttr.get(name),
                    "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, [])),
                    "kernel": ir.UnitAttr.get(),
                    "known_block_size": ir.DenseI32ArrayAttr.get([kernel.threads, 1, 1]),
                    "known_grid_size": ir.DenseI32ArrayAttr.get([kernel.blocks, 1, 1]),
                    "workgroup_attributions": ir.IntegerAttr.get(
                        ir.IntegerType.get_signless(64), len(memory.workgroup)
                    ),
                    "arg_attrs": ir.ArrayAttr.get([passed.attributes(v) for v in arguments]),
                    **_description(kernel),
                },
                regions=1,
            )
        inside = [*types, *memory.workgroup, *memory.private]
        locations = [ir.Location.unknown()] * len(inside)
        block = op.regions[0].blocks.append(*inside, arg_locs=locations)
        values = list(block.arguments)
        with ir.InsertionPoint(block):
            code = Code(block)
            known = dict(zip(arguments, values, strict=False))
            passed.repeat(known, self._global)
            memrefs, scratch, near = memory.assign(values[len(arguments) :])
            for buffer in passed.buffers:
                memrefs[buffer] = known[buffer.value]
            given = (code, kernel, memrefs, known, scratch, near)
            if isinstance(kernel, TiledKernel):
                ContractionEmitter(*given, tiles=memory.tiles(values[len(arguments) :])).emit()
            else:
                Emitter(*given).emit()
            code.op("gpu.return", [])

    def _global(self, symbol: str) -> None:
        """Let the kernels' module have a constant of the program."""
        block = self.kernels.regions[0].blocks[0]
        if any(_symbol(op) == symbol for op in block.operations):
            return
        found = next(op for op in self.module.body.operations if _symbol(op) == symbol)
        with ir.InsertionPoint.at_block_begin(block):
            found.operation.clone()

    def _launch(self, kernel: Kernel, name: str, arguments: list[Any], before: Any) -> None:
        sizes = [kernel.blocks, 1, 1, kernel.threads, 1, 1]
        index = ir.IndexType.get()
        with ir.InsertionPoint(before):
            numbers = {
                n: ir.Operation.create(
                    "arith.constant",
                    results=[index],
                    attributes={"value": ir.IntegerAttr.get(index, n)},
                ).results[0]
                for n in dict.fromkeys(sizes)
            }
            segments = [0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, len(arguments), 0]
            symbol = ir.Attribute.parse(f"@{MODULE}::@{name}")
            ir.Operation.create(
                "gpu.launch_func",
                operands=[*(numbers[n] for n in sizes), *arguments],
                attributes={
                    "kernel": symbol,
                    "operandSegmentSizes": ir.DenseI32ArrayAttr.get(segments),
                },
            )


def _symbol(op: Any) -> str:
    attributes = op.operation.attributes
    return str(attributes["sym_name"].value) if "sym_name" in attributes else ""


def _description(kernel: Kernel) -> dict[str, Any]:
    """What a nest is and what it was made of, for reports."""
    nest = kernel.nest
    found: dict[str, Any] = {
        KIND_ATTRIBUTE: ir.StringAttr.get(nest.kind),
        SOURCES_ATTRIBUTE: ir.ArrayAttr.get([ir.StringAttr.get(s) for s in nest.sources]),
    }
    if nest.estimate is not None:
        found[ESTIMATE_ATTRIBUTE] = nest.estimate
    return found


class _Captures:
    """What a nest uses from around it.

    Attributes:
        buffers: buffers that are not of the nest itself.
        arguments: values to hand over: memory, and scalars that are no constants.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.buffers: list[Buffer] = []
        self.arguments: list[Any] = []
        self._repeated: list[Any] = []
        self._written: set[Any] = set()
        needed: dict[Any, None] = {}
        for node in walk(kernel.nest.body):
            values = [node.value, *node.index] if isinstance(node, AtomicAt) else operands(node)
            for value in values:
                if value.external is not None:
                    needed[value.external] = None
            for var in _variables(node):
                if var.value is not None:
                    needed[var.value] = None
            if not isinstance(node, (Load, LoadAt, Store, StoreAt, AtomicAt)):
                continue
            if node.buffer.kind != "local":
                if node.buffer not in self.buffers:
                    self.buffers.append(node.buffer)
                needed[node.buffer.value] = None
                if isinstance(node, (Store, StoreAt, AtomicAt)):
                    self._written.add(_root(node.buffer.value))
        for value in needed:
            self._take(value)

    def _take(self, value: Any) -> None:
        if value in self.arguments or value in self._repeated:
            return
        owner = value.owner
        if isinstance(owner, ir.Block):
            self.arguments.append(value)
        elif owner.operation.name in (*_REPEATED, *VIEWS):
            for operand in owner.operation.operands:
                self._take(operand)
            self._repeated.append(value)
        else:
            self.arguments.append(value)

    def repeat(self, known: dict[Any, Any], use_global: Any) -> None:
        """Make constants and views again at the current insertion point."""
        for value in self._repeated:
            op = value.owner.operation
            if op.name == "memref.get_global":
                use_global(ir.FlatSymbolRefAttr(op.attributes["name"]).value)
            new = op.clone()
            for position, operand in enumerate(op.operands):
                new.operands[position] = known[operand]
            known.update(zip(op.results, new.results, strict=True))

    def attributes(self, value: Any) -> Any:
        """What the code generator may know of an argument."""
        if not isinstance(value.type, ir.MemRefType):
            return ir.DictAttr.get({})
        # Arguments are whole arrays: no two of them overlap.
        found = {"llvm.noalias": ir.UnitAttr.get()}
        if value not in self._written and value in self.arguments:
            found["llvm.readonly"] = ir.UnitAttr.get()
        return ir.DictAttr.get(found)


def _root(value: Any) -> Any:
    """The memory that a view looks at."""
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in VIEWS:
        value = value.owner.operation.operands[0]
    return value


def _variables(node: Any) -> list[Var]:
    exprs: tuple[Any, ...] = ()
    if isinstance(node, (Load, Store)):
        exprs = node.index
    elif isinstance(node, Index):
        exprs = (node.expr,)
    elif isinstance(node, For):
        exprs = (*node.lower, *node.upper)
    return [v for e in exprs for v in e.variables()]


def _turns(kernel: Kernel, buffer: Buffer) -> int:
    """Elements of a buffer that one thread keeps."""
    return own_turns(kernel, list(kernel.uniform()), buffer)


class _Memory:
    """Buffers of a kernel itself: in workgroup memory, or of every thread.

    Attributes:
        workgroup: memref types in workgroup memory.
        private: memref types in each thread's memory.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.workgroup: list[Any] = []
        self.private: list[Any] = []
        self._buffers: list[Buffer] = []
        self._own: list[Buffer] = []
        self._operands: list[Operand] = []
        self._scratch: list[tuple[Shared, int]] = []
        shared_space = ir.Attribute.parse("#gpu.address_space<workgroup>")
        own_space = ir.Attribute.parse("#gpu.address_space<private>")
        for node in walk(kernel.body):
            if not isinstance(node, Alloca):
                continue
            buffer = node.buffer
            if kernel.places[buffer] is Place.WORKGROUP:
                around = [kernel.groups] if kernel.groups > 1 else []
                self.workgroup.append(
                    ir.MemRefType.get(
                        [*around, *padded_shape(kernel, buffer)],
                        buffer.element,
                        memory_space=shared_space,
                    )
                )
                self._buffers.append(buffer)
            else:
                own = kernel.places[buffer] is Place.OWN
                shape = [_turns(kernel, buffer)] if own else list(buffer.shape)
                self.private.append(
                    ir.MemRefType.get(shape, buffer.element, memory_space=own_space)
                )
                self._own.append(buffer)
        elements = Joiner(None, kernel, None, None).scratch()  # type: ignore[arg-type]
        for shared in kernel.shared.values():
            if shared.combiners and elements:
                for value in shared.loops[0].inits:
                    self.workgroup.append(
                        ir.MemRefType.get([elements], value.type, memory_space=shared_space)
                    )
                self._scratch.append((shared, len(shared.combiners)))
        self._copied = kernel.copied
        for buffer in kernel.copied:
            self.workgroup.append(
                ir.MemRefType.get(list(buffer.shape), buffer.element, memory_space=shared_space)
            )

        if isinstance(kernel, TiledKernel):
            self.workgroup.extend(tile_types(kernel, shared_space))
            self._operands = kernel.parts.operands

    def tiles(self, values: list[Any]) -> dict[Operand, Any]:
        """The memrefs of a contraction's operands; a kernel that has such has no other buffers."""
        return dict(zip(self._operands, values, strict=False))

    def assign(
        self, values: list[Any]
    ) -> tuple[dict[Buffer, Any], dict[Shared, list[Any]], dict[Buffer, Any]]:
        """The memrefs of buffers, of what each reduction joins its parts in, and of copies."""
        rest = iter(values)
        memrefs = {buffer: next(rest) for buffer in self._buffers}
        scratch = {shared: [next(rest) for _ in range(n)] for shared, n in self._scratch}
        near = {buffer: next(rest) for buffer in self._copied}
        memrefs.update({buffer: next(rest) for buffer in self._own})
        return memrefs, scratch, near
