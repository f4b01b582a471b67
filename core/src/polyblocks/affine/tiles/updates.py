"""Updates in place: a step of a chain writes over what it has read, once all of it is read."""

from __future__ import annotations

from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Buffer, Load, Nest, Node, Store, Value, around, clone, walk
from polyblocks.affine.tiles.fusion_stages import FusionStage


def in_place(
    stages: list[FusionStage], local: set[Buffer]
) -> tuple[list[FusionStage], set[Buffer]] | None:
    """The same stages with buffers that take the place of the ones they are made of.

    A stage that makes a new version of a buffer becomes two: one that computes the elements, which
    the threads that run it keep, and one that stores them over the old version. Other stages that
    only copy what stays as it was are gone.

    Args:
        stages: in program order.
        local: buffers that nothing else uses.

    Returns:
        The stages, and the buffers that have several versions; None if there is nothing to do.
    """
    updated: set[Buffer] = set()
    again = True
    while again:
        again = False
        for new in dict.fromkeys(s.buffer for stage in stages for s in stage.stores):
            if new not in local or new in updated:
                continue
            found = _update(stages, new, local)
            if found is None:
                continue
            written = _written(stages, new, *found)
            if written is not None:
                stages, again = written, True
                updated.add(found[1])
                break
    return (stages, updated) if updated else None


def _update(
    stages: list[FusionStage], new: Buffer, local: set[Buffer]
) -> tuple[FusionStage, Buffer] | None:
    """The stage that computes a new version of a buffer, and the buffer; None if it is not so."""
    writers = [s for s in stages if any(store.buffer is new for store in s.stores)]
    makers = [s for s in writers if _copied(s) is None]
    if len(makers) != 1:
        return None
    (maker,) = makers
    if len(maker.stores) != 1 or not maker.body_is_flat or maker.places(maker.stores[0]) is None:
        return None
    copied = {_copied(s) for s in writers if s is not maker}
    read = dict.fromkeys(n.buffer for n in maker.loads)
    for old in read:
        if old not in local or old.element != new.element or not copied <= {old}:
            continue
        if _dimensions(new, old) is None:
            continue
        if _is_last_use(stages, old, maker, writers) and _keeps(writers, maker, new):
            return maker, old
    return None


def _dimensions(new: Buffer, old: Buffer) -> list[int | None] | None:
    """The dimension of ``new`` that lies along each one of ``old``, but for those of one element.

    None if an element of one may have no place in the other.
    """
    if new.shape == old.shape:
        return list(range(len(new.shape)))
    rest = [d for d, n in enumerate(new.shape) if n != 1]
    places: list[int | None] = [None if n == 1 else rest.pop(0) if rest else -1 for n in old.shape]
    fits = all(d is None or (d >= 0 and new.shape[d] <= old.shape[i]) for i, d in enumerate(places))
    return places if fits and not rest else None


def _placed(index: tuple[Expr, ...], new: Buffer, old: Buffer) -> tuple[Expr, ...]:
    """The place in ``old`` of an element of ``new``."""
    return tuple(Expr(0) if d is None else index[d] for d in _dimensions(new, old) or ())


def _copied(stage: FusionStage) -> Buffer | None:
    """The buffer that a stage only copies, to the same places."""
    if len(stage.body) != 2 or len(stage.loads) != 1 or len(stage.stores) != 1:
        return None
    (load,), (store,) = stage.loads, stage.stores
    same = load.index == store.index and store.value is load.result
    return load.buffer if same and load.buffer is not store.buffer else None


def _is_last_use(
    stages: list[FusionStage], old: Buffer, maker: FusionStage, writers: list[FusionStage]
) -> bool:
    """Whether nothing but the new version's writers uses the old one from the maker on."""
    begin = stages.index(maker)
    return not any(
        n.buffer is old for s in stages[begin:] if s not in writers for n in s.accesses
    ) and not any(old in s.gathered for s in stages)


def _keeps(writers: list[FusionStage], maker: FusionStage, new: Buffer) -> bool:
    """Whether no element is computed first and copied then."""
    made = _box(maker, new)
    for writer in writers[writers.index(maker) + 1 :]:
        pairs = zip(made, _box(writer, new), strict=True)
        if not any(a[1] <= b[0] or b[1] <= a[0] for a, b in pairs):
            return False
    return True


def _box(stage: FusionStage, buffer: Buffer) -> list[tuple[int, int]]:
    places = stage.places(stage.stores[0])
    if places is None:
        return [(0, n) for n in buffer.shape]
    return [p.range(n) for p, n in zip(places, buffer.shape, strict=True)]


def _written(
    stages: list[FusionStage], new: Buffer, maker: FusionStage, old: Buffer
) -> list[FusionStage] | None:
    """The stages with ``old`` replaced by ``new``."""
    kept = new.like()
    found: list[FusionStage | None] = []
    for stage in stages:
        stores = any(store.buffer is new for store in stage.stores)
        if stage is maker:
            found.append(FusionStage.of(Nest(clone(stage.nest.body, {}, {}, {new: kept}), [])))
            found.append(FusionStage.of(_store_back(stage, kept, new, old)))
        elif stores:
            continue
        elif any(n.buffer is new for n in stage.loads):
            body = clone(stage.nest.body, {}, {})
            for node in walk(body):
                if isinstance(node, Load) and node.buffer is new:
                    node.buffer, node.index = old, _placed(node.index, new, old)
            found.append(FusionStage.of(Nest(body, [])))
        else:
            found.append(stage)
    whole = [s for s in found if s is not None]
    return whole if len(whole) == len(found) else None


def _store_back(maker: FusionStage, kept: Buffer, new: Buffer, old: Buffer) -> Nest:
    """A nest that copies what a stage makes, by the same loops."""
    loops = [Var(v.extent) for v in maker.variables]
    names = {v: Expr.of(w) for v, w in zip(maker.variables, loops, strict=True)}
    index = tuple(e.substitute(names) for e in maker.stores[0].index)
    value = Value(kept.element)
    body: list[Node] = [Load(value, kept, index), Store(value, old, _placed(index, new, old))]
    return Nest(around(loops, body), [])
