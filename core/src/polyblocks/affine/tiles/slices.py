"""Slices: what of every stage and buffer one tile of a destination needs.

A tile is a box of the destination's index space. Going backwards, the elements that a stage reads
are a box of the buffer that it reads, and the iterations of the stage that wrote them are a box of
its loops. The ends of all boxes are affine in the corners of the tile: ``low`` is an expression
of its first element and ``high`` one of its last (included).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import lcm

from polyblocks.affine.expr import Div, Expr, Mod, Var
from polyblocks.affine.model import Buffer, Load, Store
from polyblocks.affine.steps import is_step, without_steps
from polyblocks.affine.tiles.fusion_stages import FusionStage, full

#: Elements of a unit of tiles, at most: several of them have to fit into a cache.
UNIT = 16

Span = tuple[Expr, Expr]

#: Elements of a row, at most, that tiles leave in one piece.
LONG_ROW = 1 << 14


@dataclass
class Slices:
    """The boxes of a group of stages.

    Attributes:
        tile: one variable for each dimension of the part of the destination that is written.
        units: for each of them how many elements one of its values is. Above 1 where stages store
            with a stride: tiles then begin with the same of these stages.
        corners: the first and the last element of each dimension.
        whole: those of them that cannot be cut, since something that others use would be written
            by several tiles.
        spans: for each outer loop of a stage the values that a tile needs.
        boxes: for each buffer the elements that a tile reads or writes, by dimension.
        wrapped: buffers that a tile may read less of than that, since an index is a remainder.
    """

    tile: list[Var]
    units: list[int] = field(default_factory=list)
    corners: list[Span] = field(default_factory=list)
    whole: set[Var] = field(default_factory=set)
    spans: dict[Var, Span] = field(default_factory=dict)
    boxes: dict[Buffer, list[Span]] = field(default_factory=dict)
    wrapped: set[Buffer] = field(default_factory=set)

    def copy(self) -> Slices:
        """One that may be changed."""
        return replace(
            self,
            spans=dict(self.spans),
            whole=set(self.whole),
            boxes={buffer: list(box) for buffer, box in self.boxes.items()},
            wrapped=set(self.wrapped),
        )


class KnownSlices:
    """Slices of groups of stages, for groups that have more stages before them.

    Slices are found from the last stage backwards, so a group that grows by its producers begins
    with what it was: without this, growing takes the square of the number of stages.
    """

    #: So many groups are kept for each destination, the last ones.
    KEPT = 8

    def __init__(self) -> None:
        self._known: dict[Hashable, list[_Known]] = {}

    def longest(
        self, key: Hashable, backward: list[FusionStage], kept: set[Buffer]
    ) -> tuple[Slices, int] | None:
        """Slices of the first of these stages, and how many these are; None if of none.

        Args:
            key: what else slices depend on.
            backward: the stages, the last one first.
            kept: as in :func:`slices`.
        """
        found = [
            one
            for one in self._known.get(key, ())
            if len(one.backward) <= len(backward)
            and all(a is b for a, b in zip(one.backward, backward, strict=False))
            and one.kept == one.touched & kept
        ]
        best = max(found, key=lambda one: len(one.backward), default=None)
        return None if best is None else (best.found.copy(), len(best.backward))

    def add(
        self, key: Hashable, backward: list[FusionStage], kept: set[Buffer], found: Slices
    ) -> None:
        """Keep the slices of stages; the arguments are those of :meth:`longest`."""
        touched = {a.buffer for stage in backward for a in (*stage.loads, *stage.stores)}
        known = self._known.setdefault(key, [])
        known.append(_Known(backward, touched, touched & kept, found.copy()))
        del known[: -self.KEPT]


@dataclass(frozen=True)
class _Known:
    """Slices of stages, from the last one backwards, and which of their buffers are kept."""

    backward: list[FusionStage]
    touched: set[Buffer]
    kept: set[Buffer]
    found: Slices


def slices(
    stages: list[FusionStage],
    root: Buffer,
    kept: set[Buffer],
    updated: set[Buffer] | None = None,
    rows: bool = True,
    known: KnownSlices | None = None,
) -> Slices | None:
    """The slices of ``stages`` for a tile of ``root``; None if unknown.

    Args:
        stages: in program order; the last ones write ``root``.
        root: the destination.
        kept: other buffers that are written here and used elsewhere.
        updated: buffers whose parts later stages overwrite with new versions.
        rows: whether enlarged rows stay in one piece.
        known: what was found for fewer of the stages; more is added.
    """
    known = KnownSlices() if known is None else known
    writers: dict[Buffer, list[FusionStage]] = {}
    for stage in stages:
        for store in stage.stores:
            writers.setdefault(store.buffer, []).append(stage)
    if not _ordered(stages, writers, updated or set()):
        return None
    region = _region(stages, root)
    found = _slices_of(stages, root, kept, region, [1] * len(region), rows, known)
    if found is None or not any(stage.strided for stage in stages):
        return found
    exprs = [
        expr
        for span in (*found.spans.values(), *(s for box in found.boxes.values() for s in box))
        for expr in span
    ]
    units = [lcm(*(k for e in exprs for k in divisors(e, y))) for y in found.tile]
    if not 1 < max(units, default=1) <= UNIT:
        return found
    return _slices_of(stages, root, kept, region, units, rows, known)


def _slices_of(
    stages: list[FusionStage],
    root: Buffer,
    kept: set[Buffer],
    region: list[tuple[int, int]],
    units: list[int],
    rows: bool,
    known: KnownSlices,
) -> Slices | None:
    """The slices for tiles of a region of ``root`` that are a number of ``units`` long."""
    key = (root, tuple(region), tuple(units), rows)
    backward = stages[::-1]
    found, done = known.longest(key, backward, kept) or (_of_root(root, region, units), 0)
    for stage in backward[done:]:
        if not _span(stage, found, root, {root, *kept}, beside=not rows):
            return None
        _read(stage, found)
        for load in stage.loads:
            if load.buffer in kept and load.buffer is not root:
                _keep(load.buffer, found)
        if rows:
            found.whole.update(_uncut(stage, found))
    known.add(key, backward, kept, found)
    return found


def _of_root(root: Buffer, region: list[tuple[int, int]], units: list[int]) -> Slices:
    """The slices of no stage yet."""
    tile = [
        Var(-(-(end - begin) // unit), f"y{d}")
        for d, ((begin, end), unit) in enumerate(zip(region, units, strict=True))
    ]
    corners = [
        (Expr.of(y) * unit + begin, Expr.of(y) * unit + (begin + unit - 1))
        for y, unit, (begin, _) in zip(tile, units, region, strict=True)
    ]
    found = Slices(tile, units, corners)
    found.boxes[root] = list(corners)
    return found


def divisors(expr: Expr, y: Var) -> Iterator[int]:
    """The divisors of ``y`` in an expression."""
    for atom, _ in expr.terms:
        if not isinstance(atom, Var) and atom.dividend.depends_on(y):
            yield atom.divisor
            yield from divisors(atom.dividend, y)


def all_run(stage: FusionStage, found: Slices) -> bool:
    """Whether tiles of any size together run every iteration of a stage's outer loops."""
    for var in stage.variables:
        low, high = found.spans.get(var) or full(var)
        corners = {*low.variables(), *high.variables()}
        if len(corners) > 1 or low.range()[0] > 0 or high.range()[1] < var.extent - 1:
            return False
        # A tile begins at the latest where the one before it ends.
        following = {v: Expr.of(v) + 1 for v in corners}
        if (low.substitute(following) - high).tight_range()[1] > 1:
            return False
    return True


