"""One team of threads runs all of a program: results, checks, forks, and too few cores."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cpu_kernels import compile_text, load, pack
from sweeps import sweep
from tests.support.team_programs import Program, arrays

from polyblocks.artifact import Artifact
from polyblocks.bisect.team import SerialTeam
from polyblocks_cpu import openmp
from polyblocks_cpu.team.barriers import Barriers

SUPPORT = Path(__file__).resolve().parents[1] / "support"
SEEDS = sweep(range(40), 0, 1, extended=range(2, 5))


def outcome(artifact: Artifact, seed: int, threads: int) -> tuple[int, list[bytes]]:
    """The status of a program, and what it leaves in its arguments."""
    executable = load(artifact)
    given = arrays(seed)
    status = executable.entry(pack(given), threads)
    executable.close()
    return status, [array.tobytes() for array in given]


def one_at_a_time(
    artifact: Artifact, seed: int, backwards: bool, monkeypatch: pytest.MonkeyPatch
) -> tuple[int, list[bytes]]:
    """The same by threads of which each runs until the next barrier."""
    team = SerialTeam()
    team.backwards = backwards
    with monkeypatch.context() as patch:
        patch.setattr(openmp, "symbols", team.symbols)
        return outcome(artifact, seed, 3)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_team_computes_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = compile_text(Program(seed).text())
    expected = outcome(artifact, seed, 1)
    for backwards in (False, True):
        assert one_at_a_time(artifact, seed, backwards, monkeypatch) == expected
    for threads in (2, 3, 8):
        for _ in range(5):
            assert outcome(artifact, seed, threads) == expected


@pytest.mark.extended
def test_a_missing_barrier_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of those that are taken out show. Without loops: threads could wait forever in one."""
    found = Barriers.function
    seen = 0
    for seed in range(12):
        text = Program(seed, regions=False).text()
        expected = outcome(compile_text(text), seed, 1)

        def without_one(self: Barriers, body: Any, seed: int = seed) -> None:
            found(self, body)
            if self.before:
                del self.before[random.Random(seed).choice(list(self.before))]

        with monkeypatch.context() as patch:
            patch.setattr(Barriers, "function", without_one)
            artifact = compile_text(text)
        orders = [one_at_a_time(artifact, seed, b, monkeypatch) for b in (False, True)]
        seen += any(result != expected for result in orders)
    assert seen >= 6


#: ``%y`` is checked between two kernels, and in the second one.
CHECKED = """
func.func @main(%x: memref<64xf32>, %y: memref<64xf32>, %n: memref<64xi64>) {
  affine.parallel (%i) = (0) to (64) {
    %v = affine.load %x[%i] : memref<64xf32>
    %w = arith.addf %v, %v : f32
    affine.store %w, %y[%i] : memref<64xf32>
  } {polyblocks.kernel = "double", polyblocks.level = "team"}
  %limit = arith.constant 100.0 : f32
  %last = affine.load %y[63] : memref<64xf32>
  %small = arith.cmpf olt, %last, %limit : f32
  cf.assert %small, "y must be small"
  affine.parallel (%i) = (0) to (64) {
    %k = affine.load %n[%i] : memref<64xi64>
    %zero = arith.constant 0 : i64
    %fine = arith.cmpi sge, %k, %zero : i64
    cf.assert %fine, "n must not be negative"
    %v = affine.load %y[63 - %i] : memref<64xf32>
    affine.store %v, %x[%i] : memref<64xf32>
  } {polyblocks.kernel = "turn", polyblocks.level = "team"}
  affine.parallel (%i) = (0) to (64) {
    %v = affine.load %x[63 - %i] : memref<64xf32>
    affine.store %v, %y[%i] : memref<64xf32>
  } {polyblocks.kernel = "back", polyblocks.level = "team"}
  return
}
"""


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_a_failed_check_leaves_no_thread_waiting(threads: int) -> None:
    artifact = compile_text(CHECKED)
    messages = artifact.manifest["checks"]
    executable = load(artifact)

    def status(last: float, number: int) -> int:
        x, y = np.full(64, last, np.float32), np.zeros(64, np.float32)
        n = np.full(64, number, np.int64)
        return executable.entry(pack([x, y, n]), threads)

    for _ in range(20):
        assert status(1.0, 0) == 0
        assert messages[status(99.0, 0) - 1] == "y must be small"
        assert messages[status(1.0, -1) - 1] == "n must not be negative"


