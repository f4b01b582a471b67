"""What arrives at compiled code is what it was compiled for, or is brought into that form."""

from __future__ import annotations

import random

import numpy as np
import pytest
from sweeps import sweep

torch = pytest.importorskip("torch")

from torch._dynamo.variables import user_defined  # noqa: E402
from torch.autograd import forward_ad, graph  # noqa: E402

from polyblocks.errors import ExecutionError, FallbackError, InputError  # noqa: E402
from polyblocks_torch import polyblocks_jit_torch  # noqa: E402

LENGTH = 12


def complex_numbers(length: int = LENGTH) -> torch.Tensor:
    return torch.complex(torch.arange(float(length)), torch.arange(float(length)) * 2 + 1)


def assert_same(ours, eager):
    """Equal structure, values, dtypes and strides."""
    if isinstance(eager, (tuple, list)):
        assert len(ours) == len(eager)
        for a, b in zip(ours, eager, strict=True):
            assert_same(a, b)
        return
    torch.testing.assert_close(ours, eager, check_stride=eager.numel() > 0, equal_nan=True)


def compiled(function, *, strict: bool = True):
    return polyblocks_jit_torch(function, compile_options={"strict_target": strict})


def resolved(value):
    if isinstance(value, (tuple, list)):
        return type(value)(map(resolved, value))
    return value.detach().resolve_conj().resolve_neg()


# --- lazy arguments -------------------------------------------------------------------------------

LAZY = {
    "conjugate": lambda: complex_numbers().conj(),
    "strided": lambda: complex_numbers(2 * LENGTH)[::2].conj(),
    "transposed": lambda: complex_numbers().view(3, 4).mH,
    "expanded": lambda: complex_numbers(1).conj().expand(LENGTH),
    "windows": lambda: complex_numbers(LENGTH + 2).unfold(0, 3, 1).conj(),
    "negated": lambda: complex_numbers().conj().imag,
    "negated, strided": lambda: complex_numbers(3 * LENGTH)[::3].conj().imag,
    "both": lambda: torch._neg_view(complex_numbers(2 * LENGTH)[1::2].conj()),
    "one element": lambda: complex_numbers(1)[0].conj(),
    "none": lambda: complex_numbers(0).conj(),
    "zeros": lambda: torch._efficientzerotensor((LENGTH,)),
}


def _reads(*values):
    return [f(v) for v in values for f in (lambda v: v * 2, lambda v: v[..., 1:], lambda v: v + v)]


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "in parts"])
def test_lazy_arguments(whole):
    def function(*values):
        made = [value * 1 for value in values]
        if not whole:  # PyTorch runs this one
            made += [torch.cdist(v.real.view(-1, 1), v.real.view(-1, 1), p=0.5) for v in made[:2]]
        return made

    make = [f for name, f in LAZY.items() if whole or name not in ("none", "one element")]
    call = compiled(function, strict=whole)
    for _ in range(2):
        ours, eager = call(*(f() for f in make)), function(*(f() for f in make))
        assert_same(
            [v.contiguous() for v in resolved(ours)], [v.contiguous() for v in resolved(eager)]
        )


@pytest.mark.parametrize(
    "name",
    sweep(
        ["conjugate", "strided", "transposed", "negated", "negated, strided"],
        *("conjugate", "negated, strided"),
        extended=["strided", "transposed", "negated"],
    ),
)
def test_updates_of_lazy_arguments_reach_the_caller(name):
    def function(value):
        value.mul_(2)
        value[1:].add_(1)
        return value * 3

    ours, eager = LAZY[name](), LAZY[name]()
    assert_same(compiled(function)(ours).resolve_conj().resolve_neg(), function(eager))
    assert_same(resolved(ours), resolved(eager))
    assert ours.is_conj() == eager.is_conj()


def test_lazy_constants():
    held = torch.randn(5000, dtype=torch.complex64)[::2].conj()

    class Holds(torch.nn.Module):
        def forward(self, x):
            small = torch.tensor([1 + 2j, 3 - 1j]).conj()
            return x.sum() * held, x[:2] * small, x[:2].real * small.imag

    x = complex_numbers()
    assert_same(compiled(Holds())(x), Holds()(x))


# --- memory ---------------------------------------------------------------------------------------


def test_tensors_without_memory():
    call = compiled(lambda x: x + 1)
    x = torch.ones(LENGTH)
    call(x)
    assert_same(call(torch._efficientzerotensor((LENGTH,))), torch.ones(LENGTH))
    x.untyped_storage().resize_(0)
    with pytest.raises(InputError, match="has no memory .its storage was freed.; expected"):
        call(x)
    with pytest.raises(InputError, match="has no memory .of a ZeroTensor"):
        compiled(lambda x: x.add_(1))(torch._efficientzerotensor((LENGTH,)))


