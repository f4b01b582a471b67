"""vectorize-nests on the model: which loops, how wide, and why not the others."""

from __future__ import annotations

import pytest

from polyblocks import mlir
from polyblocks.affine.mlir import reader
from polyblocks.affine.model import For, Sequence, Simd, walk
from polyblocks.affine.vectors import transpose_writer
from polyblocks.affine.vectors.lanes import NoLanesError, lanes_of
from polyblocks.options import CompileOptions
from polyblocks.passes.map.vectorize_nests import VectorizeNestsPass
from polyblocks.passes.schedule.tile_transposes import TileTransposesPass
from polyblocks.passes.standard import standard_pipeline
from polyblocks.pipeline import PassContext
from polyblocks.target import MemoryLevel, ParallelLevel, TargetDescription


def target(bits: int = 512, masked: bool = True, registers: int = 32) -> TargetDescription:
    return TargetDescription(
        name="test",
        arch="test",
        parallel=(ParallelLevel("team", 4),),
        memory=(MemoryLevel("main", 0),),
        vector_bits=bits,
        vector_registers=registers,
        masked_vectors=masked,
        gathers=True,
    )


def read(arguments: str, body: str) -> Sequence:
    module = mlir.parse(f"func.func @main({arguments}) {{ {body} return }}")
    with module.context, mlir.ir.Location.unknown():
        return reader.read(module)


def vectorized(arguments: str, body: str, chip: TargetDescription | None = None) -> list[For]:
    """The loops with vectors after the pass, outer ones first."""
    sequence = read(arguments, body)
    context = PassContext(chip or target(), CompileOptions())
    with mlir.make_context(), mlir.ir.Location.unknown():
        VectorizeNestsPass().transform(sequence, context)
    nodes = (node for nest in sequence.nests() for node in walk(nest.body))
    return [node for node in nodes if isinstance(node, For) and node.simd is not None]


def loop_of(arguments: str, body: str) -> For:
    """The innermost loop of the only nest."""
    (nest,) = read(arguments, body).nests()
    return [n for n in walk(nest.body) if isinstance(n, For)][-1]


def copy(
    source: str, target_: str, index: str = "%i", op: str = "", extent: int = 100
) -> tuple[str, str]:
    """Arguments and body of a loop that moves one element, maybe through an operation."""
    load = f"%x = affine.load %a[{index}] : memref<400x{source}>"
    value = "%y" if op else "%x"
    return (
        f"%a: memref<400x{source}>, %b: memref<400x{target_}>",
        f"affine.for %i = 0 to {extent} {{ {load} {op} "
        f"affine.store {value}, %b[%i] : memref<400x{target_}> }}",
    )


@pytest.mark.parametrize(
    ("source", "result", "op", "width"),
    [
        ("f32", "f32", "%y = arith.negf %x : f32", 16),
        ("f64", "f64", "%y = arith.negf %x : f64", 8),
        ("i8", "i8", "%y = arith.addi %x, %x : i8", 64),
        ("f16", "f32", "%y = arith.extf %x : f16 to f32", 16),
        # Two of three are narrow: the wide one takes two registers.
        ("f32", "f64", "%z = arith.negf %x : f32 %y = arith.extf %z : f32 to f64", 8),
        # Half a register for what is loaded and stored, two for what is computed.
        (
            "i8",
            "i8",
            "%z = arith.extsi %x : i8 to i32 %v = arith.addi %z, %z : i32"
            " %w = arith.muli %v, %v : i32 %y = arith.trunci %w : i32 to i8",
            32,
        ),
        ("f32", "i1", "%y = arith.cmpf olt, %x, %x : f32", 16),
    ],
)
def test_width_is_that_of_the_type_most_used(source: str, result: str, op: str, width: int) -> None:
    (loop,) = vectorized(*copy(source, result, op=op))
    assert loop.simd is not None
    assert loop.simd.width == width


def test_short_loops_take_narrow_vectors_and_very_short_ones_none() -> None:
    assert [f.simd for f in vectorized(*copy("f32", "f32", extent=5))] == [Simd(8)]
    assert vectorized(*copy("f32", "f32", extent=3)) == []