def _uncut(stage: FusionStage, found: Slices) -> set[Var]:
    """Variables that must stay whole, so that a stage's rows are in order between equal columns.

    Elements of an enlarged row come in groups, which a tile would begin and end within.
    """
    if not stage.variables or not stage.body_is_flat or stage.variables[-1].extent > LONG_ROW:
        return set()
    var = stage.variables[-1]
    quotients = (
        atom
        for load in stage.loads
        for expr in load.index
        for atom, _ in expr.terms
        if not isinstance(atom, Var)
    )
    if not any(var in set(atom.dividend.variables()) for atom in quotients):
        return set()
    return {y for end in found.spans[var] for y in end.variables() if y in found.tile}


def _region(stages: list[FusionStage], root: Buffer) -> list[tuple[int, int]]:
    """The smallest box that holds all that is written of a buffer, by dimension: first and end."""
    found: list[tuple[int, int]] = []
    for stage in stages:
        for store in stage.stores:
            if store.buffer is not root:
                continue
            places = stage.places(store)
            if places is None:
                return [(0, extent) for extent in root.shape]
            box = [place.range(extent) for place, extent in zip(places, root.shape, strict=True)]
            found = [
                (min(a[0], b[0]), max(a[1], b[1])) for a, b in zip(found or box, box, strict=True)
            ]
    return found or [(0, extent) for extent in root.shape]


