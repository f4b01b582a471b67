"""Files of results in JUnit's form, as ``pytest --junitxml`` writes them."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from pathlib import Path


def merge(files: Iterable[Path], into: Path) -> None:
    """Write the suites of several files into one."""
    root = ElementTree.Element("testsuites")
    for file in files:
        root.extend(ElementTree.parse(file).getroot().iter("testsuite"))
    ElementTree.ElementTree(root).write(into, encoding="utf-8", xml_declaration=True)


def counts(file: Path) -> tuple[int, int, int]:
    """Tests that passed, failed and were skipped, of all suites."""
    passed = failed = skipped = 0
    for suite in ElementTree.parse(file).getroot().iter("testsuite"):
        total, failures, errors, left_out = (
            int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")
        )
        passed += total - failures - errors - left_out
        failed += failures + errors
        skipped += left_out
    return passed, failed, skipped
