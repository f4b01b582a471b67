"""The pass estimate-nests: numbers as attributes, and on their way to the manifest."""

from __future__ import annotations

import pytest

from polyblocks.affine.cost.estimate import combine

ROW = {
    "iterations": 4,
    "flops": 8,
    "floor_bytes": 32,
    "moved_bytes": 64,
    "bytes": {"near": 64, "main": 32},
    "seconds": {"near": 1e-7, "main": 2.5e-7, "compute": 3e-7, "launch": 1e-6},
    "predicted_seconds": 1.3e-6,
    "bound": "compute",
}


def test_several_nests_are_added_up():
    other = ROW | {"seconds": {"near": 1e-7, "main": 9e-7, "compute": 3e-7, "launch": 1e-6}}
    total = combine([ROW, other])
    assert (total["flops"], total["bytes"]) == (16, {"near": 128, "main": 64})
    assert total["seconds"]["main"] == pytest.approx(1.15e-6)
    assert total["bound"] == "main"
    assert ROW["bytes"] == {"near": 64, "main": 32}
    assert combine([ROW]) == ROW
    assert combine([]) is None
