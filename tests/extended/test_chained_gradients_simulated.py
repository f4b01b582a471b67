"""Gradients of attention on simulated GPUs: chains of products that compute the scores again."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import pytest
import torch
from simulated_attention import named_results
from sweeps import sweep
from tests.support.captured import captured
from torch.nn import functional

from polyblocks.affine.gpu.tiles import chain_cost
from polyblocks.api import compile_text
from polyblocks.codegen.gpu.passes import join_launches
from polyblocks.options import CompileOptions
from polyblocks.passes.contraction import chain_products
from polyblocks.simt import LaunchResult

pytestmark = pytest.mark.cpu

Inputs = list[torch.Tensor]
attention = functional.scaled_dot_product_attention
forward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward


def halves(*shapes: tuple[int, ...], dtype: torch.dtype = torch.float16) -> Inputs:
    return [torch.randn(shape).to(dtype) for shape in shapes]


def operands(
    heads: int, rows: int, steps: int, size: int, dtype: torch.dtype = torch.float16
) -> Inputs:
    """The gradient of the result, queries, keys and values."""
    queries, keys = (1, heads, rows, size), (1, heads, steps, size)
    return halves(queries, queries, keys, keys, dtype=dtype)


def whole(gradient: torch.Tensor, *given: torch.Tensor, **options: Any) -> tuple[torch.Tensor, ...]:
    """The result, and all gradients."""
    q, k, v = (x.detach().requires_grad_() for x in given)
    out = attention(q, k, v, **options)
    return (out, *torch.autograd.grad(out, (q, k, v), gradient))


def causal(*given: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return whole(*given, is_causal=True)


def gradients(
    gradient: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    logarithms: torch.Tensor,
) -> tuple[torch.Tensor, ...]:
    """As a program of its own, from what the result's program leaves."""
    found: tuple[torch.Tensor, ...] = backward(gradient, q, k, v, out, logarithms, 0.0, False)
    return found


def left(heads: int, rows: int, steps: int, size: int) -> Inputs:
    given = operands(heads, rows, steps, size)
    return [*given, *(x.contiguous() for x in forward(*given[1:]))]


#: Function, inputs and kernels: of the result, of numbers of its rows, and of each gradient.
PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[], Inputs], int]] = {
    "whole": (whole, lambda: operands(2, 64, 64, 64), 5),
    "odd lengths": (whole, lambda: operands(2, 50, 77, 64), 5),
    "heads of 40": (whole, lambda: operands(1, 77, 33, 40), 5),
    "heads of 128": (whole, lambda: operands(1, 40, 70, 128), 5),
    "causal": (causal, lambda: operands(1, 100, 100, 64), 5),
    "bfloat16": (whole, lambda: operands(1, 50, 77, 64, torch.bfloat16), 5),
    "gradients": (gradients, lambda: left(2, 50, 77, 64), 4),
}
#: Kernels beside those: a second one of rows, and one that computes scores for chains to read.
BESIDE = {("whole", "sm_80"): 1, ("heads of 128", "gfx1100"): 1}


@pytest.fixture(autouse=True)
def _chains_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    """For sizes that a simulator computes in seconds, the model prefers other kernels."""
    monkeypatch.setattr(chain_products, "_least_seconds", lambda nests, target: inf)
    monkeypatch.setattr(chain_products, "parts_to_try", lambda blocks, steps, target: [])
    # Kernels are counted here, and not launches: few blocks would be launched together.
    monkeypatch.setattr(join_launches, "can_be_joined", lambda kernel, row: False)


def check(name: str, arch: str) -> tuple[LaunchResult, ...]:
    """Errors are at most twice PyTorch's, of all results, and chains are one kernel each."""
    torch.manual_seed(0)
    function, make, kernels = PROGRAMS[name]
    inputs = make()
    found, launches = named_results(function, inputs, arch)
    assert [str(f) for launch in launches for f in launch.findings] == []
    exact = function(*(x.double() for x in inputs))
    for ours, eager, right in zip(found, function(*inputs), exact, strict=True):
        error, allowed = ((x.double() - right).abs().max() for x in (ours, eager))
        assert error <= 2 * allowed
    assert len(launches) == kernels + BESIDE.get((name, arch), 0)
    return launches


@pytest.mark.parametrize("arch", ["sm_80", "gfx1100"])
@pytest.mark.parametrize("name", sweep(PROGRAMS, "odd lengths", "causal", "gradients"))
def test_each_gradient_is_one_kernel(name: str, arch: str) -> None:
    launches = check(name, arch)
    assert sum(launch.counts.instructions.get("matrix", 0) > 0 for launch in launches) in (3, 4)


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_stages_of_several_operands(stages: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain_products, "BLOCKS", (32,))
    monkeypatch.setattr(chain_cost, "_STAGES", (stages,))
    check("odd lengths", "sm_80")


def test_blocks_of_masked_steps_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain_products, "BLOCKS", (32,))
    monkeypatch.setattr(chain_cost, "_WARPS", (1,))
    monkeypatch.setattr(chain_cost, "_HEIGHTS", (32,))
    counts = []
    for function in (whole, causal):
        _, launches = named_results(function, operands(1, 256, 256, 64), "sm_80")
        found = [launch.counts.instructions.get("matrix", 0) for launch in launches]
        counts.append([number for number in found if number])
    # Tiles on the diagonal are computed: of rows before, and of columns behind.
    assert len(counts[0]) == 4
    assert [number * 9 for number in counts[0]] == [number * 16 for number in counts[1]]


@pytest.mark.parametrize("arch", ["gfx1100", "gfx1200"])
def test_registers_suffice(arch: str) -> None:
    """Where some threads copy nothing, branches would keep operands of all rows in registers."""
    queries = torch.empty(8, 16, 1024, 64, dtype=torch.float16)
    module = captured(gradients, [*[queries] * 5, torch.empty(8, 16, 1024)]).module
    text = module.operation.get_asm(enable_debug_info=True)
    artifact = compile_text(text, CompileOptions(target="amdgpu", arch=arch))
    assert len(artifact.manifest["kernels"]) == 4
    assert all(not k["resources"]["spill_bytes"] for k in artifact.manifest["kernels"])