def test_no_vectors_on_a_target_without() -> None:
    def names(bits: int) -> list[str]:
        return standard_pipeline(target(bits=bits), CompileOptions()).steps()

    assert set(names(128)) - set(names(0)) == {
        "interleave-lookups",
        "interleave-batches",
        "copy-columns",
        "delinearize-loops",
        "gather-rows",
        "share-indices",
        "jam-stencils",
        "split-masks",
        "join-copies",
        "lower-minima",
        "raise-comparisons",
        "raise-tables",
        "narrow-values",
        "pack-arguments",
        "select-layers",
        "split-complex",
        "split-steps",
        "plan-contractions",
        "promote-accumulators",
        "cut-masks",
        "hoist-factors",
        "split-columns",
        "tile-contractions",
        "expand-packing",
        "tile-transposes",
        "unroll-short-loops",
        "update-in-place",
        "vectorize-nests",
        "tile-scans",
    }


def test_rest_is_scalar_where_there_are_no_masks() -> None:
    (loop,) = vectorized(*copy("f32", "f32"), chip=target(bits=128, masked=False))
    assert loop.simd == Simd(4, 1, masked=False)


def test_chain_of_reductions_carries_vectors() -> None:
    body = """
    %z = arith.constant 0.0 : f32
    affine.for %r = 0 to 4 {
      %s = affine.for %i = 0 to 7 iter_args(%p = %z) -> (f32) {
        %t = affine.for %j = 0 to 100 iter_args(%q = %p) -> (f32) {
          %x = affine.load %a[%r, %i, %j] : memref<4x7x100xf32>
          %u = arith.addf %q, %x fastmath<reassoc> : f32
          affine.yield %u : f32
        }
        affine.yield %t : f32
      }
      affine.store %s, %b[%r] : memref<4xf32>
    }"""
    loops = vectorized("%a: memref<4x7x100xf32>, %b: memref<4xf32>", body)
    assert [f.var.extent for f in loops] == [7, 100]
    assert loops[0].simd == loops[1].simd == Simd(16, 4)


def test_long_chains_have_one_accumulator_of_several_vectors() -> None:
    body = """
    %z = arith.constant 0.0 : f32
    affine.for %r = 0 to 4 {
      %t = affine.for %j = 0 to 1000 iter_args(%q = %z) -> (f32) {
        %x = affine.load %a[%r, %j] : memref<4x1000xf32>
        %e = math.exp %x : f32
        %f = math.sin %e : f32
        %u = arith.addf %q, %f fastmath<reassoc> : f32
        affine.yield %u : f32
      }
      affine.store %t, %b[%r] : memref<4xf32>
    }"""
    for extent, interleaved in ((1000, 4), (127, 2), (63, 1)):
        text = body.replace("1000", str(extent))
        (loop,) = vectorized(f"%a: memref<4x{extent}xf32>, %b: memref<4xf32>", text)
        assert loop.simd == Simd(16, 1, interleaved=interleaved), extent


@pytest.mark.parametrize(
    ("body", "interleaved"),
    [
        ("%r = math.exp %x : f32", 4),
        ("%e = math.exp %x : f32 %r = math.sin %e : f32", 2),
        # Two chains and more to do than what is looked ahead: enough of one vector.
        (
            "%e = math.exp %x : f32 %s = math.sin %x : f32 %t = math.tanh %x : f32"
            " %u = arith.addf %e, %s : f32 %r = arith.addf %u, %t : f32",
            1,
        ),
    ],
)
def test_long_bodies_of_several_chains_are_one_vector(body: str, interleaved: int) -> None:
    body = f"""
    affine.for %j = 0 to 4096 {{
      %x = affine.load %a[%j] : memref<4096xf32>
      {body}
      affine.store %r, %b[%j] : memref<4096xf32>
    }}"""
    (loop,) = vectorized("%a: memref<4096xf32>, %b: memref<4096xf32>", body)
    assert loop.simd == Simd(16, 1, interleaved=interleaved)


THREE_FUNCTIONS = (
    "%e = math.exp %x : f32 %s = math.sin %x : f32 %t = math.tanh %x : f32"
    " %u = arith.addf %e, %s : f32 %r = arith.addf %u, %t : f32"
)
THREE_TIMES_THE_SAME = (
    "%y = arith.negf %x : f32 %z = arith.mulf %x, %x : f32 %e = math.exp %x : f32"
    " %s = math.exp %y : f32 %t = math.exp %z : f32"
    " %u = arith.addf %e, %s : f32 %r = arith.addf %u, %t : f32"
)
#: Five functions, all of them needed to the end.
FIVE_ALIVE = (
    "".join(
        f"%f{k} = math.{f} %x : f32 " for k, f in enumerate(("exp", "sin", "tanh", "log", "cos"))
    )
    + "".join(f"%m{k} = arith.mulf %f{k}, %f{j} : f32 " for k, j in enumerate((1, 2, 3, 4, 0)))
    + " %a1 = arith.addf %m0, %m1 : f32 %a2 = arith.addf %a1, %m2 : f32"
    " %a3 = arith.addf %a2, %m3 : f32 %r = arith.addf %a3, %m4 : f32"
)


