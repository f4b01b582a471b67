"""Where threads of a team wait: reused bytes, updates in place, views, loops, and whose rows."""

from __future__ import annotations

from typing import Any

import pytest

from polyblocks import mlir
from polyblocks.codegen.walk import nested
from polyblocks_cpu.passes.outline_kernels import OutlineKernelsPass
from polyblocks_cpu.passes.share_team import ShareTeamPass
from polyblocks_cpu.team.footprints import footprints
from polyblocks_cpu.team.kernels import TRIPS

MATRIX = "memref<64x64xf32>"


def copy(source: str, target: str, name: str = "k", trips: int = 64, type_: str = MATRIX) -> str:
    """A parallel kernel; places are written like ``%x[%i, %j]``."""
    return f"""
    affine.parallel (%i) = (0) to ({trips}) {{
      affine.for %j = 0 to 64 {{
        %v = affine.load {source} : {type_}
        affine.store %v, {target} : {type_}
      }}
    }} {{polyblocks.kernel = "{name}", polyblocks.level = "team"}}"""


def calls(*steps: str) -> list[str]:
    """Calls of kernels in the function that threads run, ``wait`` for a barrier, in order."""
    arguments = ", ".join(f"%{name}: {MATRIX}" for name in "wxyz")
    text = f"func.func @main({arguments}, %ws: memref<65536xi8>, %n: memref<1xi32>) {{"
    module = mlir.parse("\n".join([text, *steps, "return }"]))
    for pass_ in (OutlineKernelsPass(), ShareTeamPass()):
        pass_.run(module, None)
    team = next(
        op.operation
        for op in module.body.operations
        if op.operation.attributes["sym_name"].value == "main_team"
    )
    names = [op.attributes["callee"].value for op in nested(team) if op.name == "func.call"]
    assert module.operation.verify()
    return ["wait" if name == "wait_for_team" else name for name in names]


def view(name: str, offset: int, type_: str = MATRIX) -> str:
    """A view of the workspace."""
    return f"""
    %o{name} = arith.constant {offset} : index
    %{name} = memref.view %ws[%o{name}][] : memref<65536xi8> to {type_}"""


ROWS, COLUMNS = "[%i, %j]", "[%j, %i]"


def test_what_is_not_shared_needs_no_barrier() -> None:
    found = calls(copy("%w[%i, %j]", "%x[%j, %i]", "a"), copy("%y[%i, %j]", "%z[%j, %i]", "b"))
    assert found == ["a", "b"]


def test_what_is_only_read_needs_none() -> None:
    found = calls(copy("%w[%j, %i]", "%x[%i, %j]", "a"), copy("%w[%i, %j]", "%z[%i, %j]", "b"))
    assert found == ["a", "b"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(("%w", ROWS, "%x", ROWS), ("%x", COLUMNS, "%y", ROWS), id="read after write"),
        pytest.param(("%w", COLUMNS, "%x", ROWS), ("%y", ROWS, "%w", ROWS), id="write after read"),
        pytest.param(("%w", ROWS, "%x", ROWS), ("%y", ROWS, "%x", COLUMNS), id="write after write"),
        pytest.param(("%w", ROWS, "%x", ROWS), ("%x", "[63 - %i, %j]", "%y", ROWS), id="backwards"),
        pytest.param(
            ("%w", ROWS, "%x", ROWS), ("%x", "[(%i + 1) mod 64, %j]", "%y", ROWS), id="next row"
        ),
    ],
)
def test_data_that_crosses_threads(first: Any, second: Any) -> None:
    kernels = [
        copy(f"{a}{at}", f"{b}{to}", name) for name, (a, at, b, to) in (("a", first), ("b", second))
    ]
    assert calls(*kernels) == ["a", "wait", "b"]


def test_rows_of_the_same_thread() -> None:
    found = calls(
        copy("%w[%i, %j]", "%x[%i, %j]", "a"),
        # Updated in place.
        copy("%x[%i, %j]", "%x[%i, 63 - %j]", "b"),
        copy("%x[%i, %j]", "%y[%i, %j]", "c"),
        copy("%z[%i, %j]", "%w[%i, %j]", "d"),
    )
    assert found == ["a", "b", "c", "d"]


def test_rows_of_another_number_of_iterations() -> None:
    found = calls(
        copy("%w[%i, %j]", "%x[%i, %j]", "a"),
        copy("%x[%i, %j]", "%y[%i, %j]", "b", trips=32),
    )
    assert found == ["a", "wait", "b"]


def test_parts_of_an_array_apart_from_each_other() -> None:
    found = calls(
        copy("%w[%j, %i]", "%x[%i, %j]", "a", trips=32),
        copy("%y[%j, %i]", "%x[%i + 32, %j]", "b", trips=32),
        copy("%y[%j, %i]", "%x[%i + 31, %j]", "c", trips=2),
    )
    assert found == ["a", "b", "wait", "c"]


