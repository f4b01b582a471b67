"""Processes that begin with a framework imported."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from pathlib import Path

import preloaded
import pytest
from durations import cpu_seconds

from polyblocks.cache.cache import default_cache


def test_it_is_a_process_of_its_own_that_begins_with_the_framework(run_python):
    code = """
        import os, sys
        ours = any(name.startswith("polyblocks") for name in sys.modules)
        print(os.getpid(), "torch" in sys.modules, ours, __name__, sys.argv)
        print(os.getcwd(), os.environ["GIVEN"], file=sys.stderr)
        """
    found = [run_python(code, "an argument", preloaded="torch", GIVEN=n) for n in (1, 2)]
    pids = set()
    for number, done in enumerate(found, 1):
        pid, *rest = done.stdout.split(" ", 1)
        pids.add(int(pid))
        assert rest == ["True False __main__ ['-c', 'an argument']\n"]
        assert done.stderr == f"{os.getcwd()} {number}\n"
    assert len(pids - {os.getpid()}) == 2


def test_its_time_is_that_of_the_test(run_python):
    before = cpu_seconds()
    code = """
        import time
        while time.process_time() < 0.3: pass
        """
    assert run_python(code, preloaded="python").returncode == 0
    assert cpu_seconds() - before > 0.2


@pytest.mark.parametrize(
    ("code", "status", "said"),
    [
        ("raise ValueError('it is wrong')", 1, "ValueError: it is wrong"),
        ("import sys; sys.exit(7)", 7, ""),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", -15, ""),
        (
            "import atexit, sys; atexit.register(lambda: print('ended', file=sys.stderr))",
            0,
            "ended",
        ),
    ],
)
def test_it_ends_as_python_does(run_python, code, status, said):
    done = run_python(code, preloaded="python")
    assert done.returncode == status
    assert done.stderr.splitlines()[-1:] == ([said] if said else [])


def test_what_takes_too_long_is_killed(run_python, tmp_path):
    code = f"""
        import os, time
        open({str(tmp_path / "pid")!r}, "w").write(str(os.getpid()))
        time.sleep(600)
        """
    with pytest.raises(subprocess.TimeoutExpired, match="timed out after 2 seconds"):
        run_python(code, preloaded="python", limit=2)
    pid = int((tmp_path / "pid").read_text())
    for _ in range(100):
        if not os.path.exists(f"/proc/{pid}"):
            return
        time.sleep(0.05)
    pytest.fail(f"process {pid} lives")


def test_functions_are_compiled_and_run_by_several_threads(run_python):
    code = """
        import os
        import torch
        from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

        f = polyblocks_jit_torch(compile_options={"strict_target": True})(lambda x: x * 3.25)
        print(bool((f(torch.ones(600_000)) == 3.25).all()), len(os.listdir("/proc/self/task")) > 1)
        """
    done = run_python(code, preloaded="torch")
    assert (done.stdout, done.stderr) == ("True True\n", "")


def test_the_cache_is_that_of_the_test(run_python, tmp_path):
    code = "from polyblocks.cache.cache import default_cache; print(default_cache().root)"
    done = run_python(code, preloaded="python", POLYBLOCKS_CACHE_DIR=tmp_path)
    assert done.stdout.strip() == str(tmp_path)
    assert run_python(code, preloaded="python").stdout.strip() == str(default_cache().root)


def test_a_server_that_cannot_be_started_says_why(tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("raise ImportError('there is none')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"with torch can be started: [\s\S]*there is none"):
        preloaded.run("torch", tmp_path, "", (), dict(os.environ), 60)


def test_a_server_ends_with_its_folder_and_is_no_child(tmp_path):
    preloaded.run("python", tmp_path, "", (), dict(os.environ), 60)
    parents = _parents(tmp_path)
    assert parents
    assert os.getpid() not in parents
    (tmp_path / "python.socket").unlink()
    for _ in range(200):
        if not _parents(tmp_path):
            return
        time.sleep(0.05)
    pytest.fail("the server lives")


def _parents(folder: Path) -> set[int]:
    """Of the processes that a folder is an argument of."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended
            if str(folder) in path.read_text():
                lines = path.with_name("status").read_text().splitlines()
                found |= {int(line.split()[1]) for line in lines if line.startswith("PPid:")}
    return found
