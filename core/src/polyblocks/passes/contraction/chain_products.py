"""chain-products: two products of matrices, and all between them, as one nest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from polyblocks.affine.cleanup.reciprocals import invert_divisors
from polyblocks.affine.contraction.products.factors import has_units, is_product
from polyblocks.affine.contraction.products.row_products import product_of
from polyblocks.affine.cost import rates
from polyblocks.affine.cost.constants import WORTH_PARTS
from polyblocks.affine.cost.estimate import Estimator
from polyblocks.affine.fusion.chains.chain_groups import chain_groups, ended_by, keep_numbers
from polyblocks.affine.fusion.chains.chained_products import ProductChain, chain_to, elements_to
from polyblocks.affine.fusion.chains.partial_sums import PartialSums, has_parts
from polyblocks.affine.fusion.chains.row_kinds import Rescaling, rescaling_of
from polyblocks.affine.fusion.chains.running_chain import running_chain
from polyblocks.affine.fusion.chains.score_scale import score_scale
from polyblocks.affine.gpu.plans.chained import chained_products, touched_bytes
from polyblocks.affine.gpu.plans.chains import ChainPlan
from polyblocks.affine.gpu.plans.numbers import Numbers
from polyblocks.affine.gpu.plans.unit_access import unit_access
from polyblocks.affine.gpu.tiles.chain_cost import (
    BLOCKS,
    chain_plans,
    parts_to_try,
    predict_chain,
    predict_joining,
    seconds_of_memory,
)
from polyblocks.affine.gpu.tiles.units_cost import least_units
from polyblocks.affine.mlir.json_attributes import to_attribute
from polyblocks.affine.mlir.source import merged_sources
from polyblocks.affine.model import For, Nest, Node, Sequence
from polyblocks.affine.naming.names import name_nests
from polyblocks.affine.plan.schedule import printed
from polyblocks.affine.subnests import parallel_shell
from polyblocks.affine.users import Users
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass
from polyblocks.target import TargetDescription

#: Registers of a thread up to which exponents are scaled: with more, the assembler's schedule of
#: the loop is up to a quarter longer (of ptxas 13.0: heads of 128, whose threads take 255).
_ROOMY = 220


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

    Nests that several chains go through are computed again in each, if that is quicker for all of
    them together.

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
        products = {n for n in sequence.nests() if is_product(product_of(n), target)}
        lasts = [n for n in reversed(sequence.nests()) if n in products]
        finder = _Finder(products, set(sequence.nests()), users, context)
        done = False
        for group in chain_groups([c for c in map(finder.longest, lasts) if c is not None]):
            if len(group) > 1:
                done |= self._chain(group, finder, sequence, context)
        for last in lasts:
            for chain in finder.chains(last):
                if last in products and self._chain([chain], finder, sequence, context):
                    products.discard(last)
                    done = True
        if done:
            name_nests(self.name, sequence, context)

    def _chain(
        self, chains: list[ProductChain], finder: _Finder, sequence: Sequence, context: Any
    ) -> bool:
        """Replace the last nests of chains by all of them, if that is quicker."""
        users, target = finder.users, context.target
        ended = ended_by(chains, users)
        keep_numbers(chains, ended, users)
        lasts = [chain.last for chain in chains]
        apart = _least_seconds(sorted({*ended, *lasts}, key=users.position), target)
        found = [_quickest(chain, finder.rescaling[chain], target, apart) for chain in chains]
        choices = [choice for choice in found if choice is not None]
        if len(choices) < len(chains):
            return False
        # Of both, what they take at least.
        seconds = sum(choice.least for choice in choices)
        for chain, choice in zip(chains, choices, strict=True):
            self._decide(chain, choice, (apart, seconds), context)
        if seconds >= apart:
            return False
        for chain, choice in zip(chains, choices, strict=True):
            self._replace(chain, choice, sequence, users, context)
        for nest in ended:
            sequence.items.remove(nest)
            users.drop(nest)
        finder.products -= {*ended, *lasts}
        return True

    def _decide(
        self, chain: ProductChain, found: _Choice, seconds: tuple[float, float], context: Any
    ) -> None:
        apart, fused = seconds
        parts = {} if found.partial is None else {"parts": found.partial.part.extent}
        context.decide(
            self.name,
            chain.last.name,
            "fused" if fused < apart else "kept apart",
            with_=[nest.name for nest in chain.nests[:-1]],
            buffers=[list(b.shape) for b in sorted(chain.passed, key=lambda b: b.number)],
            tile=list(found.plan.tile),
            apart_seconds=apart,
            fused_seconds=fused,
            **parts,
        )

    def _replace(
        self, chain: ProductChain, found: _Choice, sequence: Sequence, users: Users, context: Any
    ) -> None:
        """Put the nest of a chain where its last one was."""
        partial = found.partial
        (loop,) = found.body
        assert isinstance(loop, For)
        if not context.options.polyblocks_disable_unsafe_math_canonicalizations:
            _invert_sums(found.body)
        loop.schedule = printed(found.plan.kind, found.plan.schedule(Numbers(Nest(found.body, []))))
        last = chain.last
        new = [last]
        if partial is not None:
            joining = Nest(partial.joining(found.rescaling), [], changed=True)
            joining.sources = last.sources
            new.append(joining)
        last.sources = merged_sources(chain.nests)
        last.replace(found.body)
        at = sequence.items.index(last)
        sequence.items[at : at + 1] = new
        users.put(list(new), last)
        estimate = Estimator(context.target, sequence.buffers, None, False).estimate(last)
        last.estimate = to_attribute(estimate.to_json())


class _Finder:
    """Finds the chains that end with products.

    Attributes:
        rescaling: of each chain that has been found.
    """

    def __init__(self, products: set[Nest], stages: set[Nest], users: Users, context: Any) -> None:
        self.products, self.stages, self.users = products, stages, users
        self.may_rescale = not context.options.polyblocks_disable_reduce_reduce_fusion
        self.rescaling: dict[ProductChain, Rescaling] = {}

    def chains(self, last: Nest) -> list[ProductChain]:
        """One with numbers of rows, and one of elements alone if that has more products."""
        if last not in self.products or last not in self.users:
            return []
        rows = chain_to(last, self.products, self.stages, self.users)
        found = [] if rows is None or not self._is_possible(rows) else [rows]
        longer = elements_to(last, self.products, self.users)
        if longer is not None and longer.products > sum(chain.products for chain in found):
            found += [longer] if self._is_possible(longer) else []
        return found

    def longest(self, last: Nest) -> ProductChain | None:
        """The chain with the most products, and numbers of rows if there is one."""
        return max(self.chains(last), key=lambda chain: chain.products, default=None)

    def _is_possible(self, chain: ProductChain) -> bool:
        rescaling = rescaling_of(chain)
        if rescaling is None or (rescaling.maximum is not None and not self.may_rescale):
            return False
        self.rescaling[chain] = rescaling
        return True


@dataclass(frozen=True, eq=False)
class _Choice:
    """A way to compute a chain.

    Attributes:
        plan: of the kernel.
        body: its nest.
        rescaling: of the chain.
        seconds: of it, and of what joins parts.
        least: the same at least, as if its bottleneck hid all else.
        partial: what parts of the steps leave; None if a block has all steps of its rows.
    """

    plan: ChainPlan
    body: list[Node]
    rescaling: Rescaling
    seconds: float
    least: float
    partial: PartialSums | None = None


def _invert_sums(nodes: list[Node]) -> None:
    """Let results of a row be multiplied by the reciprocal of its sum, in place."""
    _, body = parallel_shell(nodes)
    finish = body[-1]
    assert isinstance(finish, For)
    front, _ = invert_divisors([finish])
    body[-1:] = [*front, finish]


def _quickest(
    chain: ProductChain, rescaling: Rescaling, target: TargetDescription, apart: float
) -> _Choice | None:
    """The way that is predicted to be the quickest; None: no unit can.

    One in parts has to be much quicker, unless the other is slower than nests ``apart`` may be.
    """
    found: list[_Choice] = []
    chip = target.multiprocessor
    assert chip is not None
    may_part = has_parts(chain)
    for block in BLOCKS:
        if block >= 2 * chain.step.extent and block > min(BLOCKS):
            continue
        turns = -(-chain.step.extent // block)
        body = running_chain(chain, rescaling, block, chip.power_of_two)
        for plan in _plans(body, target):
            whole = predict_chain(plan, target, chip)
            found.append(_Choice(plan, body, rescaling, whole.seconds, whole.bottleneck))
            for length in parts_to_try(plan.blocks, turns, target) if may_part else ():
                partial = PartialSums(chain, -(-turns // length), length)
                part = predict_chain(plan, target, chip, length)
                joining = predict_joining(partial.nbytes, target, chip)
                times = part.seconds + joining, part.bottleneck + joining
                found.append(_Choice(plan, body, rescaling, *times, partial))
    best = min(
        found,
        key=lambda each: each.seconds * (WORTH_PARTS if each.partial is None else 1),
        default=None,
    )
    if best is None:
        return None
    if best.seconds >= apart:
        best = min(found, key=lambda each: each.seconds)
    if best.partial is None:
        return _with_scaled_exponents(chain, best, chip.power_of_two, target)
    return _in_parts(chain, best, chip.power_of_two, target)


def _plans(body: list[Node], target: TargetDescription) -> list[ChainPlan]:
    """The plans of a nest of blocks of steps."""
    parts = chained_products(Nest(body, []))
    return [] if parts is None else list(chain_plans(parts, target))


def _with_scaled_exponents(
    chain: ProductChain, choice: _Choice, power: str, target: TargetDescription
) -> _Choice:
    """A choice whose exponents are scaled, and not the scores.

    The unit waits for other arithmetic where both share a pipe; elsewhere, if registers are left.
    """
    scale, chip = score_scale(chain, choice.rescaling), target.multiprocessor
    assert chip is not None
    pays = chip.one_pipe or choice.plan.registers() <= _ROOMY
    if not power or scale is None or not pays:
        return choice
    body = running_chain(chain, choice.rescaling, choice.plan.parts.block, power, scale=scale)
    return replace(choice, plan=_same_plan(choice, body, target), body=body)


def _same_plan(choice: _Choice, body: list[Node], target: TargetDescription) -> ChainPlan:
    """The plan of a choice for another nest."""
    known = choice.plan.first.tiles, choice.plan.stages
    (plan,) = (p for p in _plans(body, target) if (p.first.tiles, p.stages) == known)
    return plan


def _in_parts(
    chain: ProductChain, choice: _Choice, power: str, target: TargetDescription
) -> _Choice:
    """A choice with the nest that leaves partial sums."""
    block = choice.plan.parts.block
    body = running_chain(chain, choice.rescaling, block, power, choice.partial)
    return replace(choice, plan=_same_plan(choice, body, target), body=body)


def _least_seconds(nests: list[Nest], target: TargetDescription) -> float:
    """Seconds that nests take at least, one after the other.

    They are launched, a unit multiplies or memory moves what it multiplies, and what is passed goes
    through memory.
    """
    total = target.parallel[0].overhead * len(nests)
    for nest in nests:
        access = unit_access(nest, target.matrix_units)
        moved = seconds_of_memory(touched_bytes(nest.body), target)
        total += moved if access is None else max(least_units(access), moved)
    return total
