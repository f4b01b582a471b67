"""Strides of results are those of eager mode, and views of arguments stay views."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

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


@pytest.mark.parametrize("training", [True, False])
def test_normalization(training):
    model = nn.BatchNorm2d(3).train(training)
    call = polyblocks_jit_torch(model)
    for order in ((3, 1, 0, 2), (0, 2, 3, 1)):
        x = laid_out(*order)
        for mode in (torch.enable_grad(), torch.no_grad()):
            with mode:
                torch.testing.assert_close(call(x), model(x), check_stride=True)


TOGETHER = {
    "split": lambda x: x.split(2),
    "split in two sizes": lambda x: x.split([1, 3], 1),
    "chunk": lambda x: x.chunk(2),
    "unbind": lambda x: x.unbind(1),
    "tensor_split": lambda x: x.tensor_split(3),
    "one of them": lambda x: x.split(2)[1:],
    "of a view": lambda x: x.t()[1:].unbind(0),
}


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
