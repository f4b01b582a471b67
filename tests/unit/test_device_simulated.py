"""Builds for the simulator as programs: through ``entry``, ``polyblocks.load`` and reports."""

from __future__ import annotations

import ctypes
import struct

import numpy as np
import pytest
from gpu_kernels import program

from polyblocks import driver, mlir
from polyblocks.artifact import Artifact
from polyblocks.errors import ExecutionError
from polyblocks.options import CompileOptions
from polyblocks.registry.registry import get_registry
from polyblocks.reports.report import Report
from polyblocks.runtime.launch import bind
from polyblocks.runtime.numpy_arrays import NumpyArrays
from polyblocks.simt.simulated import SimulatedExecutable, chip_of

ARCHS = {"nvgpu": "sm_90a", "amdgpu": "gfx1100"}

DOUBLE = """
  %i = gpu.thread_id x
  %v = memref.load %x[%i] : memref<128xf32>
  %w = arith.addf %v, %v : f32
  memref.store %w, %o[%i] : memref<128xf32>
"""
BEYOND = DOUBLE.replace("memref.store %w, %o[%i]", "memref.store %w, %o[%j]").replace(
    "%w =", "%one = arith.constant 1 : index\n  %j = arith.addi %i, %one : index\n  %w ="
)
CHECKED = """
  %i = gpu.thread_id x
  %v = memref.load %x[%i] : memref<128xf32>
  %zero = arith.constant 0.0 : f32
  %ok = arith.cmpf oge, %v, %zero : f32
  cf.assert %ok, "an index is out of range"
  memref.store %v, %o[%i] : memref<128xf32>
"""
UNWRITTEN = (
    CHECKED.replace("%v =", "%w = memref.load %o[%i] : memref<128xf32>\n  %v =")
    .replace("store %v", "store %s")
    .replace("cf.assert", "%s = arith.addf %v, %w : f32\n  cf.assert")
)


def build(body: str, target: str) -> Artifact:
    """Compile a kernel for the simulator."""
    memrefs = {"x": "memref<128xf32>", "o": "memref<128xf32>"}
    options = CompileOptions.from_dict({"target": target, "arch": ARCHS[target], "simulate": True})
    hook = get_registry().target(target).hook
    description = hook.describe_target(options=options)
    module = mlir.parse(program(body, memrefs, grid=1))
    lowered = hook.lower_program(module=module, target=description, options=options)
    lowered.manifest.setdefault("checks", [])
    for row, name, role in zip(
        lowered.manifest["arguments"][:2], "xo", ("input", "output"), strict=True
    ):
        row.update(name=name, role=role, updates=None)
    lowered.manifest.update(target=target, arch=ARCHS[target], name="f")
    return Artifact.from_bytes(lowered.to_bytes())


@pytest.fixture(params=sorted(ARCHS))
def target(request):
    return request.param


def test_a_program_runs_and_is_counted(target):
    artifact = build(DOUBLE, target)
    executable = driver.load(artifact)
    assert isinstance(executable, SimulatedExecutable)
    report = Report()
    report.add_artifact(artifact)
    assert report.simulation() == []
    x = np.arange(128, dtype=np.float32)
    np.testing.assert_array_equal(bind(executable, NumpyArrays())(x), 2 * x)
    (row,) = report.simulation()
    assert (row["kernel"], row["grid"], row["block"]) == ("kernel", [1, 1, 1], [128, 1, 1])
    assert row["counts"]["global_read_floor"] == row["counts"]["global_write_floor"] == 512
    assert row["findings"] == []
    assert "simulated kernel on [1, 1, 1] x [128, 1, 1]: reads 512 bytes, writes 512" in str(report)


def test_findings_are_an_error_that_lists_them(target):
    executable = driver.load(build(BEYOND, target))
    call = bind(executable, NumpyArrays())
    with pytest.raises(
        ExecutionError,
        match=r"(?s)^f: the simulator found 1 problem\n  out of bounds in kernel.*127",
    ):
        call(np.ones(128, np.float32))
    assert executable.counts()[0]["findings"]


def test_failed_checks(target):
    artifact = build(CHECKED, target)
    call = bind(driver.load(artifact), NumpyArrays())
    x = np.ones(128, np.float32)
    np.testing.assert_array_equal(call(x), x)
    x[7] = -1
    with pytest.raises(ExecutionError, match="^f: an index is out of range$"):
        call(x)
    x[7] = 1
    np.testing.assert_array_equal(call(x), x)


def test_a_failed_check_explains_what_nothing_has_written(target):
    call = bind(driver.load(build(UNWRITTEN, target)), NumpyArrays())
    x = np.ones(128, np.float32)
    with pytest.raises(ExecutionError, match="unwritten read"):
        call(x)
    x[7] = -1
    with pytest.raises(ExecutionError, match="^f: an index is out of range$"):
        call(x)


def test_callers_without_python_get_the_text(target):
    executable = driver.load(build(BEYOND, target))
    native = executable.native_entry
    x = np.ones(128, np.float32)
    pointers = struct.pack("2Q", x.ctypes.data, np.ones(129, np.float32).ctypes.data)
    prototype = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_int32)
    status = prototype(ctypes.cast(native.function, ctypes.c_void_p).value)(pointers, 1)
    assert status == native.failed
    assert b"the simulator found 1 problem" in ctypes.string_at(native.text)
    executable.close()


def test_the_chip_is_that_of_the_description(target):
    options = CompileOptions(target=target, arch=ARCHS[target])
    description = get_registry().target(target).hook.describe_target(options=options)
    chip = chip_of(description)
    facts = description.multiprocessor
    assert (chip.name, chip.subgroup_width, chip.banks) == (ARCHS[target], 32, facts.banks)
    assert chip.block_threads == 1024
    assert chip.shared_bytes >= 48 << 10
