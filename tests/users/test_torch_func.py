"""torch.func around compiled functions is reported; compiled with the function, it is whole."""

import pytest
import torch

from polyblocks.errors import FallbackError
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

STRICT = {"strict_target": True}


def energy(x):
    return (x.sin() * x).sum()


@pytest.mark.parametrize("transform", [torch.func.grad, torch.func.jacrev, torch.func.vmap])
def test_transform_of_a_compiled_function(transform, caplog):
    x = torch.rand(3, 5) if transform is torch.func.vmap else torch.rand(5)

    @polyblocks_jit_torch
    def own_energy(x):
        return energy(x) + 1

    torch.testing.assert_close(transform(own_energy)(x), transform(lambda x: energy(x) + 1)(x))
    report = own_energy.polyblocks_report()
    assert not report.whole
    (row,) = report.fallbacks
    assert row.op == "own_energy (torch.func)"
    assert "polyblocks_jit_torch(torch.func.grad(function))" in row.reason
    assert __file__ in row.location
    assert "nothing to compute" not in str(report)
    assert len([r for r in caplog.records if r.name == "polyblocks"]) == 1


def test_transform_of_a_strictly_compiled_function():
    fast = polyblocks_jit_torch(energy, compile_options=STRICT)
    with pytest.raises(FallbackError, match="functorch.*strict_target"):
        torch.func.grad(fast)(torch.rand(5))


@pytest.mark.parametrize(
    "transform", [torch.func.grad, pytest.param(torch.func.jacrev, marks=pytest.mark.slow)]
)
def test_compiled_transform(transform):
    fast = polyblocks_jit_torch(transform(energy), compile_options=STRICT)
    x = torch.rand(5)
    torch.testing.assert_close(fast(x), transform(energy)(x))
    assert fast.polyblocks_report().whole


def test_functional_call_compiled():
    model = torch.nn.Linear(5, 3)

    def call(parameters, x):
        return torch.func.functional_call(model, parameters, (x,))

    fast = polyblocks_jit_torch(call, compile_options=STRICT)
    x, doubled = torch.rand(2, 5), {n: p.detach() * 2 for n, p in model.named_parameters()}
    torch.testing.assert_close(fast(doubled, x), call(doubled, x))
