"""Chains of products on simulated GPUs whose unit has the rows of the program as its columns."""

from __future__ import annotations

from typing import Any

import pytest
from sweeps import sweep
from tests.extended.test_chained_products_simulated import (
    PROGRAMS,
    attention,
    causal,
    check,
    queries,
)
from tests.extended.test_kernels_simulated import simulate

from polyblocks.affine.gpu.plans.chains import ChainPlan
from polyblocks.affine.gpu.tiles import chain_cost
from polyblocks.codegen.gpu.matrix_emission.chains.passed_operand import PassedOperand
from polyblocks.passes.contraction import chain_products

pytestmark = pytest.mark.cpu

#: One exchanges halves of a warp, and one does not.
ARCHS = ("gfx1100", "gfx1200")
#: Warps of a block, rows of a warp, steps of a block.
TILES = ((1, 16, 32), (2, 32, 64), (4, 16, 64), (2, 16, 128), (1, 32, 32))


@pytest.fixture(autouse=True)
def _chains_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    """For sizes that a simulator computes in seconds, the model prefers other kernels."""
    monkeypatch.setattr(chain_products, "_least_seconds", lambda chain, target: float("inf"))


def tiled(monkeypatch: pytest.MonkeyPatch, warps: int, height: int, block: int) -> None:
    """Only these tiles, whatever registers they take, and all steps in one kernel."""
    monkeypatch.setattr(chain_products, "parts_to_try", lambda blocks, steps, target: [])
    monkeypatch.setattr(ChainPlan, "registers", lambda plan: 64)
    monkeypatch.setattr(chain_products, "BLOCKS", (block,))
    monkeypatch.setattr(chain_cost, "_WARPS", (warps,))
    monkeypatch.setattr(chain_cost, "_HEIGHTS", (height,))


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(
    "name",
    sweep(
        PROGRAMS,
        *("odd lengths", "heads of 128", "causal", "absent blocks", "bfloat16"),
        *("groups", "one head of keys", "a row, one head of keys"),
    ),
)
def test_a_chain_is_one_kernel(name: str, arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Of few rows parts of the steps would be a kernel, and their sums another one.
    monkeypatch.setattr(chain_products, "parts_to_try", lambda blocks, steps, target: [])
    (launch,) = check(name, arch)
    assert launch.counts.instructions["matrix"] > 0
    assert launch.counts.bank_conflicts == 0


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("tile", sweep(TILES, *TILES[:2]))
@pytest.mark.parametrize("name", ["causal", "odd lengths"])
def test_tiles_of_a_chain(
    name: str, tile: tuple[int, int, int], arch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiled(monkeypatch, *tile)
    check(name, arch)


@pytest.mark.parametrize("arch", ARCHS)
def test_a_causal_chain_leaves_out_half_of_the_blocks(
    arch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiled(monkeypatch, 1, 16, 32)
    counts = []
    for function in (attention, causal):
        _, (launch,) = simulate(function, queries(1, 512, 512, 64), arch)
        counts.append(launch.counts.instructions["matrix"])
    every, half = counts
    # Tiles on the diagonal are computed.
    assert half * 32 == every * 17


@pytest.mark.parametrize("arch", ARCHS)
def test_a_chain_reads_and_writes_its_arguments_once_for_each_tile(
    arch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    heads, length, size = 2, 512, 64
    tiled(monkeypatch, 8, 16, 64)
    _, (launch,) = simulate(attention, queries(heads, length, length, size), arch)
    tiles, array = length // 128, heads * length * size * 2
    # Queries, and for each tile of rows all keys and values; results.
    expected = (array + tiles * 2 * array) + array
    moved = launch.counts.global_loaded + launch.counts.global_stored
    assert moved == pytest.approx(expected, rel=0.05)


def test_a_missing_exchange_of_halves_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    tiled(monkeypatch, 1, 16, 32)
    whole = PassedOperand._of_lanes

    def own(self: PassedOperand, word: Any) -> dict[tuple[int, ...], Any]:
        return dict.fromkeys(whole(self, word), word)

    monkeypatch.setattr(PassedOperand, "_of_lanes", own)
    check("attention", "gfx1200")
    with pytest.raises(AssertionError, match="assert"):
        check("attention", "gfx1100")
