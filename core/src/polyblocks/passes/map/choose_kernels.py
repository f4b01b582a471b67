"""choose-kernels: how a grid of blocks of threads is to run each nest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.cost.predicted import Predicted
from polyblocks.affine.gpu.plans.kernel import Kernel
from polyblocks.affine.gpu.plans.numbers import Numbers
from polyblocks.affine.model import ControlFlow, For, Nest, Sequence
from polyblocks.attributes import ESTIMATE_ATTRIBUTE, REGION_ATTRIBUTE, SCHEDULE_ATTRIBUTE
from polyblocks.passes import facts
from polyblocks.target import TargetDescription


@dataclass(frozen=True)
class ChooseKernelsPass:
    """Write down for every nest how it is to run: its schedule. For targets with grids of blocks.

    The outer independent loops are shared out over groups of threads: single threads, warps, or
    blocks, whatever the cost model finds quickest. The threads of a group share the loops inside;
    buffers of an iteration live in registers or in shared memory, and threads wait for each other
    where one needs what another one did. Reductions whose operands several outer iterations read
    are contractions: blocks compute tiles of them. Products that join-launches can launch together
    get the tile that is best for the blocks of all, and groups of threads beside a product that
    few blocks compute may get as many threads as that has, so that both can be one launch. A loop
    or branch about which a number in memory decides is one kernel of one block, with all nests in
    it.

    :mod:`polyblocks.affine.plan.keys` describes the numbers. The time that
    the nest's estimate predicts is from here on the one by which its schedule was chosen. Nothing
    else is changed.

    Before::

        affine.for %i = 0 to 64 {
          %s = affine.for %k = 0 to 512 iter_args(...) { ... affine.load %a[%i, %k] ... }
          affine.store %s, %b[%i] }

    After::

        affine.for %i = 0 to 64 { ... }
          {polyblocks.schedule = {barriers = [], distributed = [{lead = 0, loop = 1, ...}],
                                  group = 32, groups = 8, kernel = "sum", order = [0], ...}}

    Raises:
        UnsupportedError: a nest takes more blocks than a grid may have.
    """

    name: ClassVar[str] = "choose-kernels"
    needs: ClassVar[frozenset[str]] = frozenset({facts.AFFINE_LOOPS})
    establishes: ClassVar[frozenset[str]] = frozenset({facts.KERNELS})

    def run(self, module: Any, context: Any) -> bool:
        """Choose for all nests of ``@main``."""
        from polyblocks.affine.mlir import reader
        from polyblocks.mlir import ir

        with module.context, ir.Location.unknown():
            _Choice(self.name, context).sequence(reader.read(module, chains=True))
        return True


class _Choice:
    """The schedules of one module."""

    def __init__(self, owner: str, context: Any) -> None:
        self.owner, self.context = owner, context
        self.names: set[str] = set()

    def sequence(self, sequence: Sequence) -> None:
        """Choose for the nests of a block, and for those of loops and branches in it."""
        from polyblocks.affine.gpu.choose import choose
        from polyblocks.affine.gpu.neighbours import adopt_threads
        from polyblocks.affine.gpu.regions import decided_by_memory
        from polyblocks.passes.map.products_together import products_together

        target = self.context.target
        fused = not self.context.options.polyblocks_disable_affine_fusion
        together = products_together(sequence, target) if fused else {}
        nests = [item for item in sequence.items if isinstance(item, Nest) and item.body]
        numbers = {nest: Numbers(nest) for nest in nests}
        chosen = {nest: choose(nest, target, together.get(nest, [])) for nest in nests}
        if fused:
            adopt_threads(chosen, target)
        for item in sequence.items:
            if isinstance(item, ControlFlow):
                if decided_by_memory(item.operation):
                    self._block(item)
                else:
                    for body in item.bodies:
                        self.sequence(body)
            elif isinstance(item, Nest) and item.body:
                if not any(isinstance(n, For) for n in item.body):
                    _describe(item, sequence, target)
                self._nest(item, numbers[item], *chosen[item])

    def _nest(self, nest: Nest, numbers: Numbers, kernel: Kernel, predicted: Predicted) -> None:
        from polyblocks.affine.gpu.plans.kernel import resident_blocks
        from polyblocks.affine.gpu.schedule import schedule_of, unique_name

        target = self.context.target
        plan = kernel.plan
        units = max(target.shared_level.size, 1)
        resident = resident_blocks(plan, target.multiprocessor, units)
        name = unique_name(nest.name, self.names)
        _attach(nest, schedule_of(kernel, numbers, name, resident, predicted))
        _predict(nest, predicted.numbers(), target.memory[-1].name)
        self.context.decide(
            self.owner,
            name,
            "mapped",
            blocks=plan.blocks,
            threads=plan.threads,
            shared_bytes=plan.shared_bytes(),
            registers=plan.registers(),
            resident=resident,
            **plan.decision(),
            **predicted.numbers(),
        )

    def _block(self, region: ControlFlow) -> None:
        """A loop or branch that memory decides about: one block runs all of it."""
        from polyblocks.affine.gpu.choose import choose_block
        from polyblocks.affine.gpu.regions import check_shared, nests_of
        from polyblocks.affine.gpu.schedule import schedule_of, unique_name

        nests = nests_of(region)
        numbers = [Numbers(nest) for nest in nests]
        chip = self.context.target.multiprocessor
        kernels = choose_block(nests, chip)
        check_shared(region.operation, kernels, chip)
        name = unique_name(region.operation.attributes[REGION_ATTRIBUTE].value, self.names)
        for nest, kernel, numbered in zip(nests, kernels, numbers, strict=True):
            if nest.body:
                _attach(nest, schedule_of(kernel, numbered, name, 1, None))
        threads = kernels[0].plan.threads if kernels else chip.warp
        self.context.decide(self.owner, name, "one block", threads=threads)


def _describe(nest: Nest, sequence: Sequence, target: TargetDescription) -> None:
    """Write name, kind, sources and estimate of a nest that has no loop to have kept them."""
    from polyblocks.affine.cost.estimate import Estimator
    from polyblocks.affine.mlir.json_attributes import to_attribute
    from polyblocks.affine.mlir.source import sources
    from polyblocks.affine.mlir.writer import describe
    from polyblocks.affine.naming.kinds import kind
    from polyblocks.affine.naming.names import own_name

    nest.kind = kind(nest)
    nest.sources = [f"{op} {where}".strip() for op, where in sources(nest.body)]
    estimate = Estimator(target, sequence.buffers, None, False).estimate(nest).to_json()
    describe(nest.source[0].attributes, nest, own_name(nest, sequence), to_attribute(estimate))


def _attach(nest: Nest, schedule: dict[str, Any]) -> None:
    """Write a schedule on the nest's first loop, or on its first operation if it has none."""
    from polyblocks.affine.mlir.json_attributes import to_attribute

    loops = [op for op in nest.source if op.name == "affine.for"]
    op = (loops or nest.source)[0]
    op.attributes[SCHEDULE_ATTRIBUTE] = to_attribute(schedule)


def _predict(nest: Nest, prediction: dict[str, float | None], main: str) -> None:
    """Let the nest's estimate say of time what the schedule was chosen by."""
    from polyblocks.affine.cost.estimate import mapped
    from polyblocks.affine.mlir.json_attributes import from_attribute, to_attribute

    for op in nest.source:
        if ESTIMATE_ATTRIBUTE in op.attributes:
            estimate = from_attribute(op.attributes[ESTIMATE_ATTRIBUTE])
            op.attributes[ESTIMATE_ATTRIBUTE] = to_attribute(mapped(estimate, prediction, main))
