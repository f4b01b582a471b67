"""chain-products: two products of matrices, and all between them, as one nest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.analysis.facts import facts_of
from polyblocks.affine.contraction.products.factors import has_units, is_product
from polyblocks.affine.cost import rates
from polyblocks.affine.cost.estimate import Estimator
from polyblocks.affine.cost.predicted import Predicted
from polyblocks.affine.fusion.chains.chained_products import ProductChain, chain_to
from polyblocks.affine.fusion.chains.row_kinds import Rescaling, rescaling_of
from polyblocks.affine.fusion.chains.running_chain import running_chain
from polyblocks.affine.gpu.plans.chained import chained_products
from polyblocks.affine.gpu.plans.chains import ChainPlan
from polyblocks.affine.gpu.plans.numbers import Numbers
from polyblocks.affine.gpu.plans.unit_access import unit_access
from polyblocks.affine.gpu.tiles.chain_cost import BLOCKS, chain_plans, predict_chain
from polyblocks.affine.gpu.tiles.units_cost import least_units
from polyblocks.affine.mlir.json_attributes import to_attribute
from polyblocks.affine.mlir.source import merged_sources
from polyblocks.affine.model import AffineAccess, For, Nest, Node, Sequence, walk
from polyblocks.affine.naming.names import name_nests
from polyblocks.affine.plan.schedule import printed
from polyblocks.affine.users import Users
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass
from polyblocks.target import TargetDescription


@dataclass(frozen=True)
class ChainProductsPass(NestPass):
    """Compute a product whose results another product multiplies, and that one, block by block.

    All nests between are in it where each needs elements of its own row alone. A row then goes over
    blocks of steps, which are columns of the first product: their elements are in registers, and
    never in memory. Where exponentials are less of the largest element of the row, as those of a
    softmax are, a block takes the largest one so far, and sums so far are rescaled when that grows:
    Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018). A division of
    elements by a sum of their row becomes one of the results. Blocks whose scores are all minus
    infinity by an affine condition are left out.

    Such a nest has its schedule, by which a matrix unit computes it, and no pass changes it any
    more. It is made where the unit's sums are in the lanes that multiply them next, operands are
    copied past the registers, and it is predicted to be quicker.

    Before::

        affine.for %i { affine.for %j { ... affine.store %s, %scores[%i, %j] } }
        affine.for %i { ... affine.store %m, %max[%i] }
        affine.for %i { affine.for %j { ... math.exp ... affine.store %p, %exp[%i, %j] } }
        affine.for %i { ... affine.store %l, %sum[%i] }
        affine.for %i { affine.for %d { ... affine.store %o, %out[%i, %d] } }

    After::

        affine.for %i {
          %r:2 = affine.for %t = 0 to 16 iter_args(%m = %low, %l = %zero) {
            affine.for %j = %t * 64 to %t * 64 + 64 { ... affine.store %s, %scores[%j - %t * 64] }
            ... }
          affine.for %d { ... affine.store %o, %out[%i, %d] }
        } {polyblocks.schedule = {chained = true, ...}}
    """

    name: ClassVar[str] = "chain-products"
    needs: ClassVar[frozenset[str]] = frozenset(
        {facts.NESTS, facts.REDUCTIONS, facts.KINDS, facts.UNTILED}
    )
    breaks: ClassVar[frozenset[str]] = frozenset({facts.UNFUSED, facts.PADDING})

    def run(self, module: Any, context: Any) -> None:
        """By itself, so that the next pass reads the module again: chains are opaque to it."""
        if has_units(context.target) and not rates.unknown_rates(context.target):
            super().run(module, context)

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Chain products, the last ones first."""
        options, target = context.options, context.target
        if options.polyblocks_disable_affine_fusion:
            return
        users = Users(sequence)
        products = {n for n in sequence.nests() if is_product(facts_of(n).contraction, target)}
        stages = set(sequence.nests())
        done = False
        for last in [n for n in reversed(sequence.nests()) if n in products]:
            chain = chain_to(last, products, stages, users) if last in users else None
            rescaling = None if chain is None else rescaling_of(chain)
            if chain is None or rescaling is None:
                continue
            if rescaling.maximum and options.polyblocks_disable_reduce_reduce_fusion:
                continue
            found = _quickest(chain, rescaling, target)
            if found is not None:
                done |= self._chain(chain, *found, sequence, users, context)
        if done:
            name_nests(self.name, sequence, context)

    def _chain(
        self,
        chain: ProductChain,
        plan: ChainPlan,
        body: list[Node],
        predicted: Predicted,
        sequence: Sequence,
        users: Users,
        context: Any,
    ) -> bool:
        """Replace the last nest of a chain by all of it, if that is quicker."""
        apart = _least_seconds(chain, context.target)
        pays = predicted.seconds < apart
        context.decide(
            self.name,
            chain.last.name,
            "fused" if pays else "kept apart",
            with_=[nest.name for nest in chain.nests[:-1]],
            buffers=[list(b.shape) for b in sorted(chain.passed, key=lambda b: b.number)],
            tile=list(plan.tile),
            apart_seconds=apart,
            fused_seconds=predicted.seconds,
        )
        if not pays:
            return False
        (loop,) = body
        assert isinstance(loop, For)
        loop.schedule = printed(plan.kind, plan.schedule(Numbers(Nest(body, []))))
        last = chain.last
        last.sources = merged_sources(chain.nests)
        last.replace(body)
        for nest in chain.nests[:-1]:
            sequence.items.remove(nest)
            users.drop(nest)
        users.refresh(last)
        estimate = Estimator(context.target, sequence.buffers, None, False).estimate(last)
        last.estimate = to_attribute(estimate.to_json())
        return True


def _quickest(
    chain: ProductChain, rescaling: Rescaling, target: TargetDescription
) -> tuple[ChainPlan, list[Node], Predicted] | None:
    """The plan that is predicted to be the quickest, its nest and seconds; None: no unit can."""
    found: list[tuple[ChainPlan, list[Node], Predicted]] = []
    chip = target.multiprocessor
    assert chip is not None
    for block in BLOCKS:
        if block >= 2 * chain.step.extent and block > min(BLOCKS):
            continue
        body = running_chain(chain, rescaling, block, chip.power_of_two)
        parts = chained_products(Nest(body, []))
        if parts is None:
            continue
        plans = chain_plans(parts, target)
        found += [(plan, body, predict_chain(plan, target, chip)) for plan in plans]
    return min(found, key=lambda each: each[2].seconds, default=None)


def _least_seconds(chain: ProductChain, target: TargetDescription) -> float:
    """Seconds that the nests take at least, one after the other.

    They are launched, a unit multiplies, and what is passed goes through memory.
    """
    total = target.parallel[0].overhead * len(chain.nests)
    for nest in chain.nests:
        access = unit_access(nest, target.matrix_units)
        total += 0.0 if access is None else least_units(access)
        for node in walk(nest.body):
            if isinstance(node, AffineAccess) and node.buffer in chain.passed:
                nbytes = node.buffer.nbytes
                total += rates.traffic_seconds(target, nbytes, nbytes) or 0.0
    return total
