"""Updates of windows (``x.unfold``), some with elements that no window holds."""

import torch

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch


def updated(x):
    y, z, w = x.clone(), x.clone(), x.clone()
    y.unfold(1, 2, 2).mul_(1.5)
    z.T[1:].T.unfold(-1, 2, 4).add_(1)
    w.unfold(1, 2, 3)[:, 1].zero_()
    w.unfold(0, 1, 2).neg_()
    return y, z, w, x.unfold(1, 1, 5) * 2


def test_elements_that_no_window_holds_keep_their_values():
    x = torch.randn(4, 9, requires_grad=True)
    compiled = polyblocks_jit_torch(updated, compile_options={"strict_target": True})
    gradients = []
    for f in (updated, compiled):
        results = f(x)
        sum((y * y.detach()).sum() for y in results).backward()
        gradients.append(x.grad)
        x.grad = None
        for ours, theirs in zip(results, updated(x), strict=True):
            torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(*gradients)


def test_windows_that_no_narrower_array_has_are_not_updated_wrongly():
    def last(x):
        y = x * 1
        y.unfold(0, 2, 4).add_(1)
        return y

    x = torch.arange(6.0)
    torch.testing.assert_close(polyblocks_jit_torch(last)(x), last(x))
