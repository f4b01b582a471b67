"""Attention as PyTorch's function and written out: kernels of the same kinds, in the same order.

PyTorch's function gives zeros where all scores of a row are minus infinity, and so tests each row:
its code is a little longer.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

pytestmark = pytest.mark.cpu


def written_out(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
    scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
    if causal:
        places = torch.arange(q.shape[-2])
        scores = scores.masked_fill(places[None, :] > places[:, None], float("-inf"))
    return torch.softmax(scores, -1) @ v


def library(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
    return scaled_dot_product_attention(q, k, v, is_causal=causal)


@pytest.mark.parametrize("length", [96, 512])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_the_same_however_it_is_written(length: int, causal: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(1, 12, length, 64, generator=generator) for _ in range(3)]
    found = []
    for function in (library, written_out):
        compiled = polyblocks_jit_torch(function, compile_options={"strict_target": True})
        exact = written_out(*(x.double() for x in inputs), causal)
        torch.testing.assert_close(compiled(*inputs, causal).double(), exact, rtol=2e-5, atol=2e-6)
        (part,) = compiled.polyblocks_report().parts
        found.append((part.workspace_bytes, [k["kind"] for k in part.kernels]))
    assert found[0] == found[1]
