"""The contract of S3: what keeps it passes, and what breaks a rule is refused with its name."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.gpu_target import gpu_target

from polyblocks import driver, hookspecs, mlir, signature
from polyblocks.attributes import SCHEDULE_ATTRIBUTE
from polyblocks.errors import PassError
from polyblocks.options import CompileOptions
from polyblocks.passes.standard import standard_pipeline
from polyblocks.pipeline import PassContext, Pipeline
from polyblocks.registry.registry import get_registry
from polyblocks.s3.contract import ATTRIBUTES, LOWERED_BY, OPERATIONS, S3_VERSION
from polyblocks.s3.verify import VerifyS3Pass, verify
from polyblocks.target import MemoryLevel, ParallelLevel, TargetDescription, TileUnit, VectorDot

TARGET = TargetDescription(
    "toy",
    "v1",
    (ParallelLevel("team", 4), ParallelLevel("simd", 4)),
    (MemoryLevel("L1", 1 << 15), MemoryLevel("main", 0)),
    vector_bits=128,
    masked_vectors=True,
    gathers=True,
)
NAMED = 'polyblocks.kernel = "k", polyblocks.kind = "copy", polyblocks.sources = []'


def argument(
    number: int,
    type_: str = "memref<8xf32>",
    *,
    role: str = "input",
    dtype: str = "float32",
    shape: str = "8",
    strides: str = "1",
    updates: int = -1,
) -> str:
    """One argument of ``@main``."""
    return (
        f'%a{number}: {type_} {{polyblocks.arg = {{role = "{role}", name = "a", dtype = "{dtype}", '
        f"shape = array<i64: {shape}>, strides = array<i64: {strides}>, constant = false, "
        f"updates = {updates} : i64}}}}"
    )


TWO = f"{argument(0)}, {argument(1, role='output')}"
WORKSPACE = argument(2, "memref<64xi8>", role="workspace", dtype="int8", shape="64")
NEST = f"""affine.for %i = 0 to 8 {{
  %x = affine.load %a0[%i] : memref<8xf32>
  affine.store %x, %a1[%i] : memref<8xf32> }} {{{NAMED}}}"""


def module(body: str = NEST, *, arguments: str = TWO, attributes: str = "", more: str = "") -> str:
    """A module with these operations in ``@main``."""
    return (
        f"module attributes {{{attributes}}} {{ {more} func.func @main({arguments}) {{ "
        f"{body}\nreturn }} }}"
    )


def in_nest(operations: str) -> str:
    """A module with a nest of these operations."""
    return module(f"affine.for %i = 0 to 8 {{ {operations} }}")


def check(text: str, target: TargetDescription = TARGET) -> None:
    """Verify a module that MLIR itself accepts."""
    parsed = mlir.parse(text)
    assert parsed.operation.verify()
    assert VerifyS3Pass().run(parsed, PassContext(target, CompileOptions())) is False


COPY_TO_INPUT = """%v = memref.reinterpret_cast %a0 to offset: [0], sizes: [4], strides: [1]
    : memref<8xf32> to memref<4xf32>
