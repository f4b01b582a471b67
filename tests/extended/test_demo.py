"""The demo, small and without Inductor, whose C++ compiler takes longer than all the rest."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest

pytestmark = [pytest.mark.cpu, pytest.mark.isolated]

ROOT = Path(__file__).resolve().parents[2]

pytest.importorskip("skimage")
Image = pytest.importorskip("PIL.Image")

SIZE = 200


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[CompletedProcess[str], Path]:
    """Run the demo once; its output, and the folder of its pictures."""
    import os
    import subprocess
    import sys

    out = tmp_path_factory.mktemp("demo")
    command = [sys.executable, str(ROOT / "examples/blur_demo.py"), "--out", str(out)]
    command += ["--size", str(SIZE), "--rounds", "1"]
    # No network can be reached, and no C++ compiler is found.
    nowhere = "http://127.0.0.1:9"
    environment = {**os.environ, "http_proxy": nowhere, "https_proxy": nowhere, "CXX": "/no/g++"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done, out


def pixels(path: Path) -> np.ndarray:
    return np.asarray(Image.open(path)).astype(np.float64)


def test_the_pictures_are_the_photograph_and_its_blur(
    demo: tuple[CompletedProcess[str], Path],
) -> None:
    before, after = pixels(demo[1] / "before.png"), pixels(demo[1] / "after.png")
    assert before.shape == (SIZE, SIZE, 3)
    assert after.shape == (SIZE - 4, SIZE - 4, 3)
    assert before.std() > 20, "not a photograph"
    taps = np.array([0.0625, 0.25, 0.375, 0.25, 0.0625])
    across = sum(t * before[:, i : i + SIZE - 4] for i, t in enumerate(taps))
    expected = sum(t * across[i : i + SIZE - 4] for i, t in enumerate(taps))
    assert np.abs(after - expected).max() < 1
    assert pixels(demo[1] / "detail.png").shape == (512, 1024, 3)


def test_one_table_says_who_took_how_long(demo: tuple[CompletedProcess[str], Path]) -> None:
    rows = {
        cells[0]: cells[1:]
        for line in demo[0].stdout.splitlines()
        if len(cells := [c.strip() for c in re.findall(r"[^│┃]+", line)]) == 8
    }
    assert list(rows) == ["", "eager", "inductor", "polyblocks", "copy"]
    assert rows["inductor"][0] == "not run"
    first, minimum, median, ratio, error, moved, percent = rows["polyblocks"]
    assert float(first) > 0
    assert 0 < float(minimum) <= float(median)
    assert float(ratio) == 1
    assert float(error) <= 1e-5
    floor = 4 * 3 * (SIZE**2 + (SIZE - 4) ** 2) / 2**20
    assert float(moved) >= round(floor, 1)
    assert float(percent) > 0
    assert float(rows["copy"][5]) == round(floor, 1)


def test_a_missing_compiler_of_inductor_is_told(
    demo: tuple[CompletedProcess[str], Path],
) -> None:
    (line,) = [x for x in demo[0].stdout.splitlines() if x.startswith("inductor did not run")]
    assert "install g++" in line


def test_everything_was_compiled(demo: tuple[CompletedProcess[str], Path]) -> None:
    assert "no fallbacks" in demo[0].stdout
    assert re.search(r"^blur_x_blur_y: \d+ kernels? for cpu", demo[0].stdout, re.MULTILINE)


@pytest.mark.slow
def test_a_fallback_is_an_error(
    run_python: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> None:
    done = run_python(
        f"""
        import sys, torch
        sys.path.insert(0, {str(ROOT / "examples")!r})
        import blur_demo

        # A program that cannot be compiled whole.
        factor = torch.linalg.ldl_factor_ex

        def blur(img):
            factor(torch.eye(3)).LD
            return img[:, 2:-2, 2:-2] + 0 * factor(torch.eye(3)).LD.sum()

        blur_demo.blur_x_blur_y = blur_demo.polyblocks_jit_torch(blur)
        blur_demo.blur_x_blur_y.__name__ = "blur_x_blur_y"
        blur_demo.bytes_moved = lambda: 0
        blur_demo.measure.IDLE_S = 0
        sys.exit(blur_demo.main(["--size", "32", "--rounds", "1", "--out", {str(tmp_path)!r}]))
        """,
        CXX="/no/g++",
    )
    assert done.returncode == 1
    assert "error: not everything was compiled" in done.stderr
