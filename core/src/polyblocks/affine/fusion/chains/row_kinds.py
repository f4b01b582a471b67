"""How values of a chain depend on a running maximum: what may be computed before that is known.

``exp(x - c)`` with a number ``c`` of the row, made from the largest of its scores, is
``exp(x - d)`` times ``exp(d - c)``, and so is all that is linear in it. A sum over a row may then
begin with the largest score so far, and be rescaled where that grows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from polyblocks.affine.analysis.reduction_chains import StraightLineCode
from polyblocks.affine.analysis.reductions import in_any_order
from polyblocks.affine.fusion.chains.chained_products import Link, ProductChain
from polyblocks.affine.fusion.rescaling import Kind, kind_of
from polyblocks.affine.model import Buffer, For, Index, Load, Node, Op, Pure, Store, Value, walk

_MAXIMA = ("arith.maximumf", "arith.maxnumf")


@dataclass(eq=False)
class Rescaling:
    """The kinds of a chain's values, and what is done with them.

    Attributes:
        maximum: the nest that finds the largest score; None if no exponential is less of one.
        divisions: of elements by a sum of their row: they are done with the sums of the last nest.
        exponentials: the operations that are rescaled by, equal ones of equal numbers.
        linear: nests that sum multiples of exponentials.
        kinds: of every value.
        buffers: of what is passed, and of what is held.
    """

    maximum: Link | None = None
    divisions: list[Op] = field(default_factory=list)
    exponentials: list[Op] = field(default_factory=list)
    linear: set[Link] = field(default_factory=set)
    kinds: dict[Value, Kind] = field(default_factory=dict)
    buffers: dict[Buffer, Kind] = field(default_factory=dict)

    @property
    def exponential(self) -> Op | None:
        """The first of the operations that are rescaled by."""
        return self.exponentials[0] if self.exponentials else None

    def of(self, value: Value) -> Kind:
        """The kind of a value."""
        return self.kinds.get(value, Kind.PLAIN)

    def is_late(self, link: Link) -> bool:
        """Whether a row's numbers are there when all steps are done."""
        return any(self.buffers.get(s.buffer) is Kind.LATE for s in _stores(link.body))


def rescaling_of(chain: ProductChain) -> Rescaling | None:
    """How a chain's values depend on sums over rows; None if they do in any other way."""
    if in_any_order(chain.product.combiners) is None:
        return None
    found = Rescaling()
    inside = chain.passed | chain.held
    for link in chain.links:
        if not (_see_elements if link.of_elements else _see_row)(found, link, inside):
            return None
    if found.maximum is None and found.exponential is not None:
        return None
    # The last product is linear in its operand, and what comes behind it may be anything.
    loop = chain.product.reduction.loops[0]
    if not _is_linear_sum(found, loop, inside):
        return None
    return found if _is_as_exact(found, loop) else None


def _is_as_exact(found: Rescaling, loop: For) -> bool:
    """Whether exponentials, by which sums are rescaled again and again, have the type of sums."""
    loops = [loop, *(link.reduction for link in found.linear)]
    types = {each.results[0].type for each in loops if each is not None}
    return found.exponential is None or types == {found.exponential.results[0].type}


def _see_elements(found: Rescaling, link: Link, inside: set[Buffer]) -> bool:
    """Give the values of elements their kinds."""
    for node in walk(link.body):
        if isinstance(node, For):
            # The steps of a product: of what is there before.
            if any(isinstance(n, Load) and n.buffer in inside for n in walk(node.body)):
                return False
        elif not _see(found, node, inside):
            return False
    kinds = {found.of(s.value) for s in _stores(link.body)}
    return kinds <= {Kind.PLAIN, Kind.LINEAR}


