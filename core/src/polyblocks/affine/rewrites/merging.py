"""Two loops in one: when that is allowed, and the merged loop with what its body has twice."""

from __future__ import annotations

from polyblocks.affine.access import address, all_accesses
from polyblocks.affine.analysis.boxes import overlap, touched
from polyblocks.affine.analysis.coverage import same_for
from polyblocks.affine.analysis.parallel import is_parallel
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import (
    Access,
    AffineAccess,
    Alloca,
    AnyStore,
    Buffer,
    For,
    Load,
    Node,
    Store,
    Value,
    clone,
    stored_bases,
    transform_indices,
    walk,
)
from polyblocks.affine.subnests import is_affine_code
from polyblocks.affine.vectors.interleaves import MAX_WHOLE_STEP
from polyblocks.affine.vectors.lanes import NoLanesError, lanes_of


def same_header(a: For, b: For) -> bool:
    """Whether two serial loops run over the same values."""
    if a.level or b.level or a.simd or b.simd:
        return False
    return (a.var.extent, a.lower, a.upper) == (b.var.extent, b.lower, b.upper)


def may_merge(a: For, b: For) -> bool:
    """Whether every iteration of ``b`` may follow the same one of ``a`` at once.

    So it is if both touch a common element, that one of them writes, in the same iteration only,
    or never.
    The caller checks results of ``a`` that ``b`` uses.
    """
    mine, theirs = all_accesses(a.body), all_accesses(b.body)
    written = stored_bases(a.body) | stored_bases(b.body)
    inner = {n.var for n in (*walk(a.body), *walk(b.body)) if isinstance(n, For)}
    at = {b.var: Expr.of(a.var)}
    for x in mine:
        if x.buffer.base not in written:
            continue
        for y in theirs:
            if y.buffer.base is not x.buffer.base:
                continue
            if not isinstance(x, AnyStore) and not isinstance(y, AnyStore):
                continue
            if y.buffer is not x.buffer:
                return False
            if not isinstance(x, AffineAccess) or not isinstance(y, AffineAccess):
                return False
            moved = [e.substitute(at) for e in y.index]
            if same_for(list(x.index), moved, a.var, inner):
                continue
            if overlap(touched(x.index), touched(y.index)):
                return False
    return True


def fits(a: For, b: For) -> bool:
    """Whether two loops can be one, with all loops in them, and vectors are as possible as before.

    Inside there is one loop each, or none.
    """
    if not same_header(a, b) or not may_merge(a, b):
        return False
    inner_a = [n for n in a.body if isinstance(n, For)]
    inner_b = [n for n in b.body if isinstance(n, For)]
    if not inner_a and not inner_b:
        kinds = (_lanes(a), _lanes(b))
        return kinds[0] == kinds[1] != "scan"
    if len(inner_a) != 1 or len(inner_b) != 1:
        return False
    moved = clone(b.body, {}, {b.var: Expr.of(a.var)})
    start = a.body.index(inner_a[0])
    end = b.body.index(inner_b[0])
    last = moved[end]
    assert isinstance(last, For)
    between = [*a.body[start + 1 :], *moved[:end]]
    return split_between(between, inner_a[0], last) is not None and fits(inner_a[0], last)


def _lanes(loop: For) -> str:
    """How the iterations of an innermost loop can become lanes."""
    if not is_parallel(loop, [loop]):
        return "none"
    try:
        return "scan" if lanes_of(loop).scan else "vectors"
    except NoLanesError:
        return "none"


def fills_gaps(a: For, b: For) -> bool:
    """Whether one loop stores between the elements of a row that the other one stores."""
    variables = zip(_counters(a), _counters(b), strict=False)
    at = {theirs: Expr.of(mine) for mine, theirs in variables}
    *_, inner = _counters(a)
    theirs = [n for n in walk(b.body) if isinstance(n, Store)]
    for x in walk(a.body):
        if not isinstance(x, Store):
            continue
        place = address(x.buffer, x.index)
        step = abs(place.coefficient(inner) or 0)
        if not 1 < step <= MAX_WHOLE_STEP:
            continue
        for y in theirs:
            if y.buffer is x.buffer:
                apart = address(y.buffer, y.index).substitute(at) - place
                if apart.is_constant and 0 < abs(apart.const) < step:
                    return True
    return False


def _counters(loop: For) -> list[Var]:
    """The variables of a loop and of the first in it, and so on."""
    found = [loop.var]
    while (inside := next((n for n in loop.body if isinstance(n, For)), None)) is not None:
        found.append(inside.var)
        loop = inside
    return found


def merged(a: For, b: For) -> For:
    """``a`` with the body and the carried values of ``b`` behind its own; both are used up."""
    at = {b.var: Expr.of(a.var)}
    transform_indices(b.body, lambda e: e.substitute(at))
    return For(
        a.var,
        [*a.body, *b.body],
        [*a.inits, *b.inits],
        [*a.arguments, *b.arguments],
        [*a.results, *b.results],
        [*a.yields, *b.yields],
        a.level,
        a.lower,
        a.upper,
    )


def split_between(nodes: list[Node], a: For, b: For) -> tuple[list[Node], list[Node]] | None:
    """The code between two loops, in two parts: to go before, and to go after.

    None if ``b`` needs what only is there after ``a``.
    """
    if not is_affine_code(nodes, Alloca):
        return None
    written_a = stored_bases(a.body)
    late: set[Value] = set(a.results)
    late_buffers: set[Buffer] = set()
    loaded: set[Buffer] = set()
    before: list[Node] = []
    after: list[Node] = []
    for node in nodes:
        ready = not node.writes and not any(v in late for v in node.uses)
        if isinstance(node, Access):
            ready = ready and node.buffer.base not in written_a | late_buffers
        if ready:
            before.append(node)
            continue
        after.append(node)
        late.update(node.defines)
        if isinstance(node, Access):
            (late_buffers if node.writes else loaded).add(node.buffer.base)
    for node in (b, *walk(b.body)):
        if any(v in late for v in node.uses):
            return None
        if isinstance(node, Access) and (
            node.buffer.base in late_buffers or (node.writes and node.buffer.base in loaded)
        ):
            return None
    return before, after


def forward(body: list[Node], known: dict[Value, Value]) -> None:
    """Use what was stored or loaded before at the same place.

    Args:
        body: nodes of one loop, loops among them; loads of its own that are not needed are dropped.
        known: takes what the results of dropped loads are.
    """
    at: dict[tuple[Buffer, tuple[Expr, ...]], Value] = {}
    kept: list[Node] = []
    for node in body:
        if isinstance(node, Load) and not node.where:
            place = (node.buffer, node.index)
            if place in at:
                known[node.result] = at[place]
                continue
            at[place] = node.result
        elif node.writes or isinstance(node, For):
            written = stored_bases([node])
            at = {place: value for place, value in at.items() if place[0].base not in written}
            if isinstance(node, Store):
                at[node.buffer, node.index] = known.get(node.value, node.value)
        kept.append(node)
    body[:] = kept
