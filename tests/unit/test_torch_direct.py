"""Graphs that are recorded directly: equal to AOTAutograd's, and only where that is safe."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch.nn import functional

from polyblocks_torch import backend, polyblocks_jit_torch
from polyblocks_torch.graphs import graph_module
from polyblocks_torch.location import source_location
from polyblocks_torch.recording import direct
from polyblocks_torch.recording.canonical import capture_graph


def dynamo_graph(function: Callable[..., Any], *inputs: Any) -> tuple[fx.GraphModule, list[Any]]:
    found = []

    def backend(gm: fx.GraphModule, example_inputs: list[Any]) -> Any:
        # Dynamo empties the metadata when the backend is done.
        found.append((direct.record(gm, example_inputs), gm, example_inputs))
        return gm

    torch._dynamo.reset()
    torch.compile(function, backend=backend, dynamic=False)(*inputs)
    (recorded, _, example_inputs) = found[0]
    return recorded, example_inputs


def aot_graph(function: Callable[..., Any], *inputs: Any) -> tuple[fx.GraphModule, list[Any]]:
    found = []

    def compiler(gm: fx.GraphModule, example_inputs: list[Any]) -> Any:
        found.append((gm, example_inputs))
        return gm

    torch._dynamo.reset()
    backend = aot_autograd(
        fw_compiler=compiler, inference_compiler=compiler, keep_inference_input_mutations=True
    )
    torch.compile(function, backend=backend, dynamic=False)(*inputs)
    return found[0]


def blur(x):
    taps = torch.tensor([0.25, 0.5, 0.25]).view(1, 1, 1, 3)
    return functional.conv2d(x, taps)


def attention(q, k, v):
    return functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def parts(x):
    a, b = x.exp().chunk(2, dim=-1)
    top = torch.topk(a, 2)
    return (a * torch.sigmoid(b)).sum(-1), top.values, top.indices, a.t()


def factories(x):
    n = x.shape[0]
    mask = torch.ones(n, n, dtype=torch.bool).tril()
    return torch.where(mask, x @ x.t(), torch.full((), float("-inf"))), torch.arange(n) * 2


def numbers(x):
    return (x // 2).clamp(min=0) ** 2, (x > 1).to(torch.int64) + 1, 3 - x, x.float().mean()


def shapes(x):
    y = x.reshape(2, -1).transpose(0, 1).contiguous()[1:, None]
    return functional.pad(y, (1, 1)).flatten(), x.expand(3, *x.shape) + 1, torch.cat([x, x], -1)


def lines(x):
    u = x[1:-1, 1:-1]
    return functional.layer_norm(u, u.shape[-1:]), torch.einsum("ij,kj->ik", x, x)


def strided(x):
    return torch.as_strided(x, (2, 2), (1, 2), 3) + 1


def updated(x):
    y = x @ x
    before = y * 2
    y.add_(1).clamp_(min=0).mul_(before)
    y += before
    return functional.silu(y, inplace=True), y.t(), before, (y * 0).copy_(y[0])


def network():
    torch.manual_seed(0)
    layers = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3, padding=1),
        torch.nn.BatchNorm2d(4),
        torch.nn.ReLU(inplace=True),
        torch.nn.GELU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Upsample(scale_factor=2, mode="bilinear"),
        torch.nn.Dropout(),
        torch.nn.Flatten(),
        torch.nn.Linear(4 * 8 * 8, 5),
        torch.nn.Softmax(-1),
    )
    return layers.eval()


class MultiHead(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, x):
        return self.inner(x, x, x)[0]


PLAIN = {
    "blur": (blur, torch.rand(1, 1, 6, 8)),
    "attention": (attention, *(torch.rand(1, 2, 5, 4) for _ in range(3))),
    "parts": (parts, torch.rand(4, 6)),
    "factories": (factories, torch.rand(4, 4)),
    "numbers": (numbers, torch.arange(6)),
    "shapes": (shapes, torch.rand(4, 3)),
    "lines": (lines, torch.rand(5, 6)),
    "random": (lambda x: functional.dropout(x, 0.5) + torch.rand(3), torch.rand(3)),
    "complex": (lambda x: torch.fft.fft(x).conj().real, torch.rand(8)),
    "offset": (strided, torch.rand(4, 4)[1:]),
    "transposed": (lambda x, y: (x + y).reshape(-1), torch.rand(3, 4).t(), torch.rand(4, 3)),
    "updated": (updated, torch.rand(3, 3)),
    "network": (network(), torch.rand(1, 1, 8, 8)),
    "detached": (lambda x: ((x * 2).detach() + 1).data, torch.rand(3)),
    # Which operations it becomes depends on requires_grad of the weights, also without gradients.
    "multi-head": (MultiHead().eval(), torch.rand(2, 5, 16)),
    "embedding": (functional.embedding, torch.tensor([1, 0]), torch.rand(3, 4)),
}


@pytest.mark.each_choice
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("name", PLAIN)
def test_the_graph_is_aotautograds(name: str, mode: Any) -> None:
    function, *inputs = PLAIN[name]
    with mode():
        recorded, example_inputs = dynamo_graph(function, *inputs)
        assert recorded is not None
        expected, expected_inputs = aot_graph(function, *inputs)
    made = capture_graph(recorded, example_inputs, name)
    wanted = capture_graph(expected, expected_inputs, name)
    assert made.fingerprint_text() == wanted.fingerprint_text()
    assert made.outputs == wanted.outputs
    assert made.results == wanted.results
    assert [source_location(n) for n in made.graph_module.graph.nodes] == [
        source_location(n) for n in wanted.graph_module.graph.nodes
    ]


def in_place(x):
    return x.add_(1) * 2


def in_place_inside(x):
    y = x + 1
    y[0] = 0
    return y


def in_place_with_an_older_view(x):
    y = x + 1
    row = y[1:]
    y.mul_(2)
    return row * 3


def in_place_at_random(x):
    return (x + 1).bernoulli_(0.5) * x


def switching(x):
    with torch.enable_grad():
        return x * 2


@pytest.mark.parametrize(
    "function",
    [
        in_place,
        in_place_inside,
        in_place_with_an_older_view,
        in_place_at_random,
        switching,
        lambda x: (x + 1, x[1:]),
        partial(torch.cond, torch.tensor(True), torch.sin, torch.cos),
    ],
)
def test_what_is_not_plain_is_left_to_aotautograd(function: Any) -> None:
    operand = (torch.rand(3),)
    inputs = (operand,) if isinstance(function, partial) else operand
    with torch.no_grad():
        recorded, _ = dynamo_graph(lambda *args: function(*args), *inputs)
    assert recorded is None


def test_gradients_and_lazy_bits_and_autocast_are_left_to_aotautograd() -> None:
    double = lambda x: x * 2  # noqa: E731
    x = torch.rand(3, requires_grad=True)
    assert dynamo_graph(double, x)[0] is None
    with torch.no_grad():
        assert dynamo_graph(double, x)[0] is not None
    assert dynamo_graph(double, x.detach())[0] is not None
    assert dynamo_graph(double, torch.rand(3, dtype=torch.complex64).conj())[0] is None
    with torch.autocast("cpu"):
        assert dynamo_graph(lambda x: x @ x, torch.rand(3, 3))[0] is None


def test_a_seed_in_the_graph_is_left_to_aotautograd() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.call_function(torch.manual_seed, (0,))
    graph.output((graph.call_function(torch.neg, (x,)),))
    assert direct.record(fx.GraphModule({}, graph), [torch.rand(3)]) is None


def test_a_plain_function_does_without_aotautograd(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**keywords: Any) -> Any:
        raise AssertionError("AOTAutograd was asked")

    monkeypatch.setattr(backend, "aot_autograd", refuse)

    @polyblocks_jit_torch
    def f(x, y):
        return torch.softmax(x @ y, -1) * 2, x.sum()

    x, y = torch.rand(3, 4), torch.rand(4, 5)
    for got, wanted in zip(f(x, y), (torch.softmax(x @ y, -1) * 2, x.sum()), strict=True):
        torch.testing.assert_close(got, wanted)
        assert not got.requires_grad
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="AOTAutograd was asked"):
        f(x.requires_grad_(), y)


def test_the_code_of_a_graph_is_written_when_it_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    python_code = fx.Graph.python_code
    monkeypatch.setattr(
        fx.Graph, "python_code", lambda *args, **kw: written.append(1) or python_code(*args, **kw)
    )
    graph = fx.Graph()
    graph.output(graph.call_function(torch.neg, (graph.placeholder("x"),)))
    made = graph_module({}, graph)
    assert written == []
    assert made(torch.ones(2)).tolist() == [-1, -1]
    assert written == [1]
