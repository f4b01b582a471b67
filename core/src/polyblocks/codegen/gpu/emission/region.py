"""A loop or branch that memory decides about, as one kernel: one block of threads runs all of it.

How often a loop runs, or which branch is taken, is known to nothing but the device when a number in
its memory says so, and a plan of launches has no decisions. So a single block does the nests inside
one after the other. All its threads load the numbers that decide, and wait for each other wherever
one of them may need what another one did.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from polyblocks.affine.gpu.plans.kernel import Kernel
from polyblocks.affine.gpu.regions import check_shared, decided_by_memory
from polyblocks.affine.mlir.nest_reader import SCALAR_DIALECTS
from polyblocks.affine.mlir.reader import TERMINATORS
from polyblocks.affine.mlir.views import VIEWS
from polyblocks.attributes import KIND_ATTRIBUTE, REGION_ATTRIBUTE, SOURCES_ATTRIBUTE
from polyblocks.codegen.gpu.emission.bodies import body_of, emit_nest
from polyblocks.codegen.gpu.emission.code import Code
from polyblocks.codegen.gpu.emission.combine import barrier
from polyblocks.codegen.gpu.emission.loads import LOADS, is_inside, root
from polyblocks.codegen.walk import nested
from polyblocks.errors import UnsupportedError
from polyblocks.mlir import ir
from polyblocks.target import Multiprocessor

#: Operations allowed between nests.
_BETWEEN = (
    *("affine.apply", "memref.get_global", "memref.extract_strided_metadata", "cf.assert"),
    *LOADS,
    *VIEWS,
    *TERMINATORS,
)
_STORES = ("affine.store", "memref.store")


def results_to_memory(block: Any, loaded: dict[Any, Any]) -> dict[Any, list[tuple[int, Any]]]:
    """Let what uses results of loops and branches that memory decides about load them.

    Args:
        block: that they stand in, or in loops and branches in it.
        loaded: gets what stands for each result from here on.

    Returns:
        for each such operation the numbers of the results, and new memory for each.
    """
    found: dict[Any, list[tuple[int, Any]]] = {}
    for op in list(block.operations):
        op = op.operation
        if REGION_ATTRIBUTE not in op.attributes:
            continue
        if not decided_by_memory(op):
            for region in op.regions:
                for inner in region.blocks:
                    found |= results_to_memory(inner, loaded)
            continue
        pairs = []
        # Before the operation that comes next: the loads keep the order of the results.
        after = ir.InsertionPoint.after(op)
        for number, result in enumerate(op.results):
            if not list(result.uses):
                continue
            type_ = ir.MemRefType.get([], result.type)
            with ir.InsertionPoint(op):
                memref = ir.Operation.create(
                    "memref.alloc",
                    results=[type_],
                    attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])},
                ).results[0]
            with after:
                load = ir.Operation.create("memref.load", [result.type], [memref], loc=op.location)
            loaded[result] = load.results[0]
            result.replace_all_uses_with(load.results[0])
            pairs.append((number, memref))
        found[op] = pairs
    return found


class RegionKernel:
    """One loop or branch, with all that is in it.

    Attributes:
        op: the loop or branch.
        threads: of the block.
        nests: what is computed, in the order of the program.
        kernels: how the block runs each of them.
        memories: body of each, which has shared and private memory.
        results: numbers of results, and the memory that gets them.
        operands: values from around that are used besides the nests.
        stored: memory that is stored to besides by the nests.
    """

    def __init__(
        self, op: Any, kernels: list[Kernel], chip: Multiprocessor, results: list[tuple[int, Any]]
    ) -> None:
        """Find out what it needs.

        Args:
            op: the loop or branch.
            kernels: of the nests in it, in the order of the program; all of one block.
            chip: what runs it.
            results: numbers of results, and the memory that gets them.

        Raises:
            UnsupportedError: it does something besides nests and scalars, or needs more shared
                memory than a block has.
        """
        self.op = op
        self.results = results
        _hoist_buffers(op)
        self.kernels = kernels
        self.nests = [kernel.nest for kernel in kernels]
        self.threads = kernels[0].plan.threads if kernels else chip.warp
        self.memories = [body_of(kernel) for kernel in kernels]
        check_shared(op, kernels, chip)
        # Views that a nest needs may stand between its operations.
        self._last = {nest.source[-1]: i for i, nest in enumerate(self.nests)}
        self._sources = {op for nest in self.nests for op in nest.source}
        memory = [memref for _, memref in results]
        besides = list(nested(self.op, besides=self._sources))
        used = (v for op in besides for v in op.operands if not is_inside(v, self.op))
        self.operands = list(dict.fromkeys([*used, *memory]))
        stored = (op.operands[1] for op in besides if op.name in _STORES)
        self.stored = {root(v) for v in (*stored, *memory)}

    def description(self) -> dict[str, Any]:
        """The kind and the sources of the region, for reports."""
        sources = dict.fromkeys(s for nest in self.nests for s in nest.sources)
        kind = "branch" if self.op.name == "scf.if" else "loop"
        return {
            KIND_ATTRIBUTE: ir.StringAttr.get(kind),
            SOURCES_ATTRIBUTE: ir.ArrayAttr.get([ir.StringAttr.get(s) for s in sources]),
        }

    def emit(self, code: Code, known: dict[Any, Any], memory: list[Any]) -> None:
        """Write the body at the current insertion point.

        Args:
            code: of the kernel.
            known: values from around -> those of the kernel; gets those that are defined inside.
            memory: all shared memory of the nests, then all private memory.
        """
        shared = iter(memory[: sum(len(m.workgroup) for m in self.memories)])
        private = iter(memory[sum(len(m.workgroup) for m in self.memories) :])
        self._parts = [
            [next(shared) for _ in m.workgroup] + [next(private) for _ in m.private]
            for m in self.memories
        ]
        self._code, self._known, self._loaded = code, known, False
        self._operation(self.op)
        for number, memref in self.results:
            operands = [known[self.op.results[number]], known[memref]]
            self._by_one(partial(code.op, "memref.store", [], operands))

    def _operation(self, op: Any) -> None:
        if op in self._sources:
            if op in self._last:
                self._nest(self._last[op])
            return
        if len(op.regions):
            self._control(op)
            return
        if op.name in _STORES:
            self._by_one(lambda: self._copy(op))
            return
        if op.name not in _BETWEEN and not op.name.startswith(SCALAR_DIALECTS):
            raise UnsupportedError(
                f"'{op.name}' is outside every loop nest, in a data-dependent loop or branch; use "
                "whole-array operations",
                op=op.name,
            )
        self._copy(op)
        self._loaded = self._loaded or op.name in LOADS

    def _copy(self, op: Any) -> None:
        new = op.clone()
        for position, operand in enumerate(op.operands):
            new.operands[position] = self._known[operand]
        self._known.update(zip(op.results, new.operation.results, strict=True))

    def _by_one(self, store: Callable[[], Any]) -> None:
        """Let the first thread store a number that every thread has."""
        code = self._code
        thread = code.id("thread")

        def once() -> list[Any]:
            store()
            return []

        barrier(code)
        code.when(code.compare("eq", thread, code.integer(0)), once)
        barrier(code)
        self._loaded = False

    def _control(self, op: Any) -> None:
        """A loop or branch, with new blocks."""
        attributes = {n: op.attributes[n] for n in op.attributes if n != REGION_ATTRIBUTE}
        new = ir.Operation.create(
            op.name,
            results=[r.type for r in op.results],
            operands=[self._known[v] for v in op.operands],
            attributes=attributes,
            regions=len(op.regions),
            loc=op.location,
        )
        for region, old in zip(new.regions, op.regions, strict=True):
            for block in old.blocks:
                types = [a.type for a in block.arguments]
                made = region.blocks.append(*types, arg_locs=[op.location] * len(types))
                self._known.update(zip(block.arguments, made.arguments, strict=True))
                with self._code.inside(made):
                    # Whatever ran before may have loaded something.
                    self._loaded = True
                    for inner in block.operations:
                        self._operation(inner.operation)
        self._known.update(zip(op.results, new.results, strict=True))
        self._loaded = True

    def _nest(self, number: int) -> None:
        kernel, code = self.kernels[number], self._code
        if self._loaded:
            # Nobody changes what others are still about to load.
            barrier(code)
        emit_nest(kernel, self.memories[number], code, self._known, self._parts[number])
        barrier(code)
        self._loaded = False


def _hoist_buffers(region: Any) -> None:
    """Move allocations before the loop or branch: the kernel gets them from outside.

    Their contents do not outlive an iteration, so that all can share memory.
    """
    for op in [o for o in nested(region) if o.name == "memref.alloc" and not len(o.operands)]:
        if list(op.results[0].uses):
            op.move_before(region)
        else:
            op.erase()