affine.for %i = 0 to 4 {
  %x = affine.load %v[%i] : memref<4xf32>
  affine.store %x, %v[%i] : memref<4xf32> }"""
KEPT = {
    "a tile": module("affine.for %i = 0 to 8 { } {polyblocks.tile}"),
    "a nest": module(),
    "a workspace": module(arguments=f"{TWO}, {WORKSPACE}"),
    "no arguments": module("", arguments=""),
    "an input that is updated": module(COPY_TO_INPUT, arguments=argument(0, updates=0)),
    "an input without elements": module(
        "", arguments=argument(0, "memref<1xf32>", shape="0, 3", strides="3, 1")
    ),
    "strides of extents of one do not count": module(
        "", arguments=argument(0, "memref<1x8xf32>", shape="1, 8", strides="77, 1")
    ),
    "a parallel nest": module(
        f'affine.parallel (%t) = (0) to (8) {{ }} {{polyblocks.level = "team", {NAMED}}}'
    ),
    "a schedule": module(
        f"affine.for %i = 0 to 8 {{ }} {{polyblocks.schedule = {{group = 4 : i64}}, {NAMED}}}"
    ),
    "a loop of the program around a nest and a view": module(
        """affine.for %s = 0 to 4 {
          %v = memref.subview %a0[%s] [4] [1]
              : memref<8xf32> to memref<4xf32, strided<[1], offset: ?>>
          affine.for %i = 0 to 4 {
            %x = affine.load %v[%i] : memref<4xf32, strided<[1], offset: ?>>
            affine.store %x, %a1[%i] : memref<8xf32> }
        } {polyblocks.region = "loop1"}"""
    ),
    "vectors": module(
        """%c = arith.constant 0 : index
        %m = arith.constant dense<[true, true, true, false]> : vector<4xi1>
        %z = arith.constant dense<0.0> : vector<4xf32>
        %x = vector.maskedload %a0[%c], %m, %z
            : memref<8xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
        %y = arith.addf %x, %x fastmath<reassoc,contract> : vector<4xf32>
        vector.maskedstore %a1[%c], %m, %y : memref<8xf32>, vector<4xi1>, vector<4xf32>"""
    ),
    "vectors divided by constants": in_nest(
        """%x = arith.constant dense<7> : vector<4xi32>
        %c = arith.constant 3 : i32
        %b = vector.broadcast %c : i32 to vector<4xi32>
        %q = arith.divsi %x, %b : vector<4xi32>"""
    ),
    "kernels that replace nests": (
        f"""module attributes {{gpu.container_module}} {{
          gpu.module @kernels {{ gpu.func @k(%a: memref<8xf32>) kernel {{ gpu.return }} }}
          func.func @main({argument(0)}) {{
            %c = arith.constant 1 : index
            gpu.launch_func @kernels::@k blocks in (%c, %c, %c) threads in (%c, %c, %c)
                args(%a0 : memref<8xf32>)
            return }} }}"""
    ),
}


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT)
def test_what_keeps_the_contract_passes(text: str) -> None:
    check(text)


VECTOR = "%x = arith.constant dense<7> : vector<4xi32>"
#: Text, and what the error says.
BROKEN: dict[str, tuple[str, str]] = {
    "unknown operation": (
        in_nest("%x = vector.step : vector<4xindex>"),
        r"^'vector.step' at loc\(.*\): this operation is not handed over \(version 2 of the "
        r"contract of S3, docs/s3.md\)$",
    ),
    "allocation": (
        module("%b = memref.alloc() : memref<8xf32>"),
        "'memref.alloc' at .*: this operation is not handed over",
    ),
    "place": (
        in_nest("%v = memref.cast %a0 : memref<8xf32> to memref<?xf32>"),
        "'memref.cast' at .*: it stands inside of a nest; it is allowed in @main outside of nests",
    ),
    "local buffer outside": (
        module("%b = memref.alloca() : memref<8xf32>"),
        "it stands in @main outside of nests; it is allowed inside of a nest",
    ),
    "function": (
        module(more="func.func private @g()"),
        "a module has one function, which is called @main",
    ),
    "result": (
        "module { func.func @main() -> i32 { %c = arith.constant 1 : i32\n return %c : i32 } }",
        "@main has one block and returns nothing",
    ),
    "variable": (
        module(more="memref.global @g : memref<8xf32> = uninitialized"),
        "a global is constant and has its elements",
    ),
    "half a nest's attributes": (
        module('affine.for %i = 0 to 8 { } {polyblocks.kernel = "k"}'),
        "a nest with polyblocks.kernel also has polyblocks.kind",
    ),
    "kind": (
        module(f"affine.for %i = 0 to 8 {{ }} {{{NAMED.replace('copy', 'odd')}}}"),
        "polyblocks.kind is one of pointwise, stencil",
    ),
    "unknown attribute": (
        module("affine.for %i = 0 to 8 { } {polyblocks.speed = 1 : i64}"),
        "there is no attribute polyblocks.speed; there are polyblocks.name",
    ),
    "attribute of another type": (
        module(f"affine.for %i = 0 to 8 {{ }} {{{NAMED}, polyblocks.schedule = 1 : i64}}"),
        "polyblocks.schedule is a dictionary, not 1",
    ),
    "attribute of a loop": (
        module("%c = arith.constant {polyblocks.tile} 1 : i32"),
        "polyblocks.tile is an attribute of an affine.for",
    ),
    "padding of no access": (
        module("%c = arith.constant {polyblocks.padding = array<i64: 1>} 1 : i32"),
        "polyblocks.padding is an attribute of an affine.load, affine.store or polyblocks.copy",
    ),
    "rounding of no conversion": (
        module("%c = arith.constant {polyblocks.free_rounding} 1 : i32"),
        "polyblocks.free_rounding is an attribute of an arith.extf or arith.truncf",
    ),
    "padding that frontends say": (
        module("%c = arith.constant {polyblocks.padded} 1 : i32"),
        "there is no attribute polyblocks.padded; there are polyblocks.name",
    ),
    "attribute inside of a nest": (
        in_nest(f"affine.for %j = 0 to 8 {{ }} {{{NAMED}}}"),
        "polyblocks.kernel is an attribute of a nest, on its outermost operation",
    ),
    "attribute of the module": (
        module(attributes='polyblocks.region = "r"'),
        "'builtin.module' at .*: polyblocks.region is an attribute of a loop or branch",
    ),
    "fastmath": (
        in_nest("%c = arith.constant 1.0 : f32\n%x = arith.addf %c, %c fastmath<nnan> : f32"),
        "fastmath allows reassoc, contract, nsz only, not #arith.fastmath<nnan>",
    ),
    "no level": (
        module("affine.parallel (%t) = (0) to (8) { }"),
        "a parallel loop has a polyblocks.level, for 'toy' one of team, simd",
    ),
    "unknown level": (
        module('affine.parallel (%t) = (0) to (8) { } {polyblocks.level = "grid"}'),
        "a parallel loop has a polyblocks.level, for 'toy' one of team, simd",
    ),
    "parallel in parallel": (
        module(
            "affine.for %s = 0 to 2 { affine.parallel (%t) = (0) to (8) { } "
            '{polyblocks.level = "team"} }'
        ),
        "it stands inside of a nest; it is allowed in @main outside of nests",
    ),
    "two dimensions": (
        module('affine.parallel (%t, %u) = (0, 0) to (8, 8) { } {polyblocks.level = "team"}'),
        "a parallel loop has one dimension, from 0 to a constant in steps of 1, and no results",
    ),
    "step": (
        in_nest("affine.for %j = 0 to affine_map<(d0) -> (d0)>(%i) step 2 { }"),
        "a loop whose bounds are no constants has step 1",
    ),
    "loop of the program": (
        module('affine.for %i = 1 to 8 { } {polyblocks.region = "loop1"}'),
        "a loop of the program runs from 0 to a constant in steps of 1",
    ),
    "region": (
        module('%c = arith.constant {polyblocks.region = "r"} 1 : i32'),
        "'arith.constant' at .*: polyblocks.region is an attribute of a loop or branch",
    ),
    "while": (
        module(
            "scf.while : () -> () { %c = arith.constant false\n scf.condition(%c) } "
            "do { scf.yield }"
        ),
        "'scf.while' at .*: it is a loop or branch of the program: it has polyblocks.region",
    ),
    "integer": (
        in_nest("%c = arith.constant 1 : i7"),
        "a value of type i7: scalars are of bf16, complex<f32>, complex<f64>, f16",
    ),
    "elements of memory": (
        module("", arguments=argument(0, "memref<8xindex>", dtype="int64")),
        "argument 0 .*: its dtype int64 is no name of index",
    ),
    "elements of a local buffer": (
        in_nest("%b = memref.alloca() : memref<8xindex>"),
        "a value of type memref<8xindex>: elements of memrefs are of bf16",
    ),
    "memory space": (
        in_nest("%b = memref.alloca() : memref<8xf32, 3>"),
        "memrefs are in the default memory space",
    ),
    "shape": (
        module("%v = memref.cast %a0 : memref<8xf32> to memref<?xf32>"),
        "a value of type memref<\\?xf32>: shapes are static",
    ),
    "stride": (
        module("%v = memref.cast %a0 : memref<8xf32> to memref<8xf32, strided<[?]>>"),
        "strides are static",
    ),
    "layout": (
        in_nest("%b = memref.alloca() : memref<8xf32, affine_map<(d0) -> (d0 floordiv 2)>>"),
        "the layout of a memref is a strided one",
    ),
    "local buffer": (
        in_nest("%b = memref.alloca() : memref<8xf32, strided<[2]>>"),
        "a local buffer is dense and has a static shape",
    ),
    "lanes": (
        in_nest("%x = arith.constant dense<1.0> : vector<3xf32>"),
        "vectors have one dimension of a power of two",
    ),
    "dimensions of a vector": (
        in_nest("%x = arith.constant dense<1.0> : vector<2x2xf32>"),
        "vectors have one dimension of a power of two",
    ),
    "elements of a vector": (
        in_nest("%x = arith.constant dense<1> : vector<4xi7>"),
        "elements of vectors are of bf16",
    ),
    "division": (
        in_nest(
            f"{VECTOR}\n%y = arith.addi %x, %x : vector<4xi32>\n"
            "%q = arith.divsi %x, %y : vector<4xi32>"
        ),
        "vectors of integers are divided by constants above 1 only",
    ),
    "division by one": (
        in_nest(
            f"{VECTOR}\n%y = arith.constant dense<1> : vector<4xi32>\n"
            "%q = arith.divsi %x, %y : vector<4xi32>"
        ),
        "vectors of integers are divided by constants above 1 only",
    ),
    "no description": (
        module("", arguments="%a0: memref<8xf32>"),
        "argument 0 has no polyblocks.arg",
    ),
    "keys": (
        module("", arguments=argument(0).replace("constant = false, ", "")),
        "polyblocks.arg of argument 0 has the keys dtype, .*; they are constant, dtype",
    ),
    "role": (
        module("", arguments=argument(0, role="guest")),
        "argument 0 .*: its role is one of input, output, workspace, kept, status, not guest",
    ),
    "a number": (
        module("", arguments=argument(0, "f32")),
        "it is a memref of static shape, not f32",
    ),
    "offset": (
        module("", arguments=argument(0, "memref<8xf32, strided<[1], offset: 4>>")),
        "it begins at its pointer, not as memref<8xf32, strided<\\[1\\], offset: 4>>",
    ),
    "updates": (
        module("", arguments=f"{argument(0)}, {argument(1, updates=0)}"),
        "argument 1 .*: what an input updates is itself, and others update nothing",
    ),
    "store to an input": (
        module(COPY_TO_INPUT),
        "'affine.store' at .*: it stores to an input that the program does not update",
    ),
    "dtype": (
        module("", arguments=argument(0, dtype="float64")),
        "its dtype float64 is no name of f32",
    ),
    "shape of an argument": (
        module("", arguments=argument(0, shape="9")),
        "its shape is \\[9\\], and its type memref<8xf32>",
    ),
    "strides of an argument": (
        module("", arguments=argument(0, strides="2")),
        "its strides are \\[2\\], and its type memref<8xf32>",
    ),
    "workspace": (
        module("", arguments=argument(0, "memref<65xi8>", role="workspace", shape="65")),
        "a workspace is a memref of a multiple of 64 i8, not memref<65xi8>",
    ),
    "status": (
        module("", arguments=argument(0, "memref<1xi64>", role="status", shape="1")),
        "a status is an i32, not memref<1xi64>",
    ),
    "order": (
        module("", arguments=f"{argument(0, role='output')}, {argument(1)}"),
        "arguments come in the order inputs, outputs, workspace, kept, status, .*not output, input",
    ),
    "two workspaces": (
        module("", arguments=f"{TWO}, {WORKSPACE}, {WORKSPACE.replace('%a2', '%a3')}"),
        "with one of the last three at most, not input, output, workspace, workspace",
    ),
}


@pytest.mark.parametrize(("text", "message"), BROKEN.values(), ids=BROKEN)
def test_what_breaks_a_rule_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check(text)


def test_the_number_of_descriptions_is_that_of_arguments() -> None:
    parsed = mlir.parse(module())
    rows = signature.rows(parsed)
    signature.set_rows(parsed, rows)
    block = signature.main_of(parsed).body.blocks[0]
    with parsed.context, mlir.ir.Location.unknown():
        block.add_argument(block.arguments[0].type, mlir.ir.Location.unknown())
        with pytest.raises(ValueError, match="3 arguments, 2 polyblocks.arg"):
            verify(parsed, TARGET)


def test_vectors_are_for_targets_that_have_them() -> None:
    with pytest.raises(ValueError, match="the target 'toy' has no vectors"):
        check(KEPT["vectors"], replace(TARGET, vector_bits=0))


def test_gathers_are_for_targets_that_have_them() -> None:
    gathered = KEPT["vectors"].replace(
        "%z =",
        "%zero = arith.constant dense<0.0> : vector<4xf32>\n"
        "%all = arith.constant dense<true> : vector<4xi1>\n"
        "%first = arith.constant dense<0> : vector<4xi32>\n"
        "%origin = arith.constant 0 : index\n"
        "%picked = vector.gather %a0[%origin] [%first], %all, %zero : memref<8xf32>, "
        "vector<4xi32>, vector<4xi1>, vector<4xf32> into vector<4xf32>\n%z =",
    )
    check(gathered)
    with pytest.raises(ValueError, match="the target 'toy' has no gathers"):
        check(gathered, replace(TARGET, gathers=False))


PRODUCT = """affine.for %t = 0 to 4 {
  "polyblocks.multiply"(%a0, %a1, %a2, %t) {
    unit = "tiles", shape = array<i64: 2, 2, 8>,
    accumulator = affine_map<(d0)[s0, s1] -> (d0 * 2 + s0, s1)>,
    a = affine_map<(d0)[s0, s1] -> (d0 * 2 + s0, s1)>,
    b = affine_map<(d0)[s0, s1] -> (s0, s1)>
  } : (memref<8x8xi32>, memref<8x2xi32>, memref<8x2xi32>, index) -> ()
} {polyblocks.kernel = "k", polyblocks.kind = "copy", polyblocks.sources = []}"""
PRODUCT_OF = ", ".join(
    argument(k, f"memref<{rows}x{columns}xi32>", role=role, dtype="int32",
             shape=f"{rows}, {columns}", strides=f"{columns}, 1")
    for k, (rows, columns, role) in enumerate([(8, 8, "input"), (8, 2, "input"), (8, 2, "output")])
)  # fmt: skip


@pytest.mark.parametrize(
    ("given", "instead", "message"),
    [
        ('"tiles"', '"other"', "it is of a unit of tiles of the target 'toy': tiles "),
        ("2, 2, 8", "2, 2", "its shape is rows, columns and steps, 1 of each at least"),
        ("2, 2, 8", "2, 0, 8", "its shape is rows, columns and steps, 1 of each at least"),
        ("b = affine_map<(d0)[s0, s1] -> (s0, s1)>", "b = affine_map<(d0)[s0, s1] -> (s0)>",
         "the map of 'b' takes the indices, and two symbols for the place in the tile, to a place"),
        ("%a2, %t)", "%a2)", "the map of 'a' takes the indices, and two symbols"),
    ],
)  # fmt: skip
def test_products_are_of_a_unit_of_the_target(given: str, instead: str, message: str) -> None:
    unit = TileUnit("tiles", (2, 2, 4), "int8", "int32", 1e12, registers=8)
    target = replace(TARGET, matrix_units=(unit,))
    text = module(PRODUCT, arguments=PRODUCT_OF)
    check(text, target)
    broken = text.replace(given, instead)
    if instead == "%a2)":
        broken = broken.replace(", index) -> ()", ") -> ()")
    with pytest.raises(ValueError, match=re.escape(message)):
        check(broken, target)


COPIES = """affine.for %i = 0 to 8 {
  %s = memref.alloca() {polyblocks.layout = [{of = 0, into = 1, masks = [1]}]}
    : memref<2x8xi32, "shared">
  %r = memref.alloca() : memref<8xi32, "registers">
  "polyblocks.copy"(%a0, %s, %i) {
    kind = "asynchronous", shape = array<i64: 8>,
    from = affine_map<(d0)[s0] -> (d0, s0)>, to = affine_map<(d0)[s0] -> (1, s0)>
  } : (memref<8x8xi32>, memref<2x8xi32, "shared">, index) -> ()
  "polyblocks.commit"() : () -> ()
  "polyblocks.wait"() {pending = 0 : i64} : () -> ()
  "polyblocks.barrier"() {scope = "block"} : () -> ()
  "polyblocks.copy"(%s, %r) {
    kind = "fragments", shape = array<i64: 8>,
    from = affine_map<()[s0] -> (1, s0)>, to = affine_map<()[s0] -> (s0)>
  } : (memref<2x8xi32, "shared">, memref<8xi32, "registers">) -> ()
  %x = affine.load %r[0] : memref<8xi32, "registers">
  affine.store %x, %a2[%i, 0] : memref<8x2xi32>
} {polyblocks.kernel = "k", polyblocks.kind = "copy", polyblocks.sources = []}"""


@pytest.mark.parametrize(
    ("given", "instead", "message"),
    [
        ('kind = "asynchronous"', 'kind = "grid"', "its kind is one of asynchronous, bulk, reg"),
        ('kind = "asynchronous"', 'kind = "pack"', "its kind is one of asynchronous, bulk, reg"),
        ('kind = "asynchronous"', 'kind = "registers"',
         "one of kind 'registers' is from the default space to registers or from registers to"),
        ('kind = "asynchronous"', 'kind = "asynchronous", conversions = []',
         "one of kind 'asynchronous' converts nothing"),
        ("(d0)[s0] -> (1, s0)", "(d0)[s0] -> (2, s0)", "the box of 'to' lies inside of its memref"),
        ("(d0)[s0] -> (1, s0)", "(d0)[s0] -> (s0)", "the map 'to' takes the indices, and a symbol"),
        ("pending = 0", "pending = -1", "0 groups or more may be on their way"),
        ('"polyblocks.commit"() : () -> ()', "", "a group of copies was formed before it"),
        ('scope = "block"', 'scope = "grid"', "its scope is one of block, consumers"),
        ('"registers">', '"near">', 'in the default memory space, or in "shared" or "registers"'),
        ('%r = memref.alloca()', '%r = memref.alloca() {polyblocks.unit_steps = "mma"}',
         "polyblocks.unit_steps is an attribute of an affine.for"),
    ],
)  # fmt: skip
def test_copies_and_waits_are_of_a_block_of_threads(given: str, instead: str, message: str) -> None:
    target = gpu_target(copying=True)
    text = module(COPIES, arguments=PRODUCT_OF)
    check(text, target)
    assert given in text
    with pytest.raises(ValueError, match=re.escape(message)):
        check(text.replace(given, instead), target)


def test_other_memory_spaces_are_for_blocks_of_threads() -> None:
    with pytest.raises(ValueError, match="memrefs are in the default memory space "):
        check(module(COPIES, arguments=PRODUCT_OF))


#: A sum of products of words, on four lanes and on one.
DOT = """affine.for %i = 0 to 2 {
    %z = arith.constant 0 : index
    %x = vector.load %a0[%z] : memref<8xi32>, vector<4xi32>
    %y = memref.load %a0[%z] : memref<8xi32>
    %d = llvm.call_intrinsic "llvm.polyblocks.dot.words"(%x, %x, %x)
      : (vector<4xi32>, vector<4xi32>, vector<4xi32>) -> vector<4xi32>
    %e = llvm.call_intrinsic "llvm.polyblocks.dot.words"(%y, %y, %y) : (i32, i32, i32) -> i32
    vector.store %d, %a1[%z] : memref<8xi32>, vector<4xi32>
  } {polyblocks.kernel = "k", polyblocks.kind = "copy", polyblocks.sources = []}"""
DOT_ARGUMENTS = ", ".join(
    argument(k, "memref<8xi32>", role=role, dtype="int32")
    for k, role in enumerate(("input", "output"))
)


@pytest.mark.parametrize(
    ("given", "instead", "message"),
    [
        ("dot.words", "dot.other", "it is of a unit of vectors of the target 'toy': words "),
        ("(i32, i32, i32) -> i32", "(i32, i32, i32) -> f32",
         "it takes i32 and two words of i32, and returns i32: scalars, or vectors of one length "),
        ("(%x, %x, %x)\n      : (vector<4xi32>, vector<4xi32>, vector<4xi32>)",
         "(%x, %y, %x)\n      : (vector<4xi32>, i32, vector<4xi32>)", "it takes i32 and two words"),
        ("(%y, %y, %y) : (i32, i32, i32)", "(%y, %y) : (i32, i32)", "it takes i32 and two words"),
    ],
)  # fmt: skip
def test_dots_are_of_a_unit_of_the_target(given: str, instead: str, message: str) -> None:
    unit = VectorDot("words", (1, 16, 4), "int8", "int32", 1e12)
    target = replace(TARGET, matrix_units=(unit,))
    text = module(DOT, arguments=DOT_ARGUMENTS)
    check(text, target)
    assert given in text
    with pytest.raises(ValueError, match=re.escape(message)):
        check(text.replace(given, instead), target)


def test_products_have_words_and_sums_of_their_unit() -> None:
    unit = TileUnit("tiles", (2, 2, 4), "float16", "float32", 1e12, registers=8)
    with pytest.raises(ValueError, match="'a' and 'b' are words of i32, 'accumulator' f32 "):
        check(module(PRODUCT, arguments=PRODUCT_OF), replace(TARGET, matrix_units=(unit,)))


def test_masks_are_constants_where_the_target_has_none() -> None:
    plain = replace(TARGET, masked_vectors=False)
    check(KEPT["vectors"], plain)
    counted = (
        KEPT["vectors"]
        .replace("%m =", "%w =")
        .replace("%z =", "%m = arith.andi %w, %w : vector<4xi1>\n%z =")
    )
    check(counted)
    message = "'{}' .*: masks are constants for the target 'toy', which has none"
    with pytest.raises(ValueError, match=message.format("vector.maskedload")):
        check(counted, plain)
    with pytest.raises(ValueError, match=message.format("vector.maskedstore")):
        check(counted.replace("%a0[%c], %m", "%a0[%c], %w"), plain)


def test_the_error_names_the_source_line() -> None:
    text = module('%b = memref.alloc() : memref<8xf32> loc("model.py":7:3)')
    with pytest.raises(ValueError, match=r"'memref.alloc' at loc\(\"model.py\":7:3\): "):
        check(text)


#: What becomes one nest.
PROGRAM = """func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %r = linalg.exp ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32> }"""


def linalg() -> Any:
    """The program, with a signature."""
    parsed = mlir.parse(PROGRAM)
    signature.infer(parsed)
    return parsed


def test_nests_for_a_grid_keep_the_contract_too() -> None:
    target = gpu_target()
    pipeline = standard_pipeline(target, CompileOptions())
    # What stays for S4 once nests are handed over with their schedules.
    pipeline.remove("emit-kernels")
    parsed = linalg()
    pipeline.run(parsed, PassContext(target, CompileOptions()))
    with parsed.context:
        verify(parsed, target)
    assert "affine.for" in str(parsed)
    assert SCHEDULE_ATTRIBUTE in str(parsed)


class LeaveBufferPass:
    """A pass of an extension that breaks the contract."""

    name = "leave-buffer"

    def run(self, module: Any, context: Any) -> None:
        del context
        block = signature.main_of(module).body.blocks[0]
        with (
            module.context,
            mlir.ir.Location.unknown(),
            mlir.ir.InsertionPoint.at_block_begin(block),
        ):
            type_ = mlir.ir.MemRefType.get([4], mlir.ir.F32Type.get())
            mlir.dialect("memref").AllocOp(type_, [], [])


def compiled(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What becomes of a program whose pipeline ends with that pass."""
    registry = get_registry()

    def configure(pipeline: Pipeline, *_: Any) -> None:
        pipeline.append("S3", LeaveBufferPass())

    monkeypatch.setattr(registry, "configure", configure)
    options = CompileOptions(arch="x86-64")
    description = registry.target("cpu").hook.describe_target(options=options)
    return driver.compile_module(linalg(), description, options)