@pytest.mark.parametrize(
    ("body", "registers", "interleaved"),
    [
        (THREE_FUNCTIONS, 16, 2),
        (THREE_FUNCTIONS, 32, 1),
        # The constants of one function have room.
        (THREE_TIMES_THE_SAME, 16, 1),
        (FIVE_ALIVE, 16, 1),
    ],
)
def test_two_vectors_share_constants_that_have_no_room(
    body: str, registers: int, interleaved: int
) -> None:
    body = f"""
    affine.for %j = 0 to 4096 {{
      %x = affine.load %a[%j] : memref<4096xf32>
      {body}
      affine.store %r, %b[%j] : memref<4096xf32>
    }}"""
    chip = target(bits=256, masked=False, registers=registers)
    (loop,) = vectorized("%a: memref<4096xf32>, %b: memref<4096xf32>", body, chip)
    assert loop.simd == Simd(8, 1, masked=False, interleaved=interleaved)


def test_long_bodies_have_fewer_accumulators() -> None:
    """Many operations that do not wait for each other: no vectors side by side either."""
    products = "".join(f"%m{k} = arith.mulf %x, %c{k} : f32\n" for k in range(32))
    constants = "".join(f"%c{k} = arith.constant {k}.5 : f32\n" for k in range(32))
    tree, names = "", [f"%m{k}" for k in range(32)]
    while len(names) > 1:
        pairs = list(zip(names[::2], names[1::2], strict=True))
        level = [f"%s{len(names)}_{k}" for k in range(len(pairs))]
        lines = zip(level, pairs, strict=True)
        tree += "".join(f"{s} = arith.maximumf {a}, {b} : f32\n" for s, (a, b) in lines)
        names = level
    body = f"""
    %z = arith.constant 0.0 : f32
    {constants}
    affine.for %r = 0 to 4 {{
      %t = affine.for %j = 0 to 1000 iter_args(%q = %z) -> (f32) {{
        %x = affine.load %a[%r, %j] : memref<4x1000xf32>
        {products}{tree}
        %u = arith.addf %q, {names[0]} fastmath<reassoc> : f32
        affine.yield %u : f32
      }}
      affine.store %t, %b[%r] : memref<4xf32>
    }}"""
    (loop,) = vectorized("%a: memref<4x1000xf32>, %b: memref<4xf32>", body)
    assert loop.simd == Simd(16, 1)


def test_loop_of_the_team_hands_out_blocks() -> None:
    arguments, body = copy("f32", "f32", extent=400)
    body = body.replace("affine.for %i = 0 to 400", "affine.parallel (%i) = (0) to (400)")
    (loop,) = vectorized(arguments, body[:-1] + '} {polyblocks.level = "team"}')
    assert loop.level is None
    assert loop.var.extent == 64
    assert [repr(e).split(" + ")[-1] for e in loop.upper] == ["400"]


