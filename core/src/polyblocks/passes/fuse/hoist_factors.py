"""hoist-factors: a factor of all terms of a sum of products is a factor of the sum."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from polyblocks.affine.analysis.contractions import Contraction
from polyblocks.affine.analysis.dataflow import makers_of, ops_of, slice_of, variables_of
from polyblocks.affine.analysis.facts import facts_of
from polyblocks.affine.element import BF16, F16, F32, dtype_of
from polyblocks.affine.fusion.candidates import candidate_buffers
from polyblocks.affine.mlir.source import merged_sources
from polyblocks.affine.model import (
    For,
    Load,
    Nest,
    Node,
    Op,
    Sequence,
    Store,
    Value,
    clone,
    remove_dead,
    replace_values,
    walk,
)
from polyblocks.affine.naming.names import name_nests
from polyblocks.affine.ops import Ops, has_flag
from polyblocks.affine.rewrites.inlining import Candidate, Producer, inline_into
from polyblocks.affine.rewrites.simplify import eliminate_common
from polyblocks.affine.users import Users
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass
from polyblocks.passes.normalize.precision_modes import container_of, products

#: Type of what is multiplied -> the largest factor, and the inverse of the smallest, that may move.
#: Products of float16 numbers are multiples of 2^-48 below 2^32, far from what float32 rounds or
#: has no room for; those of bfloat16 are anything, as the terms of a sum in another order are.
_FACTORS = {F16: 2.0**60, BF16: 2.0**16}


@dataclass(frozen=True)
class HoistFactorsPass(NestPass):
    """Multiply the sum where an operand of 16 bits was converted, scaled and stored in float32.

    The operand is then a plain conversion, which contractions do themselves: a matrix unit
    then multiplies 16 bits. Only positive factors move, out of sums that may be reassociated. A
    power of two changes no bit of numbers in range.

    Before::

        %x = affine.load %a[%i, %k] ...
        %w = arith.extf %x : f16 to f32
        %s = arith.mulf %w, %c fastmath<reassoc> : f32
        affine.store %s, %b[%i, %k]
        ...
        %r = affine.for %k = 0 to 64 iter_args(%t = %zero) -> (f32) {
          ... arith.mulf (affine.load %b[%i, %k]), %y ... }
        affine.store %r, %d[%i, %j]

    After::

        %r = affine.for %k = 0 to 64 iter_args(%t = %zero) -> (f32) {
          ... arith.mulf (arith.extf (affine.load %a[%i, %k])), %y ... }
        %s = arith.mulf %r, %c fastmath<reassoc> : f32
        affine.store %s, %d[%i, %j]

    On targets with register tiles, factors and divisors are moved that all terms of a sum have in
    common, such as the sum of a row in a softmax, if there are fewer sums than elements.

    Before::

        %y = arith.divf (affine.load %b[%i, %k]), (affine.load %t[%i]) fastmath<reassoc>
        affine.store %y, %p[%i, %k]
        ...
        %r = affine.for %k = 0 to 64 iter_args(%t = %zero) -> (f32) {
          ... arith.mulf (affine.load %p[%i, %k]), %y ... }

    After::

        %r = affine.for %k = 0 to 64 iter_args(%t = %zero) -> (f32) {
          ... arith.mulf (affine.load %b[%i, %k]), %y ... }
        %q = arith.divf %r, (affine.load %t[%i]) fastmath<reassoc>
    """

    name: ClassVar[str] = "hoist-factors"
    needs: ClassVar[frozenset[str]] = frozenset(
        {facts.NESTS, facts.REDUCTIONS, facts.KINDS, facts.UNTILED}
    )
    breaks: ClassVar[frozenset[str]] = frozenset({facts.UNFUSED})

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Move the factors of all buffers that only contractions read."""
        if context.options.polyblocks_disable_affine_fusion:
            return
        if context.target.has_register_tiles and _move_divisors(sequence, self.name, context):
            name_nests(self.name, sequence, context)
        if not any(unit.sums for unit in context.target.matrix_units):
            return
        users = Users(sequence)
        done = False
        for buffer in candidate_buffers(sequence):
            candidate = Candidate.of(users, buffer)
            scaling = None if candidate is None else _Scaling.of(candidate, users)
            if candidate is None or scaling is None:
                continue
            scaling.move()
            for consumer in candidate.consumers:
                consumer.sources = merged_sources([candidate.producer, consumer])
                users.refresh(consumer)
            sequence.items.remove(candidate.producer)
            users.drop(candidate.producer)
            done = True
            context.decide(
                self.name,
                candidate.producer.name,
                "moved",
                factor=scaling.factor,
                consumers=[c.name for c in candidate.consumers],
            )
        if done:
            name_nests(self.name, sequence, context)