def _ordered(
    stages: list[FusionStage], writers: dict[Buffer, list[FusionStage]], updated: set[Buffer]
) -> bool:
    """Whether every buffer is written before it is read, but for a stage's own elements.

    A buffer with several versions has one before it is read.
    """
    position = {id(stage): i for i, stage in enumerate(stages)}
    for i, stage in enumerate(stages):
        for load in stage.loads:
            for writer in writers.get(load.buffer, ()):
                if writer is stage:
                    own = {s.index for s in stage.stores if s.buffer is load.buffer}
                    if own != {load.index}:
                        return False
                elif position[id(writer)] > i and not (
                    load.buffer in updated and position[id(writers[load.buffer][0])] < i
                ):
                    return False
        if any(b in writers for b in stage.gathered):
            return False
    return True


def _span(
    stage: FusionStage, found: Slices, root: Buffer, shared: set[Buffer], beside: bool
) -> bool:
    """The loops of a stage, from the boxes of what it writes.

    A stage that writes several buffers computes what any of them needs, and so writes as much of
    all of them; of ``shared`` buffers a tile must not write more than its own part. With
    ``beside``, a stage may write what nothing else in its group reads.
    """
    for store in stage.stores:
        box = found.boxes.get(store.buffer)
        places = stage.places(store)
        if box is None and store.buffer in shared:
            # Nothing in the group reads it.
            box = _box_beside(store, stage, found)
            if box is None and beside:
                box = _box_as_read(store, stage, found)
            if box is not None:
                found.boxes[store.buffer] = box
                _keep(store.buffer, found)
        if box is None or places is None:
            return False
        for d, (place, (low, high)) in enumerate(zip(places, box, strict=True)):
            if place.whole or (store.buffer in shared and _is_spread(stage, store, d)):
                if store.buffer in shared:
                    # No two tiles write the same part of it.
                    ends = (y for end in box[d] for y in end.variables())
                    found.whole.update(y for y in ends if y in found.tile)
                box[d] = (Expr(0), Expr(store.buffer.shape[d] - 1))
                if store.buffer is root:
                    found.whole.add(found.tile[d])
                if place.var is not None:
                    found.spans[place.var] = full(place.var)
            elif place.var is not None:
                span = place.values((low, high))
                found.spans[place.var] = _union(found.spans.get(place.var), span, place.var.extent)
            elif low.is_constant and high.is_constant and not low.const <= place.at <= high.const:
                # It writes beside what is read, in every tile.
                if store.buffer in shared:
                    return False
                at = Expr(place.at)
                box[d] = _union((low, high), (at, at), store.buffer.shape[d])
    for var in stage.variables:
        found.spans.setdefault(var, full(var))
    for store in stage.stores if len(stage.stores) > 1 else ():
        box = found.boxes[store.buffer]
        for d, place in enumerate(stage.places(store) or ()):
            if place.var is None:
                continue
            reached = place.reached(found.spans[place.var])
            wider = _clip(reached, store.buffer.shape[d])
            if not _holds(box[d], wider) and place.var.extent != 1:
                if store.buffer in shared:
                    return False
                box[d] = _union(box[d], wider, store.buffer.shape[d])
    return True


def _is_spread(stage: FusionStage, store: Store, d: int) -> bool:
    """Whether an iteration of a stage stores to several places along a dimension of a buffer."""
    places = (stage.places(other) for other in stage.stores if other.buffer is store.buffer)
    several = {each[d] for each in places if each is not None}
    return len(several) > 1 and all(p.var is not None and p.step == 1 for p in several)


def _box_beside(store: Store, stage: FusionStage, found: Slices) -> list[Span] | None:
    """The box of another buffer in which a stage stores at the same places; None without."""
    for other in stage.stores:
        box = found.boxes.get(other.buffer)
        same = store.buffer.shape == other.buffer.shape
        if box and same and stage.places(other) == stage.places(store):
            return list(box)
    return None


