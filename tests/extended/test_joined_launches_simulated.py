"""Layers of transformers for simulated GPUs: few kernels, which compute what PyTorch does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from bench.programs.bert import Layer
from sweeps import sweep
from tests.extended.test_half_programs_simulated import of_module
from tests.extended.test_kernels_simulated import simulate
from tests.support.captured import captured
from torch.nn import functional

from polyblocks.api import compile_text
from polyblocks.codegen.gpu import joined_kernel
from polyblocks.codegen.gpu.passes import join_launches
from polyblocks.options import CompileOptions
from polyblocks.passes.map import products_together

pytestmark = pytest.mark.cpu

CHIPS = {"sm_80": "nvgpu", "sm_90a": "nvgpu", "gfx1100": "amdgpu", "gfx1200": "amdgpu"}
#: Queries, keys and values; attention; what follows it; GELU; what follows that; two norms.
KERNELS = 7
#: Steps of products that are no small nests.
SIZE = 512


@pytest.mark.parametrize("arch", CHIPS)
def test_kernels_of_a_layer_of_bert(arch: str) -> None:
    with torch.no_grad():
        x, mask = torch.zeros(1, 128, 768).half(), torch.zeros(1, 1, 1, 128).half()
        function, inputs = of_module(Layer(768, 12, 3072).half().eval(), x, mask)
        module = captured(function, inputs).module
    text = module.operation.get_asm(enable_debug_info=True)
    artifact = compile_text(text, CompileOptions(target=CHIPS[arch], arch=arch))
    assert len(artifact.manifest["launches"]) <= KERNELS
    for kernel in artifact.manifest["kernels"]:
        assert kernel["unit"] or kernel["kind"] != "contraction"
        assert kernel["calls"] == len(kernel["nests"])


def projections(
    x: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """Results of different shapes and layouts."""
    return torch.relu(x @ q), functional.linear(x, k).mT.contiguous(), x @ v + 1


def inputs() -> list[torch.Tensor]:
    """An array, and the matrices that it is multiplied by."""
    torch.manual_seed(0)
    shapes = (64, SIZE), (SIZE, 256), (256, SIZE), (SIZE, 256)
    return [torch.randn(shape).half() for shape in shapes]


def check_all(function: Callable[..., Any], given: list[torch.Tensor], arch: str) -> list[int]:
    """Matrix instructions of each launch; all results are as good as eager mode's."""
    outputs, launches = simulate(function, given, arch)
    assert [str(f) for launch in launches for f in launch.findings] == []
    expected = function(*(x.double() for x in given))
    for found, eager, exact in zip(outputs, function(*given), expected, strict=True):
        error = (torch.from_numpy(found).double() - exact).abs().max()
        assert error <= 2 * (eager.double() - exact).abs().max()
    return [launch.counts.instructions.get("matrix", 0) for launch in launches]


@pytest.mark.parametrize("arch", sweep(CHIPS, "sm_80", "sm_90a", "gfx1100"))
def test_products_of_different_widths_have_one_tile(arch: str) -> None:
    """Rows, columns and steps are no multiples of tiles, and each result has its own epilogue."""

    def widths(x: torch.Tensor, *weights: torch.Tensor) -> tuple[torch.Tensor, ...]:
        q, k, v = (functional.linear(x, weight) for weight in weights)
        return q * 2, torch.relu(k), v

    torch.manual_seed(0)
    shapes = (77, 584), (520, 584), (136, 584), (72, 584)
    given = [torch.randn(shape).half() for shape in shapes]
    assert sum(matrix > 0 for matrix in check_all(widths, given, arch)) == 1


@pytest.mark.parametrize("arch", CHIPS)
def test_projections_are_one_kernel(arch: str) -> None:
    (matrix,) = check_all(projections, inputs(), arch)
    assert matrix > 0


@pytest.mark.parametrize("arch", sweep(CHIPS, "sm_80", "gfx1100"))
def test_products_of_products_are_apart(arch: str) -> None:
    """Those of the first array run together."""
    first, second = check_all(chained, square(), arch)
    assert first > second > 0


def chained(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The second product needs the first one, the third one does not."""
    y = torch.relu(x @ w)
    return y, y @ w, x @ w.mT


def square() -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(shape).half() / 16 for shape in ((64, SIZE), (SIZE, SIZE))]


@pytest.mark.parametrize("arch", sweep(CHIPS, "sm_80", "gfx1100"))
def test_blocks_that_do_not_know_their_number_are_found(
    arch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joined_kernel, "_arith", lambda name, number, first: first)
    with pytest.raises(AssertionError, match="assert"):
        check_all(projections, inputs(), arch)


def test_dependent_launches_together_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_launches._Launch, "conflicts", lambda *given: False)
    # All three have one tile.
    monkeypatch.setattr(products_together, "products_together", lambda *given: {})
    with pytest.raises(AssertionError, match="assert"):
        check_all(chained, square(), "sm_80")


@pytest.mark.parametrize("arch", sweep(CHIPS, "sm_80", "gfx1100"))
def test_rows_of_other_lengths_are_summed_and_stored_by_one_kernel(arch: str) -> None:
    """Blocks have other threads and other shared memory; two kernels check the place."""

    def token(
        x: torch.Tensor, y: torch.Tensor, z: torch.Tensor, u: torch.Tensor, at: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        first, second = z.index_copy(1, at, x[:40, None]), u.index_copy(1, at, y[:24, None])
        return torch.softmax(x.float(), 0), torch.softmax(y.float(), 0), first, second

    torch.manual_seed(0)
    x, y = torch.randn(5000).half(), torch.randn(700).half()
    z, u, at = torch.randn(40, 9).half(), torch.randn(24, 9).half(), torch.tensor([4])
    outputs, launches = simulate(token, [x, y, z, u, at], arch)
    assert [str(f) for launch in launches for f in launch.findings] == []
    z[:, 4], u[:, 4] = x[:40], y[:24]
    expected = torch.softmax(x.double(), 0), torch.softmax(y.double(), 0), z.double(), u.double()
    results = {output.shape: torch.from_numpy(output).double() for output in outputs}
    for exact in expected:
        torch.testing.assert_close(results[tuple(exact.shape)], exact, rtol=1e-4, atol=1e-6)
    assert len(launches) <= 3, [launch.kernel for launch in launches]