@dataclass
class _Scaling:
    """A nest that only converts and scales, and the contractions that read what it makes.

    Attributes:
        candidate: the buffer between them.
        product: the multiplication by the constant.
        constant: the constant's node.
        converted: what is multiplied.
        sums: of each consumer its parts, and how often the factor is in each of its terms.
    """

    candidate: Candidate
    product: Op
    constant: Op
    converted: Value
    sums: list[tuple[Nest, Contraction, int]]

    @property
    def factor(self) -> float:
        """The constant."""
        return float(self.constant.attributes["value"].value)

    @classmethod
    def of(cls, candidate: Candidate, users: Users) -> _Scaling | None:
        """None if it is anything else, or the factor may not move."""
        producer = Producer.of(candidate)
        buffer = candidate.buffer
        if producer is None or not candidate.only_nests_read or buffer.kind == "output":
            return None
        makers = ops_of(producer.body)
        product = makers.get(producer.value)
        if product is None or product.name != "arith.mulf" or not _may_reassociate(product):
            return None
        pairs = (product.operands, product.operands[::-1])
        for value, other in pairs:
            extension, constant = makers.get(value), makers.get(other)
            if extension is None or constant is None or constant.name != "arith.constant":
                continue
            if extension.name != "arith.extf" or dtype_of(value.type) != F32:
                continue
            most = _FACTORS.get(dtype_of(extension.operands[0].type), 0.0)
            found = cls(candidate, product, constant, value, [])
            if most and 1 / most <= found.factor <= most and found._may_move(users, producer):
                return found
        return None

    def _may_move(self, users: Users, producer: Producer) -> bool:
        """Whether all consumers are sums of products that can be scaled at their end."""
        for consumer in self.candidate.consumers:
            if not self.candidate.may_inline(users, consumer):
                return False
            if not producer.is_plain_in(consumer):
                return False
            parts = facts_of(consumer).contraction
            times = 0 if parts is None else _times(consumer, parts, self.candidate)
            if parts is None or not times:
                return False
            self.sums.append((consumer, parts, times))
        return True

    def move(self) -> None:
        """Scale the sums, and convert where they are computed."""
        for consumer, parts, times in self.sums:
            loop = parts.reduction.loops[0]
            container = container_of(consumer.body, loop)
            at = container.index(loop) + 1
            after, result, new = container[at:], loop.results[0], list[Node]()
            value, ops = result, Ops(new)
            for _ in range(times):
                constant = Value(result.type)
                new.append(Op("arith.constant", [], self.constant.attributes, [constant]))
                value = ops.like(self.product, [value, constant])
            replace_values(after, {result: value})
            container[at:at] = new
        self.candidate.store.value = self.converted
        remove_dead(self.candidate.producer.body)
        producer = Producer.of(self.candidate)
        assert producer is not None
        for consumer in self.candidate.consumers:
            inline_into(consumer.body, producer)
            eliminate_common(consumer.body)
            remove_dead(consumer.body)
            consumer.replace()


def _times(nest: Nest, parts: Contraction, candidate: Candidate) -> int:
    """How often an element of the buffer is a factor of each term of the only sum; 0 if unlike."""
    loops = parts.reduction.loops
    if not loops or len(loops[-1].arguments) != 1 or not _begins_at_zero(parts):
        return 0
    body, combiners = loops[-1].body, parts.combiners
    found = products(parts)
    if len(found) != 1 or not combiners or combiners[0].name != "arith.addf":
        return 0
    (product,) = found
    if not (_may_reassociate(product) and _may_reassociate(combiners[0])):
        return 0
    # The sum has that term and no other.
    if {*combiners[0].operands} != {loops[-1].arguments[0], product.results[0]}:
        return 0
    mine = {
        n.result for n in walk(nest.body) if isinstance(n, Load) and n.buffer is candidate.buffer
    }
    inside = {n.result for n in body if isinstance(n, Load) and n.buffer is candidate.buffer}
    others = (v for n in walk(nest.body) if n is not product for v in n.uses)
    if mine != inside or any(v in mine for v in others):
        return 0
    return sum(v in mine for v in product.operands)


def _begins_at_zero(parts: Contraction) -> bool:
    (init,) = parts.reduction.loops[0].inits
    makers = ops_of(parts.before)
    maker = makers.get(init)
    return (
        maker is not None
        and maker.name == "arith.constant"
        and float(maker.attributes["value"].value) == 0.0
    )


def _may_reassociate(op: Op) -> bool:
    return has_flag(op, "reassoc")