def test_views_of_what_has_no_memory():
    call = compiled(lambda x: x + 1)
    call(torch.ones(LENGTH))
    assert_same(call(torch._efficientzerotensor((LENGTH + 1,))[1:]), torch.ones(LENGTH))
    x = torch.ones(LENGTH + 1)[1:]
    call(x)
    x.untyped_storage().resize_(0)
    with pytest.raises(InputError, match="has no memory .its storage was freed.; expected"):
        call(x)


def test_tensors_that_carry_more_than_numbers():
    def square(x):
        return x * x

    fake_mode = torch._subclasses.FakeTensorMode()
    for strict in (True, False):
        call = compiled(square, strict=strict)
        call(torch.ones(3))
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(torch.full((3,), 2.0), torch.ones(3))
            if strict:
                with pytest.raises(FallbackError, match="does not propagate; call it outside"):
                    call(dual)
            else:
                tangent = forward_ad.unpack_dual(call(dual)).tangent
                assert_same(tangent, torch.full((3,), 4.0))
        with fake_mode:
            fake = torch.ones(3)
            if strict:
                with pytest.raises(FallbackError, match="call it outside of FakeTensorMode"):
                    call(fake)
            else:
                assert type(call(fake)) is type(fake)
        assert_same(call(torch.ones(3)), torch.ones(3))


# --- what a backward gets -------------------------------------------------------------------------


def _gradients(function, value, incoming, *, strict=True):
    given = [value.detach().clone().requires_grad_() for _ in range(2)]
    call = compiled(function, strict=strict)
    for run, x in zip((function, call), given, strict=True):
        run(x).backward(incoming())
    assert_same(resolved(given[1].grad), resolved(given[0].grad))


GRADIENTS = {
    "conjugate": lambda: complex_numbers().conj(),
    "strided conjugate": lambda: complex_numbers(2 * LENGTH)[::2].conj(),
    "negated": lambda: torch._neg_view(complex_numbers()),
    "expanded": lambda: complex_numbers(1).expand(LENGTH),
    "strided": lambda: complex_numbers(2 * LENGTH)[::2],
    "zeros": lambda: torch._efficientzerotensor((LENGTH,), dtype=torch.complex64),
}


@pytest.mark.parametrize(
    "name",
    sweep(
        GRADIENTS,
        *("strided conjugate", "zeros"),
        extended=["conjugate", "negated", "expanded", "strided"],
    ),
)
def test_incoming_gradients(name):
    _gradients(lambda z: z * (1 + 2j), complex_numbers(), GRADIENTS[name])


def _stacked(x):
    return torch.stack([x.detach()] * 2, -1)


HOOKS = {
    "contiguous": (lambda x: x.detach().contiguous(), lambda x: x),
    "float64": (lambda x: x.detach().double(), lambda x: x),
    "strided": (_stacked, lambda x: x[..., 1]),
    "numpy": (lambda x: x.detach().numpy().copy(), torch.from_numpy),
}


def test_saved_tensors_that_hooks_change():
    weight = torch.randn(6, 5)

    def function(x):
        return (x.t().sin() * weight.t()).cos().sum() + (x.exp() * x).sum()

    eager = torch.randn(5, 6).t().requires_grad_()
    function(eager).backward()
    call = compiled(function)
    for pack, unpack in HOOKS.values():
        ours = eager.detach().clone(memory_format=torch.preserve_format).requires_grad_()
        call(ours).backward()
        assert_same(ours.grad, eager.grad)
        ours.grad = None
        with graph.saved_tensors_hooks(pack, unpack):
            loss = call(ours)
        loss.backward()
        assert_same(ours.grad, eager.grad)
    with graph.saved_tensors_hooks(lambda x: x, lambda x: x[:1]):
        loss = call(ours)
    with pytest.raises(ExecutionError, match=r"argument .* of function: expected float32\[6, 5\]"):
        loss.backward()


# --- what operations give that PyTorch runs -------------------------------------------------------

_library = torch.library.Library("arrivals", "FRAGMENT")


def _operation(name, give):
    _library.define(f"{name}(Tensor x) -> Tensor")
    _library.impl(name, give, "CompositeExplicitAutograd")
    torch.library.register_fake(f"arrivals::{name}", torch.empty_like)
    return getattr(torch.ops.arrivals, name)


