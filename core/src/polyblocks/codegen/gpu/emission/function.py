"""A kernel as a ``gpu.func``, and its launch, which replaces the nest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from polyblocks.affine.gpu.plans.group_chains import GroupChainPlan
from polyblocks.affine.gpu.plans.group_units import GroupUnitPlan
from polyblocks.affine.gpu.plans.kernel import Kernel
from polyblocks.affine.gpu.schedule import unique_name
from polyblocks.affine.mlir.views import VIEWS
from polyblocks.affine.model import AnyStore, Node, program_buffers, walk
from polyblocks.attributes import (
    CLUSTER_ATTRIBUTE,
    ESTIMATE_ATTRIBUTE,
    KIND_ATTRIBUTE,
    RESIDENT_ATTRIBUTE,
    SHARED_ALIGNMENT_ATTRIBUTE,
    SOURCES_ATTRIBUTE,
    UNIT_ATTRIBUTE,
)
from polyblocks.codegen.gpu.emission.bodies import Body, body_of, emit_nest
from polyblocks.codegen.gpu.emission.code import Code
from polyblocks.codegen.gpu.emission.loads import Changes, Loads, is_inside, root
from polyblocks.codegen.gpu.emission.region import RegionKernel
from polyblocks.mlir import ir

#: The module that holds the kernels.
MODULE = "kernels"
#: Made again in a kernel instead of being handed over.
_REPEATED = (
    *("arith.constant", "complex.constant"),
    *("memref.extract_strided_metadata", "memref.get_global"),
)


@dataclass
class Kernels:
    """The kernels of a program.

    Attributes:
        module: the program.
        kernels: its ``gpu.module``.
        names: names that are taken.
        changes: what the launches so far change.
    """

    module: Any
    kernels: Any
    names: set[str] = field(default_factory=set)
    changes: Changes = field(default_factory=Changes)

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

    def add(self, kernel: Kernel, before: Any, name: str, resident: int) -> str:
        """Write a kernel, and its launch before an operation; returns its name.

        Args:
            kernel: what to write.
            before: the operation.
            name: of the function.
            resident: blocks of it per multiprocessor.
        """
        passed = Captures([kernel.nest.body], kernel.nest.source[0], self.changes)
        body = body_of(kernel)
        sizes = (kernel.plan.blocks, kernel.plan.threads)
        described = {**_description(kernel), RESIDENT_ATTRIBUTE: _number(resident)}
        emit = partial(emit_nest, kernel, body)
        return self._write(name, passed, [body], sizes, described, before, emit)

    def add_region(self, kernel: RegionKernel, before: Any, name: str) -> str:
        """As :meth:`add`, for a loop or branch that one block of threads runs."""
        passed = Captures(
            [nest.body for nest in kernel.nests],
            before,
            self.changes,
            kernel.operands,
            kernel.op,
            kernel.stored,
        )
        sizes = (1, kernel.threads)
        described = {**kernel.description(), RESIDENT_ATTRIBUTE: _number(1)}
        return self._write(name, passed, kernel.memories, sizes, described, before, kernel.emit)

    def _write(
        self,
        requested: str,
        passed: Captures,
        memories: list[Body],
        sizes: tuple[int, int],
        description: dict[str, Any],
        before: Any,
        emit: Callable[[Code, dict[Any, Any], list[Any]], None],
    ) -> str:
        """A kernel, and its launch before an operation; returns its name.

        ``emit`` writes the body: with the kernel's values of what is handed over and repeated, and
        all shared memory, then all private memory, in the order of ``memories``.
        """
        name = unique_name(requested, self.names)
        op = self._create(name, passed, memories, sizes, description)
        block = op.regions[0].blocks[0]
        values = list(block.arguments)
        count = len(passed.arguments)
        with ir.InsertionPoint(block):
            code = Code(block)
            known = dict(zip(passed.arguments, values[:count], strict=True))
            passed.repeat(known, self._global)
            emit(code, known, values[count:])
            code.op("gpu.return", [])
        launch = self._launch(sizes, name, passed.arguments, before)
        self.changes.launch(launch, passed.stored_arguments())
        return name

    def _create(
        self,
        name: str,
        passed: Captures,
        memories: list[Body],
        sizes: tuple[int, int],
        description: dict[str, Any],
    ) -> Any:
        """An empty kernel: its arguments come first, then all shared memory, then private."""
        types = [v.type for v in passed.arguments]
        workgroup = [t for memory in memories for t in memory.workgroup]
        private = [t for memory in memories for t in memory.private]
        blocks, threads = sizes
        with ir.InsertionPoint(self.kernels.regions[0].blocks[0]):
            op = ir.Operation.create(
                "gpu.func",
                attributes={
                    "sym_name": ir.StringAttr.get(name),
                    "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, [])),
                    "kernel": ir.UnitAttr.get(),
                    "known_block_size": ir.DenseI32ArrayAttr.get([threads, 1, 1]),
                    "known_grid_size": ir.DenseI32ArrayAttr.get([blocks, 1, 1]),
                    "workgroup_attributions": ir.IntegerAttr.get(
                        ir.IntegerType.get_signless(64), len(workgroup)
                    ),
                    "arg_attrs": ir.ArrayAttr.get([passed.attributes(v) for v in passed.arguments]),
                    **description,
                },
                regions=1,
            )
        inside = [*types, *workgroup, *private]
        op.regions[0].blocks.append(*inside, arg_locs=[ir.Location.unknown()] * len(inside))
        return op

    def _global(self, symbol: str) -> None:
        """Let the kernels' module have a constant of the program."""
        block = self.kernels.regions[0].blocks[0]
        if any(_symbol(op) == symbol for op in block.operations):
            return
        found = next(op for op in self.module.body.operations if _symbol(op) == symbol)
        with ir.InsertionPoint.at_block_begin(block):
            found.operation.clone()

    def _launch(
        self, extents: tuple[int, int], name: str, arguments: list[Any], before: Any
    ) -> Any:
        sizes = [extents[0], 1, 1, extents[1], 1, 1]
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
            return ir.Operation.create(
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


def _number(n: int) -> Any:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), n)


