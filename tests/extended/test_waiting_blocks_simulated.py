"""Blocks that wait for others of their launch: few kernels, right ones, and faults are found."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from bench.programs.llama import Layer, Llama
from sweeps import sweep
from tests.extended.test_half_programs_simulated import of_module
from tests.extended.test_kernels_simulated import simulate

import polyblocks
from polyblocks.codegen.gpu import joined_kernel, phases
from polyblocks.codegen.gpu.passes import join_launches
from polyblocks.simt import LaunchResult

pytestmark = pytest.mark.cpu

CHIPS = ("sm_80", "sm_90a", "gfx1100")


@pytest.fixture(autouse=True)
def _waiting_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """On chips whose latencies are not known, too."""
    monkeypatch.setattr(join_launches, "is_worth_waiting", lambda target: True)


def norm(x: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    y = x if x.dtype is torch.float64 else x.float()
    return (y * torch.rsqrt((y * y).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * scales


def rows(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Products of one row, of which each needs the one before."""
    y = torch.relu(torch.relu(norm(x, scales) @ w) @ v + x)
    return torch.relu(y @ w) @ v


def inputs() -> list[torch.Tensor]:
    torch.manual_seed(0)
    shapes = (1, 512), (512, 776), (776, 512), (512,)
    return [torch.randn(shape).half() / (16 if shape[0] > 1 else 1) for shape in shapes]


def checked(arch: str, **options: Any) -> tuple[LaunchResult, ...]:
    """What the launches of :func:`rows` did; its results are as good as eager mode's."""
    given = inputs()
    (found,), launches = simulate(rows, given, arch, **options)
    exact = rows(*(x.double() for x in given))
    error = (torch.from_numpy(found).double() - exact).abs().max()
    assert error <= 2 * (rows(*given).double() - exact).abs().max()
    return launches


def findings(launches: tuple[LaunchResult, ...]) -> list[str]:
    return [finding.kind for launch in launches for finding in launch.findings]


@pytest.mark.parametrize("arch", CHIPS)
def test_rows_that_need_each_other_are_two_launches(arch: str) -> None:
    """The first one clears the counters, so that it has no blocks that wait."""
    launches = checked(arch)
    assert findings(launches) == []
    assert len(launches) == 2


def test_the_machine_code_waits_too() -> None:
    assert findings(checked("sm_80", ptx=True)) == []


@pytest.mark.parametrize("arch", sweep(CHIPS, "sm_80"))
@pytest.mark.parametrize("fault", ["no fence", "no wait", "counters as they were"])
def test_faults_are_found(arch: str, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault == "no fence":
        monkeypatch.setattr(phases, "_fence", lambda ordering: None)
    elif fault == "no wait":
        wait = phases.wait_for
        monkeypatch.setattr(joined_kernel, "wait_for", lambda c, p, blocks: wait(c, p, 0))
    else:
        monkeypatch.setattr(join_launches, "clearing_kernel", clears_nothing)
    _, launches = simulate(rows, inputs(), arch)
    assert set(findings(launches)) & {"race", "unwritten read"}


def clears_nothing(*given: Any) -> Any:
    kernel = phases.clearing_kernel(*given)
    for op in list(kernel.regions[0].blocks[0].operations):
        if op.operation.name == "memref.store":
            op.operation.erase()
    return kernel


def block(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Products of rows, which units compute, with a norm in front and one behind."""
    y = norm(x, scales)
    return norm(torch.relu(y @ w) @ v + y, scales)


def rows_of_products() -> list[torch.Tensor]:
    torch.manual_seed(0)
    shapes = (32, 64), (64, 136), (136, 64), (64,)
    return [torch.randn(shape).half() / (1 if n in (0, 3) else 8) for n, shape in enumerate(shapes)]


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("ptx", [False, True])
def test_products_of_units_wait_for_norms(arch: str, ptx: bool) -> None:
    """On sm_90a units copy operands by themselves, and these are launches of their own."""
    if ptx and not arch.startswith("sm_8"):
        pytest.skip("the PTX interpreter runs one chip's")
    given = rows_of_products()
    (found,), launches = simulate(block, given, arch, ptx=ptx)
    exact = block(*(x.double() for x in given))
    error = (torch.from_numpy(found).double() - exact).abs().max()
    assert error <= 2 * (block(*given).double() - exact).abs().max()
    assert findings(launches) == []
    if arch == "sm_80":
        assert len(launches) == 2


@pytest.mark.parametrize("fault", ["no fence", "no wait"])
def test_faults_between_products_are_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault == "no fence":
        monkeypatch.setattr(phases, "_fence", lambda ordering: None)
    else:
        wait = phases.wait_for
        monkeypatch.setattr(joined_kernel, "wait_for", lambda c, p, blocks: wait(c, p, 0))
    _, launches = simulate(block, rows_of_products(), "sm_80")
    assert set(findings(launches)) & {"race", "unwritten read"}


@pytest.mark.parametrize("arch", CHIPS)
def test_a_layer_of_a_decoder_is_right(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A token at a place of a cache."""
    monkeypatch.setattr(torch.Tensor, "index_copy_", torch.Tensor.index_copy)
    torch.manual_seed(0)
    with torch.no_grad():
        layer = Layer(64, 2, 1, 128).half().eval()
        x, place = torch.randn(1, 1, 64).half(), torch.tensor([9])
        keys, values = (torch.randn(1, 1, 32, 32).half() for _ in range(2))
        function, given = of_module(layer, x, place, keys, values)
        (found,), launches = simulate(function, given, arch)
        exact = function(*(each.double() if each.is_floating_point() else each for each in given))
        eager = function(*given)
    assert findings(launches) == []
    error = (torch.from_numpy(found).double() - exact).abs().max()
    assert error <= 2 * (eager.double() - exact).abs().max()


def test_kernels_of_a_layer_of_a_decoder() -> None:
    """Of the sizes of a model: attention, its parts' sum, what follows, and all of the rest."""

    def launches(layers: int) -> int:
        with torch.device("meta"):
            module = Llama(layers, 2048, 16, 4, 512, 1024).half()
        module = module.to_empty(device="cpu").eval()
        token = torch.zeros(1, 1, dtype=torch.int64), torch.tensor([1023])
        options = {"target": "nvgpu", "arch": "sm_80"}
        with torch.no_grad():
            artifact = polyblocks.aot(module, token, options, frontend="torch", weights="arguments")
        return len(artifact.manifest["launches"])

    assert launches(2) - launches(1) <= 4
