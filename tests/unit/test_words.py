"""Wordings that readers stumble over become fewer: ``tests/words.json`` has the counts."""

from __future__ import annotations

from pathlib import Path

import pytest
import words


def test_counts_are_those_of_the_file() -> None:
    assert not words.differences(words.count(), words.recorded())


@pytest.mark.parametrize("kind", ["pages", "strings"])
def test_users_read_none_of_them(kind: str) -> None:
    assert not [name for name, counts in words.recorded().items() if counts.get(kind)]


@pytest.mark.parametrize(
    ("name", "prose"),
    [
        ("anybody", "nobody waits for it"),
        ("so many", "every so manyth element"),
        ("of which", "loops, of which one is parallel"),
        ("none for none", "The loop. None for none."),
        ("others'", "by others' loads"),
        ("no matter", "no matter which"),
        ("and the like", "divisions and the like"),
        ("for want of", "for want of room"),
        ("told", "it is told later"),
        ("is to be", "if it is to be stored"),
        ("in the place of", "in the place of the loop"),
        ("is none of", "it is none of ours"),
        ("where it took", "5 us where it took 230"),
        ("sees to it", "which sees to that"),
        ("What", "A loop. What a step takes besides."),
    ],
)
def test_a_pattern_finds_its_wording(name: str, prose: str) -> None:
    assert len(words.hits(name, [words.Text(Path("x.py"), 1, prose)])) == 1


@pytest.mark.parametrize(
    ("name", "prose"),
    [
        ("so many", "so many that they spill"),
        ("of which", "loops, one of which is parallel"),
        ("What", "What is it? Cost of a step: what it takes besides."),
    ],
)
def test_a_pattern_leaves_good_wording_alone(name: str, prose: str) -> None:
    assert not words.hits(name, [words.Text(Path("x.py"), 1, prose)])


def test_every_pattern_is_tried() -> None:
    tried = test_a_pattern_finds_its_wording.pytestmark[0].args[1]
    assert [name for name, _ in tried] == list(words.PATTERNS)


def test_docstrings_comments_and_strings_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.py").write_text(
        '"""Nobody reads\n``nobody``."""\n\nx = "nobody"  # Whoever\n# is no\n# matter\n'
        'y = f"is {x} told"\ndef _made(): ...\n'
    )
    monkeypatch.setattr(words, "ROOT", tmp_path)
    monkeypatch.setattr(words, "SOURCES", ("src",))
    words._sources.cache_clear()
    try:
        assert [t.prose for t in words.code()] == ["Nobody reads X.", "Whoever", "is no matter"]
        assert [t.prose for t in words.strings()] == ["nobody", "is X told"]
        assert [hit.excerpt for hit in words.vague_names()] == ["_made"]
    finally:
        words._sources.cache_clear()


def test_pages_are_read_without_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "README.md").write_text("a `nobody`\n\n```\nnobody\n```\n- so\n  many\n")
    (tmp_path / "CHANGELOG.md").write_text("")
    monkeypatch.setattr(words, "ROOT", tmp_path)
    texts = [*words.pages()]
    assert [t.prose for t in texts] == ["a X", "- so many"]
    assert [hit.line for hit in words.hits("so many", texts)] == [6]


def test_a_difference_says_what_to_do() -> None:
    before = {"told": {"code": 2, "pages": 0}, "What": {"code": 1}}
    now = {"told": {"code": 1, "pages": 1}, "What": {"code": 1}}
    raised, fell = words.differences(now, before)
    assert (
        raised == "'told' in pages: 0 -> 1; reword: python -m tests.support.words --show \"told\""
    )
    assert fell == "'told' in code: 2 -> 1; record it: python -m tests.support.words --write"
    assert not words.differences(now, now)
