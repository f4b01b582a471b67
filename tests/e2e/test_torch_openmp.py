"""Generated code and PyTorch's operators run on one team of threads."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [
    pytest.mark.cpu,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]

PROGRAM = """
import os
import torch
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

@polyblocks_jit_torch(compile_options={"target": "cpu", "strict_target": True, "num_threads": 2})
def scaled(x):
    return x * 3.5

def threads():
    return set(os.listdir("/proc/self/task"))

def runtimes():
    with open("/proc/self/maps") as file:
        names = {os.path.basename(line.split()[-1]) for line in file if "/" in line}
    return sorted(name for name in names if name.startswith(("libgomp", "libiomp", "libomp")))

torch.set_num_threads(2)
x = torch.ones(600_000)
"""


@pytest.mark.extended
def test_there_is_one_runtime_and_one_team(run_python: Callable[..., Any]) -> None:
    done = run_python(
        PROGRAM
        + """
before = runtimes()
x.relu()
eager = threads()
for _ in range(3):
    assert (scaled(x) == 3.5).all()
    x.relu()
print(len(threads() - eager), runtimes() == before, len(before))
""",
        preloaded="torch",
    )
    assert (done.stdout, done.stderr) == ("0 True 1\n", "")


def test_without_pytorch_it_is_llvms(run_python: Callable[..., Any]) -> None:
    done = run_python(
        """
        from polyblocks_cpu import openmp

        assert openmp._of_framework() is None
        found = openmp.symbols()
        assert {name: found[name] for name in openmp.FUNCTIONS} == openmp._own()
        """
    )
    assert (done.returncode, done.stderr) == (0, "")


#: The parent's team does not exist in the child.
FORK = """
import signal

scaled(x)
x.relu()
pid = os.fork()
if pid == 0:
    signal.alarm(60)
    {child}
    os._exit(0 if ok else 1)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), bool((scaled(x) == 3.5).all()))
"""
#: Of an executable of the parent.
INHERITED = "ok = all(v == 3.5 for v in scaled(x).tolist())"
#: What is linked in the child.
LINKED = """
    from polyblocks_cpu import openmp
    given = openmp.symbols()
    ok = {n: given[n] for n in openmp.FUNCTIONS} == openmp._own()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("child", [INHERITED, LINKED])
def test_a_forked_child_waits_for_no_lost_thread(
    run_python: Callable[..., Any], child: str
) -> None:
    done = run_python(PROGRAM + FORK.format(child=child.strip()), preloaded="torch")
    assert (done.stdout, done.stderr) == ("0 True\n", "")
