"""Strides of results are those of eager mode, and views of arguments stay views."""

from __future__ import annotations

import pytest
from sweeps import sweep

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

from polyblocks_torch import polyblocks_jit_torch  # noqa: E402


def laid_out(*order, shape=(2, 3, 4, 5)):
    x = torch.rand([shape[d] for d in order]) + 0.5
    return x.permute([order.index(d) for d in range(len(shape))])


def elementwise(x, y):
    made = [
        torch.copysign(x, y),
        torch.div(x, y, rounding_mode="floor"),
        torch.floor_divide(x, y),
        torch.heaviside(x, y),
        torch.logaddexp(x, y),
        torch.logical_and(x, y),
        torch.logical_xor(x, y),
        torch.pow(x, y),
        torch.add(x, y),
        torch.nn.functional.logsigmoid(x),
    ]
    return [*made, *(v * 2 for v in made[:4]), made[0][1:], made[4].sum(1)]


def test_elementwise():
    x, narrow = laid_out(3, 1, 0, 2), laid_out(1, 0, 3, 2)[:, :1]
    arguments = [(x, laid_out(2, 3, 0, 1)), (narrow, x)]
    call = polyblocks_jit_torch(compile_options={"strict_target": True})(
        lambda pairs: [v for pair in pairs for v in elementwise(*pair)]
    )
    expected = [v for pair in arguments for v in elementwise(*pair)]
    for ours, eager in zip(call(arguments), expected, strict=True):
        torch.testing.assert_close(ours, eager, check_stride=True)


@pytest.mark.parametrize("training", sweep([True, False], True, extended=[False]))
def test_normalization(training):
    model = nn.BatchNorm2d(3).train(training)
    call = polyblocks_jit_torch(model)
    for order in ((3, 1, 0, 2), (0, 2, 3, 1)):
        x = laid_out(*order)
        for mode in (torch.enable_grad(), torch.no_grad()):
            with mode:
                torch.testing.assert_close(call(x), model(x), check_stride=True)


def pooled(x):
    return F.max_pool2d(x, 2, return_indices=True)


LAST = laid_out(0, 2, 3, 1, shape=(2, 4, 6, 6))
CLASSES = torch.arange(30).reshape(5, 3, 2).permute(2, 1, 0) % 4
DIFFERENT = {
    "max_unpool2d": lambda: F.max_unpool2d(*pooled(LAST), 2),
    "max_unpool2d of a row": lambda: F.max_unpool2d(*pooled(LAST[:, :, :2, :2]), 2),
    "channel_shuffle": lambda: F.channel_shuffle(LAST, 2),
    "pad in three dimensions": lambda: F.pad(LAST, (1, 1, 1, 1, 1, 1), "reflect"),
    "pad by the border": lambda: F.pad(LAST, (1, 1, 1, 1, 1, 1), "replicate"),
    "one_hot": lambda: F.one_hot(CLASSES, 4),
    "one_hot, used": lambda: F.one_hot(CLASSES, 4).float() * 2,
    "one_hot of one": lambda: F.one_hot(CLASSES[:1], 7)[..., 1:],
    "nll_loss of images": lambda: F.nll_loss(
        LAST[:, :, :3, :5], CLASSES.contiguous(), reduction="none"
    ),
    "nll_loss of images, laid out": lambda: F.nll_loss(
        LAST[:, :, :3, :5], CLASSES, reduction="none"
    ),
    "ldexp": lambda: torch.ldexp(LAST[:, :, :, :1], LAST[0].mT),
    "ldexp of all": lambda: torch.ldexp(LAST, LAST.permute(0, 1, 3, 2)),
    "power of a number": lambda: (torch.pow(3.0, LAST), torch.float_power(2, LAST)),
    "index_fill": lambda: [
        x.index_fill(1, torch.tensor([0, -1]), 3.0)
        for x in (
            LAST,
            LAST[:, ::2],
            LAST.as_strided((2, 3, 4), (1, 1, 1)),
            LAST[:, :1].expand_as(LAST),
        )
    ],
    "max_pool1d": lambda: F.max_pool1d(LAST[0].mT, 2, 1),
    "max_pool1d, used": lambda: F.max_pool1d(LAST[0].mT, 2, 1) + 1,
    "max_pool1d of a matrix": lambda: F.max_pool1d(LAST[0, 0].mT, 2, 1),
}


