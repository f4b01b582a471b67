"""PyTorch programs about what lies where: lazy bits, aliases, views that are updated, overlaps."""

# ruff: noqa: E501

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch_run import gradients, group

lazy = group("laziness")
lazy.table([
    ("conj of a slice", lambda z: z * 1, lambda: torch.arange(12.0).mul(1 + 2j)[::2].conj()),
    ("conj", lambda z: z + 1j, "c64 3x4 conjugated"),
    ("conj of a transposed", lambda z: z * 2, lambda: (torch.arange(6.) * 1j).view(2, 3).T.conj()),
    ("conj of the complex128", lambda z: z.real + z.imag, "c128 5 conjugated"),
    ("conj of one element", lambda z: z * z, "c64 - conjugated"),
    ("negated", lambda x: x + 1, "f32 3x4 negated"),
    ("negated float64", lambda x: x.exp(), "f64 7 negated"),
    ("negated matrix product", lambda x, y: x @ y, "f32 3x4 negated", "f32 4x2"),
    ("negated and every second", lambda x: x * 2, lambda: torch.randn(8, dtype=torch.cfloat).conj().imag[::2]),
    ("result is conj", lambda z: z.conj(), "c64 3"),
    ("result is imag of conj", lambda z: (z * 2).conj().imag, "c64 3"),
    ("real of conj", lambda z: z.conj().real * 3, "c64 3x2"),
    ("update a conjugated argument", lambda z: z.mul_(2), "c64 3 conjugated"),
    ("update a negated argument", lambda x: x.add_(1), "f32 3 negated"),
    ("update imag of conj", lambda z: z.conj().imag.mul_(2), "c64 4"),
    ("update a slice of a conjugated", lambda z: z[1:].zero_(), "c64 4 conjugated"),
    ("store into a conjugated", lambda z, w: z.copy_(w), "c64 4 conjugated", "c64 4"),
    ("copy from a conjugated", lambda z, w: z.copy_(w), "c64 4", "c64 4 conjugated"),
    ("conj twice", lambda z: z.conj() + z, "c64 4 conjugated"),
    ("adjoint product", lambda z: z.mH @ z, "c64 3x2"),
    ("vdot", lambda z, w: torch.vdot(z, w), "c64 5 conjugated", "c64 5"),
    ("cat of conjugated", lambda z, w: torch.cat([z, w.conj()]), "c64 3 conjugated", "c64 2"),
    ("where of conjugated", lambda z, w: torch.where(z.real > 0, z, w), "c64 5 conjugated", "c64 5"),
    ("index of conjugated", lambda z: z[[0, -1]], "c64 5 conjugated"),
    ("view_as_real", lambda z: torch.view_as_real(z.resolve_conj()), "c64 3 conjugated"),
    ("complex in between", lambda x: torch.linalg.inv(x + 3 * torch.eye(3)).conj().mT * 1j, "c64 3x3"),
    ("lazy result of eigh", lambda x: torch.linalg.eigh(x @ x.mH)[0], "c64 3x3"),
    ("fft of conj", lambda z: torch.fft.fft(z), "c64 8 conjugated"),
    ("ifft then conj", lambda z: torch.fft.ifft(z).conj() * 2, "c64 8"),
])  # fmt: skip
lazy.table([
    ("gradient of imag of exp", lambda u: torch.exp(1j * u).imag.sum(), "f32 5"),
    ("gradient of irfft of rfft times 1j", lambda t: torch.fft.irfft(torch.fft.rfft(t) * 1j), "f32 8"),
    ("gradient of a product with a complex constant", lambda x: (x * torch.tensor([1 + 2j, 3 - 1j])).abs(), "f32 2"),
    ("gradient of complex abs", lambda z: (z * (2 - 1j)).abs(), "c64 4"),
    ("gradient of conj", lambda z: z.conj() * z * 1j, "c64 4"),
    ("gradient of polar", lambda r, t: torch.polar(r, t) * (1 + 1j), "f32 4", "f32 4"),
    ("gradient of complex division", lambda z, w: z / w, "c64 4", "c64 4"),
    ("gradient of angle", lambda z: z.angle(), "c64 4"),
    ("gradient through view_as_complex", lambda x: torch.view_as_complex(x) ** 2, "f32 3x2"),
    ("gradient through complex matrix product", lambda a, b: a @ b.mH, "c64 2x3", "c64 4x3"),
    ("gradient of a stft", lambda x: torch.stft(x, 8, 4, window=torch.ones(8), return_complex=True), "f32 32"),
], call=gradients)  # fmt: skip


