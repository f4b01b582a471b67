"""Unroll-and-jam: iterations of a parallel loop share loops of a reduction, or what they read."""

from __future__ import annotations

from math import gcd

from polyblocks.affine import operation_cost as cost
from polyblocks.affine.analysis.reductions import ReductionNest
from polyblocks.affine.cleanup.load_order import in_order_of_loads
from polyblocks.affine.element import element_bytes
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Alloca, Buffer, For, Load, Node, Store, Value, clone
from polyblocks.affine.rewrites.shared_sums import share_extremes, share_sums
from polyblocks.affine.rewrites.simplify import eliminate_common, on_demand
from polyblocks.affine.subnests import mark_tiles


def jam(shape: ReductionNest, loop: For, unroll_factor: int) -> list[Node]:
    """``unroll_factor`` iterations of ``loop`` in one, and the iterations left over."""
    count, rest = divmod(loop.var.extent, unroll_factor)
    step = Var(count)
    if any(isinstance(n, For) for n in shape.after):
        # Rows that stay cached until the rest has read them: neighbours.
        copies = [Expr.of(step) * unroll_factor + k for k in range(unroll_factor)]
    else:
        copies = [Expr.of(step) + k * count for k in range(unroll_factor)]
    nests = _around(shape, loop, step, _copies(shape, loop.var, copies))
    if rest:
        left = Var(rest)
        at = Expr.of(left) + unroll_factor * count
        nests += _around(shape, loop, left, _copies(shape, loop.var, [at]))
    return nests


def _around(shape: ReductionNest, loop: For, var: Var, body: list[Node]) -> list[Node]:
    """The parallel loops around ``body``, with ``var`` for the jammed one's."""
    for outer in reversed(shape.parallel):
        if outer is loop:
            body = [For(var, body)]
        else:
            body = [For(outer.var, body, level=outer.level, lower=outer.lower, upper=outer.upper)]
    mark_tiles(body)
    # Each of the nests gets loops of its own.
    return clone(body, {}, {})


def _copies(shape: ReductionNest, var: Var, places: list[Expr]) -> list[Node]:
    """The reduction for each value of ``var`` in ``places``, in one chain of loops."""
    out: list[Node] = []
    first, last = shape.reductions[0], shape.reductions[-1]
    loops = {r.var: Expr.of(Var(r.var.extent, r.var.name)) for r in shape.reductions}
    inits: list[Value] = []
    arguments: list[Value] = []
    yields: list[Value] = []
    inner: list[Node] = []
    maps: list[dict[Value, Value]] = []
    for place in places:
        values: dict[Value, Value] = {}
        out += clone(_scalars(shape), values, {var: place})
        inits += [values.get(v, v) for v in first.inits]
        carried = [Value(a.type) for a in last.arguments]
        arguments += carried
        values.update(zip(last.arguments, carried, strict=True))
        inner += clone(shape.inner, values, {var: place, **loops})
        yields += [values.get(v, v) for v in last.yields]
        maps.append(values)
    chain, results = _chain(shape, loops, inits, arguments, inner, yields)
    out.append(chain)
    width = len(first.results)
    own = [results[k * width : (k + 1) * width] for k in range(len(places))]
    if any(isinstance(n, For) for n in shape.after):
        return _one_by_one(shape, var, places, out, own)
    for place, values, found in zip(places, maps, own, strict=True):
        values.update(zip(first.results, found, strict=True))
        out += clone(shape.after, values, {var: place})
    return out


def _scalars(shape: ReductionNest) -> list[Node]:
    return [n for n in shape.before if not isinstance(n, Alloca)]


