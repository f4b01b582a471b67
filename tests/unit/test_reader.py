"""Numbers that decide about branches are loaded where the program loads them, beside all nests."""

from __future__ import annotations

from polyblocks import mlir
from polyblocks.affine.mlir import reader
from polyblocks.affine.model import ControlFlow, Nest, Opaque, Sequence, Store, reads, walk

PROGRAM = """
func.func @main(%in: memref<4xf32>, %a: memref<1xf32>, %b: memref<2xf32>) {{
  %zero = arith.constant 0.0 : f32
  {lines}
  %c = arith.cmpf ogt, %n, %zero : f32
  scf.if %c {{
    affine.for %i = 0 to 2 {{ affine.store %zero, %b[%i] : memref<2xf32> }}
  }} {{polyblocks.region = "branch"}}
  return
}}
"""
LOAD = "%n = affine.load %a[0] : memref<1xf32>"


def read(*lines: str) -> Sequence:
    module = mlir.parse(PROGRAM.format(lines="\n  ".join(lines)))
    with module.context, mlir.ir.Location.unknown():
        return reader.read(module)


def kinds(sequence: Sequence) -> list[str]:
    """What the items are, loads of %a besides nests as ``a``."""
    found = []
    for item in sequence.items:
        if isinstance(item, Opaque) and not isinstance(item, ControlFlow):
            assert item.operation.name == "affine.load" or "store" in item.operation.name
            of_a = [b for b in reads(item) if b.shape == (1,)]
            found.append("a" if of_a and "load" in item.operation.name else item.operation.name)
        else:
            found.append(type(item).__name__)
    return found


def test_a_load_behind_a_nest_is_seen() -> None:
    loop = (
        "affine.for %i = 0 to 4 { %x = affine.load %in[%i] : memref<4xf32> "
        "affine.store %x, %a[0] : memref<1xf32> }"
    )
    assert kinds(read(loop, LOAD)) == ["Nest", "a", "ControlFlow"]


def test_a_load_before_what_changes_it() -> None:
    lines = (LOAD, "affine.store %zero, %a[0] : memref<1xf32>")
    assert kinds(read(*lines)) == ["a", "Nest", "ControlFlow"]


FIRST = ("%x = affine.load %in[0] : memref<4xf32>", "affine.store %x, %a[0] : memref<1xf32>")


def test_a_load_within_a_nest_of_straight_line_code_is_behind_it() -> None:
    sequence = read(*FIRST, LOAD, "affine.store %x, %b[1] : memref<2xf32>")
    assert kinds(sequence) == ["Nest", "a", "ControlFlow"]
    (nest,) = [item for item in sequence.items if isinstance(item, Nest)]
    assert sum(isinstance(n, Store) for n in walk(nest.body)) == 2


def test_a_load_between_two_stores_of_a_nest_leaves_no_nest() -> None:
    lines = (*FIRST, LOAD, "%y = arith.addf %x, %x : f32", "affine.store %y, %a[0] : memref<1xf32>")
    names = ["affine.load", "affine.store", "a", "Nest", "ControlFlow"]
    assert kinds(read(*lines)) == names


def test_a_check_of_a_number_is_a_nest() -> None:
    lines = (
        LOAD,
        "%m = affine.load %b[0] : memref<2xf32>",
        "%ok = arith.cmpf olt, %m, %zero : f32",
        'cf.assert %ok, "not negative"',
    )
    assert kinds(read(*lines)) == ["a", "Nest", "ControlFlow"]