def _box_as_read(store: Store, stage: FusionStage, found: Slices) -> list[Span] | None:
    """The box of another buffer that a stage makes of what a tile reads anyway; None without.

    Its first dimension is cut, so that tiles write rows of it.
    """
    spans: dict[Var, Span] = {}
    for load in stage.loads:
        for expr, span in zip(load.index, found.boxes.get(load.buffer, ()), strict=False):
            if len(expr.terms) == 1 and expr.const == 0 and expr.terms[0][1] == 1:
                atom = expr.terms[0][0]
                if isinstance(atom, Var) and span in found.corners:
                    spans.setdefault(atom, span)
    places = stage.places(store)
    if not places or places[0].var not in spans:
        return None
    return [
        spans[place.var] if place.var in spans else (Expr(0), Expr(extent - 1))
        for place, extent in zip(places, store.buffer.shape, strict=True)
    ]


def _read(stage: FusionStage, found: Slices) -> None:
    written = {store.buffer for store in stage.stores}
    guards = _guards(stage, found)
    # Many loads of a stage are at the same places.
    known: dict[Expr, Span | None] = {}
    for load in stage.loads:
        if load.buffer in written:
            continue
        if any(isinstance(atom, Mod) for expr in load.index for atom, _ in expr.terms):
            found.wrapped.add(load.buffer)
        box = found.boxes.setdefault(load.buffer, [])
        new = _box(load, found.spans, guards, known)
        if not box:
            box.extend(_clip(s, n) for s, n in zip(new, load.buffer.shape, strict=True))
        else:
            box[:] = [_union(a, b, n) for a, b, n in zip(box, new, load.buffer.shape, strict=True)]


def _keep(buffer: Buffer, found: Slices) -> None:
    """Tiles must not share elements of a buffer that others use, and must leave none out."""
    aligned: set[Var] = set()
    box = found.boxes[buffer]
    for d, span in enumerate(box):
        extents = (y.extent * unit for y, unit in zip(found.tile, found.units, strict=True))
        same = (
            y
            for y, corner, extent in zip(found.tile, found.corners, extents, strict=True)
            if y.extent != 1 and corner == span and extent == buffer.shape[d] and y not in aligned
        )
        y = next(same, None)
        if y is not None:
            aligned.add(y)
        else:
            box[d] = (Expr(0), Expr(buffer.shape[d] - 1))
    found.whole.update(y for y in found.tile if y not in aligned)


def _guards(stage: FusionStage, found: Slices) -> dict[int, tuple[int, Span]]:
    """By dimension: the one index that the stage writes, and the box of the tile around it.

    Only tiles that have the index run the stage.
    """
    if len(stage.stores) != 1:
        return {}
    (store,) = stage.stores
    guards = {}
    for d, place in enumerate(stage.places(store) or ()):
        low, high = found.boxes[store.buffer][d]
        if place.var is None and not place.whole and not (low.is_constant and high.is_constant):
            guards[d] = place.at, (low, high)
    return guards


def _box(
    load: Load,
    spans: Mapping[Var, Span],
    guards: Mapping[int, tuple[int, Span]],
    known: dict[Expr, Span | None],
) -> list[Span]:
    found = []
    for d, (expr, extent) in enumerate(zip(load.index, load.buffer.shape, strict=True)):
        if expr.is_constant and d in guards:
            # Where the stage runs, the index is as far from the tile as from what is written.
            at, (low, high) = guards[d]
            found.append((low + (expr.const - at), high + (expr.const - at)))
        else:
            if expr not in known:
                known[expr] = bounds(expr, spans)
            found.append(known[expr] or (Expr(0), Expr(extent - 1)))
    return found