OTHERWISE = {
    "lazy_conj": lambda x: (x * 1).conj(),
    "lazy_negative": lambda x: torch._neg_view(x * 1),
    "strided": lambda x: torch.stack([x * 3, x], -1)[..., 0],
    "expanded": lambda x: x[:1].clone().expand(x.shape),
    "zeros": lambda x: torch._efficientzerotensor(x.shape, dtype=x.dtype),
    "as_said": lambda x: x * 3,
}
OPERATIONS = {name: _operation(name, give) for name, give in OTHERWISE.items()}


@pytest.mark.parametrize("make", [complex_numbers, lambda: torch.arange(1.0, LENGTH + 1)])
def test_results_of_operations_that_lie_otherwise_than_said(make):
    def function(x, into):
        given = [op(x * 2) for op in OPERATIONS.values()]
        into.copy_(given[0] + 1)
        return [*given, *(v + 1 for v in given)]

    call = compiled(function, strict=False)
    for _ in range(3):
        ours, eager = (make(), make() * 0), (make(), make() * 0)
        actual, expected = call(*ours), function(*eager)
        assert_same(
            [v.contiguous() for v in resolved(actual)], [v.contiguous() for v in resolved(expected)]
        )
        assert_same(ours[1], eager[1])


@pytest.mark.parametrize(
    ("name", "give", "message"),
    [
        ("double", lambda x: x.double(), r"expected float32\[12\] on cpu, got float64\[12\]"),
        ("half", lambda x: x.half(), r"the result of arrivals.half.default: expected float32"),
        ("shorter", lambda x: x[:3].clone(), r"got float32\[3\] on cpu; make register_fake"),
        ("nowhere", lambda x: x.to("meta"), r"got float32\[12\] on meta"),
        ("sparse", lambda x: x.to_sparse(), r"got sparse_coo float32\[12\] on cpu"),
    ],
)
def test_results_of_operations_that_are_otherwise_than_said(name, give, message):
    operation = _operation(name, give)
    with pytest.raises(ExecutionError, match=message):
        compiled(lambda x: operation(x * 2) + 1, strict=False)(torch.ones(LENGTH))


# --- numbers that Python draws --------------------------------------------------------------------

GENERATOR = random.Random(3)

DRAWS = {
    "random": lambda x: x * random.random(),
    "uniform": lambda x: x * random.uniform(0, 1),
    "gauss": lambda x: x * random.gauss(0, 1),
    "randint": lambda x: x * random.randint(0, 1000),
    "made inside": lambda x: x * random.Random(0).random(),
    "object": lambda x: x * GENERATOR.random(),
    "integer of an object": lambda x: x * GENERATOR.randint(0, 1000),
    "numpy": lambda x: x * np.random.rand(),
    "array": lambda x: x * torch.from_numpy(np.random.rand(3)),
    "generator of numpy": lambda x: x * np.random.default_rng(0).random(),
}


@pytest.mark.parametrize(
    "name",
    sweep(DRAWS, "random", "object", "numpy", extended=["randint", "array", "generator of numpy"]),
)
def test_each_call_draws_the_next_number(name):
    def numbers(function):
        random.seed(1)
        np.random.seed(1)
        GENERATOR.seed(1)
        return [function(torch.ones(3, dtype=torch.float64)) for _ in range(3)]

    expected = numbers(DRAWS[name])
    assert_same(numbers(compiled(DRAWS[name], strict=False)), expected)
    if name != "randint":
        torch._dynamo.reset()
        with pytest.raises(FallbackError, match="graph break"):
            numbers(compiled(DRAWS[name]))


def test_draws_that_dynamo_would_repeat_are_refused_by_the_backend():
    def scaled(x):
        return x * GENERATOR.random()

    compiled = torch.compile(scaled, backend="polyblocks")
    x = torch.ones(3, dtype=torch.float64)
    if hasattr(user_defined, "RandomCallOnSource"):
        # From PyTorch 2.15 on Dynamo draws from the object at each call.
        draws = []
        for call in (scaled, compiled):
            GENERATOR.seed(1)
            draws.append([call(x) for _ in range(3)])
        assert_same(*draws)
    else:
        with pytest.raises(Exception, match="draws from a random.Random object, and Dynamo"):
            compiled(x)
    with pytest.raises(Exception, match="calls numpy.random.rand, which Dynamo replaces"):
        torch.compile(DRAWS["array"], backend="polyblocks")(torch.ones(3))


def test_memory_of_results_is_poisoned_in_tests():
    from polyblocks.runtime import buffers
    from polyblocks_torch.launch.launcher import poisoned_tensor, pooled_tensor

    assert buffers.POISONED
    assert poisoned_tensor((2, 3), (3, 1), torch.float16).isnan().all()
    assert pooled_tensor(1 << 20, (1 << 18,), (1,), torch.float32).isnan().all()