@lazy.program
def zero_tensor_as_gradient(jit):
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x.sum()

        @staticmethod
        def backward(ctx, g, s):
            return g * 2 + s

    x = torch.randn(3, requires_grad=True)
    f = jit(lambda x: Twice.apply(x)[0].sin())
    f(x).sum().backward()
    return x.grad


@lazy.program
def zero_tensor_as_argument(jit):
    zero = torch._efficientzerotensor(3)
    return jit(lambda x, z: x + z * 2)(torch.arange(3.0), zero)


@lazy.program
def forward_mode_tangents(jit):
    import torch.autograd.forward_ad as fwd

    f = jit(lambda x: x.sin() * x)
    with fwd.dual_level():
        y = f(fwd.make_dual(torch.arange(3.0), torch.ones(3)))
        return fwd.unpack_dual(y).tangent


alias = group("aliasing")
alias.table([
    ("output is the argument", lambda x: x, "f32 3"),
    ("output is a view", lambda x: x[1:], "f32 3"),
    ("twice the same output", lambda x: [x * 2] * 2, "f32 3"),
    ("view and its base", lambda x: (lambda y: (y, y[1:]))(x * 2), "f32 3"),
    ("view of argument after update", lambda x: (x.add_(1), x[1:])[1], "f32 3"),
    ("argument updated and returned", lambda x: x.mul_(3), "f32 3"),
    ("transposed argument updated", lambda x: x.t().mul_(3), "f32 3x4"),
    ("argument of int updated", lambda x: x.add_(2**31 - 1), "i32 3"),
    ("two updates", lambda x, y: (x.add_(y), y.add_(x)), "f32 3", "f32 3"),
    ("swap", lambda x, y: (lambda t: (x.copy_(y), y.copy_(t)))(x.clone()), "f32 3", "f32 3"),
    ("set part of expanded clone", lambda x: x.expand(3, 4).clone().fill_diagonal_(7), "f32 4"),
    ("detach", lambda x: x.detach().add_(1), "f32 3"),
    ("set data", lambda x: (x.view(-1)[:2].fill_(5), x.sum())[1], "f32 2x3"),
    ("split results", lambda x: x.split(2), "f32 5x2"),
    ("chunk results of a transposed", lambda x: x.t().chunk(2), "f32 5x2"),
    ("unbind results", lambda x: x.unbind(1), "f32 3x2"),
    ("reshape is a view", lambda x: x.reshape(6).add_(1), "f32 2x3"),
    ("reshape is a copy", lambda x: x.t().reshape(6).add_(1), "f32 2x3"),
    ("contiguous is itself", lambda x: x.contiguous().add_(1), "f32 2x3"),
    ("contiguous is a copy", lambda x: x.t().contiguous().add_(1), "f32 2x3"),
    ("to is itself", lambda x: x.to(torch.float32).add_(1), "f32 2x3"),
    ("expanded result", lambda x: x.unsqueeze(0).expand(4, 3), "f32 3"),
    ("expanded computed result", lambda x: (x * 2).unsqueeze(0).expand(4, 3), "f32 3"),
    ("channels last result", lambda x: (x + 1).to(memory_format=torch.channels_last), "f32 2x3x4x5"),
    ("diagonal update", lambda x: x.diagonal().mul_(2), "f32 4x4"),
    ("out argument", lambda x, y: torch.add(x, 1, out=y), "f32 3", "f32 3"),
    ("out argument of another shape", lambda x: torch.mul(x, 2, out=torch.empty(3)), "f32 3"),
    ("out and in are one", lambda x: torch.cumsum(x, 0, out=x), "f32 5"),
    ("in-place of reversed self", lambda x: x.add_(x.flip(0)), "f32 5"),
    ("copy of shifted self", lambda x: x[1:].copy_(x[:-1].clone()), "f32 5"),
])  # fmt: skip


@alias.program
def the_same_tensor_twice(jit):
    x = torch.arange(4.0)
    f = jit(lambda a, b: a.add_(1) + b.mul_(2))
    return f(x, x), x


@alias.program
def first_distinct_then_the_same(jit):
    f = jit(lambda a, b: (a.add_(1), a + b)[1])
    x, y = torch.arange(4.0), torch.ones(4)
    return f(x, y), f(x, x), f(y, x), x, y


@alias.program
def overlapping_slices_as_arguments(jit):
    x = torch.arange(8.0)
    f = jit(lambda a, b: (a.mul_(2), b + a)[1])
    return f(x[:5], x[3:]), x


@alias.program
def base_and_view(jit):
    x = torch.arange(6.0).view(2, 3)
    f = jit(lambda a, v: (v.zero_(), a * 2)[1])
    return f(x, x[0]), x


