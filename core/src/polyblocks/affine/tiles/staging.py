"""Inputs of a group of stages that are worth a copy in every tile."""

from __future__ import annotations

from polyblocks.affine.access import stride_along
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Buffer, Load, Nest, Store, Value, around
from polyblocks.affine.tiles.fusion_stages import FusionStage

#: Smaller buffers stay where they are: they are in the fastest cache all the time.
MIN_BYTES = 4096


def worth_copies(stages: list[FusionStage]) -> list[Buffer]:
    """Buffers from outside whose elements the stages read several times, or out of order.

    Several times is at several places in one iteration, as a stencil does, or in several stages.
    Out of order is along another loop than the one along which the results lie.
    """
    written = {store.buffer.base for stage in stages for store in stage.stores}
    gathered = {b.base for stage in stages for b in stage.gathered}
    places: dict[Buffer, set[object]] = {}
    crossed: set[Buffer] = set()
    for number, stage in enumerate(stages):
        for load in stage.loads:
            if load.buffer.kind in ("input", "alloc", "carried"):
                places.setdefault(load.buffer, set()).add((number, load.index))
                if _is_crossed(stage, load):
                    crossed.add(load.buffer)
    return [
        buffer
        for buffer, found in places.items()
        if (len(found) > 1 or buffer in crossed)
        and buffer.nbytes >= MIN_BYTES
        and buffer.base is buffer
        and buffer not in written
        and buffer not in gathered
    ]


def _is_crossed(stage: FusionStage, load: Load) -> bool:
    """Whether a load is in order along one loop, and the stage's stores along another one."""
    if not stage.body_is_flat:
        return False
    stored = {
        v
        for store in stage.stores
        for v in stage.variables
        if v.extent > 1 and stride_along(store.buffer, store.index, v) == 1
    }
    loaded = {
        v for v in stage.variables if v.extent > 1 and stride_along(load.buffer, load.index, v) == 1
    }
    return bool(stored and loaded and not stored & loaded)


def copy_nest(source: Buffer, target: Buffer) -> Nest:
    """A nest that copies a buffer."""
    loops = [Var(extent) for extent in source.shape]
    index = tuple(Expr.of(v) for v in loops)
    value = Value(source.element)
    body = around(loops, [Load(value, source, index), Store(value, target, index)])
    return Nest(body, [])
