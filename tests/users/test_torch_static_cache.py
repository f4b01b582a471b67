"""Language models that generate with a cache of fixed size: few variants, eager mode's tokens."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers
from bench.programs.llama import Llama

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch


@pytest.mark.extended
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


@pytest.mark.extended
def test_a_static_cache_of_transformers_gives_the_tokens_of_eager_mode() -> None:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=131,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
    )
    model = transformers.LlamaForCausalLM(config).eval()
    prompt = torch.randint(1, 131, (1, 9))

    def step(tokens: torch.Tensor, cache: Any, places: torch.Tensor) -> torch.Tensor:
        result = model(tokens, past_key_values=cache, position_ids=places[None], use_cache=True)
        scores: torch.Tensor = result.logits
        return scores

    def generated(run: Any) -> torch.Tensor:
        cache = transformers.StaticCache(config=config, max_cache_len=48)
        tokens, places, found = prompt, torch.arange(9), []
        for _ in range(12):
            tokens = run(tokens, cache, places)[:, -1:].argmax(-1)
            places = places[-1:] + 1
            found.append(tokens)
        return torch.cat(found, 1)

    with torch.no_grad():
        expected = generated(step)
        fast = polyblocks_jit_torch(step, compile_options={"strict_target": True})
        result = generated(fast)
    assert torch.equal(result, expected)
    assert len(expected.unique()) > 2
    report = fast.polyblocks_report()
    assert report.whole
    assert len(report.variants) <= 3
