"""Eight processes on one cache: one killed in the middle, one entry damaged, all results right."""

from __future__ import annotations

import collections
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sweeps import sweep

from polyblocks.cache.cache import Cache, Entry, cache_key

pytestmark = [pytest.mark.cpu, pytest.mark.isolated]

PROCESSES = 8
#: Those that import a framework, which takes longer than all else that they do.
OF_FRAMEWORKS = 4
PROGRAMS = 3

WORKER = """
import os, pathlib, sys, time
from polyblocks.artifact import Artifact
from polyblocks.cache.cache import Cache, cache_key
from polyblocks.driver import cached
from polyblocks.isolation.isolation import run_isolated

folder = pathlib.Path(sys.argv[1])
cache = Cache(folder / "cache")

def log(*words):
    with open(folder / "log", "a") as file:
        file.write(" ".join(map(str, words)) + "\\n")

def build(number):
    owner = os.getpid()
    def job():
        log("begin", number, owner)
        time.sleep(float(sys.argv[2]))
        log("end", number, owner)
        return Artifact({"kind": "plan", "plan": number * 11}, {"b": bytes(9000)}).to_bytes()
    return lambda: Artifact.from_bytes(run_isolated(job))

(folder / f"ready-{os.getpid()}").touch()
while not (folder / "go").exists():
    time.sleep(0.002)
for number in range(int(sys.argv[3])):
    artifact = cached(cache_key([str(number)]), build(number), cache=cache)
    print(artifact.manifest["plan"], len(artifact.blobs["b"]))
"""

#: The same through a framework: three functions, compared with what the framework makes of them.
FRAMEWORK_WORKER = """
import os, pathlib, sys, time
import numpy as np
from polyblocks import events
{preamble}

folder = pathlib.Path(sys.argv[1])
os.environ["POLYBLOCKS_CACHE_DIR"] = str(folder / "cache")

def listen(event):
    if event.kind in ("cache-miss", "compile-begin", "compile-end"):
        with open(folder / "log", "a") as file:
            file.write(f"{{event.kind}} {{current}} {{os.getpid()}}\\n")

x = array(np.sin(np.arange(1200, dtype=np.float32)).reshape(30, 40))
expected = [f(x) for f in functions]
(folder / f"ready-{{os.getpid()}}").touch()
while not (folder / "go").exists():
    time.sleep(0.002)
for current, function in enumerate(functions):
    options = {{"target": "cpu", "strict_target": True}}
    with events.listening(listen):
        result = jit(function, compile_options=options)(x)
    np.testing.assert_allclose(np.asarray(result), np.asarray(expected[current]), 1e-5, 1e-6)
    print(current * 11, 9000)
"""

PREAMBLES = {
    "torch": """
import torch
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch as jit
array = torch.tensor
functions = [
    lambda x: torch.relu(x) + 1,
    lambda x: (x * x).sum(1),
    lambda x: torch.nn.functional.softmax(x, -1),
]
""",
    "jax": """
import jax
from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax as jit
array = jax.numpy.asarray
functions = [
    lambda x: jax.nn.relu(x) + 1,
    lambda x: (x * x).sum(1),
    lambda x: jax.nn.softmax(x, -1),
]
""",
    "tensorflow": """
import tensorflow as tf
from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf as jit
array = tf.constant
functions = [
    lambda x: tf.nn.relu(x) + 1,
    lambda x: tf.reduce_sum(x * x, 1),
    lambda x: tf.nn.softmax(x, -1),
]
""",
}

EXPECTED = "".join(f"{number * 11} 9000\n" for number in range(PROGRAMS))


class Fleet:
    """Processes that start at the same moment on the cache below ``folder``."""

    def __init__(
        self, folder: Path, seconds: float, worker: str = WORKER, count: int = PROCESSES
    ) -> None:
        self.folder = folder
        for old in [*folder.glob("ready-*"), folder / "go", folder / "log"]:
            old.unlink(missing_ok=True)
        arguments = [str(folder), str(seconds), str(PROGRAMS)]
        self.processes = [
            subprocess.Popen(
                [sys.executable, "-c", worker, *arguments],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0"},
            )
            for _ in range(count)
        ]
        wait_until(lambda: len(list(folder.glob("ready-*"))) == count)
        (folder / "go").touch()

    def log(self) -> list[list[str]]:
        path = self.folder / "log"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def finish(self) -> list[tuple[int, str, str]]:
        """Exit status, standard output and standard error of each process."""
        results = []
        for process in self.processes:
            out, error = process.communicate(timeout=240)
            results.append((process.returncode, out, error))
        return results