def test_buffers_of_the_workspace_that_share_bytes() -> None:
    apart = [view("a", 0), view("b", 16384)]
    steps = [copy("%x[%j, %i]", "%a[%i, %j]", "a"), copy("%y[%j, %i]", "%b[%i, %j]", "b")]
    assert calls(*apart, *steps) == ["a", "b"]
    # The last row of the one is the first of the other.
    assert calls(view("a", 0), view("b", 16128), *steps) == ["a", "wait", "b"]
    # All of it, with another partition of the threads by other rows.
    moved = [view("a", 0), view("b", 256)]
    assert calls(*moved, *steps) == ["a", "wait", "b"]
    assert calls(view("a", 0), view("b", 0), *steps) == ["a", "b"]


def test_views_of_an_argument_share_its_bytes() -> None:
    flat = """
    %flat = memref.reinterpret_cast %x to offset: [0], sizes: [4096], strides: [1]
      : memref<64x64xf32> to memref<4096xf32>"""
    other = """
    affine.parallel (%i) = (0) to (64) {
      affine.for %j = 0 to 64 {
        %v = affine.load %y[%i, %j] : memref<64x64xf32>
        affine.store %v, %flat[INDEX] : memref<4096xf32>
      }
    } {polyblocks.kernel = "b", polyblocks.level = "team"}"""
    first = copy("%w[%i, %j]", "%x[%i, %j]", "a")
    assert calls(flat, first, other.replace("INDEX", "%i * 64 + %j")) == ["a", "b"]
    assert calls(flat, first, other.replace("INDEX", "%j * 64 + %i")) == ["a", "wait", "b"]


def test_a_view_that_begins_anywhere_is_all_of_its_memory() -> None:
    part = """
    %k = affine.load %n[0] : memref<1xi32>
    %at = arith.index_cast %k : i32 to index
    %part = memref.subview %x[%at, 0] [1, 64] [1, 1]
      : memref<64x64xf32> to memref<1x64xf32, strided<[64, 1], offset: ?>>
    affine.parallel (%i) = (0) to (64) {
      %v = affine.load %y[0, %i] : memref<64x64xf32>
      affine.store %v, %part[0, %i] : memref<1x64xf32, strided<[64, 1], offset: ?>>
    } {polyblocks.kernel = "b", polyblocks.level = "team"}"""
    assert calls(copy("%w[%i, %j]", "%x[%i, %j]", "a"), part) == ["a", "wait", "b"]


def test_what_one_thread_does_alone() -> None:
    alone = """
    affine.for %i = 0 to 64 {
      %v = affine.load %x[%i, 0] : memref<64x64xf32>
      affine.store %v, %y[0, %i] : memref<64x64xf32>
    } {polyblocks.kernel = "NAME"}"""
    one, two = alone.replace("NAME", "s"), alone.replace("NAME", "t")
    found = calls(
        copy("%w[%i, %j]", "%x[%i, %j]", "a"), one, two, copy("%y[%i, %j]", "%z[%i, %j]", "b")
    )
    assert found == ["a", "wait", "s", "t", "wait", "b"]
    # Beside what it does not touch.
    other = one.replace("%x", "%z").replace("%y", "%z")
    found = calls(copy("%w[%i, %j]", "%x[%i, %j]", "a"), other, copy("%x[%i, %j]", "%y[%i, %j]"))
    assert found == ["a", "s", "k"]


def loop(*body: str) -> str:
    """A loop of the program."""
    inside = "\n".join(body)
    return f'affine.for %t = 0 to 4 {{ {inside} }} {{polyblocks.region = "loop"}}'


def test_the_next_iteration() -> None:
    # The first reads what others wrote in the iteration before, the second overwrites it.
    found = calls(
        loop(copy("%x[%j, %i]", "%y[%i, %j]", "a"), copy("%y[%i, %j]", "%x[%i, %j]", "b"))
    )
    assert found == ["wait", "a", "wait", "b"]
    found = calls(
        loop(copy("%x[%i, %j]", "%y[%i, %j]", "a"), copy("%y[%i, %j]", "%x[%i, %j]", "b"))
    )
    assert found == ["a", "b"]
    found = calls(
        loop(copy("%w[%j, %i]", "%x[%i, %j]", "a")), copy("%x[%j, %i]", "%y[%i, %j]", "b")
    )
    assert found == ["a", "wait", "b"]


def test_a_loop_that_may_not_run_hides_nothing() -> None:
    bound = """
    %k = affine.load %n[0] : memref<1xi32>
    %to = arith.index_cast %k : i32 to index
    %from = arith.constant 0 : index
    %one = arith.constant 1 : index"""
    inside = copy("%x[%j, %i]", "%z[%i, %j]", "b")
    found = calls(
        bound,
        copy("%w[%i, %j]", "%x[%i, %j]", "a"),
        f'scf.for %t = %from to %to step %one {{ {inside} }} {{polyblocks.region = "loop"}}',
        copy("%x[%j, %i]", "%y[%i, %j]", "c"),
    )
    assert found == ["a", "wait", "b", "wait", "c"]


