"""Results of several runs of pytest in one file."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import junit
import pytest
from durations import VARIABLE
from tests import run

ONE = """<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="pytest" errors="1" failures="2" skipped="3" tests="10">
<testcase classname="tests.unit.test_a" name="test_é"><failure message="a &lt; b"/></testcase>
</testsuite></testsuites>"""
OTHER = """<testsuite name="pytest" errors="0" failures="0" skipped="0" tests="5">
<testcase classname="tests.unit.test_b" name="test_it"/></testsuite>"""


def test_files_are_merged(tmp_path: Path) -> None:
    files = [tmp_path / "1.xml", tmp_path / "2.xml"]
    for file, text in zip(files, (ONE, OTHER), strict=True):
        file.write_text(text, encoding="utf-8")
    junit.merge(files, tmp_path / "all.xml")
    assert junit.counts(tmp_path / "all.xml") == (9, 3, 3)
    cases = list(ElementTree.parse(tmp_path / "all.xml").iter("testcase"))
    assert [case.get("name") for case in cases] == ["test_é", "test_it"]
    assert cases[0].find("failure") is not None


def test_no_file(tmp_path: Path) -> None:
    junit.merge([], tmp_path / "all.xml")
    assert junit.counts(tmp_path / "all.xml") == (0, 0, 0)


def test_each_part_leaves_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def wrote(self: object, tests: list[str], options: list[str], durations: Path) -> object:
        (name,) = (o.partition("=")[2] for o in options if o.startswith("--junitxml="))
        Path(name).write_text(OTHER)
        return 0, 1.0, "5 passed in 1s\n"

    monkeypatch.setattr(run.Processes, "run", wrote)
    # What it changes in its process.
    monkeypatch.setattr(run.signal, "signal", lambda *_: None)
    monkeypatch.setenv(run.preloaded.FOLDER, "")
    for name in (VARIABLE, "PYTHONDONTWRITEBYTECODE"):
        monkeypatch.delenv(name, raising=False)
    files = ["tests/unit/test_junit.py", "tests/unit/test_torch_roll.py"]
    monkeypatch.chdir(tmp_path)
    paths = [str(run.ROOT / file) for file in files]
    assert run.main(["--junitxml=all.xml", *paths]) == 0
    assert "part 2 of 2" in capsys.readouterr().out
    assert junit.counts(tmp_path / "all.xml") == (10, 0, 0)
