"""Networks built for GPUs: what is said of a row, and the row of a product."""

from __future__ import annotations

import pytest
from bench import gpu_networks

#: What is imported where they run, which decides in which process; see tests/support/parts.py.
FRAMEWORKS = ("torch",)
ROW = {
    "network": "ResNet-18",
    "arch": "sm_80",
    "seconds": 12.0,
    "processor": 11.0,
    "kernels": 26,
    "all": 26,
    "without": [],
    "units": ["mma"],
}


def test_a_row_that_holds() -> None:
    assert gpu_networks.missed(ROW) == []
    assert "Everything does." in gpu_networks.page([ROW], [])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seconds": 31.0}, "31.0 s, at most 30.0"),
        ({"kernels": 31}, "31 kernels, at most 30"),
        ({"without": ["mm", "bmm"]}, "no unit computes mm, bmm"),
    ],
)
def test_a_row_that_does_not_hold(change: dict[str, object], said: str) -> None:
    (sentence,) = gpu_networks.missed(ROW | change)
    assert sentence == f"ResNet-18 for sm_80: {said}"
    assert f"- {sentence}" in gpu_networks.page([ROW | change], [sentence])


def test_a_product_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    # It takes another folder for the cache.
    monkeypatch.setenv("POLYBLOCKS_CACHE_DIR", "")
    row = gpu_networks.built("1024 x 1024 x 1024", "gfx1100")
    assert (row["kernels"], row["without"], len(row["units"])) == (1, [], 1)
    assert row["seconds"] > 0
