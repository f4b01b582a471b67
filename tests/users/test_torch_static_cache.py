"""Language models that generate with a cache of fixed size: few variants, eager mode's tokens."""

from __future__ import annotations

from typing import Any

import torch
from bench.programs.llama import Llama

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch


def test_llama_generates_the_tokens_of_eager_mode() -> None:
    torch.manual_seed(0)
    model = Llama(layers=2, hidden=96, heads=6, groups=2, vocabulary=503, length=96).eval()
    fast = polyblocks_jit_torch(model, compile_options={"strict_target": True})
    prompt = torch.randint(0, 503, (1, 17))
    with torch.no_grad():
        expected = model.generate(prompt, 64)
        for cache in model.buffers():
            cache.zero_()
        result = fast.generate(prompt, 64)
    assert torch.equal(result, expected)
    assert len(expected.unique()) > 2
    report = fast.polyblocks_report()
    assert report.whole
    # The prompt, and every step after it.
    assert len(report.variants) == 2
    nbytes = min(cache.nbytes for cache in model.buffers())
    step: Any = report.to_json()["parts"][-1]
    copies = [k["estimate"]["floor_bytes"] for k in step["kernels"] if k["kind"] == "copy"]
    assert all(found < nbytes for found in copies)
