"""A pipeline of stencils and point-wise steps stays one chain of tiles."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from bench.programs.in_torch import adaptive_sharpen
from s3 import kernels

from polyblocks_torch import polyblocks_jit_torch

pytestmark = pytest.mark.cpu


def test_few_kernels_work_on_whole_images(tmp_path: Path) -> None:
    x = torch.rand(2048, 2048)
    compiled = polyblocks_jit_torch(
        adaptive_sharpen,
        compile_options={
            "strict_target": True,
            "debug": str(tmp_path),
            "num_threads": 2,
            "arch": "x86-64-v3",
        },
    )
    torch.testing.assert_close(compiled(x), adaptive_sharpen(x), rtol=1e-4, atol=1e-4)
    (path,) = tmp_path.rglob("*S3*.mlir")
    assert len(kernels(path.read_text())) <= 2
