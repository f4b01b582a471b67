"""Vector code at the edge of memory: nothing outside of a buffer is read or written."""

from __future__ import annotations

import ctypes
import dataclasses
import faulthandler
import mmap
import os
import re

import numpy as np
import pytest
from cpu_kernels import assembly_of, load, pack

from polyblocks import mlir
from polyblocks.options import CompileOptions
from polyblocks.passes.map.vectorize_nests import VectorizeNestsPass
from polyblocks.pipeline import PassContext
from polyblocks_cpu.describe import describe
from polyblocks_cpu.load import CpuExecutable
from polyblocks_cpu.lower import lower_program


def compiled(text: str, arch: str | None = None) -> CpuExecutable:
    """A module with its loops in vectors, loaded."""
    options = CompileOptions(arch=arch)
    target = describe(options)
    module = mlir.parse(text)
    VectorizeNestsPass().run(module, PassContext(target, options))
    return load(lower_program(module, target, options))


class Fence:
    """Arrays that end where memory ends: one byte more, and the process gets SIGSEGV."""

    def __init__(self) -> None:
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.maps: list[mmap.mmap] = []

    def array(self, count: int, dtype: str) -> np.ndarray:
        page = mmap.PAGESIZE
        nbytes = count * np.dtype(dtype).itemsize
        pages = -(-nbytes // page)
        memory = mmap.mmap(-1, (pages + 1) * page)
        self.maps.append(memory)
        start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        assert self.libc.mprotect(ctypes.c_void_p(start + pages * page), page, 0) == 0
        return np.frombuffer(memory, dtype, count, pages * page - nbytes)


def exit_code(executable: CpuExecutable, arrays: list[np.ndarray]) -> int:
    """Call in a child, which may crash; 0 if it went well, minus the signal if not."""
    child = os.fork()
    if child == 0:
        faulthandler.disable()  # what is expected to crash need not say so in pytest's output
        os._exit(executable.entry(pack(arrays), 1))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def doubled(count: int, type_: str, last: int) -> str:
    """``b[i] = a[i] + a[i]`` for i up to ``last``."""
    add = "arith.addf" if type_.startswith("f") else "arith.addi"
    return f"""
    func.func @main(%a: memref<{count}x{type_}>, %b: memref<{count}x{type_}>) {{
      affine.for %i = 0 to {last} {{
        %x = affine.load %a[%i] : memref<{count}x{type_}>
        %y = {add} %x, %x : {type_}
        affine.store %y, %b[%i] : memref<{count}x{type_}>
      }} {{polyblocks.kernel = "k", polyblocks.kind = "", polyblocks.sources = []}}
      return
    }}
    """


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", [None, "x86-64"])
@pytest.mark.parametrize("count", [5, 16, 23, 1003])
@pytest.mark.parametrize(
    ("type_", "dtype"), [("f32", "float32"), ("f64", "float64"), ("i8", "int8"), ("f16", "float16")]
)
def test_rest_stays_inside(type_: str, dtype: str, count: int, arch: str | None) -> None:
    fence = Fence()
    a, b = fence.array(count, dtype), fence.array(count, dtype)
    executable = compiled(doubled(count, type_, count), arch)
    assert exit_code(executable, [a, b]) == 0
    a[:] = np.arange(count) % 50
    assert executable.entry(pack([a, b]), 1) == 0
    np.testing.assert_array_equal(b, a + a)


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", [None, "x86-64"])
@pytest.mark.parametrize("count", [16, 23, 1003])
@pytest.mark.parametrize("step", [2, 3, 4])
def test_elements_between_are_read_only_where_they_are(step: int, count: int, arch: str) -> None:
    """The last element that is read is the last one of the buffer."""
    extent = (count - 1) * step + 1
    text = f"""
    func.func @main(%a: memref<{extent}xf32>, %b: memref<{count}xf32>) {{
      affine.for %i = 0 to {count} {{
        %x = affine.load %a[%i * {step}] : memref<{extent}xf32>
        affine.store %x, %b[%i] : memref<{count}xf32>
      }} {{polyblocks.kernel = "k", polyblocks.kind = "", polyblocks.sources = []}}
      return
    }}
    """
    fence = Fence()
    a, b = fence.array(extent, "float32"), fence.array(count, "float32")
    executable = compiled(text, arch)
    a[:] = np.arange(extent)
    assert exit_code(executable, [a, b]) == 0
    assert executable.entry(pack([a, b]), 1) == 0
    np.testing.assert_array_equal(b, a[::step])


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", [None, "x86-64"])
@pytest.mark.parametrize("count", [16, 23, 1003])
@pytest.mark.parametrize("step", [2, 3, 4])
def test_elements_in_turns_stay_inside(step: int, count: int, arch: str) -> None:
    stores = "\n".join(
        f"affine.store %x, %b[%i, {k}] : memref<{count}x{step}xf32>" for k in range(step)
    )
    text = f"""
    func.func @main(%a: memref<{count}xf32>, %b: memref<{count}x{step}xf32>) {{
      affine.for %i = 0 to {count} {{
        %x = affine.load %a[%i] : memref<{count}xf32>
        {stores}
      }} {{polyblocks.kernel = "k", polyblocks.kind = "", polyblocks.sources = []}}
      return
    }}
    """
    fence = Fence()
    a, b = fence.array(count, "float32"), fence.array(count * step, "float32")
    executable = compiled(text, arch)
    a[:] = np.arange(count)
    assert exit_code(executable, [a, b]) == 0
    assert executable.entry(pack([a, b]), 1) == 0
    np.testing.assert_array_equal(b, np.repeat(a, step))


def test_the_fence_catches_what_is_outside() -> None:
    fence = Fence()
    arrays = [fence.array(1003, "float32"), fence.array(1003, "float32")]
    executable = compiled(doubled(2000, "f32", 1500))
    assert exit_code(executable, arrays) == -11


def test_prefetches_beyond_the_last_row_do_no_harm() -> None:
    """The last rows have none after them; what is not there is not fetched."""
    text = """
    func.func @main(%a: memref<1024x8192xf32>, %b: memref<1024xf32>) {
      affine.for %i = 0 to 1024 {
        %z = arith.constant 0.0 : f32
        %r = affine.for %j = 0 to 8192 iter_args(%s = %z) -> (f32) {
          %x = affine.load %a[%i, %j] : memref<1024x8192xf32>
          %t = arith.maximumf %s, %x : f32
          affine.yield %t : f32
        }
        %q = affine.for %j = 0 to 8192 iter_args(%s = %z) -> (f32) {
          %x = affine.load %a[%i, %j] : memref<1024x8192xf32>
          %y = arith.subf %x, %r : f32
          %t = arith.addf %s, %y fastmath<reassoc> : f32
          affine.yield %t : f32
        }
        affine.store %q, %b[%i] : memref<1024xf32>
      } {polyblocks.kernel = "k", polyblocks.kind = "", polyblocks.sources = []}
      return
    }
    """
    fence = Fence()
    a, b = fence.array(1024 * 8192, "float32"), fence.array(1024, "float32")
    module = mlir.parse(text)
    options = CompileOptions()
    VectorizeNestsPass().run(module, PassContext(describe(options), options))
    if len(describe(options).memory) > 3:
        assert "memref.prefetch" in str(module)
    executable = compiled(text)
    a[:] = np.tile(np.arange(8192) % 3, 1024)
    assert exit_code(executable, [a, b]) == 0
    assert executable.entry(pack([a, b]), 1) == 0
    np.testing.assert_array_equal(b, np.full(1024, (a[:8192] - 2).sum()))


def test_rest_of_a_reduction_stays_inside() -> None:
    text = """
    func.func @main(%a: memref<1003xf32>, %b: memref<1xf32>) {
      affine.for %k = 0 to 1 {
        %z = arith.constant 0.0 : f32
        %r = affine.for %i = 0 to 1003 iter_args(%s = %z) -> (f32) {
          %x = affine.load %a[%i] : memref<1003xf32>
          %t = arith.addf %s, %x fastmath<reassoc> : f32
          affine.yield %t : f32
        }
        affine.store %r, %b[0] : memref<1xf32>
      } {polyblocks.kernel = "k", polyblocks.kind = "", polyblocks.sources = []}
      return
    }
    """
    fence = Fence()
    a, b = fence.array(1003, "float32"), fence.array(1, "float32")
    executable = compiled(text)
    assert exit_code(executable, [a, b]) == 0
    a[:] = np.arange(1003)
    assert executable.entry(pack([a, b]), 1) == 0
    assert b[0] == np.arange(1003).sum()


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", [None, "x86-64"])
@pytest.mark.parametrize(("low", "high"), [(0, 0), (0, 40), (3, 8), (7, 39), (12, 12), (9, 4)])
def test_bounds_that_are_known_at_run_time(low: int, high: int, arch: str | None) -> None:
    """The bounds depend on the loop around; a loop may also have no iteration."""
    text = f"""
    func.func @main(%a: memref<3x40xf32>, %b: memref<3x40xf32>, %c: memref<3xf32>) {{
      affine.for %r = 0 to 3 {{
        affine.for %i = max affine_map<(d) -> (0, d + {low})>(%r) to
            min affine_map<(d) -> (40, d + {high})>(%r) {{
          %x = affine.load %a[%r, %i] : memref<3x40xf32>
          %y = arith.addf %x, %x : f32
          affine.store %y, %b[%r, %i] : memref<3x40xf32>
        }}
        %z = arith.constant 5.0 : f32
        %s = affine.for %i = max affine_map<(d) -> (0, d + {low})>(%r) to
            min affine_map<(d) -> (40, d + {high})>(%r) iter_args(%p = %z) -> (f32) {{
          %x = affine.load %a[%r, %i] : memref<3x40xf32>
          %t = arith.addf %p, %x fastmath<reassoc> : f32
          affine.yield %t : f32
        }}
        affine.store %s, %c[%r] : memref<3xf32>
      }} {{polyblocks.kernel = "k", polyblocks.kind = "", polyblocks.sources = []}}
      return
    }}
    """
    a = np.arange(120, dtype=np.float32).reshape(3, 40)
    b, c = np.zeros((3, 40), np.float32), np.zeros(3, np.float32)
    executable = compiled(text, arch)
    assert executable.entry(pack([a, b, c]), 1) == 0
    for r in range(3):
        expected = np.zeros(40, np.float32)
        part = slice(r + low, min(40, r + high))
        expected[part] = 2 * a[r, part]
        np.testing.assert_array_equal(b[r], expected)
        assert c[r] == 5 + a[r, part].sum()


def test_kernels_wait_for_stores_past_the_caches() -> None:
    text = """
    func.func @main(%a: memref<64xf32>) {
      affine.for %k = 0 to 4 {
        %c0 = arith.constant 0 : index
        %v = arith.constant dense<1.0> : vector<16xf32>
        vector.store %v, %a[%c0] {nontemporal = true, alignment = 64 : i64}
          : memref<64xf32>, vector<16xf32>
      } {polyblocks.kernel = "k"}
      return
    }
    """
    code = assembly_of(text, "x86-64-v4")
    # A locked instruction empties the buffers of such stores, too (Intel SDM 3A 13.3.1, AMD APM 2
    # 7.4.2).
    fence = re.compile(r"\b(?:mfence|lock)\b")
    assert fence.search(code, code.rindex("vmovnt"))
    assert not fence.search(assembly_of(text.replace("nontemporal = true, ", ""), "x86-64-v4"))


@pytest.mark.parametrize("offset", [0, 1])
def test_stores_past_the_caches(offset: int) -> None:
    """Whether the output is aligned is found out by every call."""
    row = (
        '{{polyblocks.arg = {{constant = false, dtype = "float32", name = "{0}", role = "{1}", '
        "shape = array<i64: 4096>, strides = array<i64: 1>, updates = -1 : i64}}}}"
    )
    text = doubled(4096, "f32", 4096)
    for name, role in (("a", "input"), ("b", "output")):
        argument = f"%{name}: memref<4096xf32>"
        text = text.replace(argument, f"{argument} {row.format(name, role)}", 1)
    options = CompileOptions()
    target = describe(options)
    levels = (dataclasses.replace(target.memory[0], size=1024), target.memory[-1])
    target = dataclasses.replace(target, memory=levels)
    module = mlir.parse(text)
    VectorizeNestsPass().run(module, PassContext(target, options))
    assert "nontemporal" in str(module)
    executable = load(lower_program(module, target, options))
    a = np.arange(4096, dtype=np.float32)
    memory = np.zeros(4096 + 32, np.float32)
    start = -memory.ctypes.data % 64 // 4 + offset
    b = memory[start : start + 4096]
    assert executable.entry(pack([a, b]), 1) == 0
    np.testing.assert_array_equal(b, 2 * a)
    assert not memory[:start].any()
    assert not memory[start + 4096 :].any()


def test_kernels_tell_their_vectors() -> None:
    options = CompileOptions(arch="x86-64-v4")
    target = describe(options)
    module = mlir.parse(doubled(100, "f64", 100))
    VectorizeNestsPass().run(module, PassContext(target, options))
    (kernel,) = lower_program(module, target, options).manifest["kernels"]
    assert kernel["vector"] == [8]