def test_a_check_in_a_loop_ends_it() -> None:
    text = """
    func.func @main(%x: memref<64xf32>, %n: memref<1xi32>) {
      scf.while : () -> () {
        %true = arith.constant true
        scf.condition(%true)
      } do {
        affine.parallel (%i) = (0) to (64) {
          %v = affine.load %x[%i] : memref<64xf32>
          %w = arith.addf %v, %v : f32
          affine.store %w, %x[%i] : memref<64xf32>
        } {polyblocks.kernel = "double", polyblocks.level = "team"}
        %k = affine.load %n[0] : memref<1xi32>
        %one = arith.constant 1 : i32
        %less = arith.subi %k, %one : i32
        affine.store %less, %n[0] : memref<1xi32>
        %none = arith.constant 0 : i32
        %more = arith.cmpi sgt, %less, %none : i32
        cf.assert %more, "enough"
        scf.yield
      } attributes {polyblocks.region = "loop"}
      return
    }
    """
    executable = load(compile_text(text))
    for threads in (1, 2, 8):
        x, n = np.ones(64, np.float32), np.array([5], np.int32)
        assert executable.entry(pack([x, n]), threads) == 1
        assert (x == 32).all()
        assert n[0] == 0


def chain(count: int) -> str:
    """Transposes back and forth: all of what a thread reads the others wrote."""
    steps = []
    for number in range(count):
        source, target = ("%x", "%y") if number % 2 == 0 else ("%y", "%x")
        steps.append(f"""
        affine.parallel (%i) = (0) to (64) {{
          affine.for %j = 0 to 64 {{
            %v = affine.load {source}[%j, %i] : memref<64x64xf32>
            affine.store %v, {target}[%i, %j] : memref<64x64xf32>
          }}
        }} {{polyblocks.kernel = "k", polyblocks.level = "team"}}""")
    body = "\n".join(steps)
    return f"func.func @main(%x: memref<64x64xf32>, %y: memref<64x64xf32>) {{ {body} return }}"


def test_more_threads_than_cores_are_slow_and_not_stuck() -> None:
    executable = load(compile_text(chain(50)))
    x = np.arange(4096, dtype=np.float32).reshape(64, 64)
    y = np.zeros_like(x)
    before = x.copy()

    def seconds(threads: int, calls: int) -> float:
        begin = time.perf_counter()
        for _ in range(calls):
            assert executable.entry(pack([x, y]), threads) == 0
        assert (x == before).all()
        return (time.perf_counter() - begin) / calls

    seconds(8, 2)
    # 50 barriers: a spinning one would take a time slice of milliseconds at each.
    assert min(seconds(8, 5) for _ in range(5)) < 0.2


def test_several_callers_at_once() -> None:
    executable = load(compile_text(chain(10)))
    wrong: list[int] = []

    def work(number: int) -> None:
        x = np.full((64, 64), number, np.float32) + np.arange(64, dtype=np.float32)
        y, before = np.zeros_like(x), x.copy()
        for _ in range(20):
            if executable.entry(pack([x, y]), 2) != 0 or not (x == before).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


COMMON = f"""
import os, signal, sys
sys.path[:0] = {[str(SUPPORT), str(SUPPORT.parent / "unit"), str(SUPPORT.parents[1])]}
import numpy as np
from cpu_kernels import compile_text, load, pack
from test_cpu_team import chain

signal.alarm(100)
executable = load(compile_text(chain(7)))
x = np.arange(4096, dtype=np.float32).reshape(64, 64)

def fine(threads):
    given, y = x.copy(), np.zeros_like(x)
    return executable.entry(pack([given, y]), threads) == 0 and (y == x.T).all()
"""

FORKED = """
assert fine(2)
child = os.fork()
if child == 0:
    signal.alarm(60)
    os._exit(0 if fine(2) and fine(1) else 1)
assert fine(2)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print("fine")
"""

