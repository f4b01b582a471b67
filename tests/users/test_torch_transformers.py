"""Transformers: PyTorch's own modules and BERT, compiled whole, equal to eager mode."""

import copy

import pytest
import torch
import transformers

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

STRICT = {"strict_target": True}


def encoder(norm_first=False, activation="relu", layers=1):
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(
        16, 4, 32, dropout=0.0, batch_first=True, norm_first=norm_first, activation=activation
    )
    return torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=not norm_first)


def padding(*lengths, length=5):
    return torch.arange(length) >= torch.tensor(lengths)[:, None]


CASES = {
    "plain": (False, {}),
    "padded": (False, {"src_key_padding_mask": padding(3, 5, 1)}),
    "padded_inside": (False, {"src_key_padding_mask": padding(3, 5, 1).flip(1)}),
    "norm_first": (True, {"mask": torch.nn.Transformer.generate_square_subsequent_mask(5)}),
}


@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=() if c == "padded" else pytest.mark.slow) for c in CASES]
)
def test_transformer_encoder_in_eval_mode(case):
    norm_first, given = CASES[case]
    model = encoder(norm_first, "gelu" if norm_first else "relu").eval()
    fast = polyblocks_jit_torch(model, compile_options=STRICT)
    x = torch.randn(3, 5, 16)
    with torch.no_grad():
        expected = model(x, **given)
        result = fast(x, **given)
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)
    if case == "padded":
        # What eager mode drops comes out as zeros.
        assert expected[0, 3:].abs().max() == 0
    assert fast.polyblocks_report().whole


@pytest.mark.slow
@pytest.mark.parametrize("training", [False, True])
def test_transformer_encoder_gradients(training):
    model = encoder(layers=2).train(training)
    twin = copy.deepcopy(model)
    fast = polyblocks_jit_torch(twin, compile_options=STRICT)
    x = torch.randn(3, 5, 16)
    for network in (model, fast):
        network(x, src_key_padding_mask=padding(3, 5, 1)).square().sum().backward()
    for ours, theirs in zip(twin.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-4, atol=1e-4)
    assert fast.polyblocks_report().whole


@pytest.mark.slow
@pytest.mark.parametrize("need_weights", [False, True])
def test_multihead_attention_gradients(need_weights):
    torch.manual_seed(0)
    model = torch.nn.MultiheadAttention(16, 4, batch_first=True)
    twin = copy.deepcopy(model)
    fast = polyblocks_jit_torch(twin, compile_options=STRICT)
    x = torch.randn(3, 5, 16)
    hidden = padding(3, 5, 1)
    results = []
    for network in (model, fast):
        out, weights = network(x, x, x, key_padding_mask=hidden, need_weights=need_weights)
        out.square().sum().backward()
        results.append((out, weights))
    torch.testing.assert_close(*results)
    for ours, theirs in zip(twin.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-4, atol=1e-5)
    assert fast.polyblocks_report().whole


@pytest.mark.slow
def test_bert_trains():
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=64, max_position_embeddings=32,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    model = transformers.BertForSequenceClassification(config).train()
    twin = copy.deepcopy(model)
    fast = polyblocks_jit_torch(twin, compile_options=STRICT)
    runs = []
    for network, parameters in ((model, model.parameters()), (fast, twin.parameters())):
        optimizer = torch.optim.AdamW(parameters, lr=1e-3)
        generator = torch.Generator().manual_seed(1)
        losses = []
        for _ in range(20):
            ids = torch.randint(0, 50, (4, 12), generator=generator)
            labels = torch.randint(0, 2, (4,), generator=generator)
            seen = torch.ones_like(ids)
            seen[0, 8:] = 0
            optimizer.zero_grad()
            loss = network(input_ids=ids, attention_mask=seen, labels=labels).loss
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        runs.append(torch.tensor(losses))
    torch.testing.assert_close(*runs, rtol=0, atol=1e-4)
    report = fast.polyblocks_report()
    assert report.whole
    assert {v.kind for v in report.variants} == {"backward", "forward"}
