"""Of products of parameters, which combinations `make test` takes."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import pytest
from each_choice import cover, pairs

ROOT = Path(__file__).resolve().parents[2]


def product(**values: int) -> list[dict[str, int]]:
    """All combinations of so many values each."""
    ranges = [range(count) for count in values.values()]
    return [dict(zip(values, c, strict=True)) for c in itertools.product(*ranges)]


@pytest.mark.parametrize(
    "values", [{"a": 1}, {"a": 5}, {"a": 3, "b": 11}, {"a": 4, "b": 4}, {"a": 2, "b": 5, "c": 3}]
)
def test_every_value_is_kept_by_as_few_as_possible(values: dict[str, int]) -> None:
    combinations = product(**values)
    kept = [combinations[k] for k in cover(combinations)]
    assert len(kept) == max(values.values())
    for name, count in values.items():
        assert {c[name] for c in kept} == set(range(count))


def test_a_value_that_occurs_once_is_kept() -> None:
    """Not every combination is there: some are slow by another mark."""
    combinations = [{"a": 0, "b": 0}, {"a": 0, "b": 1}, {"a": 1, "b": 0}, {"a": 1, "b": 0}]
    assert cover(combinations) == [0, 1, 2]
    assert cover([]) == []


def test_values_of_others_are_covered() -> None:
    combinations = product(a=3, b=2)
    assert cover(combinations, [{"a": 0, "b": 0}, {"a": 1, "b": 1}]) == [4]
    assert cover(combinations, combinations) == []


def test_every_two_values_of_two_parameters_occur_together() -> None:
    combinations = product(a=2, b=5, c=3, d=4)
    kept = [combinations[k] for k in cover([pairs(values) for values in combinations])]
    assert len(kept) <= 25  # of 120; 5 * 4 at least
    for (a, b), count in {("a", "b"): 10, ("b", "c"): 15, ("b", "d"): 20, ("c", "d"): 12}.items():
        assert len({(values[a], values[b]) for values in kept}) == count
    assert pairs({"a": 1}) == {"a": 1}


def test_the_others_are_slow(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        f"import sys; sys.path[:0] = [{str(ROOT / 'tests/support')!r}]\n"
        "import pytest, each_choice\n"
        "@pytest.hookimpl(tryfirst=True)\n"
        "def pytest_collection_modifyitems(items): each_choice.mark_slow(items)\n"
    )
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "@pytest.mark.each_choice\n"
        "@pytest.mark.parametrize('a', [0, pytest.param(1, marks=pytest.mark.slow), 2])\n"
        "@pytest.mark.parametrize('b, c', [(0, 1), (0, 2), (1, 2)])\n"
        "def test_marked(a, b, c): pass\n"
        "@pytest.mark.parametrize('a', [0, 1])\n"
        "@pytest.mark.parametrize('b', [0, 1])\n"
        "def test_not(a, b): pass\n"
        "@pytest.mark.each_choice\n"
        "@pytest.mark.parametrize('a', [0, pytest.param(1, marks=pytest.mark.extended)])\n"
        "@pytest.mark.parametrize('b', [0, 1])\n"
        "def test_value(a, b): pass\n"
        "@pytest.mark.each_choice('extended')\n"
        "@pytest.mark.parametrize('a', [0, 1])\n"
        "@pytest.mark.parametrize('b', [0, 1])\n"
        "def test_rest(a, b): pass\n"
        "@pytest.mark.extended\n"
        "@pytest.mark.each_choice\n"
        "@pytest.mark.parametrize('a', [0, 1])\n"
        "@pytest.mark.parametrize('b', [0, 1])\n"
        "def test_all(a, b): pass\n"
        "@pytest.mark.each_choice\n"
        "@pytest.mark.parametrize('a', [0, pytest.param(1, marks=pytest.mark.slow)])\n"
        "@pytest.mark.parametrize('b', [0, 1])\n"
        "@pytest.mark.parametrize('c', [0, 1])\n"
        "def test_pairs(a, b, c): pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null"]

    def chosen(marks: str) -> list[str]:
        done = subprocess.run(
            [*command, f"--rootdir={tmp_path}", "--collect-only", "-m", marks, str(tmp_path)],
            capture_output=True, text=True, timeout=60, cwd=tmp_path,
        )  # fmt: skip
        return [line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line]

    assert chosen("not slow and not extended") == [
        "test_marked[0-1-0]", "test_marked[0-2-2]", "test_marked[1-2-0]",
        *(f"test_not[{b}-{a}]" for b in (0, 1) for a in (0, 1)),
        "test_value[0-0]", "test_value[1-0]", "test_rest[0-0]", "test_rest[1-1]",
        "test_pairs[0-0-0]", "test_pairs[1-1-0]",
    ]  # fmt: skip
    assert chosen("not slow and extended") == [
        "test_value[0-1]",
        "test_rest[0-1]",
        "test_rest[1-0]",
        "test_all[0-0]",
        "test_all[1-1]",
    ]
    assert chosen("slow and not exhaustive") == [
        *("test_marked[0-1-1]", "test_marked[0-1-2]", "test_marked[0-2-0]", "test_marked[0-2-1]"),
        *("test_marked[1-2-1]", "test_marked[1-2-2]", "test_value[1-1]", "test_all[0-1]"),
        *("test_all[1-0]", "test_pairs[0-1-1]", "test_pairs[1-0-1]"),
    ]
    rest = chosen("exhaustive")
    assert rest == [f"test_pairs[{n}]" for n in ("0-0-1", "0-1-0", "1-0-0", "1-1-1")]
