"""Machine code of small programs: registers are enough, and blocks fit as the mapping assumes."""

from __future__ import annotations

import pytest
from tests.gpu_conformance.assemble import ARCHS, compiled

from polyblocks.testing.conformance import CASES
from polyblocks_nvgpu import ptxas


@pytest.mark.parametrize("arch", ARCHS)
def test_kernels_keep_everything_in_registers(arch: str) -> None:
    assembler = ptxas.find()
    if ARCHS[arch] == "nvgpu" and (assembler is None or arch not in ptxas.architectures(assembler)):
        pytest.skip(f"no assembler for {arch}")
    for case in CASES:
        result = compiled(case.module, arch)
        assert result.refused == "", case
        for kernel in result.kernels:
            assert kernel.registers > 0, kernel
            assert (kernel.spill_bytes, kernel.scratch_bytes) == (0, 0), kernel
            assert kernel.resident >= kernel.assumed, kernel
