"""``make test-versions``: which releases it tries, and with which tests."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from tests.versions import run
from tests.versions.ranges import HIGH, LOW, changed, range_of, without
from tests.versions.subjects import SUBJECTS

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def project(tmp_path):
    """A file with one dependency."""

    def make(dependency: str) -> Path:
        path = tmp_path / "pyproject.toml"
        path.write_text(f'[project]\ndependencies = ["other>=1", "{dependency}"]\n')
        return path

    return make


def test_what_pip_is_asked_for(project):
    accepted = range_of(project("Frame_Work>=2.9,<2.16"), "frame-work")
    assert accepted.requirement(LOW) == "Frame_Work==2.9"
    assert accepted.requirement(HIGH) == "Frame_Work>=2.9,<2.16"
    assert accepted.requirement(LOW, "framework-cpu") == "framework-cpu==2.9"
    assert range_of(project("numpy>=2.0"), "numpy").requirement(HIGH) == "numpy>=2.0"


@pytest.mark.parametrize(
    ("version", "expected"),
    [("2.9.0+cpu", True), ("2.15.7", True), ("2.16.0", False), ("2.8.9", False)],
)
def test_what_is_in_a_range(project, version, expected):
    assert range_of(project("torch>=2.9,<2.16"), "torch").holds(version) is expected


@pytest.mark.parametrize(("version", "expected"), [("2.9.0+cpu", True), ("2.9.1", False)])
def test_the_low_end_is_one_release(project, version, expected):
    assert range_of(project("torch>=2.9,<2.16"), "torch").holds(version, LOW) is expected


@pytest.mark.parametrize("bounds", ["", "==2.9", ">2.9", ">=2.9,<2.16,!=2.10", "<2.16"])
def test_bounds_that_name_no_lowest_release(project, bounds):
    with pytest.raises(ValueError, match=r"expected torch>=LOW or torch>=LOW,<BELOW, not torch"):
        range_of(project(f"torch{bounds}"), "torch")


def test_a_project_that_does_not_depend_on_it(project):
    with pytest.raises(ValueError, match=r"depends on no jax: add it to its dependencies"):
        range_of(project("torch>=2.9"), "jax")


def test_constraints_but_for_what_changes():
    text = "# why\njax==0.10.2\njax_lib==0.10.2\n\nflax==0.12.8\n"
    assert without(text, ("jax", "jax-lib")) == "flax==0.12.8\n"


def test_what_pip_would_change():
    report = {
        "install": [
            {"metadata": {"name": "jaxlib", "version": "0.8.0"}},
            {"metadata": {"name": "jax", "version": "0.8.0"}},
        ]
    }
    assert changed(report) == ["jax==0.8.0", "jaxlib==0.8.0"]


@pytest.mark.parametrize("name", SUBJECTS)
def test_every_subject_has_a_range_and_tests(name):
    subject = SUBJECTS[name]
    range_of(ROOT / subject.pyproject, subject.name)
    for pattern in subject.tests:
        assert list(ROOT.glob(pattern)), pattern


def test_development_uses_releases_in_the_ranges():
    pinned = dict(
        re.findall(r"^([\w-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    )
    for subject in SUBJECTS.values():
        if subject.installed in pinned:
            accepted = range_of(ROOT / subject.pyproject, subject.name)
            assert accepted.holds(pinned[subject.installed])


def test_every_frontend_is_a_subject():
    frontends = {
        str(path.relative_to(ROOT))
        for path in ROOT.glob("plugins/*/pyproject.toml")
        if "polyblocks.frontends" in tomllib.loads(path.read_text())["project"]["entry-points"]
    }
    assert frontends <= {subject.pyproject for subject in SUBJECTS.values()}


def test_what_cannot_be_installed_fails_and_says_what_to_do(monkeypatch, capsys):
    def install(subject, end, folder):
        raise subprocess.CalledProcessError(1, ["pip"], stderr="no such host")

    monkeypatch.setattr(run, "_install", install)
    good, row = run._row("torch", HIGH, (), brief=True)
    assert not good
    assert "not installed" in row
    assert re.search(r"no such host\n.*PIP_INDEX_URL", capsys.readouterr().err)


def test_the_release_of_development_is_not_tested_again(monkeypatch, tmp_path):
    monkeypatch.setattr(run, "OVERLAYS", tmp_path)
    monkeypatch.setattr(run, "_install", lambda subject, end, folder: folder.mkdir())
    monkeypatch.setattr(run, "_version", lambda subject, end, folder: "2.15.0")
    row = run._row("torch", HIGH, (), brief=True)
    assert row == (True, "torch | high | 2.15.0, that of make test | | | |")


def test_brief_tests_are_a_part():
    for subject in SUBJECTS.values():
        for pattern in subject.brief:
            assert list(ROOT.glob(pattern)), pattern
        assert set(subject.files(brief=True)) <= set(subject.files())
