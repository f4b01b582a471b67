"""emit-kernels: every nest becomes the kernel that its schedule describes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks import signature
from polyblocks.affine.mlir.views import VIEWS
from polyblocks.affine.model import ControlFlow, Nest, Sequence, walk
from polyblocks.attributes import REGION_ATTRIBUTE, SCHEDULE_ATTRIBUTE
from polyblocks.errors import UnsupportedError
from polyblocks.passes import facts

#: Operations allowed in ``@main`` besides launches and loops around them.
_LEFT = ("arith.", "affine.yield", "func.return", "gpu.", "index.", "scf.condition", "scf.yield")
_MEMORY = ("memref.alloc", "memref.get_global", *VIEWS)


@dataclass(frozen=True)
class EmitKernelsPass:
    """Turn nests into kernels of a ``gpu.module``, and ``@main`` into a list of launches.

    The schedule of a nest (``choose-kernels``) is obeyed, also where it was changed by hand.
    Reductions are joined by shuffles and through shared memory.

    Before::

        affine.for %i = 0 to 64 {
          %s = affine.for %k = 0 to 512 iter_args(...) { ... affine.load %a[%i, %k] ... }
          affine.store %s, %b[%i] } {polyblocks.schedule = {group = 32, groups = 8, ...}}

    After::

        gpu.launch_func @kernels::@sum blocks in (%c8, ...) threads in (%c256, ...) args(...)

        gpu.func @sum(%a, %b) kernel { ... gpu.thread_id x ... gpu.shuffle xor ... }

    Raises:
        UnsupportedError: a nest has no schedule or one that the nest or the chip does not allow
            for, or something is left that only the host could do, such as a load of a number that
            decides about a loop.
    """

    name: ClassVar[str] = "emit-kernels"
    needs: ClassVar[frozenset[str]] = frozenset({facts.KERNELS, facts.STAGED_OPERANDS})
    breaks: ClassVar[frozenset[str]] = frozenset({facts.NESTS, facts.AFFINE_LOOPS, *needs})

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite the module."""
        from polyblocks.affine.mlir import reader
        from polyblocks.codegen.gpu.emission.function import Kernels
        from polyblocks.codegen.gpu.emission.region import results_to_memory
        from polyblocks.mlir import ir

        with module.context, ir.Location.unknown():
            block = signature.main_of(module).body.blocks[0]
            sequence = reader.read(module, chains=True)
            loaded: dict[Any, Any] = {}
            results = results_to_memory(block, loaded)
            _use(sequence, loaded)
            emission = _Emission(Kernels.create(module), results, context.target)
            emission.sequence(sequence)
            _drop_unused(block)
            _refuse_rest(block)
            _drop_globals(module)
        return True


class _Emission:
    """The kernels of one module."""

    def __init__(self, kernels: Any, results: Any, target: Any) -> None:
        self.kernels, self.results, self.target = kernels, results, target

    def sequence(self, sequence: Sequence) -> None:
        """Make the nests of a block kernels, and those of loops and branches in it."""
        for item in sequence.items:
            if isinstance(item, Nest):
                if item.body:
                    kernel, schedule = self._scheduled(item)
                    name, resident = schedule["kernel"], schedule["resident"]
                    self.kernels.add(kernel, item.source[0], name, resident)
                for op in reversed(item.source):
                    op.erase()
            elif isinstance(item, ControlFlow):
                self._region(item)
            else:
                self.kernels.changes.stay(item.operation)

    def _region(self, region: ControlFlow) -> None:
        """Nests in a loop or branch: kernels of their own, or all one if memory decides."""
        from polyblocks.affine.gpu.plans.groups import GroupPlan
        from polyblocks.affine.gpu.plans.kernel import Kernel
        from polyblocks.affine.gpu.regions import decided_by_memory, nests_of
        from polyblocks.codegen.gpu.emission.region import RegionKernel

        op = region.operation
        if not decided_by_memory(op):
            for body in region.bodies:
                self.sequence(body)
            self.kernels.changes.stay(op)
            return
        nests = nests_of(region)
        found = {nest: self._scheduled(nest, block=True) for nest in nests if nest.body}
        name = op.attributes[REGION_ATTRIBUTE].value
        threads = {self.target.multiprocessor.warp}
        if found:
            name = next(iter(found.values()))[1]["kernel"]
            threads = {kernel.plan.threads for kernel, _ in found.values()}
        if len(threads) > 1:
            raise UnsupportedError(
                f"invalid schedules for '{name}': one block runs all of its nests, so 'group' must "
                f"be the same for all, got {sorted(threads)}"
            )
        (group,) = threads
        kernels = [
            found[nest][0] if nest in found else Kernel(nest, GroupPlan([], [], [], group))
            for nest in nests
        ]
        kernel = RegionKernel(op, kernels, self.target.multiprocessor, self.results[op])
        self.kernels.add_region(kernel, op, name)
        op.erase()

    def _scheduled(self, nest: Nest, block: bool = False) -> tuple[Any, dict[str, Any]]:
        """The kernel of a nest and its schedule; ``block``: one block runs it, and others."""
        from polyblocks.affine.gpu.mapping.atomics import form_atomics
        from polyblocks.affine.gpu.plans.numbers import Numbers
        from polyblocks.affine.gpu.scheduled import kind_of, scheduled_kernel, staged_kernel
        from polyblocks.affine.mlir.json_attributes import from_attribute
        from polyblocks.affine.plan.keys import PlanKind
        from polyblocks.affine.plan.old_keys import read

        given = [op.attributes for op in nest.source if SCHEDULE_ATTRIBUTE in op.attributes]
        if len(given) != 1:
            raise UnsupportedError(
                f"'{nest.name or 'a nest'}' has {len(given)} schedules, where emit-kernels obeys "
                "one; run choose-kernels before it, on the same nests"
            )
        schedule = read(from_attribute(given[0][SCHEDULE_ATTRIBUTE]), nest.name, self.target)
        if not block and kind_of(schedule) is not PlanKind.GROUPS:
            return staged_kernel(nest, schedule, self.target)
        numbers = Numbers(nest)
        form_atomics(nest.body)
        return scheduled_kernel(nest, numbers, schedule, self.target, block)


def _use(sequence: Sequence, loaded: dict[Any, Any]) -> None:
    """Let nests use what stands for values from around them."""
    if not loaded:
        return
    for part in sequence.all():
        for nest in part.nests():
            for value in (v for node in walk(nest.body) for v in node.uses):
                value.external = loaded.get(value.external, value.external)


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
