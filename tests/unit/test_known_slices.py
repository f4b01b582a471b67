"""Groups that grow by their producers: slices begin with those of what they were."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from tests.support.nests import buffer, weighted

from polyblocks.affine.model import Buffer
from polyblocks.affine.tiles import slices as module
from polyblocks.affine.tiles.fusion_stages import FusionStage
from polyblocks.affine.tiles.slices import KnownSlices, Slices, slices


def chain(count: int) -> tuple[list[FusionStage], list[Buffer]]:
    """Stencils, one of the other; the last one's buffer is the destination."""
    sizes = range(40 + 2 * count, 39, -2)
    buffers = [buffer(n, kind="input" if n == sizes[0] else "alloc") for n in sizes]
    stages = [
        FusionStage.of(weighted(b, (0,), b.shape, *((a, (k,), 1.0 + k) for k in range(3))))
        for a, b in itertools.pairwise(buffers)
    ]
    return [stage for stage in stages if stage is not None], buffers


def text(found: Slices | None) -> Any:
    """What slices say, whatever variables they say it of."""
    assert found is not None
    return (
        {b: str(box) for b, box in found.boxes.items()},
        {v: str(span) for v, span in found.spans.items()},
        [found.tile.index(y) for y in found.whole],
        found.wrapped,
        found.units,
    )


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[FusionStage]:
    """The stages whose slices are looked for."""
    seen: list[FusionStage] = []
    span = module._span

    def counted(stage: FusionStage, *others: Any, **named: Any) -> bool:
        seen.append(stage)
        return span(stage, *others, **named)

    monkeypatch.setattr(module, "_span", counted)
    return seen


def test_growing_looks_at_each_stage_once(looked_at: list[FusionStage]) -> None:
    count, known = 20, KnownSlices()
    stages, buffers = chain(count)
    grown = [
        slices(stages[-n:], buffers[-1], {buffers[-1]}, known=known) for n in range(1, count + 1)
    ]
    assert looked_at == stages[::-1]
    for n, found in enumerate(grown, 1):
        assert text(found) == text(slices(stages[-n:], buffers[-1], {buffers[-1]}))


def test_what_was_found_is_not_changed() -> None:
    stages, buffers = chain(3)
    known = KnownSlices()
    first = slices(stages[1:], buffers[-1], set(), known=known)
    before = text(first)
    slices(stages, buffers[-1], set(), known=known)
    assert text(first) == before
    again = slices(stages[1:], buffers[-1], set(), known=known)
    assert text(again) == before


def test_others_that_use_a_buffer_count(looked_at: list[FusionStage]) -> None:
    """A buffer that is kept now, and was not, has other slices."""
    stages, buffers = chain(3)
    known = KnownSlices()
    slices(stages[1:], buffers[-1], {buffers[-1]}, known=known)
    kept = {buffers[-1], buffers[2]}
    looked_at.clear()
    found = slices(stages, buffers[-1], kept, known=known)
    assert looked_at == stages[::-1]
    assert text(found) == text(slices(stages, buffers[-1], kept))


def test_other_stages_are_other_groups() -> None:
    stages, buffers = chain(3)
    known = KnownSlices()
    slices(stages[:1] + stages[2:], buffers[-1], {buffers[-1]}, known=known)
    found = slices(stages, buffers[-1], {buffers[-1]}, known=known)
    assert text(found) == text(slices(stages, buffers[-1], {buffers[-1]}))
