"""Whole models: ResNet-18, BERT-base, and training of a small MLP and CNN, against eager."""

from __future__ import annotations

import copy
from collections import Counter

import pytest
from sweeps import sweep

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional

from bench.models import MODELS, built_for  # noqa: E402
from bench.programs.bert import Layer  # noqa: E402
from bench.programs.resnet import ResNet18  # noqa: E402

from polyblocks_torch import polyblocks_jit_torch  # noqa: E402

STRICT = {"strict_target": True}


def relative_error(ours, eager):
    return float((ours - eager).abs().max() / eager.abs().max())


@pytest.mark.extended
@pytest.mark.large
def test_resnet18():
    model = ResNet18().eval()
    x = torch.rand(1, 3, 64, 64)
    with torch.no_grad():
        compiled = polyblocks_jit_torch(model, compile_options=STRICT)
        assert relative_error(compiled(x), model(x)) <= 1e-4
    (variant,) = compiled.polyblocks_report().variants
    assert (variant.outcome, variant.parts) == ("compiled", 1)


@pytest.mark.large
@pytest.mark.slow
def test_bert_base():
    transformers = pytest.importorskip("transformers")
    model = transformers.BertModel(transformers.BertConfig()).eval()
    tokens = torch.randint(0, 30000, (1, 16))
    mask = torch.ones(1, 16, dtype=torch.long)
    mask[0, 12:] = 0
    with torch.no_grad():
        expected = model(tokens, attention_mask=mask)
        compiled = polyblocks_jit_torch(model, compile_options=STRICT)
        actual = compiled(tokens, attention_mask=mask)
    for name in ("last_hidden_state", "pooler_output"):
        assert relative_error(actual[name], expected[name]) <= 1e-4
    assert compiled.polyblocks_report().whole


GPUS = [("nvgpu", "sm_90a"), ("amdgpu", "gfx1100")]


@pytest.mark.extended
@pytest.mark.parametrize("gpu", sweep(GPUS, GPUS[0]), ids="-".join)
def test_bert_layer_on_a_simulated_gpu(gpu):
    target, arch = gpu
    torch.manual_seed(0)
    layer = Layer(hidden=64, heads=4, intermediate=256).eval()
    x, mask = torch.rand(2, 11, 64), torch.zeros(2, 1, 1, 11)
    mask[1, :, :, 7:] = torch.finfo(torch.float32).min
    options = {"target": target, "arch": arch, "simulate": True, **STRICT}
    with torch.no_grad():
        compiled = polyblocks_jit_torch(layer, compile_options=options)
        assert relative_error(compiled(x, mask), layer(x, mask)) <= 1e-5
    report = compiled.polyblocks_report()
    assert report.whole
    (part,) = report.parts
    calls = {kernel["name"]: kernel["calls"] for kernel in part.kernels}
    assert Counter(launch["kernel"] for launch in report.simulation()) == calls


@pytest.mark.slow
@pytest.mark.parametrize("target, arch", GPUS)
@pytest.mark.parametrize("name", ["ResNet-18", "BERT-base"])
def test_models_are_built_for_gpus(name, target, arch):
    model, inputs = MODELS[name]()
    built = built_for(target, arch)(model)
    with torch.no_grad():
        built(*inputs)
    report = built.polyblocks_report()
    assert report.whole
    (part,) = report.parts
    # Equal layers share their kernels.
    assert len(part.kernels) < sum(kernel["calls"] for kernel in part.kernels)


def mlp():
    return nn.Sequential(nn.Linear(20, 32), nn.GELU(), nn.Linear(32, 4))


def cnn():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(72, 4),
    )


@pytest.mark.large
@pytest.mark.parametrize(
    "make, shape", [pytest.param(mlp, (16, 20), marks=pytest.mark.slow), (cnn, (8, 3, 16, 16))]
)
def test_fifty_steps_of_training(make, shape):
    x, y = torch.rand(shape), torch.randint(0, 4, (shape[0],))
    eager = make()
    twin = copy.deepcopy(eager)
    compiled = polyblocks_jit_torch(twin, compile_options=STRICT)

    def train(model, run):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        losses = []
        for _ in range(50):
            optimizer.zero_grad()
            loss = F.cross_entropy(run(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    assert train(twin, compiled) == pytest.approx(train(eager, eager), rel=1e-4, abs=1e-4)
    assert [v.outcome for v in compiled.polyblocks_report().variants] == ["compiled"] * 2
