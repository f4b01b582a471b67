"""``ldexp`` on vectors wider than the registers that a program uses."""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pytest

from polyblocks.codegen import llvm
from polyblocks.runtime.native import native_code

pytest.importorskip("polyblocks_cpu")

from polyblocks_cpu.emit import _optimize
from polyblocks_cpu.instructions.wide_ldexp import take_apart

FLOATS = {"half": "f16", "float": "f32", "double": "f64"}
BITS = {"half": 16, "float": 32, "double": 64}


def program(lanes: int, kind: str, integer: str = "i32", attributes: str = "") -> str:
    vector, exponents = f"<{lanes} x {kind}>", f"<{lanes} x {integer}>"
    name = f"llvm.ldexp.v{lanes}{FLOATS[kind]}.v{lanes}{integer}"
    return f"""
declare {vector} @{name}({vector}, {exponents})

define void @scale(ptr %a, ptr %b, ptr %o) {attributes} {{
  %x = load {vector}, ptr %a, align 1
  %n = load {exponents}, ptr %b, align 1
  %y = call {vector} @{name}({vector} %x, {exponents} %n)
  store {vector} %y, ptr %o, align 1
  %next = getelementptr i8, ptr %o, i64 {lanes * BITS[kind] // 8}
  %z = call {vector} @{name}({vector} {vector_of(lanes, kind)}, {exponents} %n)
  store {vector} %z, ptr %next, align 1
  ret void
}}
"""


def vector_of(lanes: int, kind: str) -> str:
    """A constant, whose text has commas."""
    return f"<{', '.join(f'{kind} {k}.0' for k in range(lanes))}>"


def machine(bits: int) -> llvm.Machine:
    return llvm.Machine("x86_64-unknown-linux-gnu", "sapphirerapids", vector_bits=bits)


def widths(module) -> set[int]:
    found = re.findall(r"@llvm\.ldexp\.v(\d+)(f16|f32|f64)", str(module))
    return {int(lanes) * int(kind[1:]) for lanes, kind in found}


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("bits", [384, 512, 768, 1024])
def test_llvm_takes_them_with_registers_of_256_bits(kind, bits):
    spec = machine(256)
    lanes = bits // BITS[kind]
    text = llvm.attach_attributes(program(lanes, kind), spec, ["scale"])
    module, target_machine, _ = _optimize(text, spec)
    # First, as LLVM would end this process.
    assert 0 < max(widths(module)) <= 256
    assert "@polyblocks" not in str(module), "nothing is called"
    code = llvm.emit_assembly(module, target_machine)
    assert "vscalef" in code
    assert "zmm" not in code
    assert "call" not in code


def test_narrow_ones_stay_as_they_are():
    spec = machine(512)
    module, target_machine = llvm.optimize(
        llvm.attach_attributes(program(16, "float"), spec, ["scale"]), spec
    )
    assert take_apart(module, target_machine, spec) is module


@pytest.mark.parametrize("lanes", [5, 7, 12, 16])
def test_the_pieces_are_the_elements_in_order(lanes):
    """With registers of 128 bits, as the chip that is here computes it."""
    host = llvm.Machine("", "generic", vector_bits=128)
    text = llvm.attach_attributes(program(lanes, "float"), host, ["scale"])
    module, target_machine = llvm.optimize(text, host)
    assert max(widths(module)) > 128
    module = take_apart(module, target_machine, host)
    assert max(widths(module)) <= 128
    libm = ctypes.CDLL("libm.so.6")
    address = ctypes.cast(libm.ldexpf, ctypes.c_void_p).value
    library = native_code._link(
        llvm.emit_object(module, target_machine), ["scale"], {"ldexpf": address}
    )
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(library["scale"])
    x = np.linspace(-2, 3, lanes, dtype=np.float32)
    n = np.arange(lanes, dtype=np.int32) * 5 - 40
    out = np.full(2 * lanes + 1, 99, np.float32)
    call(x.ctypes.data, n.ctypes.data, out.ctypes.data)
    expected = [np.ldexp(x, n), np.ldexp(np.arange(lanes, dtype=np.float32), n), [99]]
    np.testing.assert_array_equal(out, np.concatenate(expected))
