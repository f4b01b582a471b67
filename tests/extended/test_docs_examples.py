"""Every block of Python in README.md and the documentation runs, or is known not to."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import doc_blocks
import pytest

pytestmark = [pytest.mark.cpu, pytest.mark.isolated]

#: What is imported where they run, which decides in which process; see tests/support/parts.py.
FRAMEWORKS = ("torch", "jax", "tensorflow")
ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
WITH_BLOCKS = [p for p in PAGES if doc_blocks.blocks(p.read_text())]
#: Those that compile more; make test-all runs them.
SLOW = {
    "aot.md",
    "cache.md",
    "coming-from.md",
    "gpu.md",
    "performance.md",
    "pytorch.md",
    "tutorial-gpu.md",
    "tutorial-ship.md",
}


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=pytest.mark.slow) if p.name in SLOW else p for p in WITH_BLOCKS],
    ids=lambda p: p.name,
)
def test_a_page_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # What a page shows of logging is not meant for the tests behind it.
    logger = logging.getLogger("polyblocks")
    for name in ("level", "propagate", "disabled"):
        monkeypatch.setattr(logger, name, getattr(logger, name))
    expected = [b for b in doc_blocks.blocks(path.read_text()) if not (b.signature or b.fragment)]
    assert doc_blocks.run_page(path, tmp_path) == len(expected)


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_every_block_is_seen_and_every_fragment_has_a_reason(path: Path) -> None:
    text = path.read_text()
    found = doc_blocks.blocks(text)
    assert len(found) == len(re.findall(r"^ *```py", text, re.MULTILINE))
    marks = re.findall(r"^ *<!-- (before|raises|fragment)", text, re.MULTILINE)
    assert len(marks) == sum(bool(m) for b in found for m in (b.before, b.raises, b.fragment))
    for block in found:
        assert not block.fragment or len(block.fragment.split()) > 2, f"{path.name}:{block.line}"


def page(folder: Path, *lines: str) -> Path:
    path = folder / "page.md"
    path.write_text("\n".join(lines))
    return path


def test_blocks_share_their_names_and_what_the_text_leaves_out(tmp_path: Path) -> None:
    first = ["<!-- before:", "a = 1", "-->", "```python", "b = a + 1", "```"]
    second = ["!!! note", "", "    ```python", "    assert b == 2", "    ```"]
    assert doc_blocks.run_page(page(tmp_path, *first, "", *second), tmp_path) == 2


def test_a_block_that_fails_names_its_line(tmp_path: Path) -> None:
    path = page(tmp_path, "text", "", "```python", "1 / 0", "```")
    with pytest.raises(AssertionError, match="page.md:4 does not run: ZeroDivisionError"):
        doc_blocks.run_page(path, tmp_path)


def test_an_error_is_the_one_that_is_named(tmp_path: Path) -> None:
    lines = ["<!-- raises: ZeroDivisionError -->", "```python", "1 / 0", "```"]
    assert doc_blocks.run_page(page(tmp_path, *lines), tmp_path) == 1
    lines[2] = "1 / 1"
    with pytest.raises(AssertionError, match="page.md:3: no error instead of ZeroDivisionError"):
        doc_blocks.run_page(page(tmp_path, *lines), tmp_path)


def test_a_fragment_cannot_run(tmp_path: Path) -> None:
    lines = ["<!-- fragment: of no whole -->", "```python", "unknown()", "```"]
    assert doc_blocks.run_page(page(tmp_path, *lines), tmp_path) == 0
    lines[2] = "known = 1"
    with pytest.raises(AssertionError, match="page.md:3 runs: take the mark"):
        doc_blocks.run_page(page(tmp_path, *lines), tmp_path)


def test_a_signature_is_no_block_to_run(tmp_path: Path) -> None:
    lines = ["```python", "hook(a: int) -> str", "```"]
    assert doc_blocks.run_page(page(tmp_path, *lines), tmp_path) == 0


def test_two_marks_of_a_kind_are_an_error() -> None:
    mark = "<!-- before: a = 1 -->\n"
    with pytest.raises(ValueError, match="two comments say 'before': 'a = 1'"):
        doc_blocks.blocks(f"{mark}{mark}```python\na\n```\n")
