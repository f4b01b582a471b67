"""The decomposition of roll against PyTorch's own."""

from __future__ import annotations

import pytest
import torch

from polyblocks_torch.decomp.movement import roll


@pytest.mark.parametrize(
    ("shape", "shifts", "dims"),
    [
        ((5,), (2,), (0,)),
        ((5,), (-7,), (0,)),
        ((3, 4), (1,), ()),
        ((3, 4), (0,), (1,)),
        ((3, 4, 2), (1, -3, 5), (0, 1, 2)),
        ((3, 4), (1, 1), (0, 0)),
        ((0, 4), (1,), (0,)),
        ((1,), (3,), (0,)),
    ],
)
def test_roll(shape: tuple[int, ...], shifts: tuple[int, ...], dims: tuple[int, ...]) -> None:
    x = torch.randn(shape)
    y = roll(x, shifts, dims)
    assert torch.equal(y, torch.roll(x, shifts, dims or None))
    assert y.data_ptr() != x.data_ptr() or not x.numel()
