"""Conjugations and negations that PyTorch leaves for later, inside of compiled functions."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from polyblocks_torch import polyblocks_jit_torch  # noqa: E402


def numbers(dtype=torch.complex64):
    return torch.complex(torch.arange(8.0), torch.arange(8.0) * 2 + 1).to(dtype)


def assert_equal(ours, eager):
    for a, b in zip(ours, eager, strict=True):
        a, b = (v.detach().resolve_conj().resolve_neg() for v in (a, b))
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


GRADIENTS = {
    "exp": lambda t: torch.exp(1j * t).imag.sum(),
    "exp of a complex rate": lambda t: torch.exp((0.1 - 2j) * t).imag.sum(),
    "irfft": lambda t: (torch.fft.irfft(torch.fft.rfft(t) * 1j) * torch.arange(8.0)).sum(),
    "conjugate": lambda t: ((t * (1 + 2j)).conj() * (2 - 1j)).imag.sum(),
    "divided": lambda t: (t / (1 + 2j)).abs().sum(),
    "subtracted": lambda t: (1j - t * 1j).imag.square().sum(),
    "constant tensor": lambda t: (t * torch.tensor(0.5 + 2j)).imag.sum(),
    "conjugated tensor": lambda t: (t * torch.tensor([0.5 + 2j]).conj()).imag.sum(),
    "polar": lambda t: torch.polar(t, t).conj().real.sum(),
}


@pytest.mark.parametrize(
    ("dtype", "strict"),
    [(torch.float32, True), pytest.param(torch.float64, False, marks=pytest.mark.slow)],
)
def test_gradients_through_complex_constants(dtype, strict):
    def losses(t):
        return torch.stack([function(t) for function in GRADIENTS.values()])

    call = polyblocks_jit_torch(compile_options={"strict_target": strict})(losses)
    ours, eager = (torch.linspace(0.1, 1, 8, dtype=dtype).requires_grad_() for _ in range(2))
    for weights in torch.eye(len(GRADIENTS), dtype=dtype):
        ours.grad = eager.grad = None
        call(ours).backward(weights)
        losses(eager).backward(weights)
        assert_equal([ours.grad], [eager.grad])


#: What reads the memory of complex numbers in another way.
READINGS = {
    "conjugate": torch.conj,
    "real part": lambda whole: whole.real,
    "pairs": torch.view_as_real,
    "pairs as integers": lambda whole: torch.view_as_real(whole).view(torch.int32),
    "imaginary part of a conjugate": lambda whole: whole.conj().imag,
}


@pytest.mark.each_choice
@pytest.mark.parametrize("shape", [(8,), (2, 4), ()])
@pytest.mark.parametrize("name", READINGS)
def test_results_in_one_memory_that_they_read_in_different_ways(name, shape):
    def function(z):
        whole = z * 2
        return READINGS[name](whole), whole, READINGS[name](whole)

    z = numbers()[0].clone() if shape == () else numbers().reshape(shape)
    call = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
    ours, eager = call(z.clone()), function(z.clone())
    for a, b in zip(ours, eager, strict=True):
        assert (a.is_conj(), a.is_neg(), a.stride()) == (b.is_conj(), b.is_neg(), b.stride())
    for results in (ours, eager):
        results[1].add_(1)
    assert_equal(ours, eager)


def test_a_conjugate_sees_what_is_written_behind_a_graph_break():
    def function(z):
        whole = z * 1
        conjugate = whole.conj()
        whole[whole != 0] = 0.5
        return conjugate

    z = torch.tensor(1 + 2j)
    assert torch.equal(polyblocks_jit_torch()(function)(z), function(z))


def test_a_conjugate_sees_what_is_written():
    def function(z):
        whole = z * 1
        conjugate = whole.conj()
        whole.mul_(2)
        return conjugate * 1

    call = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
    assert_equal([call(numbers())], [function(numbers())])


def in_place(z):
    whole, part = z * 1, z * 2
    whole.conj().mul_(1 + 1j)
    part.imag.add_(1)
    return whole + part


def views(z):
    twice = z * 2
    return [
        z.conj(), z.conj().imag, z.conj().real, (z.conj() * 2).imag, twice.conj().imag,
        twice.conj(), torch._neg_view(z.real), torch._neg_view(twice), z.conj().conj() + 1,
        z.view(2, 4).mH, z.view(2, 4).mH @ z.view(2, 4), torch.fft.fft(z).conj(), in_place(z),
        torch.view_as_real(z.conj().resolve_conj()), z.conj().sum(), z.conj()[::2] + z[::2],
    ]  # fmt: skip


@pytest.mark.parametrize(("dtype", "parts"), [(torch.complex64, True), (torch.complex128, False)])
def test_values(dtype, parts):
    def function(z):
        made = views(z)
        if parts:  # PyTorch runs these, on lazy values, and others read what they give
            distances = torch.cdist(z.conj().imag[:, None], z.real[:, None], p=0.5)
            made += [distances + 1, torch.linalg.inv(z.view(2, 2, 2).mH).conj() * 2]
        return made

    call = polyblocks_jit_torch(compile_options={"strict_target": not parts})(function)
    z = numbers(dtype) + torch.tensor([0.5, 2, 1, 7, 3, 9, 1, 1])
    for argument in (z, z.conj(), torch.stack([z, z], 1)[:, 0].conj()):
        assert_equal(call(argument), function(argument))


@pytest.mark.parametrize(
    ("function", "argument"),
    [
        pytest.param(lambda z: (z * 2).exp(), lambda z: z.conj(), marks=pytest.mark.slow),
        (lambda z: (z * 2).exp(), lambda z: z.conj().imag),
        (lambda z: z.view(2, 4) @ z.view(2, 4).mT, lambda z: z.conj()),
        (lambda z: z.mul_(2), lambda z: z.conj()),
        (lambda z: z.add_(1), lambda z: z.conj().imag),
        (lambda z: z[1:].real * z[:-1].imag, lambda z: z.conj()),
        (lambda z: z.index_put((torch.tensor([-1]),), z[:1]), lambda z: z.conj()),
    ],
)
def test_lazy_arguments_are_compiled_whole(function, argument):
    call = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
    mine, theirs = numbers(torch.complex64), numbers(torch.complex64)
    theirs.copy_(mine)
    torch.testing.assert_close(call(argument(mine)), function(argument(theirs)))
    torch.testing.assert_close(mine, theirs)