def test_the_driver_verifies_what_extensions_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYBLOCKS_VERIFY", "1")
    with pytest.raises(PassError, match=r"pass 'verify-s3' \(stage S3\) failed: .*'memref.alloc'"):
        compiled(monkeypatch)


def test_the_driver_verifies_only_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYBLOCKS_VERIFY", "0")
    names = [row["name"] for row in compiled(monkeypatch).manifest["report"]["passes"]]
    assert "leave-buffer" in names
    assert "verify-s3" not in names


def test_tests_verify_in_child_processes_too(run_python: Any) -> None:
    code = """
        from polyblocks import driver, mlir, signature
        from polyblocks.options import CompileOptions
        from polyblocks.registry.registry import get_registry

        module = mlir.parse(PROGRAM)
        signature.infer(module)
        options = CompileOptions(arch="x86-64")
        target = get_registry().target("cpu").hook.describe_target(options=options)
        artifact = driver.compile_module(module, target, options)
        print(*(row["name"] for row in artifact.manifest["report"]["passes"]))
    """
    done = run_python(code.replace("PROGRAM", repr(PROGRAM)))
    assert "plan-memory verify-s3" in done.stdout, done.stderr


def test_the_version_of_the_hook_is_raised_with_that_of_the_contract() -> None:
    hook = hookspecs.INTERFACES[hookspecs.API_VERSION]["lower_program"]
    assert LOWERED_BY[hook] == S3_VERSION
    assert list(LOWERED_BY.values()) == sorted(LOWERED_BY.values())


def test_the_page_has_the_version_and_every_name() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs/s3.md").read_text()
    assert re.search(rf"Version <!-- generated: s3-version -->{S3_VERSION}<!--", page)
    for name in (*OPERATIONS, *ATTRIBUTES):
        assert f"`{name}`" in page
