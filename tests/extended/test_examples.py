"""The examples run and say what their texts promise."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax  # noqa: F401  the examples import it, as they do the others
import pytest
import tensorflow  # noqa: F401
import torch  # noqa: F401

pytestmark = [pytest.mark.cpu, pytest.mark.isolated]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Run a script in this process, which has imported the frameworks; returns what it prints."""

    def run_here(script: str, *arguments: str, status: int = 0) -> str:
        monkeypatch.setattr(sys, "argv", [script, *arguments])
        monkeypatch.syspath_prepend(str(EXAMPLES))
        with pytest.raises(SystemExit, match=f"^{status}$"):
            runpy.run_path(str(EXAMPLES / script), run_name="__main__")
        return capsys.readouterr().out

    return run_here


def difference(output: str) -> float:
    match = re.search(r"largest difference: (\S+)", output)
    assert match is not None, output
    return float(match[1])


def test_a_decorated_module_has_a_variant_per_shape(printed: Callable[..., str]) -> None:
    output = printed("decorate_module.py")
    assert difference(output) < 1e-6
    variants = re.findall(r"^compiled, \d+ kernels, of .*$", output, re.MULTILINE)
    assert ["float32[4, 3, 32, 32]" in v for v in variants] == [True, False]
    assert ["float32[1, 3, 32, 32]" in v for v in variants] == [False, True]
    assert "no fallbacks" in output


def test_backends_agree(printed: Callable[..., str]) -> None:
    output = printed(
        "compare_backends.py", "--rows", "16", "--columns", "32", "--backends", "std,polyblocks"
    )
    assert re.findall(r"^(\w+): \d+\.\d+ ms$", output, re.MULTILINE) == ["std", "polyblocks"]
    assert output.count("outputs agree with the references: 2 arrays") == 2


def test_a_blur_in_jax(printed: Callable[..., str]) -> None:
    output = printed("jax_blur.py", "--height", "40", "--width", "60", "--calls", "1")
    assert difference(output) < 1e-6
    assert re.findall(r"^(\S+): \d+\.\d+ ms$", output, re.MULTILINE) == [
        "polyblocks", "jax.jit"
    ]  # fmt: skip
    assert "1 kernel for cpu" in output
    assert "no fallbacks" in output


def test_gradient_descent_in_jax(printed: Callable[..., str]) -> None:
    output = printed("jax_scaling.py", "--points", "16", "--steps", "300")
    ours, theirs = re.findall(r"stress (\S+) -> (\S+)", output)
    assert ours[0] == theirs[0]
    assert float(ours[1]) == pytest.approx(float(theirs[1]), abs=1e-3)
    assert "no fallbacks" in output


@pytest.fixture(scope="module")
def extension(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip installed examples/extension, offline."""
    folder = tmp_path_factory.mktemp("extension")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--disable-pip-version-check", "--target", str(folder)]
    subprocess.run([*command, str(EXAMPLES / "extension")], check=True, timeout=300)
    return folder


def test_an_extension_brings_a_pass(extension: Path, run_python: Callable[..., Any]) -> None:
    script = EXAMPLES / "extension" / "try_it.py"
    code = f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')"
    done = run_python(code, path=extension, preloaded="torch")
    assert done.returncode == 0, done.stderr
    assert difference(done.stdout) < 1e-6
    assert "'count': 1" in done.stdout


@pytest.mark.slow
def test_the_pass_is_left_out_where_divisions_are_wanted(extension: Path) -> None:
    code = """
import torch, polyblocks
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch
option = {"polyblocks_disable_unsafe_math_canonicalizations": True}
with polyblocks.explain() as report:
    polyblocks_jit_torch(lambda x: x / 3.0, compile_options=option)(torch.ones(8))
(part,) = report.parts
print([p["name"] for p in part.report["passes"]])
"""
    environment = {**os.environ, "PYTHONPATH": str(extension)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "set-fastmath" in done.stdout
    assert "reciprocal-division" not in done.stdout


def test_without_the_extension_the_script_says_how_to_install_it(
    printed: Callable[..., str],
) -> None:
    assert "pip install ./examples/extension" in printed("extension/try_it.py", status=1)


def test_a_blur_in_tensorflow(printed: Callable[..., str]) -> None:
    output = printed("tf_blur.py", "--height", "40", "--width", "60", "--calls", "1")
    assert difference(output) < 1e-6
    assert re.findall(r"^(\w+): \d+\.\d+ ms$", output, re.MULTILINE) == ["polyblocks", "xla"]
    assert "1 kernel for cpu" in output
    assert "no fallbacks" in output


@pytest.mark.slow
def test_a_rotation_in_tensorflow(printed: Callable[..., str]) -> None:
    output = printed("tf_rotation.py", "--height", "48", "--width", "64")
    assert difference(output) < 1e-4
    assert "no fallbacks" in output
