"""Chains of two products on simulated GPUs: one kernel, as exact as PyTorch's for any tile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf, prod
from typing import Any

import pytest
import torch
from sweeps import sweep
from tests.extended.test_kernels_simulated import simulate
from torch.nn import functional

from polyblocks.affine.cost.predicted import Predicted
from polyblocks.affine.fusion.chains import partial_sums, running_chain
from polyblocks.affine.gpu.tiles import chain_cost
from polyblocks.affine.model import For
from polyblocks.codegen.gpu.matrix_emission.chains import borders
from polyblocks.passes.contraction import chain_products
from polyblocks.simt import LaunchResult

pytestmark = pytest.mark.cpu

Inputs = list[torch.Tensor]
attention = functional.scaled_dot_product_attention


def halves(*shapes: tuple[int, ...], dtype: torch.dtype = torch.float16) -> Inputs:
    """Numbers of 16 bits."""
    return [torch.randn(shape).to(dtype) for shape in shapes]


def queries(heads: int, rows: int, steps: int, size: int) -> Inputs:
    """Queries, keys and values of a batch of one."""
    return halves((1, heads, rows, size), *[(1, heads, steps, size)] * 2)


def causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return attention(q, k, v, is_causal=True)


def window(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Each row has the 40 steps before it; the last rows have none."""
    behind = torch.arange(q.shape[-2])[:, None] - torch.arange(k.shape[-2])
    return attention(q, k, v, attn_mask=(behind >= 0) & (behind < 40))


def diagonal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Each row has one step: a condition with a bound on either side."""
    rows, steps = torch.arange(q.shape[-2])[:, None], torch.arange(k.shape[-2])
    scores = torch.where(rows == steps, q @ k.transpose(-1, -2) * 0.125, -inf)
    return torch.softmax(scores, -1) @ v


def falling(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Later rows have fewer steps."""
    number = torch.arange(q.shape[-2])[:, None] + torch.arange(k.shape[-2])
    scores = torch.where(number < 155, q @ k.transpose(-1, -2) * 0.125, -inf)
    return torch.softmax(scores, -1) @ v


