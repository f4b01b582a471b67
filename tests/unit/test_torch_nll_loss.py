"""Gradients of the negative log likelihood, whose only elements are found by comparisons."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from polyblocks_torch.decomp.losses import nll_loss_backward  # noqa: E402

aten = torch.ops.aten


@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(7,), (5, 7), (2, 7, 3, 4)])
def test_as_eager_mode(shape: tuple[int, ...], weighted: bool, reduction: int) -> None:
    dim = 0 if len(shape) == 1 else 1
    places = torch.randint(0, 7, (*shape[:dim], *shape[dim + 1 :]))
    x, weight = torch.randn(shape), torch.rand(7) if weighted else None
    forward = aten.nll_loss2d_forward if len(shape) == 4 else aten.nll_loss_forward
    backward = aten.nll_loss2d_backward if len(shape) == 4 else aten.nll_loss_backward
    for ignored in (-100, 3):
        loss, total = forward(x, places, weight, reduction, ignored)
        rest = (torch.randn_like(loss), x, places, weight, reduction, ignored, total)
        torch.testing.assert_close(nll_loss_backward(*rest), backward(*rest))
    x = x.double()
    loss, total = forward(x, places, None, reduction, -100)
    rest = (torch.full_like(loss, torch.inf), x, places, None, reduction, -100, total)
    torch.testing.assert_close(nll_loss_backward(*rest), backward(*rest))


def test_places_beyond_the_classes_are_refused() -> None:
    def gradient(x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        total = torch.tensor(2.0)
        one = torch.ones(())
        return aten.nll_loss_backward(one, x, places, None, 1, -100, total)

    compiled = torch.compile(gradient, backend="polyblocks")
    with pytest.raises(IndexError, match="Target is out of bounds"):
        compiled(torch.randn(2, 4), torch.tensor([1, 4]))