@alias.program
def argument_and_closure_are_one(jit):
    x = torch.arange(4.0)
    f = jit(lambda a: (a.add_(1), x * 2)[1])
    return f(x), f(torch.ones(4)), x


@alias.program
def output_of_one_call_is_argument_of_the_next(jit):
    f = jit(lambda a, s: (s.add_(a), s * 1)[1])
    s = torch.zeros(3)
    seen = [f(torch.full((3,), float(i)), s) for i in range(4)]
    return seen, s


@alias.program
def results_stay_as_they_are(jit):
    f = jit(lambda a: a * 2)
    first = f(torch.ones(5))
    kept = first.clone()
    f(torch.full((5,), 9.0))
    return first, kept


@alias.program
def update_of_a_result(jit):
    f = jit(lambda a: (a + 1, a - 1))
    y, z = f(torch.ones(5))
    y.mul_(100)
    return y, z, f(torch.ones(5))


@alias.program
def numpy_memory_is_shared(jit):
    array = np.arange(5, dtype=np.float32)
    x = torch.from_numpy(array)
    jit(lambda a: a.add_(1))(x)
    return array


@alias.program
def a_list_of_views(jit):
    x = torch.zeros(3, 4)
    f = jit(lambda rows: [row.add_(i) for i, row in enumerate(rows)])
    f(list(x.unbind(0)))
    return x


@alias.program
def a_parameter_and_its_view(jit):
    weight = torch.nn.Parameter(torch.randn(4, 3))
    f = jit(lambda x: F.linear(x, weight) @ weight)
    y = f(torch.ones(2, 3))
    y.sum().backward()
    return y, weight.grad


@alias.program
def tied_weights(jit):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = torch.nn.Embedding(7, 4)
            self.head = torch.nn.Linear(4, 7, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, i):
            return self.head(self.embed(i))

    net = Net()
    y = jit(net)(torch.tensor([1, 2, 6]))
    y.square().sum().backward()
    return y, net.embed.weight.grad


views = group("updates of views")
views.table([
    ("store a row", lambda x: x[1].fill_(7), "f32 3x4"),
    ("negative row", lambda x: x.__setitem__(-1, 0.0), "f32 3x4"),
    ("strided columns", lambda x: x.__setitem__((slice(None), slice(None, None, 2)), -1.0), "f32 3x5"),
    ("ellipsis", lambda x: x.__setitem__((..., 0), 9), "i16 2x3x4"),
    ("None and slices", lambda x: x[None, :, 1:].mul_(2), "f32 3x4"),
    ("masked by itself", lambda x: x.__setitem__(x < 0, 0), "f32 3x4"),
    ("masked row", lambda x: x[1].__setitem__(x[0] > 0, 5), "f32 3x4"),
    ("update through reshape", lambda x: x.view(6, 2)[::2].add_(1), "f32 3x4"),
    ("update through transpose", lambda x: x.transpose(0, 1)[0].zero_(), "f32 3x4"),
    ("update through squeeze", lambda x: x.squeeze(1).neg_(), "f32 3x1x4"),
    ("update through narrow", lambda x: x.narrow(1, 1, 2).mul_(-1), "f32 3x4"),
    ("update through select", lambda x: x.select(1, -1).add_(3), "i64 3x4"),
    ("update through view of another dtype", lambda x: x.view(torch.int32).bitwise_and_(0x7FFFFFFF), "f32 5"),
    ("update through unflatten", lambda x: x.unflatten(0, (2, 3))[1].zero_(), "f32 6"),
    ("update through movedim", lambda x: x.movedim(2, 0)[1].zero_(), "f32 2x3x4"),
    ("update of a computed view", lambda x: (lambda y: (y[1:].add_(1), y)[1])(x * 2), "f32 5"),
    ("two views of one value", lambda x: (lambda y: (y[:3].mul_(2), y[2:].mul_(3), y)[2])(x + 0), "f32 5"),
    ("read the view after updating the base", lambda x: (lambda y, v: (y.add_(1), v * 2)[1])(*((x + 0,) * 2)), "f32 5"),
    ("view kept before the update", lambda x: (lambda y: (lambda v: (y.mul_(2), v)[1])(y[1:]))(x + 1), "f32 5"),
    ("bool store", lambda x, m: x.masked_fill_(m, True), "bool 5", "bool 5"),
    ("store of another dtype", lambda x: x.__setitem__(slice(0, 2), 2.9), "i32 5"),
    ("add of float in int", lambda x: x.add_(torch.tensor(2)), "i8 5"),
    ("triangular", lambda x: x.tril_(), "f32 4x4"),
    ("resize by as_strided", lambda x: x.as_strided((2, 2), (3, 1), 1).zero_(), "f32 3x3"),
    ("clamp part", lambda x: x[..., 1:].clamp_(0, 1), "f32 3x4"),
    ("relu in place", lambda x: F.relu(x[:, 1:], inplace=True), "f32 3x4"),
    ("dropout of zero in place", lambda x: F.dropout(x[1:], 0.0, inplace=True), "f32 3x4"),
    ("index_add of a view", lambda x, y: x[:, 1].index_add_(0, torch.tensor([0, 0, 2]), y), "f32 3x4", "f32 3"),
    ("scatter of a view", lambda x: x.t().scatter_(0, torch.tensor([[0, 1, 2]]), 4.0), "f32 3x4"),
    ("rows swapped", lambda x: x.__setitem__([0, 1], x[[1, 0]]), "f32 3x4"),
])  # fmt: skip
views.table([
    ("gradient through a store", lambda x, y: (lambda z: (z.__setitem__(1, y), z * z)[1])(x * 1), "f32 3x4", "f32 4"),
    ("gradient through a masked store", lambda x: (lambda z: (z.__setitem__(z > 0, 0), z)[1])(x * 2), "f32 3x4"),
    ("gradient through in-place of a view", lambda x: (lambda z: (z[:, 1].mul_(z[:, 0]), z)[1])(x.sin()), "f32 3x4"),
    ("gradient through split and update", lambda x: (lambda a, b: (a.add_(1), a * b)[1])(*[t.clone() for t in x.split(2, 1)]), "f32 3x4"),
    ("gradient through copy_", lambda x, y: (lambda z: (z.copy_(y), z * 2)[1])(x * 2), "f32 4", "f32 4"),
    ("gradient through index_put accumulate", lambda x, y: (x * 2).index_put_((torch.tensor([-1, 0, -1]),), y, accumulate=True), "f32 4", "f32 3"),
], call=gradients)  # fmt: skip

