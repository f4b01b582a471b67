"""Mixtures of experts: products of groups of matrices, and a model that is made of them."""

import copy

import pytest
import torch
import transformers

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch
from polyblocks_torch.decomp.grouped_products import grouped_mm

STRICT = {"strict_target": True}

ENDS = torch.tensor([2, 2, 8], dtype=torch.int32)

SHAPES = {
    "rows": ((8, 16), (3, 16, 8), ENDS),
    "columns": ((3, 8, 16), (16, 8), ENDS),
    "sums": ((8, 8), (8, 8), ENDS),
    "batch": ((3, 8, 16), (3, 16, 8), None),
}


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("form", SHAPES)
def test_grouped_mm_forms(form, dtype):
    first, second, ends = SHAPES[form]
    a, b = torch.randn(first).to(dtype), torch.randn(second).to(dtype)
    torch.testing.assert_close(grouped_mm(a, b, ends), torch._grouped_mm(a, b, ends))


def test_grouped_mm_keeps_groups_apart():
    a, b = torch.randn(8, 8), torch.randn(8, 8)
    b[7] = torch.inf
    result = grouped_mm(a, b, ENDS)
    assert result[0].isfinite().all()


@pytest.mark.slow
def test_grouped_mm_of_transformers_gradients():
    from transformers.integrations import moe

    op = torch.ops.transformers.grouped_mm_fallback
    assert moe
    fast = polyblocks_jit_torch(lambda x, w: op(x, w, ENDS), compile_options=STRICT)
    x, weights = torch.randn(8, 16), torch.randn(3, 16, 8)
    grads = []
    for function in (lambda x, w: op(x, w, ENDS), fast):
        given = [t.clone().requires_grad_() for t in (x, weights)]
        function(*given).square().sum().backward()
        grads.append([t.grad for t in given])
    torch.testing.assert_close(*grads, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_grouped_mm_gradients():
    def loss(x, weights):
        return torch._grouped_mm(x, weights, ENDS).square().sum()

    fast = polyblocks_jit_torch(loss, compile_options=STRICT)
    # PyTorch itself compiles no other type.
    x, weights = (torch.randn(s, dtype=torch.bfloat16) for s in ((8, 16), (3, 16, 8)))
    grads = []
    for function in (loss, fast):
        given = [t.clone().requires_grad_() for t in (x, weights)]
        function(*given).backward()
        grads.append([t.grad for t in given])
    torch.testing.assert_close(*grads, rtol=2e-2, atol=5e-1)
    assert fast.polyblocks_report().whole


@pytest.mark.slow
def test_mixtral():
    torch.manual_seed(0)
    config = transformers.MixtralConfig(
        vocab_size=40, hidden_size=16, intermediate_size=24, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1, num_local_experts=4,
        num_experts_per_tok=2, max_position_embeddings=32,
    )  # fmt: skip
    model = transformers.MixtralForCausalLM(config).eval()
    fast = polyblocks_jit_torch(copy.deepcopy(model), compile_options=STRICT)
    ids = torch.randint(0, 40, (2, 5))
    with torch.no_grad():
        torch.testing.assert_close(
            fast(ids, use_cache=False).logits,
            model(ids, use_cache=False).logits,
            rtol=1e-4,
            atol=1e-5,
        )
    assert fast.polyblocks_report().whole