def _see_row(found: Rescaling, link: Link, inside: set[Buffer]) -> bool:
    """Give the numbers of a row their kinds."""
    for node in link.body:
        if node is link.reduction:
            kind = _reduced(found, link, link.reduction, inside)
            if kind is None or len(link.reduction.results) != 1:
                return False
            if kind is Kind.SHIFT:
                if found.maximum is not None:
                    return False
                found.maximum = link
            found.kinds[link.reduction.results[0]] = kind
        elif isinstance(node, Load):
            if node.buffer in inside:
                found.kinds[node.result] = found.buffers[node.buffer]
        elif isinstance(node, Store):
            found.buffers[node.buffer] = found.of(node.value)
        elif not isinstance(node, Pure):
            return False
        elif kinds := {found.of(v) for v in node.uses} - {Kind.PLAIN}:
            late = Kind.LATE in kinds
            found.kinds.update(dict.fromkeys(node.defines, Kind.LATE if late else Kind.SHIFT))
    # The shift is computed where the largest score is found.
    shifts = [n for n in _stores(link.body) if found.of(n.value) is Kind.SHIFT]
    return not shifts or (link is found.maximum and len(shifts) == 1)


def _reduced(found: Rescaling, link: Link, loop: For, inside: set[Buffer]) -> Kind | None:
    """The kind of the result of a reduction over a row."""
    chain = StraightLineCode(loop.body).chain(loop.yields[0])
    if chain is None or loop.arguments[0] not in chain.terms or len(chain.terms) != 2:
        return None
    for node in loop.body:
        if node is not chain.last and not _see(found, node, inside):
            return None
    (term,) = (t for t in chain.terms if t is not loop.arguments[0])
    kind = found.of(term)
    if kind is Kind.PLAIN and chain.last.name in _MAXIMA:
        return Kind.SHIFT
    if kind is Kind.LINEAR:
        found.linear.add(link)
    adds = chain.last.name == "arith.addf" and in_any_order([chain.last]) is not None
    return Kind.LATE if adds and kind in (Kind.PLAIN, Kind.LINEAR) else None


def _is_linear_sum(found: Rescaling, loop: For, inside: set[Buffer]) -> bool:
    """Whether the last product adds multiples of one passed element."""
    loads = [n for n in loop.body if isinstance(n, Load) and n.buffer in inside]
    kinds = {found.buffers.get(n.buffer) for n in loads}
    return len(loads) == 1 and kinds <= {Kind.PLAIN, Kind.LINEAR}


def _see(found: Rescaling, node: Node, inside: set[Buffer]) -> bool:
    """Give what a node makes of an element its kind; whether it has one."""
    if isinstance(node, Store):
        found.buffers[node.buffer] = found.of(node.value)
        return True
    if isinstance(node, Load):
        if node.buffer in inside:
            found.kinds[node.result] = found.buffers[node.buffer]
        return True
    if not isinstance(node, Op):
        return isinstance(node, Index)
    kinds = [found.of(v) for v in node.operands]
    if set(kinds) <= {Kind.PLAIN}:
        return True
    kind = _kind_of_result(found, node, kinds)
    if kind is None:
        return False
    found.kinds.update(dict.fromkeys(node.results, kind))
    return True


def _kind_of_result(found: Rescaling, op: Op, kinds: list[Kind]) -> Kind | None:
    """The kind of an operation's result; None if a chain's nest cannot be rescaled by it."""
    kind = kind_of(op, kinds)
    if kind is Kind.EXPONENT and op.name not in ("arith.subf", "arith.extf"):
        return None
    if kinds[0] is Kind.EXPONENT and kind is Kind.LINEAR:
        # Powers of two are made of exponentials alone, and there is one shift.
        if op.name != "math.exp" or not _is_same(found, op):
            return None
        found.exponentials.append(op)
    elif kinds == [Kind.LINEAR, Kind.LINEAR]:
        # One of them may still be divided by a sum.
        return None
    elif kinds == [Kind.LINEAR, Kind.LATE] and kind is Kind.LINEAR:
        found.divisions.append(op)
    return kind


def _is_same(found: Rescaling, op: Op) -> bool:
    """Whether an exponential is one of the type of those before: there is one shift."""
    return found.exponential is None or found.exponential.results[0].type == op.results[0].type


def _stores(nodes: list[Node]) -> list[Store]:
    return [n for n in walk(nodes) if isinstance(n, Store)]
