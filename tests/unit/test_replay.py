"""Calls that were kept and are computed again, here on a CPU: what counts as the same."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.gpu_conformance.replay import replay

import polyblocks

pytestmark = pytest.mark.usefixtures("compiled_in_this_process")

torch = pytest.importorskip("torch")

X = np.linspace(-1, 2, 12, dtype=np.float32).reshape(3, 4)


def outcome(tmp_path: Path, function: Any, given: np.ndarray, result: np.ndarray) -> dict[str, Any]:
    """What becomes of a call with this result."""
    artifact = polyblocks.aot(function, [torch.from_numpy(given)])
    np.savez(tmp_path / "a-0.npz", **{"status": 0, "before-0": given, "after-1": result})
    artifact.write(tmp_path / "a.zip")
    file = tmp_path / "calls.zip"
    with zipfile.ZipFile(file, "w") as archive:
        for name in ("a-0.npz", "a.zip"):
            archive.write(tmp_path / name, name)
    (row,) = replay(file)
    return row


def test_same(tmp_path: Path) -> None:
    assert outcome(tmp_path, lambda x: x * 2, X, X * 2)["outcome"] == "same"


def test_close(tmp_path: Path) -> None:
    row = outcome(tmp_path, lambda x: x * 2, X, np.nextafter(X * 2, np.float32(9)))
    assert row["outcome"] == "close"
    assert 0 < row["part"] < 0.1


@pytest.mark.parametrize("wrong", [0.01, np.nan, np.inf])
def test_different(tmp_path: Path, wrong: float) -> None:
    expected = X * 2
    expected[1, 2] += wrong
    row = outcome(tmp_path, lambda x: x * 2, X, expected)
    assert (row["outcome"], row["told"]) == ("different", "argument 1")


def test_integers_are_exact(tmp_path: Path) -> None:
    n = np.arange(5)
    assert outcome(tmp_path, lambda n: n + 1, n, n + 1)["outcome"] == "same"
    assert outcome(tmp_path, lambda n: n + 1, n, n + 2)["outcome"] == "different"


def test_sensitive(tmp_path: Path) -> None:
    """Large angles, whose last bits are all that the results depend on."""

    def turned(x: Any) -> Any:
        return torch.sin(x * 1e6)

    expected = turned(torch.from_numpy(np.nextafter(X, np.float32(9)))).numpy()
    assert outcome(tmp_path, turned, X, expected)["outcome"] == "sensitive"


def test_what_does_not_load_is_an_error(tmp_path: Path) -> None:
    np.savez(tmp_path / "a-0.npz", status=0)
    with zipfile.ZipFile(tmp_path / "calls.zip", "w") as archive:
        archive.write(tmp_path / "a-0.npz", "a-0.npz")
        archive.writestr("a.zip", b"nothing")
    (row,) = replay(tmp_path / "calls.zip")
    assert row["outcome"] == "crashed"