def masked(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return attention(q, k, v, attn_mask=mask)


def written_out(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ k.transpose(-1, -2) * 0.125, -1) @ v


def turned_round(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """The largest product is the smallest score."""
    return torch.softmax(q @ k.transpose(-1, -2) * -0.125, -1) @ v


def grouped(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return attention(q, k, v, enable_gqa=True)


def repeated(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Causal, with a key head for each query head written out."""
    of_group = q.shape[1] // k.shape[1]
    return causal(q, k.repeat_interleave(of_group, 1), v.repeat_interleave(of_group, 1))


def expanded(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    b, heads, steps, size = k.shape
    shape = b, heads, q.shape[1] // heads, steps, size
    k, v = (x[:, :, None].expand(shape).reshape(b, -1, steps, size) for x in (k, v))
    return attention(q, k, v)


def cached(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, end: torch.Tensor) -> torch.Tensor:
    """Keys up to a number that is known at run time."""
    mask = torch.arange(k.shape[-2]) < end
    return attention(q, k, v, attn_mask=mask[None], enable_gqa=True)


def kernel_sum(x: torch.Tensor, y: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """No softmax: weights from products."""
    return torch.exp((x @ y.t()) * 0.125 - 1) @ w


def groups(batch: int, rows: int, steps: int, size: int, heads: int = 8) -> Inputs:
    """Queries of some heads, keys and values of two."""
    return halves((batch, heads, rows, size), *[(batch, 2, steps, size)] * 2)


def absent(rows: int, steps: int) -> torch.Tensor:
    """A mask of -inf for whole blocks of steps, and for all steps of a row."""
    mask = torch.where(torch.arange(steps) > 129, 0.0, -inf).expand(rows, steps).clone()
    mask[3] = -inf
    mask[5, :7] = 0
    return mask.half()


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[], Inputs]]] = {
    "attention": (attention, lambda: queries(2, 64, 64, 64)),
    "odd lengths": (attention, lambda: queries(2, 50, 77, 64)),
    "heads of 40": (attention, lambda: queries(2, 33, 140, 40)),
    "heads of 128": (attention, lambda: queries(1, 40, 150, 128)),
    "causal": (causal, lambda: queries(2, 100, 100, 64)),
    "causal, more rows": (causal, lambda: queries(1, 150, 70, 64)),
    "causal, more steps": (causal, lambda: queries(1, 70, 150, 64)),
    "window": (window, lambda: queries(1, 200, 130, 64)),
    "falling": (falling, lambda: queries(1, 150, 150, 64)),
    "diagonal": (diagonal, lambda: queries(1, 150, 150, 64)),
    "mask": (masked, lambda: [*halves((2, 2, 50, 32), *[(2, 2, 77, 32)] * 2, (2, 1, 50, 77))]),
    "absent blocks": (masked, lambda: [*queries(1, 40, 150, 64), absent(40, 150)]),
    "written out": (written_out, lambda: halves((2, 64, 64), *[(2, 80, 64)] * 2)),
    "turned round": (turned_round, lambda: halves((1, 64, 64), *[(1, 80, 64)] * 2)),
    "groups": (grouped, lambda: groups(2, 50, 77, 64)),
    "repeated": (repeated, lambda: groups(1, 70, 70, 64, heads=4)),
    "one head of keys": (grouped, lambda: halves((1, 4, 50, 64), *[(1, 1, 77, 64)] * 2)),
    "a row, one head of keys": (grouped, lambda: halves((1, 8, 1, 64), *[(1, 1, 203, 64)] * 2)),
    "expanded": (expanded, lambda: groups(1, 33, 77, 64)),
    "a row": (attention, lambda: groups(2, 1, 301, 64, heads=2)),
    # What is summed are exponentials that the sum itself makes.
    "a row of a batch": (grouped, lambda: groups(1, 1, 301, 64)),
    "a row of groups": (grouped, lambda: groups(2, 1, 301, 64)),
    "rows of groups": (grouped, lambda: groups(1, 3, 203, 128)),
    "kernel sum": (kernel_sum, lambda: halves((50, 64), (100, 64), (100, 32))),
    "bfloat16": (
        attention,
        lambda: halves((1, 1, 50, 64), *[(1, 1, 77, 64)] * 2, dtype=torch.bfloat16),
    ),
}
#: Programs whose steps are shared out.
IN_PARTS: dict[str, tuple[Callable[..., Any], Callable[[], Inputs]]] = {
    **{name: PROGRAMS[name] for name in PROGRAMS if "row of" in name or "rows of" in name},
    # The last parts of early rows have no step.
    **{
        name: PROGRAMS[name]
        for name in ("a row", "causal", "window", "absent blocks", "kernel sum")
    },
    "cached": (cached, lambda: [*groups(1, 1, 301, 64), torch.tensor(150)]),
}
#: Warps of a block, rows of a warp, steps of a block, stages.
TILES = ((1, 16, 32, 1), (2, 32, 64, 1), (4, 16, 64, 3), (2, 16, 128, 2), (1, 32, 32, 3))


@pytest.fixture(autouse=True)
def _chains_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    """For sizes that a simulator computes in seconds, the model prefers other kernels."""
    monkeypatch.setattr(chain_products, "_least_seconds", lambda chain, target: inf)
    monkeypatch.setattr(chain_products, "parts_to_try", lambda blocks, steps, target: [])


def check(name: str, arch: str = "sm_80", kernels: int = 1) -> tuple[LaunchResult, ...]:
    """A program is one kernel, and at most twice as far from float64's results as PyTorch is."""
    torch.manual_seed(0)
    function, make = {**PROGRAMS, **IN_PARTS}[name]
    inputs = make()
    (output, *_), launches = simulate(function, inputs, arch)
    assert [str(f) for launch in launches for f in launch.findings] == []
    exact = function(*(x.double() for x in inputs))
    eager = function(*inputs).double()
    given = torch.from_numpy(output)
    if inputs[0].dtype is torch.bfloat16:
        given = given.view(torch.bfloat16)
    found = given.double().reshape(exact.shape)
    assert torch.equal(found.isnan(), exact.isnan())
    error, allowed = (torch.nan_to_num(x - exact).abs().max() for x in (found, eager))
    assert error <= 2 * allowed
    assert len(launches) == kernels
    return launches


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_chain_is_one_kernel(name: str) -> None:
    (launch,) = check(name)
    assert launch.counts.instructions["matrix"] > 0


@pytest.mark.parametrize(
    # Units of these chips have no bfloat16.
    "name",
    sweep([n for n in PROGRAMS if n != "bfloat16"], "causal", "odd lengths", "groups", "mask"),
)
def test_a_chain_whose_operands_come_through_registers(name: str) -> None:
    """Copies past the registers are of later chips; there is one block of steps at a time."""
    (launch,) = check(name, "sm_75")
    assert launch.counts.instructions["matrix"] > 0
    assert launch.counts.bank_conflicts == 0


@pytest.mark.parametrize("tile", sweep(TILES, *TILES[:2]))
@pytest.mark.parametrize("name", ["causal", "odd lengths"])
def test_tiles_of_a_chain(
    name: str, tile: tuple[int, int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    warps, height, block, stages = tile
    monkeypatch.setattr(chain_products, "BLOCKS", (block,))
    monkeypatch.setattr(chain_cost, "_WARPS", (warps,))
    monkeypatch.setattr(chain_cost, "_HEIGHTS", (height,))
    monkeypatch.setattr(chain_cost, "_STAGES", (stages,))
    check(name)


def share_out(monkeypatch: pytest.MonkeyPatch, blocks: int) -> None:
    """Let parts have as many blocks of 32 steps."""
    predict = chain_products.predict_chain

    def preferred(plan: Any, target: Any, chip: Any, length: int = 0) -> Any:
        found = predict(plan, target, chip, length)
        return Predicted(*(1e3 * s for s in numbers(found))) if not length else found

    def numbers(found: Predicted) -> tuple[float, ...]:
        return tuple(s or 0.0 for s in (found.memory, found.compute, found.latency))

    monkeypatch.setattr(chain_products, "BLOCKS", (32,))
    monkeypatch.setattr(chain_products, "parts_to_try", lambda *given: [blocks])
    monkeypatch.setattr(chain_products, "predict_chain", preferred)


@pytest.mark.parametrize("name", IN_PARTS)
@pytest.mark.parametrize("blocks", sweep((1, 3), 3))
def test_parts_of_steps_are_joined(name: str, blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    share_out(monkeypatch, blocks)
    # The mask of a number known at run time is a kernel of its own. Behind it, few blocks that join
    # parts wait for these in one launch.
    waits = name == "cached" and blocks == 3
    launches = check(name, kernels=3 if name == "cached" and not waits else 2)
    multiply = ["matrix" in each.counts.instructions for each in launches]
    assert multiply[-2:] == ([False, True] if waits else [True, False])


def test_a_group_reads_its_keys_and_values_once(monkeypatch: pytest.MonkeyPatch) -> None:
    share_out(monkeypatch, 4)
    monkeypatch.setattr(chain_cost, "_WARPS", (1,))
    monkeypatch.setattr(chain_cost, "_HEIGHTS", (16,))
    batch, steps, size = 2, 512, 64
    _, (parts, _) = simulate(grouped, groups(batch, 1, steps, size), "sm_80")
    keys_and_values = 2 * batch * 2 * steps * size * 2
    # The unit has 16 rows; those that are none are loads of the last one.
    rows = prod(parts.grid) * 16 * size * 2
    assert parts.counts.global_loaded == pytest.approx(keys_and_values + rows, rel=0.05)


def test_blocks_of_masked_steps_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain_products, "BLOCKS", (32,))
    monkeypatch.setattr(chain_cost, "_WARPS", (1,))
    monkeypatch.setattr(chain_cost, "_HEIGHTS", (32,))
    counts = []
    for function in (attention, causal):
        _, (launch,) = simulate(function, queries(1, 256, 256, 64), "sm_80")
        counts.append(launch.counts.instructions["matrix"])
    every, half = counts
    # Tiles on the diagonal are computed.
    assert half * 16 == every * 9


def test_without_the_fusion_products_are_kernels_of_their_own() -> None:
    function, make = PROGRAMS["attention"]
    for option in ("polyblocks_disable_reduce_reduce_fusion", "polyblocks_disable_affine_fusion"):
        _, launches = simulate(function, make(), "sm_80", options={option: True})
        assert len(launches) > 1


def test_a_chain_reads_and_writes_its_arguments_once_for_each_tile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heads, length, size = 2, 256, 64
    monkeypatch.setattr(chain_products, "BLOCKS", (64,))
    monkeypatch.setattr(chain_cost, "_WARPS", (4,))
    monkeypatch.setattr(chain_cost, "_HEIGHTS", (32,))
    _, (launch,) = simulate(attention, queries(heads, length, length, size), "sm_80")
    tiles, array = length // 128, heads * length * size * 2
    # Queries, and for each tile of rows all keys and values; results.
    expected = (array + tiles * 2 * array) + array
    moved = launch.counts.global_loaded + launch.counts.global_stored
    assert moved == pytest.approx(expected, rel=0.05)


def without_rescale(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = running_chain._Writer._product
    monkeypatch.setattr(running_chain._Writer, "_product", lambda self, _: whole(self, None))


def a_block_short(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = running_chain.bound_blocks

    def bound(blocks: For, *others: Any) -> None:
        whole(blocks, *others)
        blocks.upper = tuple(end - 1 for end in blocks.upper)

    monkeypatch.setattr(running_chain, "bound_blocks", bound)


def without_borders(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = running_chain.masks_at_borders
    monkeypatch.setattr(running_chain, "masks_at_borders", lambda *given: whole(*given)[:0])


def a_whole_block_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first block that the mask cuts is computed as one that it leaves whole."""
    whole = borders.Borders._within

    def later(self: borders.Borders, first: Any, end: Any, *given: Any) -> Any:
        middle = self.code.plus(whole(self, first, end, *given), 1)
        return self.code.value("arith.minsi", self.code.index, middle, end)

    monkeypatch.setattr(borders.Borders, "_within", later)


def without_rescaled_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = partial_sums.PartialSums._over_parts
    monkeypatch.setattr(
        partial_sums.PartialSums, "_over_parts", lambda self, *given: whole(self, *given[:3])
    )


def test_a_planted_fault_of_joining_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    share_out(monkeypatch, 2)
    without_rescaled_parts(monkeypatch)
    with pytest.raises(AssertionError, match="assert"):
        check("a row", kernels=2)


def test_scores_without_their_scale_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exponents have it, where each of them and the largest score are of the same product."""
    scales = []
    whole = chain_products.score_scale

    def twice(*given: Any) -> Any:
        scales.append(whole(*given))
        return replace(scales[-1], factor=2 * scales[-1].factor)

    check("causal")
    monkeypatch.setattr(chain_products, "score_scale", twice)
    with pytest.raises(AssertionError, match="assert"):
        check("causal")
    assert scales[-1].factor == pytest.approx(0.125)


@pytest.mark.parametrize("arch", ["sm_75", "sm_80"])
@pytest.mark.parametrize(
    "fault", [without_rescale, a_block_short, without_borders, a_whole_block_too_many]
)
def test_planted_faults_are_found(fault: Any, arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain_products, "BLOCKS", (32,))
    check("causal", arch)
    fault(monkeypatch)
    with pytest.raises(AssertionError, match="assert"):
        check("causal", arch)