def bounds(expr: Expr, spans: Mapping[Var, Span]) -> Span | None:
    """Smallest and largest value of an expression over boxes; None if that is not affine.

    A variable without a span takes all of its values.
    """
    if any(is_step(atom) for atom, _ in expr.terms):
        return _over_steps(expr, spans)
    low = high = Expr(expr.const)
    for atom, factor in expr.terms:
        if isinstance(atom, Var):
            a, b = spans.get(atom) or full(atom)
        elif isinstance(atom, Div):
            inner = bounds(atom.dividend, spans)
            if inner is None:
                return None
            a, b = inner[0] // atom.divisor, inner[1] // atom.divisor
        else:
            assert isinstance(atom, Mod)
            inner = bounds(atom.dividend, spans)
            if inner is not None and inner[0] == inner[1] and inner[0].is_constant:
                a = b = inner[0] % atom.divisor
            else:
                a, b = Expr(0), Expr(atom.divisor - 1)
        if factor < 0:
            # The corners of the tile would change places.
            if not (a.is_constant and b.is_constant):
                return None
            a, b = b, a
        low, high = low + a * factor, high + b * factor
    return low, high


def _holds(span: Span, other: Span) -> bool:
    """Whether a span has all of another one, wherever the tile is."""
    return _difference(other[0], span[0])[0] >= 0 and _difference(span[1], other[1])[0] >= 0


def _difference(a: Expr, b: Expr) -> tuple[int, int]:
    """The range of ``a - b``; most ends are the same places of a tile, moved by a number."""
    if a.terms == b.terms:
        return a.const - b.const, a.const - b.const
    return (a - b).tight_range()


def _over_steps(expr: Expr, spans: Mapping[Var, Span]) -> Span | None:
    """As :func:`bounds`, of an expression with breakpoints; the ends are conservative."""
    variables = set(expr.variables())
    ends: list[Expr] = []
    if len(variables) == 1 and _is_monotone(expr, next(iter(variables))):
        (var,) = variables
        ends = [expr.substitute({var: end}) for end in spans.get(var) or full(var)]
    found: list[Expr] = []
    for upper, end in enumerate(ends or (expr, expr)):
        rest = Expr(end.const)
        for atom, factor in end.terms:
            if isinstance(atom, Div) and is_step(atom):
                values = [n // atom.divisor for n in atom.dividend.range()]
                rest = rest + factor * values[(factor > 0) == bool(upper)]
            else:
                rest = rest + Expr(0, {atom: factor})
        found.append(rest)
    if ends:
        return found[0], found[1]
    low, high = (bounds(e, spans) for e in found)
    return None if low is None or high is None else (low[0], high[1])


def _is_monotone(expr: Expr, var: Var) -> bool:
    """Whether an expression with steps never falls while a variable grows."""
    slope = without_steps(expr).coefficient(var)
    if slope is None or slope < 0:
        return False
    for atom, factor in expr.terms:
        if isinstance(atom, Div) and is_step(atom):
            pace = atom.dividend.coefficient(var)
            if pace is None or pace <= 0 or slope < -factor * pace:
                return False
    return True


def _clip(span: Span, extent: int) -> Span:
    low, high = span
    if low.is_constant and low.const < 0:
        low = Expr(0)
    if high.is_constant and high.const > extent - 1:
        high = Expr(extent - 1)
    return low, high


def _union(a: Span | None, b: Span, extent: int) -> Span:
    """The smallest span of both, or everything if that is not affine."""
    if a is None or a == b:
        return _clip(b, extent)
    low, high = _difference(a[0], b[0]), _difference(a[1], b[1])
    # The order of the ends must be the same wherever the tile is.
    if low[0] < 0 < low[1] or high[0] < 0 < high[1]:
        return Expr(0), Expr(extent - 1)
    return _clip((a[0] if low[0] < 0 else b[0], a[1] if high[1] > 0 else b[1]), extent)


def fixed_extent(span: Span, at: dict[Var, Expr], end: dict[Var, Expr]) -> int | None:
    """The extent of a span if it is the same for every tile, else None.

    It is 0 where the span ends before it begins: a part of a buffer that nothing reads.
    """
    difference = span[1].substitute(end) - span[0].substitute(at)
    return max(difference.const + 1, 0) if difference.is_constant else None


def has_even_slices(found: Slices, y: Var, size: int) -> bool:
    """Whether tiles of ``size`` values of ``y`` have slices of equal sizes."""
    tile = Var(-(-y.extent // size), "t")
    at, end = ({y: Expr.of(tile) * size + more} for more in (0, size - 1))
    spans = {*found.spans.values(), *(span for box in found.boxes.values() for span in box)}
    return all(
        tile not in set((span[1].substitute(end) - span[0].substitute(at)).variables())
        for span in spans
        if y in {*span[0].variables(), *span[1].variables()}
    )