def _one_by_one(
    shape: ReductionNest,
    var: Var,
    places: list[Expr],
    jammed: list[Node],
    results: list[list[Value]],
) -> list[Node]:
    """The epilogue of the jammed reduction, for one place after the other.

    The places are equally far apart. The reduction's results wait in small arrays.
    """
    number = Var(len(places))
    step = places[1] - places[0] if len(places) > 1 else Expr(0)
    at = places[0] + Expr.of(number) * step.const
    head: list[Node] = []
    values: dict[Value, Value] = {}
    buffers: dict[Buffer, Buffer] = {}
    body = clone(shape.before, values, {var: at}, buffers)
    for i, result in enumerate(shape.reductions[0].results):
        size = element_bytes(result.type)
        array = Buffer((len(places),), result.type, "local", bytes_per_element=size)
        head.append(Alloca(array))
        jammed += [Store(own[i], array, (Expr(k),)) for k, own in enumerate(results)]
        values[result] = Value(result.type)
        body.append(Load(values[result], array, (Expr.of(number),)))
    body += clone(shape.after, values, {var: at}, buffers)
    return [*head, *jammed, For(number, body)]


def _chain(
    shape: ReductionNest,
    loops: dict[Var, Expr],
    inits: list[Value],
    arguments: list[Value],
    inner: list[Node],
    yields: list[Value],
) -> tuple[For, list[Value]]:
    """Loops like the reduction's around ``inner``, and what they result in."""
    nodes = inner
    new: list[For] = []
    for old in reversed(shape.reductions):
        (var,) = loops[old.var].variables() if old.var.extent != 1 else (Var(1),)
        lower, upper = (tuple(e.substitute(loops) for e in es) for es in (old.lower, old.upper))
        results = [Value(a.type) for a in arguments]
        loop = For(var, nodes, [], arguments, results, yields, None, lower, upper)
        new.append(loop)
        nodes, yields = [loop], results
        arguments = [Value(a.type) for a in arguments]
    new.reverse()
    for outer, loop in zip([None, *new], new, strict=False):
        loop.inits = inits if outer is None else outer.arguments
    return new[0], new[0].results


def shares_loads(body: list[Node], var: Var) -> bool:
    """Whether iterations of a loop read what their neighbours read."""
    seen: dict[tuple[object, ...], set[int]] = {}
    for node in body:
        if isinstance(node, Load):
            moving = [e for e in node.index if e.coefficient(var)]
            if len(moving) != 1:
                continue
            still = [e for e in node.index if e is not moving[0]]
            key = (node.buffer, tuple(moving[0].terms), *still)
            seen.setdefault(key, set()).add(moving[0].const)
    return any(len(places) > 1 for places in seen.values())


def conditions(where: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Conditions without those that always hold, each by its smallest factors."""
    found: dict[Expr, None] = {}
    for expr in where:
        if expr.range()[0] >= 0:
            continue
        factor = gcd(*(c for _, c in expr.terms)) or 1
        terms = {atom: c // factor for atom, c in expr.terms}
        found[Expr(expr.const // factor, terms)] = None
    return tuple(found)


def jammed(
    body: list[Node], places: list[dict[Var, Expr]], lanes: Var, registers: int
) -> list[Node]:
    """Iterations one after the other, as one piece of code that stores at its end.

    Args:
        body: of one.
        places: what the loops' variables are in each.
        lanes: the variable of the innermost loop.
        registers: for values that are needed at once.
    """
    copies: list[Node] = []
    stores: list[Node] = []
    for at in places:
        for node in clone(body, {}, dict(at)):
            (stores if isinstance(node, Store) else copies).append(node)
    for node in copies:
        if isinstance(node, Load) and node.where:
            node.where = conditions(node.where)
    found = [*copies, *stores]
    eliminate_common(found)
    share_sums(found)
    share_extremes(found)
    found = on_demand(found)
    if cost.alive(found) <= registers:
        return found
    return min(found, in_order_of_loads(found, lanes), key=cost.alive)


def of_group(var: Var, group: Var, factor: int) -> list[dict[Var, Expr]]:
    """The iterations of a loop that are one group."""
    return [{var: Expr.of(group) * factor + number} for number in range(factor)]
