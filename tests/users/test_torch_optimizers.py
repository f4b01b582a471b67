"""Steps of optimizers: compiled whole, with the numbers of eager mode."""

import copy
import logging

import pytest
import torch

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

STRICT = {"strict_target": True}

OPTIMIZERS = {
    "SGD": {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01, "nesterov": True},
    "Adam": {"lr": 0.01},
    "AdamW": {"lr": 0.01, "amsgrad": True},
    "RMSprop": {"lr": 0.01, "momentum": 0.5, "centered": True},
    "Adagrad": {"lr": 0.01},
    "Adadelta": {},
    "Adamax": {},
    "NAdam": {},
    "RAdam": {},
    "Rprop": {},
    "ASGD": {},
}

QUICK = ("AdamW",)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in OPTIMIZERS]
)
def test_optimizer_step(name):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(7, 13), torch.nn.Tanh(), torch.nn.Linear(13, 3))
    twin = copy.deepcopy(model)
    eager = getattr(torch.optim, name)(model.parameters(), **OPTIMIZERS[name])
    compiled = getattr(torch.optim, name)(twin.parameters(), **OPTIMIZERS[name])

    @polyblocks_jit_torch(compile_options=STRICT)
    def step():
        compiled.step()

    for _ in range(4):
        x = torch.randn(5, 7)
        for network, optimizer, advance in ((model, eager, eager.step), (twin, compiled, step)):
            optimizer.zero_grad()
            network(x).square().mean().backward()
            advance()
    for ours, theirs in zip(twin.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
    report = step.polyblocks_report()
    assert report.whole
    # The first step of some makes their state, which the others find.
    assert len(report.variants) <= 2


def test_optimizer_breaks_stay_for_other_backends():
    seen = []

    def count(graph, inputs):
        seen.append(graph)
        return graph.forward

    parameter = torch.nn.Parameter(torch.ones(3))
    parameter.grad = torch.ones(3)
    optimizer = torch.optim.SGD([parameter], lr=0.5)

    def step():
        optimizer.step()

    with pytest.raises(torch._dynamo.exc.Unsupported, match="graph_break"):
        torch.compile(step, backend=count, fullgraph=True)()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_addcmul_in_place_rounds_once(dtype):
    def update(x, a, b, value: float):
        return x.clone().addcdiv_(a, b, value=value)

    x, a = torch.rand(100).to(dtype), torch.rand(100).to(dtype)
    b = torch.rand(100).to(dtype) + 1
    fast = polyblocks_jit_torch(update, compile_options=STRICT)
    torch.testing.assert_close(fast(x, a, b, 0.3), update(x, a, b, 0.3))


def test_a_training_step_reports_no_frames_of_python_itself(caplog):
    # zero_grad wraps itself for the profiler, for which Python's inspect makes generators.
    model = torch.nn.Linear(4, 3)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2, amsgrad=True)

    @polyblocks_jit_torch
    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        return loss.detach()

    with caplog.at_level(logging.WARNING, "polyblocks"):
        for _ in range(2):
            step(torch.randn(5, 4))
    assert not [line for line in caplog.messages if "Python runs" in line or "PyTorch runs" in line]
