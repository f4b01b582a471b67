"""Schedules of chains of products: obeyed where a nest and a chip allow for them, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.gpu_target import gpu_target

from polyblocks import mlir
from polyblocks.affine.gpu.plans.numbers import Numbers
from polyblocks.affine.gpu.scheduled import scheduled_kernel
from polyblocks.affine.mlir import reader
from polyblocks.affine.model import For, Nest, Opaque
from polyblocks.affine.plan.schedule import Schedule
from polyblocks.errors import UnsupportedError
from polyblocks.mlir import ir
from polyblocks.options import CompileOptions
from polyblocks.passes.contraction.chain_products import ChainProductsPass
from polyblocks.pipeline import PassContext

TARGET = gpu_target(chaining=True)
TEXT = (Path(__file__).parents[1] / "filecheck" / "chain-products.mlir").read_text()


def chain() -> tuple[Any, Nest]:
    """A module with a chain, and the nest."""
    module = mlir.parse(TEXT)
    ChainProductsPass().run(module, PassContext.create(TARGET, CompileOptions()))
    with module.context, ir.Location.unknown():
        (nest,) = reader.read(module, chains=True).nests()
    return module, nest


def schedule_of(nest: Nest) -> dict[str, Any]:
    (loop,) = nest.body
    assert isinstance(loop, For)
    assert loop.schedule is not None
    return loop.schedule


def obey(nest: Nest, given: dict[str, Any]) -> int:
    """Threads of a block of a kernel with a schedule."""
    schedule = Schedule(given, "chain", "imaginary one")
    return scheduled_kernel(nest, Numbers(nest), schedule, TARGET)[0].plan.threads


def test_a_chain_is_opaque_to_passes() -> None:
    module, _ = chain()
    with module.context, ir.Location.unknown():
        sequence = reader.read(module)
    assert sequence.nests() == []
    (item,) = (item for item in sequence.items if isinstance(item, Opaque))
    assert {b.kind for b in item.writes} == {"input"}
    assert len(item.reads - item.writes) == 3


def test_other_tiles_are_obeyed() -> None:
    module, nest = chain()
    given = schedule_of(nest)
    block = given["register_tile"][1]
    with module.context:
        other = {**given, "register_tile": [16, block], "block_tile": [64, block], "stages": 2}
        assert obey(nest, other) == 128


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"register_tile": [16, 8], "block_tile": [64, 8]}, "columns, those of a block of steps"),
        ({"stages": 99}, "no matrix unit of the chip computes the chain in such tiles"),
        ({"unit": "other"}, "no matrix unit of the chip computes the chain in such tiles"),
        ({"packed": [True, True]}, "expected keys of chains by a unit"),
    ],
)
def test_what_cannot_be_is_refused(change: dict[str, Any], message: str) -> None:
    module, nest = chain()
    with module.context, pytest.raises(UnsupportedError, match=message):
        obey(nest, {**schedule_of(nest), **change})


def test_other_nests_are_no_chains() -> None:
    module, nest = chain()
    with module.context, pytest.raises(UnsupportedError, match="nests that chain-products makes"):
        obey(Nest([], []), schedule_of(nest))
