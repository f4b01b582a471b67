"""Several neighbouring iterations of straight-line code as one of a thread's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import prod

from polyblocks.affine.access import stride_along
from polyblocks.affine.analysis.access_order import fastest_last
from polyblocks.affine.analysis.parallel import is_parallel
from polyblocks.affine.cost import rates
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.gpu.choose import choose, copy_of
from polyblocks.affine.model import (
    AffineAccess,
    Alloca,
    For,
    Load,
    Nest,
    Node,
    Pure,
    Store,
    walk,
)
from polyblocks.affine.rewrites.jam import jammed, of_group, shares_loads
from polyblocks.affine.subnests import straight_loops, tile_of
from polyblocks.target import TargetDescription

#: Factors of the loop along which rows lie, and of another one.
WIDTHS = (1, 2, 4, 8, 16)
ROWS = (1, 2, 4, 8)
#: Iterations that are one, at most.
MOST = 32
#: Nodes of a jammed body, before and after what they share is done once.
MOST_NODES = 2000
MAX_NODES = 1000
#: Predicted time over that of the memory's bytes, from which on a nest is looked at.
SLOW = 1.1
#: Predicted time over that of single iterations, at which nothing is jammed.
GAIN = 0.9
#: Registers of a thread, at most: others wait for memory meanwhile.
REGISTERS = 128


@dataclass(frozen=True, eq=False)
class Windows:
    """A nest whose threads compute several neighbours.

    Attributes:
        nest: the loops, with fewer iterations, around one piece of code.
        jams: which parts of a tile have several iterations as one, and how many of each loop; a
            nest without tiles is its part 0.
        seconds: predicted.
        alone: the same of threads that do one.
    """

    nest: Nest
    jams: tuple[tuple[int, tuple[int, ...]], ...]
    seconds: float
    alone: float

    @property
    def factors(self) -> list[int]:
        """Iterations that are one, of each loop of each such part."""
        return [n for _, factors in self.jams for n in factors]

    def of(self, nest: Nest) -> Windows:
        """The same of another nest, which has equal code."""
        body = copy_of(nest).body
        for number, factors in self.jams:
            jammed_body = _with_jam(body, number, factors)
            assert jammed_body is not None
            body = jammed_body
        return replace(self, nest=_named(body, nest))


def quickest_windows(nest: Nest, target: TargetDescription) -> Windows | None:
    """The quickest way to let threads compute several neighbours; None if nothing gains.

    Only of parallel loops around straight-line code, alone or of a tile's, that take clearly longer
    than their memory.
    """
    found = independent_code(nest)
    best = _of_tile(nest, target) if found is None else _quickest(nest, *found, target)
    return None if best is None or best.nest is nest else best


def _quickest(nest: Nest, loops: list[For], body: list[Node], target: TargetDescription) -> Windows:
    """The quickest way, with the nest itself where nothing gains."""
    alone = choose(copy_of(nest), target)[1].seconds
    best = Windows(nest, (), alone, alone)
    # Caches that the model trusts too much make nothing faster than memory.
    bound = _memory_seconds(loops, body, target)
    if alone < SLOW * bound:
        return best
    least = GAIN * alone
    chip = target.multiprocessor
    assert chip is not None
    for factors in _factors(loops, body, chip.access_bits // 8):
        inner = _jammed(loops, body, factors)
        if inner is None:
            continue
        trial = _named(inner, nest)
        kernel, predicted = choose(copy_of(trial), target)
        seconds = max(predicted.seconds, bound)
        if seconds < least and kernel.plan.registers() <= REGISTERS:
            best, least = Windows(trial, ((0, factors),), predicted.seconds, alone), seconds
    return best


def compared(
    nest: Nest, others: list[list[Node]], target: TargetDescription
) -> dict[str, float] | None:
    """Predicted times of a nest and of bodies that do the same; None if these are quicker.

    Of the nest with as many neighbours for a thread as are best.
    """
    found = independent_code(nest)
    if found is None:
        return None
    seconds = _quickest(nest, *found, target).seconds
    before = sum(choose(copy_of(Nest(body, [])), target)[1].seconds for body in others)
    return {"seconds": seconds, "seconds_before": before} if seconds <= before else None


def _factors(loops: list[For], body: list[Node], width: int) -> list[tuple[int, ...]]:
    """How many iterations of each loop may be one, the fewest first.

    Args:
        loops: the loops.
        body: what they do.
        width: bytes beside each other that are one thread's, at most.
    """
    variables = [loop.var for loop in loops]
    along = fastest_last(variables, body, by_threads=True)[-1]
    accesses = [n for n in body if isinstance(n, AffineAccess)]
    least = min((n.buffer.bytes_per_element for n in accesses), default=4)
    choices = []
    for var in variables:
        sizes: tuple[int, ...] = (1,)
        if var is along:
            sizes = tuple(n for n in WIDTHS if n * least <= width)
        elif shares_loads(body, var):
            sizes = ROWS
        choices.append([n for n in sizes if var.extent % n == 0])
    few = sorted(product(*choices), key=prod)
    return [f for f in few if 1 < prod(f) <= MOST and prod(f) * len(body) <= MOST_NODES]


def _of_tile(nest: Nest, target: TargetDescription) -> Windows | None:
    """The quickest way to jam what threads share of a tile, one part after the other.

    None if there are no tiles. Parts are those that read what their neighbours do.
    """
    shell, parts = tile_of(nest.body)
    if not shell or sum(isinstance(part, For) for part in parts) < 2:
        return None
    best: Windows | None = None
    for number, part in enumerate(parts):
        found = independent_code(Nest([part], []))
        if found is None or not any(shares_loads(found[1], loop.var) for loop in found[0]):
            continue
        if best is None:
            alone = choose(copy_of(nest), target)[1].seconds
            bound = _seconds_of_arrays(nest, target)
            if alone < SLOW * bound:
                return None
            best = Windows(nest, (), alone, alone)
        best = _part_jammed(best, number, bound, target)
    return best


def _part_jammed(before: Windows, number: int, bound: float, target: TargetDescription) -> Windows:
    """With iterations of a part of the tile as one, or as it was where nothing gains."""
    best, least = before, GAIN * before.seconds
    found = independent_code(Nest([tile_of(before.nest.body)[1][number]], []))
    assert found is not None
    chip = target.multiprocessor
    assert chip is not None
    # Threads that are more than a bank apart in shared memory would wait for each other.
    for factors in _factors(*found, chip.bank_bytes):
        body = _with_jam(copy_of(before.nest).body, number, factors)
        if body is None:
            continue
        trial = _named(body, before.nest)
        kernel, predicted = choose(copy_of(trial), target)
        seconds = max(predicted.seconds, bound)
        if seconds < least and kernel.plan.registers() <= REGISTERS:
            jams = (*before.jams, (number, factors))
            best, least = Windows(trial, jams, predicted.seconds, before.alone), seconds
    return best


def _with_jam(body: list[Node], number: int, factors: tuple[int, ...]) -> list[Node] | None:
    """Code with iterations of a part of its tile as one, maybe in place; None if it is too much."""
    found = independent_code(Nest(body, []))
    if found is not None:
        return _jammed(*found, factors)
    shell, parts = tile_of(body)
    part = independent_code(Nest([parts[number]], []))
    assert part is not None
    inner = _jammed(*part, factors)
    if inner is not None:
        shell[-1].body[number : number + 1] = inner
        return body
    return None


def _named(body: list[Node], nest: Nest) -> Nest:
    """A nest with the name and kind of another one."""
    found = Nest(body, [])
    found.name, found.kind = nest.name, nest.kind
    return found


def _jammed(loops: list[For], body: list[Node], factors: tuple[int, ...]) -> list[Node] | None:
    """The loops with several iterations as one; None if that is too much code."""
    groups = [
        Var(loop.var.extent // n, loop.var.name) for loop, n in zip(loops, factors, strict=True)
    ]
    places: list[dict[Var, Expr]] = [{}]
    for loop, group, factor in zip(loops, groups, factors, strict=True):
        rows = of_group(loop.var, group, factor)
        places = [{**place, **row} for place in places for row in rows]
    inner = jammed(body, places, groups[-1], REGISTERS)
    if len(inner) > MAX_NODES:
        return None
    for group in reversed(groups):
        inner = [For(group, inner)]
    return inner


def independent_code(nest: Nest) -> tuple[list[For], list[Node]] | None:
    """The loops of a nest, and its straight-line code, if iterations may be in any order.

    All loads of several iterations may then be before their stores.
    """
    found = straight_loops(nest.body)
    if found is None or not found[0]:
        return None
    loops, body = found
    if not all(isinstance(n, (Pure, Load, Store)) for n in body):
        return None
    if any(loop.level or loop.lanes or loop.unit or loop.tile for loop in loops):
        return None
    stored = {n.buffer.base for n in body if isinstance(n, Store)}
    if not stored or any(isinstance(n, Load) and n.buffer.base in stored for n in body):
        return None
    return found if all(is_parallel(loop, nest.body) for loop in loops) else None


def _memory_seconds(loops: list[For], body: list[Node], target: TargetDescription) -> float:
    """Seconds in which the main memory moves all that is touched, once."""
    rate = rates.main_bandwidth(target, target.shared_level.size)
    assert rate is not None
    total = 0
    for buffer in {n.buffer for n in body if isinstance(n, AffineAccess)}:
        places = [n for n in body if isinstance(n, AffineAccess) and n.buffer is buffer]
        touched = max(
            prod(loop.var.extent for loop in loops if stride_along(buffer, n.index, loop.var) != 0)
            for n in places
        )
        total += min(buffer.numel, touched * len(places)) * buffer.bytes_per_element
    return total / rate


def _seconds_of_arrays(nest: Nest, target: TargetDescription) -> float:
    """Seconds in which the main memory moves all arrays that are not a tile's, once."""
    rate = rates.main_bandwidth(target, target.shared_level.size)
    assert rate is not None
    nodes = list(walk(nest.body))
    own = {n.buffer for n in nodes if isinstance(n, Alloca)}
    touched = {n.buffer for n in nodes if isinstance(n, AffineAccess)} - own
    return sum(buffer.nbytes for buffer in touched) / rate
