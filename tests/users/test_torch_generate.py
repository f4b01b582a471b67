"""Methods of a compiled module: what they call of the module is compiled, or it is said."""

import pytest
import torch
import transformers

from polyblocks.errors import FallbackError
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch


def tiny(kind):
    torch.manual_seed(0)
    if kind == "gpt2":
        config = transformers.GPT2Config(
            vocab_size=40, n_embd=16, n_layer=1, n_head=2, n_positions=32,
            bos_token_id=0, eos_token_id=39, pad_token_id=39,
        )  # fmt: skip
        return transformers.GPT2LMHeadModel(config).eval()
    config = transformers.LlamaConfig(
        vocab_size=40, hidden_size=16, intermediate_size=24, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=32, pad_token_id=39,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config).eval()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_generate(kind):
    model = tiny(kind)
    fast = polyblocks_jit_torch(model)
    ids = torch.randint(0, 38, (2, 4))
    asked = {"max_new_tokens": 3, "do_sample": False, "attention_mask": torch.ones_like(ids)}
    assert torch.equal(fast.generate(ids, **asked), model.generate(ids, **asked))
    report = fast.polyblocks_report()
    # One for the prompt and one for each token that follows the first.
    assert report.whole
    assert len(report.variants) == 3
    assert "forward" not in model.__dict__


class Coder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)
        self.calls = 0

    def forward(self, x):
        return torch.tanh(self.layer(x))

    def twice(self, x, scale=1):
        self.calls += 1
        return self(x) + scale * self.forward(x)

    def encode(self, x):
        return self.layer(x)

    def size(self):
        return sum(p.numel() for p in self.parameters())


def test_method_that_calls_forward():
    model, x = Coder(), torch.rand(2, 4)
    fast = polyblocks_jit_torch(model, compile_options={"strict_target": True})
    torch.testing.assert_close(fast.twice(x, scale=2), 3 * model(x))
    assert model.calls == fast.calls == 1
    assert fast.polyblocks_report().whole
    assert len(fast.polyblocks_report().variants) == 1


def test_method_that_raises_leaves_the_module_as_it_was():
    model = Coder()
    fast = polyblocks_jit_torch(model)
    with pytest.raises(TypeError, match="scales"):
        fast.twice(torch.rand(2, 4), scales=2)
    assert "forward" not in model.__dict__


def test_method_that_does_not_call_forward(caplog):
    model, x = Coder(), torch.rand(2, 4)
    fast = polyblocks_jit_torch(model)
    for _ in range(2):
        torch.testing.assert_close(fast.encode(x), model.encode(x))
    (row,) = fast.polyblocks_report().fallbacks
    assert row.op == "Coder (method encode)"
    assert "polyblocks_jit_torch(module.encode)" in row.reason
    assert __file__ in row.location
    assert len([r for r in caplog.records if "method encode" in r.getMessage()]) == 1
    assert "not called yet" not in str(fast.polyblocks_report())
    strict = polyblocks_jit_torch(model, compile_options={"strict_target": True})
    with pytest.raises(FallbackError, match="method encode.*strict_target forbids"):
        strict.encode(x)


def test_method_that_computes_nothing_is_not_reported(caplog):
    fast = polyblocks_jit_torch(Coder())
    assert fast.size() == 15
    assert not fast.polyblocks_report().fallbacks
    assert not caplog.records
