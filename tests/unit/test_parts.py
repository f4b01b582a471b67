"""Parts of the suite: which frameworks a file imports, and how files are distributed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from parts import FEW, GUESS, START, Part, end, frameworks_of, plan, split

ROOT = Path(__file__).resolve().parents[2]
RUN = [sys.executable, str(ROOT / "tests" / "run.py")]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import os", set()),
        ("import torch.nn as nn", {"torch"}),
        ("from polyblocks_torch import polyblocks_jit_torch", {"torch"}),
        ("from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax", {"jax"}),
        ("from polyblocks import tf_polyblocks_compiler", {"tensorflow"}),
        ("pytest.importorskip('tensorflow')", {"tensorflow"}),
        ("def f():\n    import jax\n    import torch", {"torch", "jax"}),
        ("import jax_bodies", {"jax"}),  # of tests/support
        ("from bench.gpu_static import build", {"torch"}),  # of what it imports
        ("from bench import ceilings", set()),
        ("polyblocks.compile(f, frontend='tf')", {"tensorflow"}),
        ("run_python('import jax')", set()),
        ("import polyblocks.torchlike", set()),
    ],
)
def test_frameworks_that_a_file_imports(tmp_path: Path, source: str, expected: set[str]) -> None:
    (tmp_path / "test_it.py").write_text(source)
    assert frameworks_of(tmp_path / "test_it.py") == expected


def test_files_of_the_same_frameworks_come_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b", "c", "d", "e"):
        Path(f"{name}.py").write_text("import torch" if name < "d" else "import os")
    found = split(["a.py", "b.py", "c.py", "d.py", "e.py"], {"a.py": 6, "b.py": 3, "c.py": 2}, 8)
    assert found == [
        Part(("torch",), ("a.py",), 6),
        Part(("torch",), ("b.py", "c.py"), 5),
        Part((), ("d.py", "e.py"), 2 * GUESS),
    ]
    assert [part.label for part in found] == ["torch", "torch", "core"]


def test_processes_end_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = [f"{number}.py" for number in range(30)]
    for name in files:
        Path(name).write_text("import torch" if name < "2" else "import os")
    durations = dict.fromkeys(files, 4.0) | {"0.py": 40.0}
    parts = plan(files, durations, 2)
    assert sorted(file for part in parts for file in part.files) == sorted(files)
    assert end(parts, 2) <= 1.1 * (sum(durations.values()) + START * len(parts)) / 2
    assert end([Part((), ("a",), 3.0), Part((), ("b",), 2.0), Part((), ("c",), 2.0)], 2) == (
        4.0 + 2 * START
    )


def test_few_files_go_with_those_that_import_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("both.py").write_text("import torch, jax")
    Path("few.py").write_text("import torch")
    Path("none.py").write_text("import os")
    files, durations = ["both.py", "few.py", "none.py"], {"both.py": 9, "few.py": 3, "none.py": 1}
    both = ("jax", "torch")
    assert split(files, durations, 50) == [
        Part(both, ("both.py", "few.py"), 12),
        Part((), ("none.py",), 1),
    ]
    assert len(split(files, durations | {"few.py": FEW}, 50)) == 3


def test_a_long_file_is_a_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.py").write_text("import os")
    assert split(["a.py"], {"a.py": 60}, 8) == [Part((), ("a.py",), 60)]


@pytest.mark.extended  # parses all tests
def test_every_file_is_in_one_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    files = sorted(str(path) for path in Path("tests").rglob("test_*.py"))
    assert sorted(file for part in split(files, {}, 40) for file in part.files) == files


@pytest.mark.extended
def test_run_selects_and_fails_as_pytest_does() -> None:
    def status(*arguments: str) -> tuple[int, str]:
        done = subprocess.run([*RUN, *arguments], capture_output=True, text=True, timeout=300)
        return done.returncode, done.stdout

    file = "tests/unit/test_durations.py"
    chosen = ("test_children_count", "test_most_of_the_files_that_are_known_are_there")
    code, output = status(*(f"{file}::{name}" for name in chosen))
    assert code == 0
    assert "part 1 of 1: core" in output
    assert output.endswith("--- all parts\n2 passed\n")
    assert status(file, "-k", "no_test_is_called_so")[0] == 5
    # A value that is the name of a folder of tests selects nothing.
    assert status(file, "-k", "tests/unit")[0] == 5
    code, output = status(f"{file}::test_that_is_not_there")
    assert code == 4
    assert "not found" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--deselect", "tests/unit"], "write --deselect=tests/unit, or name what selects tests"),
        (["--report-log=x.json"], "--report-log=x.json: each part would write the file"),
    ],
)
def test_arguments_that_parts_cannot_follow(arguments: list[str], message: str) -> None:
    done = subprocess.run([*RUN, *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())


def run_module() -> Any:
    spec = importlib.util.spec_from_file_location("run", ROOT / "tests" / "run.py")
    assert spec is not None
    assert spec.loader is not None
    run = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run)
    return run


def test_a_folder_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_module()
    monkeypatch.chdir(ROOT)
    rest = set(run.files_of([])) - set(run.others(Path("tests/extended")))
    assert rest == {str(p.relative_to(ROOT)) for p in ROOT.glob("tests/extended/test_*.py")}
    assert len(rest) > 20


def test_two_commands_run_each_test_once(monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_module()
    monkeypatch.chdir(ROOT)
    folder = Path("tests/extended")
    extended, others = set(run.extended(folder)), set(run.others(folder))
    both = extended & others
    assert extended | others == set(run.files_of([]))
    assert "tests/e2e/test_torch_factorizations.py" in both
    assert "tests/unit/test_words.py" not in both


def test_a_part_that_dies_is_a_failure() -> None:
    folder = ROOT / "tests" / "unit"
    died = folder / f"test_died_{os.getpid()}.py"
    died.write_text("import os\ndef test_it(): os._exit(0)\n")
    try:
        done = subprocess.run([*RUN, str(died)], capture_output=True, text=True, timeout=300)
    finally:
        died.unlink()
    assert done.returncode == 1
    assert "ended early: exit status 0" in done.stdout


def test_a_file_that_takes_no_time_is_a_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.py").write_text("import os")
    assert split(["a.py"], {"a.py": 0.0}, 8) == [Part((), ("a.py",), 0)]
