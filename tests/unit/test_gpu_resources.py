"""Machine code of small programs: registers are enough, and blocks fit as the mapping assumes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from bench.gpu_counts import cases, function_of
from sweeps import sweep
from tests.gpu_conformance.assemble import ARCHS, Kernel, compiled, kernels_of

import polyblocks
from polyblocks.options import CompileOptions
from polyblocks.registry.registry import get_registry
from polyblocks.testing.conformance import CASES
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch
from polyblocks_nvgpu import ptxas

pytestmark = pytest.mark.usefixtures("compiled_in_this_process")

#: Programs of the benchmark whose threads keep much in registers, and architectures.
SIZES = [
    pytest.param("group_norm", "sm_75", marks=pytest.mark.slow),
    ("group_norm", "sm_90a"),
    ("group_norm", "gfx1100"),
    ("softmax", "sm_90a"),
    ("layer_norm", "sm_80"),
    pytest.param("heat", "sm_90a", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("arch", sweep(ARCHS, "sm_90a", "gfx1100"))
def test_kernels_keep_everything_in_registers(arch: str) -> None:
    _needs_assembler(arch)
    for case in CASES:
        result = compiled(case.module, arch)
        assert result.refused == "", case
        for kernel in result.kernels:
            _check(kernel)


@pytest.mark.parametrize(("name", "arch"), SIZES)
def test_so_do_those_at_the_sizes_of_the_benchmark(name: str, arch: str) -> None:
    _needs_assembler(arch)
    options = CompileOptions(target=ARCHS[arch], arch=arch)
    (case,) = (c for c in cases() if c.program == name)
    inputs = [torch.from_numpy(array) for array in case.inputs()]
    given = {"target": options.target, "arch": arch}
    artifact = polyblocks.aot(function_of(name), inputs, given)
    description = get_registry().target(options.target).hook.describe_target(options=options)
    for kernel in kernels_of(artifact.manifest, description):
        _check(kernel)


def _needs_assembler(arch: str) -> None:
    assembler = ptxas.find()
    if ARCHS[arch] == "nvgpu" and (assembler is None or arch not in ptxas.architectures(assembler)):
        pytest.skip(f"no assembler for {arch}")


def _check(kernel: Kernel) -> None:
    assert kernel.registers > 0, kernel
    assert (kernel.spill_bytes, kernel.scratch_bytes) == (0, 0), kernel
    assert kernel.resident >= kernel.assumed >= 1, kernel


def test_a_loop_with_barriers_picks_copies_from_registers() -> None:
    """Of a few columns a block keeps the largest numbers, and then looks for their rows."""
    _needs_assembler("sm_75")
    x = np.random.default_rng(7).standard_normal((1031, 37))
    x[5, 3] = np.nan
    given = {"target": "nvgpu", "arch": "sm_75"}

    def rows(x: torch.Tensor) -> torch.Tensor:
        return x.argmax(0)

    artifact = polyblocks.aot(rows, [torch.from_numpy(x)], given)
    description = (
        get_registry().target("nvgpu").hook.describe_target(options=CompileOptions(**given))
    )
    for kernel in kernels_of(artifact.manifest, description):
        _check(kernel)
    simulated = polyblocks_jit_torch(compile_options=given | {"simulate": True})(rows)
    np.testing.assert_array_equal(simulated(torch.from_numpy(x)).numpy(), x.argmax(0))


@pytest.mark.parametrize("arch", ["sm_75", "gfx1100"])
def test_a_scan_of_a_long_row_keeps_it_in_no_private_memory(arch: str) -> None:
    """What one kernel could not hold on chip is computed by several."""
    _needs_assembler(arch)
    given = {"target": ARCHS[arch], "arch": arch}

    def scanned(x: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(x * x.sum(), 0) + x.max()

    artifact = polyblocks.aot(scanned, [torch.ones(20_000)], given)
    description = (
        get_registry().target(given["target"]).hook.describe_target(options=CompileOptions(**given))
    )
    for kernel in kernels_of(artifact.manifest, description):
        _check(kernel)