def wait_until(condition) -> None:
    deadline = time.monotonic() + 240
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def programs(cache: Cache) -> list[Entry]:
    """The entries but for the helpers that call programs, of which some frameworks have one."""
    return [e for e in cache.entries() if e.read().manifest["kind"] != "helper"]


def cache_is_clean(cache: Cache) -> None:
    assert cache.verify() == []
    assert len(programs(cache)) == PROGRAMS
    assert list((cache.root / "tmp").iterdir()) == []


@pytest.mark.extended
def test_processes_share_one_cache(tmp_path):
    cache = Cache(tmp_path / "cache")

    # An empty cache; the first one that compiles is killed while it does.
    fleet = Fleet(tmp_path, seconds=0.3)
    wait_until(fleet.log)
    _, number, victim = fleet.log()[0]
    os.kill(int(victim), signal.SIGKILL)
    results = fleet.finish()
    assert sorted(results) == [(-signal.SIGKILL, "", "")] + [(0, EXPECTED, "")] * (PROCESSES - 1)
    ended = collections.Counter(n for word, n, _ in fleet.log() if word == "end")
    assert ended == {str(n): 1 for n in range(PROGRAMS)}  # nothing twice, and the child died too
    assert [n for word, n, _ in fleet.log() if word == "begin"].count(number) == 2
    cache_is_clean(cache)
    assert {e.key for e in cache.entries()} == {cache_key([str(n)]) for n in range(PROGRAMS)}
    # The victim left its lock file, which nobody minds.
    assert len(list((cache.root / "locks").iterdir())) <= 1

    # One entry is overwritten with noise: compiled again, by one, and nobody sees an error.
    entry = programs(cache)[1]
    entry.path.write_bytes(random.Random(5).randbytes(20_000))
    assert [bad.path for bad in cache.verify()] == [entry.path]
    fleet = Fleet(tmp_path, seconds=0.05)
    assert fleet.finish() == [(0, EXPECTED, "")] * PROCESSES
    assert [word for word, *_ in fleet.log()] == ["begin", "end"]
    cache_is_clean(cache)

    # Warm: nothing is compiled.
    fleet = Fleet(tmp_path, seconds=0.05)
    assert fleet.finish() == [(0, EXPECTED, "")] * PROCESSES
    assert fleet.log() == []


@pytest.mark.extended
@pytest.mark.parametrize("when", sweep([0.0, 0.005, 0.03], 0.0, 0.03))
def test_processes_killed_at_any_moment_leave_a_clean_cache(tmp_path, when):
    fleet = Fleet(tmp_path, seconds=0.001)
    time.sleep(when)
    for process in fleet.processes[:-1]:
        process.kill()
    status, out, error = fleet.finish()[-1]
    assert (status, out, error) == (0, EXPECTED, "")
    assert Cache(tmp_path / "cache").verify() == []


@pytest.mark.slow
@pytest.mark.parametrize("framework", PREAMBLES)
def test_processes_with_a_framework_share_one_cache(tmp_path, framework):
    pytest.importorskip(framework)
    worker = FRAMEWORK_WORKER.format(preamble=PREAMBLES[framework])
    cache = Cache(tmp_path / "cache")

    fleet = Fleet(tmp_path, 0, worker, OF_FRAMEWORKS)
    wait_until(lambda: any(word == "compile-begin" for word, *_ in fleet.log()))
    victim = next(pid for word, _, pid in fleet.log() if word == "compile-begin")
    os.kill(int(victim), signal.SIGKILL)
    results = fleet.finish()
    assert [r for r in results if r[0] == -signal.SIGKILL] == [(-signal.SIGKILL, "", "")]
    assert [r for r in results if r[0] == 0] == [(0, EXPECTED, "")] * (OF_FRAMEWORKS - 1)
    ended = [(n, pid) for word, n, pid in fleet.log() if word == "compile-end"]
    assert len(ended) == PROGRAMS
    cache_is_clean(cache)

    entry = programs(cache)[1]
    entry.path.write_bytes(random.Random(5).randbytes(20_000))
    fleet = Fleet(tmp_path, 0, worker, count=2)
    assert fleet.finish() == [(0, EXPECTED, "")] * 2
    assert [word for word, *_ in fleet.log()] == ["cache-miss", "compile-begin", "compile-end"]
    cache_is_clean(cache)
