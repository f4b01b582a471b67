"""Machine code of small programs: registers are enough, and blocks fit as the mapping assumes."""

from __future__ import annotations

import pytest
import torch
from bench.gpu_counts import cases, function_of
from tests.gpu_conformance.assemble import ARCHS, Kernel, compiled, kernels_of

import polyblocks
from polyblocks.options import CompileOptions
from polyblocks.registry import get_registry
from polyblocks.testing.conformance import CASES
from polyblocks_nvgpu import ptxas

#: Programs of the benchmark whose threads keep much in registers, and architectures.
SIZES = [
    ("group_norm", "sm_75"),
    ("group_norm", "sm_90a"),
    ("group_norm", "gfx1100"),
    ("softmax", "sm_90a"),
    ("layer_norm", "sm_80"),
    ("heat", "sm_90a"),
]


@pytest.mark.parametrize("arch", ARCHS)
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
