"""Which dimensions of one shape make up those of another."""

from __future__ import annotations

import pytest

pytest.importorskip("torch_mlir")

from polyblocks.stablehlo.shapes import association


@pytest.mark.parametrize(
    "short, long, groups",
    [
        ((6,), (2, 3), [[0, 1]]),
        ((2, 12), (2, 3, 4), [[0], [1, 2]]),
        ((6,), (2, 3, 1), [[0, 1, 2]]),
        ((), (1, 1), []),
        ((6, 1), (2, 3, 1), [[0, 1], [2]]),
        # Nothing is left that the last dimension could be made of: no group is empty.
        ((240, 1), (2, 12, 10), None),
        ((4,), (2, 3), None),
    ],
)
def test_association(short, long, groups):
    assert association(short, long) == groups
