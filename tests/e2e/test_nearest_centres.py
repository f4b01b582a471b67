"""The nearest of many centres: distances of a block of points stay in a cache, in no buffer."""

from __future__ import annotations

import pytest
import torch

import polyblocks
from polyblocks import events

pytestmark = pytest.mark.cpu


def nearest(points: torch.Tensor, centres: torch.Tensor) -> torch.Tensor:
    """The index of the centre next to each point, by inner products."""
    return (centres.square().sum(1) - 2 * (points @ centres.T)).argmin(1)


@pytest.mark.parametrize("arch", ["sapphirerapids", "znver4"])
def test_distances_are_not_kept(arch: str) -> None:
    # The two minima alone would be best in tiles of a row or two, and the product in larger ones.
    given = [torch.empty(65536, 64), torch.empty(1024, 64)]
    artifact = polyblocks.aot(nearest, given, {"target": "cpu", "arch": arch}, frontend="torch")
    (workspace,) = (a for a in artifact.manifest["arguments"] if a["role"] == "workspace")
    assert workspace["shape"][0] < 1 << 20


def nearest_apart(points: torch.Tensor, centres: torch.Tensor) -> torch.Tensor:
    """The same, by squares of differences."""
    apart = points[:, None, :] - centres[None, :, :]
    return (apart * apart).sum(-1).argmin(1)


@pytest.mark.parametrize("arch", ["znver4", "znver5"])
def test_points_of_few_numbers_are_lanes(arch: str) -> None:
    # Their numbers are packed one at a time, which is less than to transpose all distances.
    given, record = [torch.empty(100_000, 8), torch.empty(16, 8)], events.Record()
    with events.listening(record):
        polyblocks.aot(nearest_apart, given, {"target": "cpu", "arch": arch}, frontend="torch")
    (tiled,) = (d for d in record.decisions if d["pass"] == "tile-contractions")
    assert tiled["pack_columns"]
    assert not tiled["waits"]