def test_a_condition_is_loaded_before_it_is_overwritten() -> None:
    kernel = copy("%x[%i, %j]", "%x[%i, %j]", "a")
    text = f"""
    %none = arith.constant 0 : i32
    scf.while : () -> () {{
      %k = affine.load %n[0] : memref<1xi32>
      %c = arith.cmpi sgt, %k, %none : i32
      scf.condition(%c)
    }} do {{
      {kernel}
      affine.store %none, %n[0] : memref<1xi32>
      scf.yield
    }} attributes {{polyblocks.region = "loop"}}"""
    assert calls(text) == ["wait", "a", "wait"]


def test_one_thread_decides_what_depends_on_floats() -> None:
    text = f"""
    %given = affine.load %z[0, 0] : {MATRIX}
    %none = arith.constant 0.0 : f32
    %c = arith.cmpf ogt, %given, %none : f32
    scf.if %c {{
      {copy("%w[%i, %j]", "%x[%i, %j]", "a")}
      {copy("%x[%j, %i]", "%y[%i, %j]", "b")}
    }} {{polyblocks.region = "branch"}}"""
    # The first barrier hands the condition over.
    assert calls(text) == ["wait", "a", "wait", "b"]


def test_rows_by_masked_vectors() -> None:
    """The last vector of a row goes as far as its mask."""
    rows = """
    affine.parallel (%i) = (0) to (64) {
      %at = arith.constant 48 : index
      %on = arith.constant dense<[LANES]> : vector<16xi1>
      %none = arith.constant dense<0.0> : vector<16xf32>
      %next = affine.apply affine_map<(i) -> (i)>(%i)
      %v = vector.maskedload %a[%next, %at], %on, %none
        : memref<64x56xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
      vector.maskedstore %b[%next, %at], %on, %v
        : memref<64x56xf32>, vector<16xi1>, vector<16xf32>
    } {polyblocks.kernel = "NAME", polyblocks.level = "team"}"""
    type_ = "memref<64x56xf32>"
    views = [view("a", 0, type_), view("b", 16384, type_)]
    for lanes, expected in ((8, ["k", "l"]), (9, ["k", "wait", "l"])):
        mask = ", ".join(["true"] * lanes + ["false"] * (16 - lanes))
        first = rows.replace("LANES", mask).replace("NAME", "k")
        second = first.replace('"k"', '"l"').replace("%a[", "%c[").replace("%b[", "%a[")
        second = second.replace("%c[", "%b[").replace("constant 48", "constant 0")
        assert calls(*views, first, second) == expected


def test_footprints_of_a_kernel() -> None:
    body = copy("%x[%j, %i]", "%y[%i, %j]")
    module = mlir.parse(f"func.func @main(%x: {MATRIX}, %y: {MATRIX}) {{ {body} return }}")
    OutlineKernelsPass().run(module, None)
    kernel = next(op for op in module.body.operations if TRIPS in op.operation.attributes)
    found = footprints(kernel.operation, 64)
    columns, rows = found[2], found[3]
    assert (rows.low[:3].tolist(), rows.high[:3].tolist()) == ([0, 256, 512], [256, 512, 768])
    assert columns.low[1] == 4
    assert columns.high[1] == 63 * 256 + 8
    assert rows.owned_beside(rows, 0, 0)
    assert not rows.owned_beside(columns, 0, 0)
    assert not rows.owned_beside(rows, 0, 4)


def test_footprints_of_a_product_of_tiles() -> None:
    module = mlir.parse(f"""func.func @main(%c: {MATRIX}, %a: {MATRIX}, %b: {MATRIX}) {{
      affine.parallel (%i) = (0) to (4) {{
        "polyblocks.multiply"(%a, %b, %c, %i) {{
          unit = "u", shape = array<i64: 16, 8, 32>,
          accumulator = affine_map<(d0)[s0, s1] -> (d0 * 16 + s0, s1)>,
          a = affine_map<(d0)[s0, s1] -> (d0 * 16 + s0, s1 + 32)>,
          b = affine_map<(d0)[s0, s1] -> (s0, s1)>
        }} : ({MATRIX}, {MATRIX}, {MATRIX}, index) -> ()
      }} {{polyblocks.kernel = "k", polyblocks.level = "team"}}
      return }}""")
    OutlineKernelsPass().run(module, None)
    kernel = next(op for op in module.body.operations if TRIPS in op.operation.attributes)
    names = list(kernel.operation.regions[0].blocks[0].arguments)[2:]
    found = footprints(kernel.operation, 4)
    ends = sorted((f.low.tolist(), f.high.tolist()) for f in found.values())
    rows = [row * 16 * 256 for row in range(4)]
    assert len(ends) == len(names) == 3
    assert ends == sorted(
        [
            (rows, [r + 15 * 256 + 8 * 4 for r in rows]),
            ([r + 128 for r in rows], [r + 15 * 256 + 256 for r in rows]),
            ([0] * 4, [31 * 256 + 8 * 4] * 4),
        ]
    )