@pytest.mark.parametrize(
    "name",
    sweep(
        DIFFERENT,
        *("max_unpool2d", "nll_loss of images, laid out", "index_fill", "max_pool1d, used"),
        extended=[
            "channel_shuffle",
            "pad in three dimensions",
            "one_hot, used",
            "ldexp of all",
            "power of a number",
        ],
    ),
)
def test_kernels_that_have_another_order_than_they_are_inferred_with(name):
    function = DIFFERENT[name]
    ours = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
    torch.testing.assert_close(ours(), function(), check_stride=True)


def test_max_pool1d_with_a_gradient_has_other_strides_than_without():
    x = LAST[0].mT.clone().requires_grad_()
    ours = polyblocks_jit_torch(lambda x: F.max_pool1d(x, 2, 1))
    for mode in (torch.enable_grad(), torch.no_grad()):
        with mode:
            torch.testing.assert_close(ours(x), F.max_pool1d(x, 2, 1), check_stride=True)


def test_normal_draws_rows_one_after_another():
    mean, deviation = laid_out(1, 0, shape=(3, 4)), laid_out(1, 0, shape=(3, 4))
    function = lambda mean, deviation: (  # noqa: E731
        torch.normal(mean, deviation), torch.normal(0.0, deviation), torch.normal(mean, 1.0)
    )  # fmt: skip
    for ours, eager in zip(
        polyblocks_jit_torch(function)(mean, deviation), function(mean, deviation), strict=True
    ):
        assert ours.stride() == eager.stride()


@pytest.mark.parametrize("needs_gradient", sweep([True, False], True, extended=[False]))
def test_results_that_others_are_computed_from(needs_gradient):
    def function(x):
        sign = torch.copysign(x, x.transpose(2, 3))
        loss = F.nll_loss(x[:, :, :3, :5].contiguous(), CLASSES, reduction="none")
        return sign, sign * x, loss, loss * 2, loss.sum()

    ours = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
    x = LAST.clone().requires_grad_(needs_gradient)
    got, expected = ours(x), function(x)
    torch.testing.assert_close(got, expected, check_stride=True)
    if needs_gradient:
        cotangents = [torch.rand_like(t) for t in expected]
        gradients = [torch.autograd.grad(made, x, cotangents) for made in (got, expected)]
        torch.testing.assert_close(*gradients)


TOGETHER = {
    "split": lambda x: x.split(2),
    "split in two sizes": lambda x: x.split([1, 3], 1),
    "chunk": lambda x: x.chunk(2),
    "unbind": lambda x: x.unbind(1),
    "tensor_split": lambda x: x.tensor_split(3),
    "one of them": lambda x: x.split(2)[1:],
    "of a view": lambda x: x.t()[1:].unbind(0),
}


@pytest.mark.each_choice
@pytest.mark.parametrize("needs_gradient", [True, False])
@pytest.mark.parametrize("computed", [True, False])
def test_views_that_one_operation_gives(needs_gradient, computed):
    def function(x):
        base = x * 2 if computed else x
        return [f(base) for f in TOGETHER.values()]

    x = torch.rand(4, 4, requires_grad=needs_gradient)
    ours = polyblocks_jit_torch(compile_options={"strict_target": True})(function)(x)
    eager = function(x)

    def memories(groups):
        values = [value for group in groups for value in group]
        base = values[0].data_ptr()
        return [(v.data_ptr() - base, v.stride()) for v in values]

    assert memories(ours) == memories(eager)
    if not computed:
        assert ours[0][0].data_ptr() == x.data_ptr()
    for a, b in zip(ours, eager, strict=True):
        torch.testing.assert_close(list(a), list(b))
    if needs_gradient:
        sum(v.square().sum() for group in ours for v in group).backward()
        gradient, x.grad = x.grad, None
        sum(v.square().sum() for group in function(x) for v in group).backward()
        torch.testing.assert_close(gradient, x.grad)


