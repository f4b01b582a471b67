"""Blocks of steps in which affine conditions mask elements of a row.

Those whose elements are all masked are left out; only those at a border are masked element by
element.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.masks.absence import Absence, Number, constants_of
from polyblocks.affine.masks.constraints import Bound, bound_of, conditions_of
from polyblocks.affine.model import Buffer, For, Load, Node, Op, Store, Value, clone


def bound_blocks(
    blocks: For, elements: For, scores: Buffer, rows: Collection[Var], size: int
) -> None:
    """Let the loop over blocks leave out those of masked elements, in place.

    Where a score is minus infinity the maximum stays what it is, and an exponential is zero.

    Args:
        blocks: the loop over blocks of steps.
        elements: one of its statements, over the steps of a block.
        scores: a buffer that it may store: exponentials are of its elements less the largest one.
        rows: variables of the loops around.
        size: steps of a block.
    """
    _leave_out(blocks, _masks(elements, scores, rows), size)


def bound_absent_blocks(
    blocks: For, statements: list[For], operand: Buffer, rows: Collection[Var], size: int
) -> None:
    """Let the loop over blocks leave out those whose elements masks make zero, in place.

    Such elements are exponentials of minus infinity, or multiples of them; what they are multiplied
    by does not matter.

    Args:
        blocks: the loop over blocks of steps.
        statements: those of its statements that go over the steps of a block.
        operand: the buffer of the elements that the last product multiplies.
        rows: variables of the loops around.
        size: steps of a block.
    """
    for statement in statements:

        def hides(value: Value, outcome: bool, at: For = statement) -> bool:
            known = _numbers(statements, at, value, outcome).get(operand)
            return known is not None and known.is_absent

        _leave_out(blocks, _masks_that(hides, statement, rows), size)


def _leave_out(blocks: For, masks: list[_Mask], size: int) -> None:
    """Bound the loop over blocks by those with elements that masks leave."""
    for bound in (bound for mask in masks for bound in mask.cuts):
        end = (bound.at + (size - 1)) // size if bound.upper else bound.at // size
        if bound.upper and end.range()[0] < blocks.var.extent:
            blocks.upper = (*blocks.upper, end)
        elif not bound.upper and end.range()[1] > 0:
            blocks.lower = (*blocks.lower, end)


def masks_at_borders(
    elements: For, scores: Buffer, rows: Collection[Var], size: int, first: Expr
) -> list[Node]:
    """Loops over the elements of a block that masks hide, instead of a test of each, in place.

    In a block without such elements they have no iterations. Before::

        for %j = %t * 64 to %t * 64 + 64 {
          %kept = %j <= %i;  %masked = select %kept, %score, -inf
          store %masked, %scores[%j - %t * 64] }

    After::

        for %j = %t * 64 to %t * 64 + 64 { store %score, %scores[%j - %t * 64] }
        for %j = max(%t * 64, %i + 1) to %t * 64 + 64 { store -inf, %scores[%j - %t * 64] }

    Args:
        elements: a loop over the steps of a block.
        scores: the buffer that it stores.
        rows: variables of the loops around.
        size: steps of a block.
        first: the first step of the block.
    """
    loops: list[Node] = []
    for mask in _masks(elements, scores, rows):
        store = next(n for n in elements.body if isinstance(n, Store) and n.buffer is scores)
        select = mask.select_before(store, elements.body)
        if select is None or not mask.is_exact(elements.var, rows):
            continue
        _, if_true, if_false = select.operands
        lowest, kept = (if_true, if_false) if mask.absent else (if_false, if_true)
        (low,) = (n for n in elements.body if isinstance(n, Op) and lowest in n.results)
        elements.body = [n for n in elements.body if n is not select]
        store.value = kept
        for bound in mask.cuts:
            var = Var(elements.var.extent, elements.var.name)
            at, end = bound.at, first + size
            index = tuple(e.substitute({elements.var: Expr.of(var)}) for e in store.index)
            (constant,) = clone([low], {}, {})
            body: list[Node] = [constant, Store(constant.defines[0], scores, index, store.location)]
            lower, upper = ((first, at), (end,)) if bound.upper else ((first,), (end, at))
            loops.append(For(var, body, lower=lower, upper=upper))
    return loops


def most_runs(loop: For) -> int:
    """Iterations of a loop at most."""
    first = max([0, *(e.range()[0] for e in loop.lower)])
    end = min([loop.var.extent, *(e.range()[1] for e in loop.upper)])
    return end - first


@dataclass(frozen=True)
class _Mask:
    """A condition that masks elements of a row.

    Attributes:
        condition: the value.
        absent: what it is where elements are masked.
        needed: expressions of a score, none of which is negative where it is not masked.
        cuts: ranges of steps of a row; scores outside of any are masked.
    """

    condition: Value
    absent: bool
    needed: tuple[Expr, ...]
    cuts: tuple[Bound, ...]

    def is_exact(self, var: Var, rows: Collection[Var]) -> bool:
        """Whether no score inside of all ranges is masked by the condition."""
        return all(
            var in expr.variables()
            and set(expr.variables()) <= {var, *rows}
            and all(isinstance(atom, Var) for atom, _ in expr.terms)
            for expr in self.needed
        )

    def select_before(self, store: Store, nodes: list[Node]) -> Op | None:
        """The choice between a score and minus infinity whose result is stored, and not else used.

        None if there is no such choice by this condition.
        """
        uses = [n for n in nodes if store.value in n.uses]
        found = [n for n in nodes if isinstance(n, Op) and store.value in n.results]
        if len(uses) != 1 or len(found) != 1 or found[0].name != "arith.select":
            return None
        (select,) = found
        lowest = constants_of(nodes).get(select.operands[1 if self.absent else 2])
        mine = select.operands[0] is self.condition
        return select if mine and lowest is not None and lowest.is_lowest else None


def _masks(elements: For, scores: Buffer, rows: Collection[Var]) -> list[_Mask]:
    """The conditions that mask scores outside of ranges of steps."""

    def hides(value: Value, outcome: bool) -> bool:
        known = _numbers([elements], elements, value, outcome).get(scores)
        return known is not None and known.is_lowest

    return _masks_that(hides, elements, rows)


def _numbers(statements: list[For], at: For, value: Value, outcome: bool) -> dict[Buffer, Number]:
    """Elements that statements pass on as known numbers, if a condition in one of them is known."""
    found: dict[Buffer, Number] = {}
    for statement in statements:
        known = constants_of(statement.body)
        for node in statement.body:
            if isinstance(node, Load) and node.buffer in found:
                known[node.result] = found[node.buffer]
        if statement is at:
            known[value] = Number(outcome)
        absence = Absence(known, ())
        absence.run(statement.body)
        for store, stored in absence.stored.items():
            found.pop(store.buffer, None)
            if isinstance(stored, Number):
                found[store.buffer] = stored
    return found


def _masks_that(
    hides: Callable[[Value, bool], bool], elements: For, rows: Collection[Var]
) -> list[_Mask]:
    """The conditions in a statement one of whose outcomes hides elements outside of ranges."""
    found = []
    for value, condition in conditions_of(elements.body).items():
        for outcome in (False, True):
            if not hides(value, outcome):
                continue
            needed = condition.needed_for(not outcome)
            bounds = [bound_of(number, elements.var, rows, ()) for number in needed]
            cuts = tuple(b for b in bounds if b is not None and b.cuts(elements.var))
            if cuts:
                found.append(_Mask(value, outcome, needed, cuts))
    return found
