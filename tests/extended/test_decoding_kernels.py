"""A row of queries that meets a long cache: at most two kernels on each chip, and no spills."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention as attend

import polyblocks

pytestmark = pytest.mark.cpu

#: Batch, heads of queries, heads of keys, keys -> kernels: steps are shared out where rows are few.
CACHES = {(8, 32, 32, 4096): 1, (8, 32, 8, 4096): 1, (1, 32, 8, 32768): 2}
SIZE = 128


def grouped(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
    return attend(q, k, v, enable_gqa=True)


@pytest.mark.each_choice
@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize(
    ("target", "arch"), [("amdgpu", "gfx1100"), ("amdgpu", "gfx1200"), ("nvgpu", "sm_80")]
)
def test_a_row_meets_a_cache_in_few_kernels(
    target: str, arch: str, cache: tuple[int, int, int, int]
) -> None:
    batch, heads, of_keys, length = cache
    shapes = [(batch, heads, 1, SIZE), *[(batch, of_keys, length, SIZE)] * 2]
    inputs = [torch.empty(shape, dtype=torch.float16) for shape in shapes]
    torch._dynamo.reset()
    with torch.no_grad():
        artifact = polyblocks.aot(
            grouped if of_keys < heads else attend,
            inputs,
            {"target": target, "arch": arch},
            frontend="torch",
        )
    assert len(artifact.manifest["launches"]) == CACHES[cache]
    for kernel in artifact.manifest["kernels"]:
        assert not kernel["resources"]["spill_bytes"], kernel["name"]