def _description(kernel: Kernel) -> dict[str, Any]:
    """The kind and the sources of a nest, for reports."""
    nest = kernel.nest
    found: dict[str, Any] = {
        KIND_ATTRIBUTE: ir.StringAttr.get(nest.kind),
        SOURCES_ATTRIBUTE: ir.ArrayAttr.get([ir.StringAttr.get(s) for s in nest.sources]),
    }
    if nest.estimate is not None:
        found[ESTIMATE_ATTRIBUTE] = nest.estimate
    if isinstance(kernel.plan, (GroupUnitPlan, GroupChainPlan)):
        found[SHARED_ALIGNMENT_ATTRIBUTE] = _number(kernel.plan.alignment)
        if isinstance(kernel.plan, GroupUnitPlan) and kernel.plan.cluster_blocks > 1:
            found[CLUSTER_ATTRIBUTE] = _number(kernel.plan.cluster_blocks)
    if unit := kernel.plan.decision().get("unit"):
        found[UNIT_ATTRIBUTE] = ir.StringAttr.get(unit)
    return found


class Captures:
    """The values that a nest uses from around it.

    Attributes:
        arguments: values to hand over: memory, and scalars that only the host knows.
    """

    def __init__(
        self,
        bodies: list[list[Node]],
        before: Any,
        changes: Changes,
        more: Iterable[Any] = (),
        region: Any = None,
        stored: Iterable[Any] = (),
    ) -> None:
        """Find them.

        Args:
            bodies: the nests.
            before: the operation in whose place the kernel is launched.
            changes: what happens before it.
            more: values that are used besides.
            region: what is defined in this operation is there already.
            stored: memory that is stored to besides.
        """
        self._region = region
        self.arguments: list[Any] = []
        self._repeated: list[Any] = []
        self._taken: set[Any] = set()
        self._written: set[Any] = set(stored)
        needed: dict[Any, None] = dict.fromkeys(more)
        for node in (node for body in bodies for node in walk(body)):
            for value in node.uses:
                if value.external is not None:
                    needed[value.external] = None
            for var in node.variables():
                if var.value is not None:
                    needed[var.value] = None
            if isinstance(node, AnyStore) and node.buffer.kind != "local":
                self._written.add(root(node.buffer.value))
        needed.update((buffer.value, None) for body in bodies for buffer in program_buffers(body))
        self._loads = Loads(before, changes, self._written)
        for value in needed:
            self._take(value)

    def stored_arguments(self) -> list[Any]:
        """The arguments that the kernel stores to."""
        return [value for value in self.arguments if value in self._written]

    def _take(self, value: Any) -> None:
        if value in self._taken:
            return
        self._taken.add(value)
        if self._region is not None and is_inside(value, self._region):
            return
        owner = value.owner
        if isinstance(owner, ir.Block):
            self.arguments.append(value)
        elif owner.operation.name in (*_REPEATED, *VIEWS) or self._loads.repeatable(value):
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
        """The attributes of an argument for the code generator."""
        if not isinstance(value.type, ir.MemRefType):
            return ir.DictAttr.get({})
        if value in self._written:
            # Arguments are whole arrays: no two of them overlap. But LLVM takes `noalias` to say
            # that nothing else changes the memory, no other thread either: what one thread stores
            # and another one loads behind a barrier would not be loaded again.
            return ir.DictAttr.get({})
        return ir.DictAttr.get(
            {"llvm.noalias": ir.UnitAttr.get(), "llvm.readonly": ir.UnitAttr.get()}
        )