@pytest.mark.parametrize(
    ("arguments", "body", "reason"),
    [
        (*copy("f32", "f32", index="%i * 5"), "a load with stride 5"),
        (
            "%a: memref<400xf32>, %b: memref<300xf32>",
            "affine.for %i = 0 to 100 { %x = affine.load %a[%i] : memref<400xf32>"
            " affine.store %x, %b[%i * 3] : memref<300xf32>"
            " affine.store %x, %b[%i * 3 + 1] : memref<300xf32> }",
            "a store with stride 3",
        ),
        (
            "%a: memref<200xf32>",
            "affine.for %i = 0 to 100 { %x = affine.load %a[%i * 2] : memref<200xf32>"
            " %y = affine.load %a[%i * 2 + 1] : memref<200xf32>"
            " affine.store %y, %a[%i * 2] : memref<200xf32>"
            " %z = affine.load %a[%i * 2] : memref<200xf32>"
            " affine.store %x, %a[%i * 2 + 1] : memref<200xf32> }",
            "a load with stride 2|a store with stride 2",
        ),
        (*copy("f32", "f32", index="%i floordiv 3"), "a load with stride unknown"),
        (*copy("i32", "i32", op="%y = arith.divsi %x, %x : i32"), "an integer division"),
        (*copy("complex<f32>", "complex<f32>"), "values of complex<f32>"),
        (
            "%a: memref<4x100xf32>",
            "%z = arith.constant 0.0 : f32 affine.for %i = 0 to 100 {"
            " affine.store %z, %a[0, 0] : memref<4x100xf32> }",
            "a store with stride 0",
        ),
        (
            "%a: memref<100xf32>, %b: memref<f32>",
            "%z = arith.constant 0.0 : f32"
            " %r = affine.for %i = 0 to 100 iter_args(%s = %z) -> (f32) {"
            " %x = affine.load %a[%i] : memref<100xf32> %t = arith.addf %s, %x : f32"
            " affine.yield %t : f32 } affine.store %r, %b[] : memref<f32>",
            "a carried value is no reduction",
        ),
        (
            "%a: memref<100xindex>, %b: memref<100xf32>, %c: memref<9xf32>",
            "affine.for %i = 0 to 100 { %n = affine.load %a[%i] : memref<100xindex>"
            " %x = memref.load %c[%n] : memref<9xf32> affine.store %x, %b[%i] : memref<100xf32> }",
            "a gather",
        ),
        (
            "%a: memref<100xindex>, %c: memref<9xf32>",
            "%z = arith.constant 0.0 : f32 affine.for %i = 0 to 100 {"
            " %n = affine.load %a[%i] : memref<100xindex>"
            " memref.store %z, %c[%n] : memref<9xf32> }",
            "a scatter",
        ),
        (
            "%a: memref<1xi1>",
            'affine.for %i = 0 to 100 { %x = affine.load %a[0] : memref<1xi1> cf.assert %x, "" }',
            "nothing differs between iterations",
        ),
    ],
)
def test_what_stays_scalar(arguments: str, body: str, reason: str) -> None:
    loop = loop_of(arguments, body)
    with pytest.raises(NoLanesError, match=reason):
        lanes_of(loop)


def test_division_by_a_constant_is_possible() -> None:
    op = "%c = arith.constant 7 : i32 %y = arith.divsi %x, %c : i32"
    assert len(vectorized(*copy("i32", "i32", op=op))) == 1


def test_rows_that_a_gather_picks_are_read_in_order() -> None:
    body = """
    affine.for %i = 0 to 10 {
      affine.for %j = 0 to 64 {
        %n = affine.load %a[%i] : memref<10xindex>
        %x = memref.load %c[%n, %j] : memref<9x64xf32>
        affine.store %x, %b[%i, %j] : memref<10x64xf32>
      }
    }"""
    arguments = "%a: memref<10xindex>, %b: memref<10x64xf32>, %c: memref<9x64xf32>"
    assert [f.var.extent for f in vectorized(arguments, body)] == [64]


def test_iterations_that_depend_on_each_other_stay_scalar() -> None:
    body = """
    affine.for %i = 0 to 99 {
      %x = affine.load %a[%i] : memref<100xf32>
      affine.store %x, %a[%i + 1] : memref<100xf32>
    }"""
    assert vectorized("%a: memref<100xf32>", body) == []


@pytest.mark.parametrize("width", [2, 4, 8, 16])
def test_transposition_in_registers(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shuffles done on lists: ``rows[i][j]`` becomes ``rows[j][i]``."""

    def shuffle(low: list[int], high: list[int], lanes: list[int]) -> list[int]:
        return [(low + high)[n] for n in lanes]

    monkeypatch.setattr(transpose_writer, "shuffle", shuffle)
    rows = [[i * width + j for j in range(width)] for i in range(width)]
    expected = [list(column) for column in zip(*rows, strict=True)]
    assert transpose_writer.transpose(rows) == expected


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("", "squares"),
        ("%x = affine.load %b[%i, %j] : memref<64x64xf32>", "reads what it writes"),
        ("%x = affine.load %a[%j * 2, %i] : memref<128x64xf32>", "squares"),
    ],
)
def test_squares(change: str, reason: str) -> None:
    load = change or "%x = affine.load %a[%j, %i] : memref<128x64xf32>"
    body = f"""
    affine.for %i = 0 to 64 {{ affine.for %j = 0 to 64 {{
      {load}
      affine.store %x, %b[%i, %j] : memref<64x64xf32> }} }}"""
    sequence = read("%a: memref<128x64xf32>, %b: memref<64x64xf32>", body)
    context = PassContext(target(), CompileOptions())
    TileTransposesPass().transform(sequence, context)
    (nest,) = sequence.nests()
    assert nest.changed == (reason == "squares")
    if nest.changed:
        VectorizeNestsPass().transform(sequence, context)
        (square,) = [n for n in walk(nest.body) if isinstance(n, For) and n.simd]
        assert square.simd == Simd(16, square=True)
