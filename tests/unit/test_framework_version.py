"""What is said where the installed framework is none that a frontend was tested with."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from polyblocks.frontends.framework_version import (
    FrameworkVersionWarning,
    check_framework,
    is_within,
    required_range,
)


def install(folder: Path, name: str, version: str, *requirements: str) -> None:
    """What pip writes down of a distribution; nothing that could be imported."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    needed = "".join(f"Requires-Dist: {each}\n" for each in requirements)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needed}"
    )


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A folder of distributions that precede all others."""
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("version", "wanted", "expected"),
    [
        ("2.13.0", ">=2.13,<2.16", True),
        ("2.15.3+cpu", ">=2.13,<2.16", True),
        ("2.16.0", ">=2.13,<2.16", False),
        ("2.16.0.dev20261101", ">=2.13,<2.16", False),
        ("2.9.1", ">=2.13,<2.16", False),
        ("0.10.2", ">=0.8,<0.11", True),
        ("0.8", ">=0.8.0,<0.11", True),
        ("3.0", ">=2.0", True),
        ("1.26.4", ">=2.0", False),
    ],
)
def test_versions_are_compared_number_by_number(version, wanted, expected):
    assert is_within(version, wanted) is expected


def test_the_range_is_the_one_that_the_distribution_asks_for(installed):
    install(
        installed, "a-frontend", "1.0", "other>=1", "Frame.Work[cpu]<3,>=2.1; python_version>'3'"
    )
    assert required_range("a-frontend", "frame-work") == ">=2.1,<3"
    assert required_range("a-frontend", "frame") == ""
    assert required_range("no-such-frontend", "frame-work") == ""


@pytest.mark.parametrize("version", ["2.0.9", "3.0.0"])
def test_a_framework_outside_of_the_range_is_warned_of(installed, version):
    install(installed, "a-frontend", "1.0", "framework>=2.1,<3")
    install(installed, "framework-cpu", version)
    with pytest.warns(
        FrameworkVersionWarning,
        match=rf"a-frontend is tested with framework>=2.1,<3, and framework-cpu {version} is "
        r"installed: .*; pip install 'framework-cpu>=2.1,<3', or a release of a-frontend that",
    ):
        check_framework("a-frontend", "framework", builds=("framework-cpu",))


@pytest.mark.parametrize("version", ["2.1", None])
def test_nothing_is_said_of_a_framework_that_fits_or_is_unknown(installed, version):
    install(installed, "a-frontend", "1.0", "framework>=2.1,<3")
    if version:
        install(installed, "framework", version)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_framework("a-frontend", "framework")


@pytest.mark.parametrize(
    ("frontend", "framework"), [("torch", "torch"), ("jax", "jax"), ("tf", "tensorflow-cpu")]
)
def test_a_frontend_says_it_once_and_loads_no_framework(tmp_path, frontend, framework):
    needed = framework.removesuffix("-cpu")
    install(tmp_path, f"polyblocks-{frontend}", "0.1.0", f"{needed}>=0.1,<0.2")
    install(tmp_path, framework, "0.3.1")
    code = (
        f"import sys, polyblocks_{frontend}, polyblocks_{frontend}.plugin; "
        f"assert {needed!r} not in sys.modules"
    )
    path = os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    said = f"polyblocks-{frontend} is tested with {needed}>=0.1,<0.2, and {framework} 0.3.1 is"
    assert done.stderr.count(said) == 1
