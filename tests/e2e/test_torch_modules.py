"""Modules: parameters, buffers, training, autocast, ways to decorate."""

from __future__ import annotations

import copy
import pickle

import pytest

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional


class Net(nn.Module):
    """A module with an attribute and a method of its own."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.width = width
        self.first = nn.Linear(8, width)
        self.second = nn.Linear(width, 3)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))

    def parameter_count(self):
        return sum(p.numel() for p in self.parameters())


def train(model, compiled, x, y, steps=5, autocast=False):
    """Losses of a few SGD steps; ``model`` owns the parameters, ``compiled`` runs."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            loss = F.cross_entropy(compiled(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def agree(make, x, y, tolerance=1e-4, **options):
    """Train twins, one compiled; returns the report."""
    from polyblocks_torch import polyblocks_jit_torch

    eager = make()
    ours = copy.deepcopy(eager)
    compiled = polyblocks_jit_torch(ours)
    torch.manual_seed(5)
    expected = train(eager, eager, x, y, **options)
    torch.manual_seed(5)
    actual = train(ours, compiled, x, y, **options)
    assert actual == pytest.approx(expected, rel=tolerance)
    for (name, theirs), mine in zip(eager.named_buffers(), ours.buffers(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5, msg=lambda m, n=name: n + m)
    return compiled.polyblocks_report()


def test_a_module_stays_a_module():
    from polyblocks_torch import polyblocks_jit_torch

    model = Net()
    compiled = polyblocks_jit_torch(model)
    assert isinstance(compiled, nn.Module)
    assert compiled.width == 16
    assert compiled.parameter_count() == model.parameter_count()
    assert compiled.first.weight is model.first.weight
    x = torch.rand(2, 8)
    torch.testing.assert_close(compiled(x), model(x))
    with torch.no_grad():
        model.second.bias.add_(1)
    torch.testing.assert_close(compiled(x), model(x))
    assert compiled.polyblocks_report().whole


@pytest.mark.parametrize("how", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copied_module_has_its_own_parameters(how):
    from polyblocks_torch import polyblocks_jit_torch

    compiled = polyblocks_jit_torch(nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 3)))
    x = torch.rand(2, 8)
    before = compiled(x)
    twin = how(compiled)
    with torch.no_grad():
        list(twin.parameters())[-1].add_(1)
    torch.testing.assert_close(twin(x), before + 1)
    torch.testing.assert_close(compiled(x), before)
    assert len(twin.polyblocks_report().variants) == 1
    assert len(compiled.polyblocks_report().variants) == 1


def test_decorated_class_and_method():
    from polyblocks_torch import polyblocks_jit_torch

    @polyblocks_jit_torch
    class Decorated(Net):
        pass

    model = Decorated()
    x = torch.rand(2, 8)
    torch.testing.assert_close(model(x), model.second(torch.relu(model.first(x))))
    assert Decorated.polyblocks_report().whole

    class Scaler:
        factor = 3.0

        @polyblocks_jit_torch(compile_options={"target": "cpu"})
        def scale(self, x):
            """Times factor."""
            return x * self.factor

    assert Scaler().scale(x).tolist() == (x * 3).tolist()
    assert Scaler.scale.__doc__ == "Times factor."
    assert Scaler().scale.polyblocks_report().variants[0].outcome == "compiled"


def test_forward_and_backward_are_compiled():
    report = agree(Net, torch.rand(8, 8), torch.randint(0, 3, (8,)))
    assert [(v.kind, v.outcome) for v in report.variants] == [
        ("forward", "compiled"),
        ("backward", "compiled"),
    ]


@pytest.mark.extended
def test_batch_norm_updates_its_buffers():
    def make():
        return nn.Sequential(
            nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3)
        )

    agree(make, torch.rand(6, 2, 6, 6), torch.randint(0, 3, (6,)))


def test_autocast():
    report = agree(Net, torch.rand(8, 8), torch.randint(0, 3, (8,)), tolerance=2e-2, autocast=True)
    assert report.whole, str(report)


def test_train_and_eval_are_two_variants():
    from polyblocks_torch import polyblocks_jit_torch

    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    compiled = polyblocks_jit_torch(model)
    x = torch.rand(3, 4)
    compiled.train()
    compiled(x)
    compiled.eval()
    torch.testing.assert_close(compiled(x), model(x))
    assert {v.outcome for v in compiled.polyblocks_report().variants} == {
        "partitioned",
        "compiled",
    }


def test_gradients_of_inputs_and_double_use():
    from polyblocks_torch import polyblocks_jit_torch

    def f(x, w):
        y = torch.tanh(x @ w)
        return y, (y * y).mean()

    x, w = torch.rand(4, 5, requires_grad=True), torch.rand(5, 3, requires_grad=True)
    y, m = f(x, w)
    expected = torch.autograd.grad(m + y.sum(), (x, w))
    y, m = polyblocks_jit_torch(f)(x, w)
    actual = torch.autograd.grad(m + y.sum(), (x, w))
    torch.testing.assert_close(actual, expected)


def test_torch_compile_with_the_backends_name():
    x = torch.rand(4, 8)
    model = Net()
    compiled = torch.compile(model, backend="polyblocks", options={"target": "cpu"})
    torch.testing.assert_close(compiled(x), model(x))


def test_symbolic_shapes_of_torch_compile_are_compiled_by_shape():
    compiled = torch.compile(lambda x: (x * 2).relu(), backend="polyblocks", dynamic=True)
    for n in (3, 4, 5):
        x = torch.randn(n, 2, requires_grad=True)
        y = compiled(x)
        assert torch.equal(y, (x * 2).relu())
        y.sum().backward()
        assert torch.equal(x.grad, 2.0 * (x > 0))