def test_results_that_the_program_goes_on_with():
    def function(x, y):
        made = torch.xlogy(x, y)
        return made, made * 2

    x, y = laid_out(0, 1, shape=(7, 17)), laid_out(1, 0, shape=(7, 17))
    for operands in ((x, y), (y, x)):
        # With a gradient, AOTAutograd makes the graph.
        for needs_gradient in (False, True):
            given = [operand.detach().requires_grad_(needs_gradient) for operand in operands]
            call = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
            ours, eager = call(*given), function(*given)
            assert ours[0].stride() == eager[0].stride()
            torch.testing.assert_close(ours, eager)


@pytest.mark.parametrize("needs_gradient", sweep([True, False], True, extended=[False]))
def test_views_of_results_that_lie_as_in_eager_mode(needs_gradient):
    """Some are returned beside what they are views of, and some are computed with."""

    def function(x):
        made = F.logsigmoid(x) + 1
        halves = made.split(5)
        # Of what is transposed in eager mode this is a copy.
        sign = torch.copysign(x, x.t().contiguous().t())
        return (
            made, made.unsqueeze(1), halves[1].t(), halves[1][1:] * x[6:], made.flatten(),
            made.flatten() * 2, sign, sign.reshape(-1),
        )  # fmt: skip

    x = laid_out(1, 0, shape=(10, 7)).requires_grad_(needs_gradient)
    ours = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
    got, expected = ours(x), function(x)
    torch.testing.assert_close(got, expected, check_stride=True)
    assert [r.data_ptr() - got[0].data_ptr() for r in got[1:3]] == [0, 5 * 7 * 4]
    if needs_gradient:
        cotangents = [torch.rand_like(t) for t in expected]
        gradients = [torch.autograd.grad(made, x, cotangents) for made in (got, expected)]
        torch.testing.assert_close(*gradients)


@pytest.mark.extended
def test_several_views_of_complex_numbers_as_real_ones():
    def function(z):
        return [*torch.view_as_real(z).chunk(2), *torch.view_as_real(z * 2).unbind(2)]

    z = torch.randn(5, 3, dtype=torch.complex128, requires_grad=True)
    ours = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
    got, expected = ours(z), function(z)
    torch.testing.assert_close(got, expected, check_stride=True)
    assert got[0].data_ptr() == z.data_ptr()
    cotangents = [torch.rand_like(t) for t in expected]
    gradients = [torch.autograd.grad(made, z, cotangents) for made in (got, expected)]
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize(
    "laid",
    [
        pytest.param(lambda t: t.view(2, 3, 4, 5), marks=pytest.mark.extended),
        lambda t: t.view(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
        pytest.param(lambda t: t.view(5, 4, 3, 2).permute(3, 2, 1, 0), marks=pytest.mark.extended),
        lambda t: t.repeat_interleave(2).view(2, 3, 4, 10)[..., ::2],
    ],
    ids=["rows", "channels last", "transposed", "every second"],
)
def test_gradients_lie_as_their_arguments_do(laid):
    """As autograd keeps them in ``grad``, whatever the layout of the results."""

    def function(x):
        pooled = torch.nn.functional.avg_pool2d(x, 2)
        return x.permute(0, 2, 3, 1) * 2, torch.cat([x, x.exp()], 1), x.reshape(6, 20), pooled

    ours = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
    found = []
    for call in (ours, function):
        x = laid(torch.arange(120.0) / 120).detach().requires_grad_()
        torch.autograd.backward([made.sum() for made in call(x)])
        first = x.grad.stride()
        torch.autograd.backward([made.sum() for made in call(x)])
        found.append((x.grad, first, x.grad.stride()))
    torch.testing.assert_close(found[0][0], found[1][0])
    assert found[0][1:] == found[1][1:]