#: Called from inside of a region of the same runtime, on each of its threads.
NESTED = """
import ctypes

from polyblocks_cpu import openmp
assert fine(2)
good = []
region = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: good.append(fine(1) and fine(2)))
kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
parallel = kind(openmp.symbols()["GOMP_parallel"])
parallel(ctypes.cast(region, ctypes.c_void_p), None, 2, 0)
print("fine" if good == [True, True] else good)
"""


#: The condition is that a denormal number is above zero: the caller takes it for zero.
ROUNDED = """
import torch
text = '''
func.func @main(%x: memref<64x64xf32>, %y: memref<64x64xf32>, %n: memref<1xi32>) {
  %tiny = affine.load %x[0, 0] : memref<64x64xf32>
  %half = arith.constant 0.5 : f32
  %zero = arith.constant 0.0 : f32
  scf.while : () -> () {
    %less = arith.mulf %tiny, %half : f32
    %c = arith.cmpf ogt, %less, %zero : f32
    %k = affine.load %n[0] : memref<1xi32>
    %none = arith.constant 0 : i32
    %more = arith.cmpi sgt, %k, %none : i32
    %both = arith.andi %c, %more : i1
    scf.condition(%both)
  } do {
    affine.parallel (%i) = (0) to (64) {
      %v = affine.load %y[0, %i] : memref<64x64xf32>
      affine.store %v, %y[1, %i] : memref<64x64xf32>
    } {polyblocks.kernel = "k", polyblocks.level = "team"}
    %k = affine.load %n[0] : memref<1xi32>
    %one = arith.constant 1 : i32
    %left = arith.subi %k, %one : i32
    affine.store %left, %n[0] : memref<1xi32>
    scf.yield
  } attributes {polyblocks.region = "loop"}
  return
}
'''
executable = load(compile_text(text))
y = np.ones((64, 64), np.float32)

def left():
    n = np.array([3], np.int32)
    x = np.full((64, 64), np.float32(1.2e-38))
    assert executable.entry(pack([x, y, n]), 2) == 0
    return int(n[0])

found = [left()]
if torch.set_flush_denormal(True):
    found += [left() for _ in range(20)]
    torch.set_flush_denormal(False)
else:
    found += [3] * 20
print("fine" if found == [0] + [3] * 20 else found)
"""


WITH_TORCH = "import torch\ntorch.ones(600_000).relu()\n"
CODES = {"forked": FORKED, "nested": NESTED, "rounded": ROUNDED}


@pytest.mark.extended
@pytest.mark.parametrize("runtime", sweep(["", WITH_TORCH], WITH_TORCH))
@pytest.mark.parametrize("code", CODES.values(), ids=CODES)
def test_elsewhere(run_python: Callable[..., Any], code: str, runtime: str) -> None:
    if code == FORKED and not hasattr(os, "fork"):
        pytest.skip("no fork on this system")
    done = run_python(runtime + COMMON + code, preloaded="torch" if runtime else "")
    assert done.stdout.strip() == "fine", done.stderr


@pytest.mark.parametrize(
    "limit", sweep(["OMP_THREAD_LIMIT", "KMP_DEVICE_THREAD_LIMIT"], "OMP_THREAD_LIMIT")
)
def test_a_smaller_team_than_asked_for(run_python: Callable[..., Any], limit: str) -> None:
    code = COMMON + "print('fine' if fine(4) and fine(2) else 'wrong')"
    done = run_python(code, **{limit: 1})
    assert done.stdout.strip() == "fine", done.stderr


def test_profiles_add_up() -> None:
    executable = load(compile_text(chain(4), profile=True))
    x, y = np.ones((2, 64, 64), np.float32)
    for _ in range(3):
        assert executable.entry(pack([x, y]), 2) == 0
    whole, *rows = executable.profile()
    assert [row["calls"] for row in (whole, *rows)] == [3] * 5
    assert whole["seconds"] >= sum(row["seconds"] for row in rows) - 1e-7
    assert all(0 < row["minimum"] < 1 for row in rows)


def test_the_region_is_left_out_where_it_does_not_pay() -> None:
    artifact = compile_text(chain(1))
    assert b"main_team" not in artifact.blobs["code.o"]
    assert b"main_team" in compile_text(chain(2)).blobs["code.o"]