overlap = group("overlapping views")
overlap.table([
    ("unfold of argument", lambda x: x.unfold(-1, 4, 1) * 2, "f32 9"),
    ("unfold of computed", lambda x: (x * 2).unfold(-1, 4, 2).sum(-1), "f32 9"),
    ("as_strided of argument", lambda x: x.as_strided((3, 4), (1, 1)) + 1, "f32 9"),
    ("as_strided of computed", lambda x: (x + 1).as_strided((3, 4), (1, 1)) * 2, "f32 9"),
    ("as_strided of as_strided", lambda x: (x * 1).as_strided((4, 4), (1, 1)).as_strided((2, 2), (2, 3), 1) + 0, "f32 9"),
    ("overlapping argument", lambda x: x * 2, "f32 3x4 overlapping"),
    ("expanded argument", lambda x: x + 1, "f32 3x4 expanded"),
    ("expanded argument reduced", lambda x: x.sum(0), "f32 3x4 expanded"),
    ("two unfolds", lambda x: x.unfold(0, 3, 1).unfold(1, 2, 1) * 2, "f32 6x5"),
    ("clone of an expanded", lambda x: x.clone(), "f32 3x4 expanded"),
    ("sliding window maximum", lambda x: x.unfold(-1, 3, 1).amax(-1), "f32 2x9"),
    ("storage offset", lambda x: x[3:].unfold(0, 2, 2) * 2, "f32 9"),
])  # fmt: skip
overlap.table([
    ("unfold of computed times weights", lambda x, w: (x * 2).unfold(-1, 4, 2) * w, "f32 10", "f32 4"),
    ("unfold of argument times weights", lambda x, w: x.unfold(-1, 4, 2) * w, "f32 10", "f32 4"),
    ("unfold of two dimensions", lambda x, w: (x + 1).unfold(0, 2, 1).unfold(1, 2, 1) * w, "f32 4x4", "f32 2x2"),
    ("as_strided of computed times weights", lambda x, w: (x * 2).as_strided((3, 4), (2, 1)) * w, "f32 9", "f32 4"),
    ("expanded computed times weights", lambda x, w: (x * 2).expand(3, 4) * w, "f32 4", "f32 3x4"),
    ("window of a stft", lambda x, w: torch.stft(x, 8, 4, window=w, return_complex=True).abs(), "f32 32", "f32 8"),
    ("fold of unfold", lambda x: F.fold(F.unfold(x * 2, 2), (4, 4), 2), "f32 1x2x4x4"),
    ("repeat", lambda x, w: (x * 2).repeat(2, 1) * w, "f32 4", "f32 2x4"),
    ("diff", lambda x: (x * 2).diff(), "f32 6"),
], call=gradients)  # fmt: skip
