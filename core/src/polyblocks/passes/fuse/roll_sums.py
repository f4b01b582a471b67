"""roll-sums: long sums of terms that are computed alike are loops over the terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.analysis.reductions import identities
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.mlir.regions import stands_before
from polyblocks.affine.model import For, Nest, Node, Op, Sequence, Store, Value, around, clone
from polyblocks.affine.naming.names import own_name
from polyblocks.affine.operation_cost import MAX_NODES
from polyblocks.affine.ops import like
from polyblocks.affine.rewrites.rolling import NotAlikeError, Roller, digit_shapes
from polyblocks.affine.subnests import perfect_loops
from polyblocks.affine.users import Users
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass
from polyblocks.passes.fuse.term_sums import TermSum, step_of, term_sums
from polyblocks.target import TargetDescription


@dataclass(frozen=True)
class RollSumsPass(NestPass):
    """Find sums that a program adds up term by term, and make them reductions.

    A program that says a loop over the shifts of a window step by step is as long as the window is
    large; no body of code holds all of it, and intermediate sums go through memory. So sums with
    too many terms for one nest are rolled, with the code of the terms, if the terms differ by
    constants only: those in indices are counted by one loop or two, others come out of a table. A
    maximum or a product is a sum here, too.

    Before::

        affine.for %i .. { affine.store %w, %w0[%i] } ...
        affine.for %i .. { ... affine.load %w0[%i] ... arith.addf ... affine.store %t, %t0[%i] }
        affine.for %i .. { affine.store %w, %w1[%i] } ...
        affine.for %i .. { ... %t0[%i] ... %w1[%i] ... arith.addf ... affine.store %t, %t1[%i] }

    After::

        affine.for %k = 0 to 2 { affine.for %i .. { affine.store %w, %w[%k, %i] } }
        affine.for %i .. {
          %t = affine.for %k = 0 to 2 iter_args(..) { ... affine.load %w[%k, %i] ... }
          affine.store %t, %t1[%i] }
    """

    name: ClassVar[str] = "roll-sums"
    needs: ClassVar[frozenset[str]] = frozenset({facts.NESTS, facts.UNFUSED})
    #: Terms of a sum, at least.
    min_terms: int = 8
    #: Nodes that ``fuse-slices`` lets one body have; sums that need no more are best without loops.
    max_nodes: int = MAX_NODES
    #: Operations for an element, and all that read it in a window, to compute it for each of them:
    #: kept in memory for all steps it would be larger than it was step by step.
    max_operations: int = 64

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Roll the sums that have equally many terms together, and all others by themselves."""
        if context.options.polyblocks_disable_affine_fusion:
            return
        users = Users(sequence)
        by_count: dict[int, list[TermSum]] = {}
        for found in term_sums(sequence, users):
            if len(found.terms) >= self.min_terms:
                by_count.setdefault(len(found.terms), []).append(found)
        for sums in by_count.values():
            if not self._roll(sums, sequence, users, context) and len(sums) > 1:
                for one in sums:
                    self._roll([one], sequence, users, context)

    def _roll(self, sums: list[TermSum], sequence: Sequence, users: Users, context: Any) -> bool:
        """Roll some sums, which may have terms in common; whether that is possible and pays."""
        for shape in digit_shapes(len(sums[0].terms)):
            roller = Roller(users, shape)
            try:
                bodies = [_rolled(found, roller) for found in sums]
            except NotAlikeError:
                continue
            return self._accept(sums, bodies, roller, sequence, users, context)
        return False

    def _accept(
        self,
        sums: list[TermSum],
        bodies: list[list[Node]],
        roller: Roller,
        sequence: Sequence,
        users: Users,
        context: Any,
    ) -> bool:
        if not self._pays(roller, context.target) or not _possible(sums, roller, users):
            return False
        ends = [found.nests[-1] for found in sums]
        place = min(ends, key=users.position)
        for end, body in zip(ends, bodies, strict=True):
            context.decide(self.name, own_name(end, sequence), "rolled", terms=list(roller.shape))
            end.replace(body)
        at = sequence.items.index(place)
        sequence.items[at:at] = roller.nests
        users.put_before(roller.nests, place)
        for nest in _all_nests(sums, roller).difference(ends):
            sequence.items.remove(nest)
            users.drop(nest)
        for end in ends:
            users.refresh(end)
        return True

    def _pays(self, roller: Roller, target: TargetDescription) -> bool:
        """Whether one body could not hold all terms, but holds one with all that it is made of.

        Window elements are recomputed for each place. That pays where the caches do not hold
        it, all terms together.
        """
        if roller.nodes <= self.max_nodes:
            return False
        windows = [(b, places) for b, places in roller.places.items() if places > 1]
        cached = max((level.size for level in target.memory), default=0)
        nodes = roller.nodes // roller.count
        for buffer, places in windows:
            operations = places * roller.operations[buffer]
            if operations > self.max_operations or buffer.nbytes <= cached:
                return False
            nodes += operations
        return nodes <= self.max_nodes


