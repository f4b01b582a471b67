"""What Dynamo fails with: PyTorch runs it, or a FallbackError says why; no process ends."""

import pytest
import torch
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, vmap

from polyblocks.errors import FallbackError
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

STRICT = {"strict_target": True}


def curve(x):
    return (x.sin() * x**2).sum()


def physics(x):
    """The gradient, by the parameters, of a loss of second derivatives."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)
    ).double()

    def field(parameters, point):
        return functional_call(net, parameters, (point,)).squeeze(-1)

    def loss(parameters, x):
        second = vmap(hessian(field, argnums=1), in_dims=(None, 0))(parameters, x)
        first = vmap(grad(field, argnums=1), in_dims=(None, 0))(parameters, x)
        return ((first[:, 0] - second[:, 1, 1]) ** 2).mean()

    parameters = {k: v.detach() for k, v in net.named_parameters()}
    return grad(loss), parameters, x


def test_physics_informed_step():
    step, parameters, x = physics(torch.rand(5, 2, dtype=torch.float64))
    ours = polyblocks_jit_torch(step)(parameters, x)
    theirs = step(parameters, x)
    for name in parameters:
        torch.testing.assert_close(ours[name], theirs[name])


def test_physics_informed_step_strictly():
    step, parameters, x = physics(torch.rand(5, 2, dtype=torch.float64))
    fast = polyblocks_jit_torch(step, compile_options=STRICT)
    with pytest.raises(FallbackError, match="Dynamo cannot trace it: RuntimeError"):
        fast(parameters, x)


@pytest.mark.parametrize(
    "transform",
    [
        pytest.param(lambda f: jacfwd(jacfwd(jacfwd(f))), marks=pytest.mark.slow),
        lambda f: jacfwd(hessian(f)),
        lambda f: jacrev(jacfwd(f)),
        lambda f: lambda x: vmap(hessian(f))(torch.stack([x, 2 * x])),
    ],
    ids=["jacfwd3", "jacfwd_hessian", "jacrev_jacfwd", "vmap_hessian"],
)
def test_nested_transforms(transform):
    x = torch.rand(3, dtype=torch.float64)
    torch.testing.assert_close(polyblocks_jit_torch(transform(curve))(x), transform(curve)(x))
    torch.testing.assert_close(transform(polyblocks_jit_torch(curve))(x), transform(curve)(x))


def test_mistake_of_the_caller_is_eager_modes_error():
    """A frame that Dynamo fails with is tried again: the arguments may have been wrong."""

    @polyblocks_jit_torch
    def square(x):
        return x @ x

    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        square(torch.rand(3, 2))
    x = torch.rand(3, 3)
    torch.testing.assert_close(square(x), x @ x)
    (variant,) = square.polyblocks_report().variants
    assert variant.outcome == "compiled"


def test_frame_that_dynamo_always_fails_with_is_left(caplog):
    fast = polyblocks_jit_torch(jacfwd(hessian(curve)))
    x = torch.rand(2, dtype=torch.float64)
    for _ in range(5):
        torch.testing.assert_close(fast(x), jacfwd(hessian(curve))(x))
    lines = [r for r in caplog.records if "Dynamo cannot trace it" in r.getMessage()]
    assert lines
    assert not fast.polyblocks_report().whole


def test_call_that_dynamo_does_not_look_at():
    from torch.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))

    fast = polyblocks_jit_torch(curve, compile_options=STRICT)
    with Mode(), pytest.raises(FallbackError, match="torch dispatch mode"):
        fast(torch.rand(3))


NESTED = """
    import torch
    from polyblocks_torch import polyblocks_jit_torch
    from polyblocks.errors import FallbackError

    def double(x):
        return x * 2

    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    fast = polyblocks_jit_torch(double)
    fast(torch.rand(3))
    print([part.sum().item() for part in fast(nested).unbind()])
    strict = polyblocks_jit_torch(double, compile_options={"strict_target": True})
    strict(torch.rand(3))
    try:
        strict(nested)
    except FallbackError as error:
        print("to_padded_tensor" in str(error))
    """


def test_nested_tensor_behind_a_dense_one(run_python):
    """Dynamo's guards would end the process."""
    assert run_python(NESTED, preloaded="torch").stdout.split() == ["[4.0,", "6.0]", "True"]
