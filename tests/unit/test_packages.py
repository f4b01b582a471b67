"""The distributions: what is in the wheels, and the licence."""

from __future__ import annotations

import email
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECTS = {
    "polyblocks-compiler": "core",
    "polyblocks-torch": "plugins/frontend_torch",
    "polyblocks-jax": "plugins/frontend_jax",
    "polyblocks-tf": "plugins/frontend_tf",
    "polyblocks-cpu": "plugins/target_cpu",
    "polyblocks-nvgpu": "plugins/target_nvgpu",
    "polyblocks-amdgpu": "plugins/target_amdgpu",
}
ENTRY_POINTS = {
    "polyblocks-compiler": ["[console_scripts]", "polyblocks = polyblocks.__main__:main"],
    "polyblocks-torch": [
        "[polyblocks.frontends]",
        "torch = polyblocks_torch.plugin",
        "[torch_dynamo_backends]",
        "polyblocks = polyblocks_torch.backend:polyblocks_backend",
    ],
    "polyblocks-jax": ["[polyblocks.frontends]", "jax = polyblocks_jax.plugin"],
    "polyblocks-tf": ["[polyblocks.frontends]", "tf = polyblocks_tf.plugin"],
    "polyblocks-cpu": ["[polyblocks.targets]", "cpu = polyblocks_cpu.plugin"],
    "polyblocks-nvgpu": ["[polyblocks.targets]", "nvgpu = polyblocks_nvgpu.plugin"],
    "polyblocks-amdgpu": ["[polyblocks.targets]", "amdgpu = polyblocks_amdgpu.plugin"],
}


PACKAGES = {name: name.replace("-", "_") for name in PROJECTS}
PACKAGES["polyblocks-compiler"] = "polyblocks"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, zipfile.ZipFile]:
    """The wheels, built without a network."""
    folder = tmp_path_factory.mktemp("wheels")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--disable-pip-version-check", "--wheel-dir", str(folder)]
    sources = [str(ROOT / path) for path in PROJECTS.values()]
    subprocess.run(command + sources, check=True, timeout=300)
    return {
        name: zipfile.ZipFile(next(folder.glob(f"{name.replace('-', '_')}-*.whl")))
        for name in PROJECTS
    }


@pytest.mark.parametrize("name", PROJECTS)
def test_a_wheel_holds_every_source_file(wheels, name):
    inside = set(wheels[name].namelist())
    source = ROOT / PROJECTS[name] / "src"
    for path in source.rglob("*.py"):
        assert str(path.relative_to(source)) in inside
    assert f"{PACKAGES[name]}/py.typed" in inside


@pytest.mark.parametrize("name", PROJECTS)
def test_metadata_and_entry_points(wheels, name):
    wheel = wheels[name]
    info = next(n.split("/")[0] for n in wheel.namelist() if ".dist-info/" in n)
    metadata = email.message_from_bytes(wheel.read(f"{info}/METADATA"))
    assert metadata["License-Expression"] == "Apache-2.0 WITH LLVM-exception"
    assert metadata["Requires-Python"] == ">=3.11"
    assert f"{info}/licenses/LICENSE" in wheel.namelist()
    lines = wheel.read(f"{info}/entry_points.txt").decode().splitlines()
    for line in ENTRY_POINTS[name]:
        assert line in lines


@pytest.mark.parametrize("project", PROJECTS.values())
def test_every_distribution_carries_the_same_licence(project):
    assert (ROOT / project / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_version_is_said_once_and_the_same_everywhere():
    import polyblocks

    for project in PROJECTS.values():
        data = tomllib.loads((ROOT / project / "pyproject.toml").read_text())
        assert data["project"]["version"] == polyblocks.__version__