def _move_divisors(sequence: Sequence, name: str, context: Any) -> bool:
    """Move what all terms of sums are divided by, or multiplied by; whether there was such."""
    users = Users(sequence)
    done = False
    for buffer in candidate_buffers(sequence):
        candidate = Candidate.of(users, buffer)
        divisor = None if candidate is None else _Divisor.of(candidate, users)
        if candidate is None or divisor is None:
            continue
        consumers = [consumer.name for consumer in candidate.consumers]
        divisor.move()
        for nest in (candidate.producer, *candidate.consumers):
            users.refresh(nest)
        if divisor.may_be_left_out:
            producer = Producer.of(candidate)
            assert producer is not None
            for consumer in candidate.consumers:
                inline_into(consumer.body, producer)
                eliminate_common(consumer.body)
                remove_dead(consumer.body)
                consumer.sources = merged_sources([candidate.producer, consumer])
                consumer.replace()
                users.refresh(consumer)
            sequence.items.remove(candidate.producer)
            users.drop(candidate.producer)
        done = True
        operation = divisor.operation.name.removeprefix("arith.")
        context.decide(
            name, candidate.producer.name, "moved", factor=operation, consumers=consumers
        )
    return done


@dataclass
class _Divisor:
    """A nest that divides elements by what is the same along the sums that read them.

    Attributes:
        candidate: the buffer between them.
        operation: the division or multiplication.
        numerator: what is divided.
        divisor: by what.
        code: what computes the divisor.
        sums: of each consumer its parts.
    """

    candidate: Candidate
    operation: Op
    numerator: Value
    divisor: Value
    code: list[Node]
    sums: list[tuple[Nest, Contraction]]

    @property
    def may_be_left_out(self) -> bool:
        """Whether the nest only copies now."""
        body = [n for n in walk(self.candidate.producer.body) if not isinstance(n, (For, Store))]
        return len(body) == 1 and isinstance(body[0], Load)

    @classmethod
    def of(cls, candidate: Candidate, users: Users) -> _Divisor | None:
        """None if it is anything else, or there are no fewer sums than elements."""
        producer = Producer.of(candidate)
        buffer = candidate.buffer
        if producer is None or not candidate.only_nests_read or buffer.kind == "output":
            return None
        operation = ops_of(producer.body).get(producer.value)
        if operation is None or not _may_reassociate(operation):
            return None
        if operation.name not in ("arith.divf", "arith.mulf"):
            return None
        pairs = [tuple(operation.operands)]
        if operation.name == "arith.mulf":
            pairs.append(tuple(reversed(operation.operands)))
        makers = makers_of(producer.body)
        for numerator, divisor in pairs:
            code = slice_of([divisor], makers)
            nodes = [n for n in producer.body if n in code]
            found = cls(candidate, operation, numerator, divisor, nodes, [])
            if any(isinstance(n, Load) for n in nodes) and found._may_move(users, producer):
                return found
        return None

    def _may_move(self, users: Users, producer: Producer) -> bool:
        """Whether all consumers are sums of products in which the divisor is always the same."""
        buffer = self.candidate.buffer
        varying = variables_of(self.code)
        results = 0
        for consumer in self.candidate.consumers:
            parts = facts_of(consumer).contraction
            if parts is None or not self.candidate.may_inline(users, consumer):
                return False
            if not producer.is_plain_in(consumer) or _times(consumer, parts, self.candidate) != 1:
                return False
            steps = set(parts.reduction.order)
            for load in consumer.touching(buffer):
                at = producer.iteration(load.index) if isinstance(load, Load) else {}
                if any(v not in at or at[v].depends_on_any(steps) for v in varying):
                    return False
            results += prod(v.extent for v in (*parts.batch, *parts.rows, *parts.columns))
            self.sums.append((consumer, parts))
        return results < buffer.numel

    def move(self) -> None:
        """Divide the sums, and store what was divided."""
        producer = Producer.of(self.candidate)
        assert producer is not None
        for consumer, parts in self.sums:
            (load,) = {
                n.index: n
                for n in walk(consumer.body)
                if isinstance(n, Load) and n.buffer is self.candidate.buffer
            }.values()
            loop = parts.reduction.loops[0]
            container = container_of(consumer.body, loop)
            at = container.index(loop) + 1
            values: dict[Value, Value] = {}
            new = clone(self.code, values, producer.iteration(load.index))
            operands = {self.numerator: loop.results[0], self.divisor: values[self.divisor]}
            value = Ops(new).like(self.operation, [operands[v] for v in self.operation.operands])
            after = container[at:]
            replace_values(after, {loop.results[0]: value})
            container[at:] = [*new, *after]
            consumer.replace()
        self.candidate.store.value = self.numerator
        remove_dead(self.candidate.producer.body)
        self.candidate.producer.replace()
