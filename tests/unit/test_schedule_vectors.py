"""Bodies of loops that are put in another order, and those that are not."""

from __future__ import annotations

import re

import pytest

from polyblocks import mlir
from polyblocks.codegen.schedule_vectors import ScheduleVectorsPass
from polyblocks.options import CompileOptions
from polyblocks.pipeline import PassContext
from polyblocks_cpu.describe import describe

V = "vector<16xf32>"


def chain(name: str, length: int, first: str = "%v") -> list[str]:
    """Products, each of the one before it."""
    rows = [first, *(f"%{name}{i}" for i in range(length))]
    return [f"%{name}{i} = arith.mulf {rows[i]}, {rows[i]} : {V}" for i in range(length)]


def ordered(body: list[str], arch: str = "x86-64-v4") -> tuple[bool, list[str]]:
    """Whether the pass did something, and the names of the body's operations after it."""
    text = "\n".join(body)
    module = mlir.parse(f"""
      func.func private @g()
      func.func @f(%x: memref<64xf32>, %y: memref<64xf32>) {{
        %c0 = arith.constant 0 : index
        %c16 = arith.constant 16 : index
        %c64 = arith.constant 64 : index
        scf.for %i = %c0 to %c64 step %c16 {{
          %v = vector.load %x[%i] : memref<64xf32>, {V}
          {text}
        }}
        return
      }}""")
    options = CompileOptions(arch=arch)
    changed = ScheduleVectorsPass().run(module, PassContext.create(describe(options), options))
    assert module.operation.verify()
    loop = str(module).split("scf.for", 1)[1]
    return changed, re.findall(r"(arith\.\w+|vector\.\w+|call|memref\.\w+) ", loop)


def store(value: str, to: str = "%y") -> str:
    return f"vector.store {value}, {to}[%i] : memref<64xf32>, {V}"


def test_chains_side_by_side() -> None:
    sums = [row.replace("mulf", "addf") for row in chain("b", 15)]
    body = [*chain("a", 15), *sums, f"%r = arith.mulf %a14, %b14 : {V}", store("%r")]
    changed, names = ordered(body)
    assert changed
    assert names[1:9] == ["arith.mulf", "arith.addf"] * 4


def test_short_bodies_stay() -> None:
    body = [*chain("a", 8), *chain("b", 8), store("%a7"), store("%b7", "%x")]
    assert not ordered(body)[0]


def test_calls_keep_their_place() -> None:
    body = [*chain("a", 15), "func.call @g() : () -> ()", *chain("b", 15), store("%a14")]
    assert not ordered(body)[0]


def test_memory_is_read_before_it_is_written_and_after() -> None:
    again = f"%w = vector.load %x[%i] : memref<64xf32>, {V}"
    body = [*chain("a", 20), store("%a19", "%x"), again, *chain("b", 20, "%w"), store("%b19")]
    changed, names = ordered(body)
    assert changed
    memory = [name for name in names if name.startswith("vector.")]
    assert memory == ["vector.load", "vector.store", "vector.load", "vector.store"]
    assert names.index("vector.store") == 21


@pytest.mark.parametrize(("arch", "fits"), [("x86-64-v4", True), ("x86-64-v3", False)])
def test_what_the_registers_do_not_hold_stays(arch: str, fits: bool) -> None:
    """Twelve chains side by side: 12 results of 512 bits; AVX2 has 16 registers of 256."""
    body = [row for k in range(12) for row in chain(f"a{k}_", 4)]
    body += [store(f"%a{k}_3") for k in range(12)]
    assert ordered(body, arch)[0] == fits
