"""Loading and running a program needs NumPy, the target and its runtime; the rest is an extra."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyblocks
from polyblocks.errors import TargetError
from polyblocks_cpu.objects import jit_link

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.cpu

ROOT = Path(__file__).resolve().parents[2]
#: What a machine that only runs programs does not have.
ABSENT = (
    "torch_mlir llvmlite jinja2 rich typer torch jax jaxlib tensorflow ziglang scipy ml_dtypes"
).split()
#: Megabytes that a whole environment may take.
LIMIT = 80


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, np.ndarray, np.ndarray]:
    """A file, an input and its result."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(288, 10)
    ).eval()
    path = tmp_path_factory.mktemp("light") / "model.zip"
    x = torch.rand(4, 3, 8, 8)
    polyblocks.aot(model, [x]).write(path)
    with torch.no_grad():
        return path, x.numpy(), model(x).numpy()


def running(path: Path, x: np.ndarray, y: np.ndarray) -> str:
    """A script that loads the file, runs it and compares."""
    np.savez(path.with_suffix(".npz"), x=x, y=y)
    return f"""
        import sys
        import numpy
        import polyblocks
        data = numpy.load({str(path.with_suffix(".npz"))!r})
        f = polyblocks.load({str(path)!r}, num_threads=2)
        numpy.testing.assert_allclose(f(data["x"]), data["y"], rtol=1e-4, atol=1e-5)
        print("ran", sorted({{n.partition(".")[0] for n in sys.modules}} & set({ABSENT})))
    """


BLOCKED = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent}:
            raise ModuleNotFoundError(f"No module named '{{name}}'", name=name)
sys.meta_path.insert(0, Blocked())
"""


def without(code: str) -> str:
    return BLOCKED.format(absent=ABSENT) + textwrap.dedent(code)


def test_light_runtime_loads_without_compiler_and_command(
    artifact: tuple[Path, np.ndarray, np.ndarray], run_python: Callable[..., Any]
) -> None:
    done = run_python(without(running(*artifact)))
    assert done.stdout.strip() == "ran []", done.stderr


def test_light_runtime_says_what_compiling_needs(
    run_python: Callable[..., Any], tmp_path: Path
) -> None:
    source = tmp_path / "f.mlir"
    source.write_text("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a }")
    done = run_python(
        without(
            f"""
            from pathlib import Path
            from polyblocks.api import compile_file
            from polyblocks.options import CompileOptions
            from polyblocks.errors import PluginError
            try:
                compile_file(Path({str(source)!r}), CompileOptions())
            except PluginError as error:
                print(error)
            """
        )
    )
    assert done.stdout.strip() == (
        "only the runtime is installed (No module named 'torch_mlir'); to compile: "
        "pip install 'polyblocks-compiler[compile]'"
    ), done.stderr


def test_light_runtime_says_what_the_command_needs(run_python: Callable[..., Any]) -> None:
    done = run_python(without("from polyblocks.__main__ import main; main()"))
    assert done.returncode == 1
    assert done.stderr.strip() == (
        "error: the command polyblocks needs what is not installed (No module named 'typer'); "
        "pip install 'polyblocks-compiler[compile]'"
    )


def test_objects_of_other_systems_need_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    from polyblocks_cpu import load

    def absent(*args: object) -> None:
        raise ModuleNotFoundError("No module named 'llvmlite'")

    monkeypatch.setattr(jit_link, "link", absent)
    with pytest.raises(TargetError, match="another format than ELF, .*; pip install 'polyblocks-"):
        load._linked([b"noise"], ["f"], {})


def names(lines: list[str]) -> set[str]:
    return {re.split(r"[\s<>=!;\[]", line)[0] for line in lines}


def test_what_compiles_is_an_extra_that_frontends_ask_for() -> None:
    def project(path: str) -> dict[str, Any]:
        return tomllib.loads((ROOT / path / "pyproject.toml").read_text())["project"]

    core = project("core")
    assert names(core["dependencies"]) == {"numpy", "platformdirs", "pluggy", "stevedore"}
    assert {"torch-mlir", "llvmlite"} <= names(core["optional-dependencies"]["compile"])
    for frontend in ("torch", "jax", "tf"):
        asked = project(f"plugins/frontend_{frontend}")["dependencies"]
        assert any(line.startswith("polyblocks-compiler[compile]") for line in asked)
    assert not {"llvmlite", "torch-mlir"} & names(project("plugins/target_cpu")["dependencies"])
    assert "core[compile]" in (ROOT / "Makefile").read_text()


def size(folder: Path) -> float:
    """Megabytes on disk, as du counts."""
    done = subprocess.run(["du", "-sk", folder], check=True, capture_output=True, text=True)
    return int(done.stdout.split()[0]) * 1024 / 1e6


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="du and the limit are Linux's")
def test_light_runtime_in_a_clean_environment_takes_at_most_80_mb(
    artifact: tuple[Path, np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    """Without pip itself, and without byte code, which Python can make again."""
    place = tmp_path / "venv"
    python = place / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    wheels = tmp_path / "wheels"
    command = [*pip, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(wheels)]
    subprocess.run([*command, str(ROOT / "core"), str(ROOT / "plugins/target_cpu")], check=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    command = [*pip, "--python", str(python), "install", "--quiet", "--no-compile"]
    subprocess.run([*command, *map(str, wheels.glob("*.whl"))], check=True)
    assert size(place) <= LIMIT
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1", "HOME": str(tmp_path)}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(python), *arguments], env=environment, cwd=tmp_path, capture_output=True, text=True
        )

    done = run("-c", textwrap.dedent(running(*artifact)))
    assert done.stdout.strip() == "ran []", done.stderr
    assert size(place) <= LIMIT
    done = run("-m", "polyblocks")
    assert "pip install 'polyblocks-compiler[compile]'" in done.stderr