def _all_nests(sums: list[TermSum], roller: Roller) -> set[Nest]:
    """The nests that do what sums do, the last ones of these among them."""
    return roller.gone.union(*(found.nests for found in sums))


def _possible(sums: list[TermSum], roller: Roller, users: Users) -> bool:
    """Whether the terms are needed for nothing else, and may be computed where the sums end."""
    nests = _all_nests(sums, roller)
    ends = [found.nests[-1] for found in sums]
    first, last = min(nests, key=users.position), max(ends, key=users.position)
    shared = {b.base for b in roller.shared}
    if users.written_between(shared, first, last) or any(
        shared & users.touched(nest)[1] for nest in (first, last)
    ):
        return False
    made = {b for nest in nests.difference(ends) for b in users.touched(nest)[1]}
    if any(reader not in nests for b in made for reader in users.readers(b)):
        return False
    place = min(ends, key=users.position)
    return all(stands_before(nest, place) for nest in roller.nests)


def _rolled(found: TermSum, roller: Roller) -> list[Node]:
    """The code of a sum as a reduction.

    Raises:
        NotAlikeError: terms are computed in different ways.
    """
    last = found.nests[-1]
    _, store = step_of(last) or (None, None)
    assert store is not None
    index = [Var(extent) for extent in store.buffer.shape]
    at = tuple(Expr.of(v) for v in index)
    nodes: list[Node] = []
    values: dict[Nest, dict[Value, Value]] = {}
    for nest in found.nests:
        values[nest] = {}
        _, body = perfect_loops(nest.body)
        step = step_of(nest)
        assert step is not None
        substitution: dict[Var, Expr] = {}
        for expr, e in zip(step[1].index, at, strict=True):
            for var in expr.variables():
                substitution[var] = e
        kept = [n for n in body if not isinstance(n, Store) and n is not step[0]]
        nodes += clone(kept, values[nest], substitution)
    code = roller.code(nodes)
    term = roller.roll(tuple(values[nest][value] for nest, value in found.terms), code)
    op = found.ops[0]
    type_ = op.results[0].type
    if found.start is None:
        zeros = identities([op])
        if zeros is None:
            raise NotAlikeError
        start, init = zeros, zeros[0].results[0]
    else:
        init = values[found.nests[0]].get(found.start, found.start)
        start = [n for n in nodes if isinstance(n, Op) and n.results[0] is init]
    total, argument = Value(type_), Value(type_)
    combined = like(op, [argument, term], total)
    loop = _chain(code.digits, [*code.body, combined], init, argument, total)
    last_store = Store(loop.results[0], store.buffer, at, store.location)
    return around(index, [*start, loop, last_store])


def _chain(digits: list[Var], inner: list[Node], init: Value, argument: Value, total: Value) -> For:
    """Loops over the digits that carry a sum from ``init`` on, the first one outermost.

    ``argument`` and ``total`` are the sum before and after ``inner``.
    """
    arguments = [*(Value(init.type) for _ in digits[1:]), argument]
    begins = [init, *arguments]
    body, yielded = inner, total
    for digit, begin, own in reversed(list(zip(digits, begins, arguments, strict=False))):
        loop = For(digit, body, [begin], [own], [Value(init.type)], [yielded])
        body, yielded = [loop], loop.results[0]
    return loop
