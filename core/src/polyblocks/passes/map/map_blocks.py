"""map-blocks: every nest becomes a kernel, run by a grid of blocks of threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks import signature
from polyblocks.affine.mlir.views import VIEWS
from polyblocks.affine.model import ControlFlow, Nest, Sequence
from polyblocks.attributes import REGION_ATTRIBUTE
from polyblocks.errors import UnsupportedError

#: What may be left in ``@main`` besides launches and loops around them.
_LEFT = ("arith.", "affine.yield", "func.return", "gpu.", "index.", "scf.condition", "scf.yield")
_MEMORY = ("memref.alloc", "memref.get_global", *VIEWS)


@dataclass(frozen=True)
class MapBlocksPass:
    """Turn nests into kernels of a ``gpu.module``, and ``@main`` into a list of launches.

    The outer independent loops are shared out over groups of threads: single threads, warps, or
    blocks, whatever the cost model finds quickest. The threads of a group share the loops inside;
    reductions are joined by shuffles and through shared memory. Buffers of an iteration live
    in registers or in shared memory, and threads wait for each other where one needs what
    another one did. Reductions whose operands several outer iterations read are contractions:
    blocks compute tiles of them, see :mod:`polyblocks.codegen.gpu.mapping.contraction`. Does
    nothing for a target without grids.

    Before::

        affine.for %i = 0 to 64 {
          %s = affine.for %k = 0 to 512 iter_args(...) { ... affine.load %a[%i, %k] ... }
          affine.store %s, %b[%i] }

    After::

        gpu.launch_func @kernels::@sum blocks in (%c8, ...) threads in (%c256, ...) args(...)

        gpu.func @sum(%a, %b) kernel { ... gpu.thread_id x ... gpu.shuffle xor ... }

    Raises:
        UnsupportedError: something is left that only the host could do, such as a load of a
            number that decides about a loop.
    """

    name: ClassVar[str] = "map-blocks"

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite the module."""
        if context.target.multiprocessor is None:
            return False
        from polyblocks.affine.mlir import reader
        from polyblocks.codegen.gpu.emission.function import Kernels
        from polyblocks.codegen.gpu.emission.region import results_to_memory
        from polyblocks.mlir import ir

        with module.context, ir.Location.unknown():
            results = results_to_memory(signature.main_of(module).body.blocks[0])
            sequence = reader.read(module)
            kernels = Kernels.create(module)
            self._map(sequence, kernels, results, context)
            main = signature.main_of(module)
            _drop_unused(main.body.blocks[0])
            _refuse_rest(main.body.blocks[0])
            _drop_globals(module)
        return True

    def _map(self, sequence: Sequence, kernels: Any, results: Any, context: Any) -> None:
        from polyblocks.codegen.gpu.mapping.choose import choose
        from polyblocks.codegen.gpu.mapping.registers import registers, resident_blocks

        chip = context.target.multiprocessor
        for item in sequence.items:
            if not isinstance(item, Nest):
                if isinstance(item, ControlFlow):
                    self._region(item, kernels, results, context)
                else:
                    kernels.changes.stay(item.operation)
                continue
            if item.body:
                kernel, predicted = choose(item, context.target)
                resident = resident_blocks(kernel, chip, max(context.target.shared_level.size, 1))
                name = kernels.add(kernel, item.source[0], resident)
                context.decide(
                    self.name,
                    name,
                    "mapped",
                    blocks=kernel.blocks,
                    threads=kernel.threads,
                    group=kernel.group,
                    tile=list(kernel.tile),
                    width=kernel.width,
                    strided=kernel.strided,
                    shared_bytes=kernel.shared_bytes(),
                    registers=registers(kernel),
                    resident=resident,
                    barriers=len(kernel.barriers),
                    predicted_seconds=predicted.seconds,
                    memory_seconds=predicted.memory,
                    compute_seconds=predicted.compute,
                    latency_seconds=predicted.latency,
                )
            for op in reversed(item.source):
                op.erase()

    def _region(self, region: ControlFlow, kernels: Any, results: Any, context: Any) -> None:
        """Nests in a loop or branch: kernels of their own, or all one if memory decides."""
        from polyblocks.codegen.gpu.emission.region import RegionKernel, decided_by_memory

        if not decided_by_memory(region.operation):
            for body in region.bodies:
                self._map(body, kernels, results, context)
            kernels.changes.stay(region.operation)
            return
        kernel = RegionKernel(region, context.target.multiprocessor, results[region.operation])
        name = kernels.add_region(kernel, region.operation)
        context.decide(self.name, name, "one block", threads=kernel.threads)
        region.operation.erase()


def _drop_unused(block: Any) -> None:
    """Erase constants, views and buffers that only nests used."""
    for op in reversed(list(block.operations)):
        op = op.operation
        if REGION_ATTRIBUTE in op.attributes:
            for region in op.regions:
                for inner in region.blocks:
                    _drop_unused(inner)
        elif len(op.results) and not any(list(r.uses) for r in op.results):
            _drop_if_pure(op)


def _drop_if_pure(op: Any) -> None:
    pure = (
        *("affine.apply", "affine.load", "arith.", "complex.", "index.", "math.", "memref.load"),
        "memref.extract_strided_metadata",
    )
    if op.name in _MEMORY or op.name.startswith(pure):
        op.erase()


def _refuse_rest(block: Any) -> None:
    """Check that nothing is left that touches memory outside of kernels.

    Raises:
        UnsupportedError: names the operation.
    """
    for op in block.operations:
        op = op.operation
        if REGION_ATTRIBUTE in op.attributes:
            for region in op.regions:
                for inner in region.blocks:
                    _refuse_rest(inner)
        elif op.name not in (*_MEMORY, "affine.apply") and not op.name.startswith(_LEFT):
            raise UnsupportedError(
                f"'{op.name}' stands outside of all loop nests, where only the host could run it, "
                "and the data is on the device; express it on whole arrays",
                op=op.name,
            )


def _drop_globals(module: Any) -> None:
    """Erase the constants that only kernels use: they have them in their own module."""
    from polyblocks.mlir import ir

    used: set[str] = set()

    def visit(op: Any) -> Any:
        if op.name == "memref.get_global":
            used.add(ir.FlatSymbolRefAttr(op.attributes["name"]).value)
        return ir.WalkResult.ADVANCE

    signature.main_of(module).operation.walk(visit)
    for op in list(module.body.operations):
        op = op.operation
        if op.name == "memref.global" and op.attributes["sym_name"].value not in used:
            op.erase()
