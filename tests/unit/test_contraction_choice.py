"""Which tiles contractions get on which chips."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from product_loops import PRODUCT
from tests.support.gpu_target import gpu_target
from tests.support.nests import Context

from polyblocks import mlir
from polyblocks.affine.analysis.contractions import contraction_of
from polyblocks.affine.contraction.copies import copy_extents, operand_time
from polyblocks.affine.contraction.products.flat_product import FlatProduct, products_of
from polyblocks.affine.contraction.products.windows import Windows, innermost
from polyblocks.affine.contraction.tiling import Tiling
from polyblocks.affine.contraction.tilings import choice
from polyblocks.affine.contraction.tilings.choice import (
    Tiled,
    candidate_products,
    choose_tiling,
    cost_of,
    tilings_of,
)
from polyblocks.affine.contraction.tilings.eligibility import is_tiled, may_be_tiled
from polyblocks.affine.contraction.tilings.schedule import schedule_of, scheduled
from polyblocks.affine.contraction.tilings.tiling_cost import TilingCost
from polyblocks.affine.contraction.tilings.tiling_space import TilingSpace
from polyblocks.affine.expr import Expr
from polyblocks.affine.flat_views import FlatViews
from polyblocks.affine.mlir import reader
from polyblocks.affine.model import (
    Buffer,
    For,
    Load,
    Nest,
    Node,
    Sequence,
    Value,
    clone,
    program_buffers,
)
from polyblocks.affine.plan.schedule import Schedule
from polyblocks.options import CompileOptions
from polyblocks.passes.contraction import plan_contractions
from polyblocks.target import TargetDescription
from polyblocks_cpu.describe import describe

CHIPS = ["x86-64-v4", "x86-64-v3", "x86-64", "znver4", "sapphirerapids", "neoverse-n1"]


def nest(m: int, n: int, k: int) -> tuple[list[Node], FlatViews]:
    module = mlir.parse(PRODUCT.format(m=m, n=n, k=k))
    with module.context:
        sequence = reader.read(module)
    return sequence.nests()[0].body, FlatViews(sequence)


def product(m: int, n: int, k: int) -> FlatProduct:
    """The product as it is stored: columns of the result are columns."""
    body, views = nest(m, n, k)
    contraction = contraction_of(body)
    assert contraction is not None
    found = products_of(contraction, views)
    return next(p for p in found if p.column.extent == n and not p.waits)


def tiling(target: TargetDescription, m: int, n: int, k: int, threads: int | None = None) -> Tiling:
    found = choose_tiling(TilingCost(product(m, n, k), target, target.vector_bits // 32, threads))
    assert found is not None
    return found


def chip(arch: str) -> TargetDescription:
    return describe(CompileOptions(arch=arch))


@pytest.mark.parametrize("m", [1, 2, 3, 4, 65, 128])
@pytest.mark.parametrize("n", [1, 2, 4, 63, 64])
@pytest.mark.parametrize("k", [2, 3, 4, 64, 65])
def test_extents_alone_tell_that_a_product_has_no_tiles(m: int, n: int, k: int) -> None:
    body, _ = nest(m, n, k)
    assert may_be_tiled([m, n], k) == is_tiled(contraction_of(body), chip("x86-64-v4"))
    # Rows and columns may be of several loops each.
    assert may_be_tiled([2, m, n, 2], k) >= may_be_tiled([m, n], k)
    assert may_be_tiled([], k) is False


def test_equal_contractions_are_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Nest] = []
    tile = plan_contractions.tiled_nodes

    def counted(tiled: Tiled, nest: Nest, *rest: Any) -> Any:
        asked.append(nest)
        return tile(tiled, nest, *rest)

    monkeypatch.setattr(plan_contractions, "tiled_nodes", counted)
    first, other = (nest(*size)[0] for size in [(64, 96, 80), (96, 64, 80)])
    equal = [clone(first, {}, {}, {b: b.like() for b in program_buffers(first)}) for _ in range(3)]
    nests = [Nest(body, []) for body in (*equal, other)]
    buffers = [b for each in nests for b in program_buffers(each.body)]
    sequence = Sequence(list(nests), buffers)
    context = Context()
    context.target = chip("x86-64-v4")
    plan_contractions.PlanContractionsPass().transform(sequence, context)
    schedules = [loop.schedule for each in nests for loop in each.body if isinstance(loop, For)]
    assert schedules[0] is not None
    assert schedules[0] == schedules[1] == schedules[2] != schedules[3]
    assert asked == [nests[0], nests[3]]


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(1024, 1024, 1024), (127, 3073, 769), (8, 4096, 4096), (64, 512, 512), (5, 7, 9)],
)
def test_tiles_fit_into_registers(arch: str, m: int, n: int, k: int) -> None:
    target = chip(arch)
    found = tiling(target, m, n, k)
    vectors = found.lanes * 32 // target.vector_bits
    assert found.rows * vectors + vectors + 1 <= target.vector_registers
    assert found.row_block <= m
    assert found.column_block <= n
    assert found.row_block % found.rows == 0 or found.row_block == m
    assert found.column_block % found.lanes == 0 or found.column_block == n
    assert found.chain <= found.depth <= k


@pytest.mark.parametrize(
    ("arch", "rows", "vectors"), [("znver4", 14, 2), ("x86-64-v3", 6, 2), ("neoverse-n1", 6, 4)]
)
def test_large_products_have_the_tiles_that_chips_are_known_for(
    arch: str, rows: int, vectors: int
) -> None:
    target = chip(arch)
    found = tiling(target, 32 * rows, 4096, 500)
    assert (found.rows, found.lanes * 32 // target.vector_bits) == (rows, vectors)
    assert not found.pack_rows


def test_rows_that_meet_in_few_sets_of_a_cache_are_few_rather_than_copied() -> None:
    found = tiling(chip("znver4"), 1024, 1024, 1024)
    assert (found.rows, found.lanes, found.pack_rows) == (4, 64, False)
    # Columns are copied in blocks of half of the second cache, just before they are used.
    assert found.column_block * 1024 * 4 <= 1 << 19


def test_loads_decide_about_the_shape_of_a_tile() -> None:
    # With loads for nothing, rows cost nothing: one vector of columns and many rows are as good.
    few, many = (replace(chip("x86-64-v3"), loads_per_multiply_add=loads) for loads in (0.5, 100.0))
    square = tiling(few, 420, 4096, 500)
    assert square.lanes == 16
    assert tiling(many, 420, 4096, 500).rows != square.rows


def test_pieces_for_all_threads_or_for_none() -> None:
    target = chip("x86-64-v4")
    large, small = tiling(target, 1024, 1024, 1024), tiling(target, 8, 16, 16)
    assert large.threads == target.shared_level.size
    assert large.row_pieces * large.column_pieces >= large.threads
    assert (small.threads, small.row_pieces, small.column_pieces) == (1, 1, 1)


def test_results_as_large_as_the_private_cache_do_not_stay_in_it() -> None:
    # A chunk of 64 x 4096 results fills it, which leaves no step of the operands any room.
    found = tiling(chip("znver4"), 4096, 64, 8192)
    assert found.row_block * found.column_block * 4 < chip("znver4").memory[1].size


def test_one_thread_in_a_tile() -> None:
    found = tiling(chip("x86-64-v4"), 64, 1024, 64, threads=1)
    assert (found.threads, found.row_pieces, found.column_pieces) == (1, 1, 1)


def test_few_rows_go_through_columns_once() -> None:
    found = tiling(chip("znver4"), 8, 4096, 4096)
    assert found.rows == 8
    assert found.depth < 4096
    assert not found.pack_columns


def test_long_sums_are_chains() -> None:
    assert 64 <= tiling(chip("znver4"), 256, 256, 1000).chain <= 192


def test_contractions_that_are_tiled() -> None:
    contraction = contraction_of(nest(64, 64, 64)[0])
    assert is_tiled(contraction, chip("x86-64-v4"))
    assert is_tiled(contraction, gpu_target())
    assert not is_tiled(contraction_of(nest(64, 2, 64)[0]), chip("x86-64-v4"))
    assert not is_tiled(contraction, replace(chip("x86-64-v4"), vector_bits=0))


CONVOLUTION = """
func.func @main(%x: memref<{c}x{h}x{h}xf32>, %w: memref<{o}x{c}x3x3xf32>,
                %y: memref<{o}x{m}x{m}xf32>) {{
  %z = arith.constant 0.0 : f32
  affine.for %o = 0 to {o} {{ affine.for %i = 0 to {m} {{ affine.for %j = 0 to {m} {{
    %r = affine.for %c = 0 to {c} iter_args(%a0 = %z) -> (f32) {{
      %r1 = affine.for %u = 0 to 3 iter_args(%a1 = %a0) -> (f32) {{
        %r2 = affine.for %v = 0 to 3 iter_args(%a2 = %a1) -> (f32) {{
          %p = affine.load %x[%c, %i + %u, %j + %v] : memref<{c}x{h}x{h}xf32>
          %q = affine.load %w[%o, %c, %u, %v] : memref<{o}x{c}x3x3xf32>
          %m = arith.mulf %p, %q fastmath<reassoc,contract> : f32
          %t = arith.addf %a2, %m fastmath<reassoc,contract> : f32
          affine.yield %t : f32
        }}
        affine.yield %r2 : f32
      }}
      affine.yield %r1 : f32
    }}
    affine.store %r, %y[%o, %i, %j] : memref<{o}x{m}x{m}xf32>
  }} }} }}
  return
}}
"""


def convolution(
    channels: int, filters: int, pixels: int, arch: str, threads: int | None = None
) -> Tiled:
    text = CONVOLUTION.format(c=channels, o=filters, m=pixels, h=pixels + 2)
    module = mlir.parse(text)
    with module.context:
        sequence = reader.read(module)
    contraction = contraction_of(sequence.nests()[0].body)
    assert contraction is not None
    return next(tilings_of(contraction, FlatViews(sequence), chip(arch), threads))


@pytest.mark.parametrize("pixels", [14, 28, 56])
def test_pixels_are_used_in_place(pixels: int) -> None:
    tiled = convolution(64, 64, pixels, "znver4")
    windows = tiled.cost.product.windows
    assert windows is not None
    assert windows.steps == [3, 3, 64]
    assert windows.run == pixels
    assert pixels % tiled.tiling.rows == 0
    assert not tiled.tiling.pack_rows


@pytest.mark.parametrize(("apart", "in_place"), [(16, True), (4096, False)])
def test_rows_of_which_steps_meet_in_one_set_are_copied(apart: int, in_place: bool) -> None:
    # Of mirrored weights, each filter's and each channel's elements are on lines of their own:
    # with 16 KiB between channels a hundred lines want one set, before the next step uses them.
    cost = convolution(100, 64, 14, "znver4").cost
    operand = next(o for o in cost.product.operands if not o.of_rows)
    row, step = cost.product.row, cost.product.step
    index = (Expr(0, {row: 16}) + (Expr.of(step) % 100) * apart + Expr.of(step) // 100,)
    buffer = Buffer((1 << 20,), None, "input")
    load = Load(Value(None), buffer, index)
    moved = replace(operand, in_place=load, nodes=[load])
    assert cost.footprints.conflicts(moved, 8) is not in_place


def test_few_channels_are_copied() -> None:
    # All loops of steps are so short that ends of loops took longer than copies.
    assert convolution(2, 64, 56, "znver4").cost.product.windows is None


LAST = """
func.func @main(%x: memref<16x16x{all}xf32>, %w: memref<8x3x3x{c}xf32>,
                %y: memref<8x14x14xf32>) {{
  %z = arith.constant 0.0 : f32
  affine.for %o = 0 to 8 {{ affine.for %i = 0 to 14 {{ affine.for %j = 0 to 14 {{
    %r = affine.for %u = 0 to 3 iter_args(%a0 = %z) -> (f32) {{
      %r1 = affine.for %v = 0 to 3 iter_args(%a1 = %a0) -> (f32) {{
        %r2 = affine.for %c = 0 to {c} iter_args(%a2 = %a1) -> (f32) {{
          %p = affine.load %x[%i + %u, %j + %v, %c] : memref<16x16x{all}xf32>
          %q = affine.load %w[%o, %u, %v, %c] : memref<8x3x3x{c}xf32>
          %m = arith.mulf %p, %q fastmath<reassoc,contract> : f32
          %t = arith.addf %a2, %m fastmath<reassoc,contract> : f32
          affine.yield %t : f32
        }}
        affine.yield %r2 : f32
      }}
      affine.yield %r1 : f32
    }}
    affine.store %r, %y[%o, %i, %j] : memref<8x14x14xf32>
  }} }} }}
  return
}}
"""


@pytest.mark.parametrize("channels", [2, 3, 5])
def test_copies_begin_where_memory_has_gaps(channels: int) -> None:
    def each(present: int) -> float:
        module = mlir.parse(LAST.format(c=channels, all=present))
        with module.context:
            sequence = reader.read(module)
        contraction = contraction_of(sequence.nests()[0].body)
        assert contraction is not None
        products = products_of(contraction, FlatViews(sequence))
        copied = (
            operand_time(p, o, 16)
            for p in products
            for o in p.operands
            if o.in_place is None and o.of_rows
        )
        return min(copied)

    # Of all channels the runs are those of three pixels, of some they are those of one.
    assert 1.5 * each(channels) < each(channels + 4)


DIGITS = """
func.func @main(%a: memref<{rows}x384x{n}xf32>, %b: memref<384x640xf32>,
                %c: memref<196x640xf32>) {{
  %z = arith.constant 0.0 : f32
  affine.for %i = 0 to 196 {{
    affine.for %j = 0 to 640 {{
      %r = affine.for %k = 0 to 384 iter_args(%s = %z) -> (f32) {{
        %x = affine.load %a[%i floordiv {n}, %k, %i mod {n}] : memref<{rows}x384x{n}xf32>
        %y = affine.load %b[%k, %j] : memref<384x640xf32>
        %p = arith.mulf %x, %y fastmath<reassoc,contract> : f32
        %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
        affine.yield %t : f32
      }}
      affine.store %r, %c[%i, %j] : memref<196x640xf32>
    }}
  }}
  return
}}
"""


@pytest.mark.parametrize("pixels", [4, 14, 49])
def test_copies_begin_where_one_number_counts_two_dimensions(pixels: int) -> None:
    def rows_of(module: Any) -> tuple[list[int], float]:
        with module.context:
            sequence = reader.read(module)
        contraction = contraction_of(sequence.nests()[0].body)
        assert contraction is not None
        made = products_of(contraction, FlatViews(sequence))
        found = next(p for p in made if p.column.extent == 640 and not p.waits)
        operand = next(o for o in found.operands if o.of_rows)
        counts = copy_extents(operand, found.row, found.rows)
        return counts, operand_time(found, operand, 16)

    whole, cut = (rows_of(mlir.parse(DIGITS.format(rows=196 // n, n=n))) for n in (196, pixels))
    assert whole[0] == [196]
    assert cut[0] == [196 // pixels, pixels]
    # Vectors end where memory goes on elsewhere.
    assert cut[1] > whole[1]


def test_sums_in_windows_are_chains_of_whole_loops() -> None:
    assert Windows(14, [3, 3, 64]).chain(128) == 192
    assert Windows(14, [3, 3, 128]).chain(128) == 128
    assert Windows(14, [3, 3, 256]).chain(128) == 128
    assert Windows(14, [3, 3, 300]).chain(128) == 100


@pytest.mark.parametrize(("m", "n", "k"), [(128, 3072, 768), (64, 512, 512), (96, 2048, 500)])
def test_rows_stay_beside_a_block_of_columns_and_what_it_is_copied_from(
    m: int, n: int, k: int
) -> None:
    target = chip("znver5")
    found = tiling(target, m, n, k)
    assert not found.pack_rows
    l2 = next(level.size for level in target.memory if level.name == "L2")
    assert 4 * k * (m + 2 * found.column_block) <= 0.8 * l2


def test_rows_in_a_panel_that_leaves_the_first_cache_cost_its_lines() -> None:
    target = chip("sapphirerapids")
    cost = TilingCost(product(1568, 256, 512), target, 16, 1)
    found = choose_tiling(cost)
    assert found is not None
    near = found._replace(rows=14, row_block=14, pack_rows=True)
    far = near._replace(row_block=1568)
    assert near.row_block * near.depth * 4 < target.memory[0].size < far.row_block * far.depth * 4
    assert cost.time(far) > cost.time(near)


@pytest.mark.parametrize(("pixels", "stay"), [(14, True), (112, False)])
def test_rows_in_windows_come_again_for_every_block_unless_they_stay(
    pixels: int, stay: bool
) -> None:
    # 64 channels: 64 KiB of pixels, or more than 3 MiB where a cache has 2.
    tiled = convolution(64, 256, pixels, "sapphirerapids")
    cost, found = tiled.cost, tiled.tiling._replace(row_pieces=1, column_pieces=1, threads=1)
    few, many = (found._replace(column_block=columns) for columns in (256, 64))
    assert cost.product.windows is not None
    assert cost._window_time > 0
    again = cost.time(many) - cost.time(few)
    assert again == pytest.approx(0 if stay else 3 * cost._window_time, rel=1e-6, abs=1.0)


def test_passes_are_whole_inner_loops_and_a_part_of_the_next() -> None:
    windows = Windows(64, [8, 96, 96])
    assert [windows.pass_steps(most) for most in (73727, 9216, 4608, 300, 96, 95, 1)] == [
        *(36864, 9216, 4608, 288, 96, 48, 1)
    ]
    assert innermost([8, 96, 96], 288) == [3, 96]
    assert innermost([8, 96, 96], 36864) == [4, 96, 96]
    assert innermost([8, 96, 96], 48) == [48]
    assert innermost([8, 96, 96], 64) is None
    assert innermost([3, 1, 7], 21) == [3, 1, 7]


GRADIENT = """
func.func @main(%x: memref<{n}x{p}x{p}x{c}xf32>, %g: memref<{n}x{m}x{m}x{o}xf32>,
                %y: memref<3x3x{c}x{o}xf32>) {{
  %z = arith.constant 0.0 : f32
  affine.for %u = 0 to 3 {{ affine.for %v = 0 to 3 {{
  affine.for %c = 0 to {c} {{ affine.for %o = 0 to {o} {{
    %r = affine.for %i = 0 to {n} iter_args(%a0 = %z) -> (f32) {{
      %r1 = affine.for %h = 0 to {m} iter_args(%a1 = %a0) -> (f32) {{
        %r2 = affine.for %w = 0 to {m} iter_args(%a2 = %a1) -> (f32) {{
          %p = affine.load %x[%i, %h + %u, %w + %v, %c] : memref<{n}x{p}x{p}x{c}xf32>
          %q = affine.load %g[%i, %h, %w, %o] : memref<{n}x{m}x{m}x{o}xf32>
          %m = arith.mulf %p, %q fastmath<reassoc,contract> : f32
          %t = arith.addf %a2, %m fastmath<reassoc,contract> : f32
          affine.yield %t : f32
        }}
        affine.yield %r2 : f32
      }}
      affine.yield %r1 : f32
    }}
    affine.store %r, %y[%u, %v, %c, %o] : memref<3x3x{c}x{o}xf32>
  }} }} }} }}
  return
}}
"""


@pytest.mark.parametrize(("images", "pixels", "channels"), [(8, 96, 64), (8, 24, 256)])
def test_gradients_of_weights_go_through_pixels_that_stay_near(
    images: int, pixels: int, channels: int
) -> None:
    # Every row meets all pixels: in one pass these came from the last cache for each register tile.
    target = chip("sapphirerapids")
    # Of two cores, which is a small part of the rate of all.
    share = 2 / target.shared_level.size
    target = replace(
        target,
        parallel=(replace(target.shared_level, size=2),),
        flops={name: share * rate for name, rate in target.flops.items()},
        memory=tuple(
            replace(level, shared_by=2, bandwidth=share * level.bandwidth)
            if level.shared_by > 1
            else level
            for level in target.memory
        ),
    )
    text = GRADIENT.format(n=images, m=pixels, p=pixels + 2, c=channels, o=channels)
    module = mlir.parse(text)
    with module.context:
        sequence = reader.read(module)
    contraction = contraction_of(sequence.nests()[0].body)
    assert contraction is not None
    tiled = next(tilings_of(contraction, FlatViews(sequence), target, None))
    cost, found = tiled.cost, tiled.tiling
    assert cost.product.windows is not None
    assert not found.pack_rows
    assert found.depth < images * pixels * pixels
    assert found.depth % pixels == 0
    l2 = next(level.size for level in target.memory if level.name == "L2")
    results = found.row_block * found.column_block * 4
    assert results + found.depth * found.column_block * 4 < l2 // 2
    passes = images * pixels * pixels // found.depth
    whole = found._replace(depth=passes * found.depth, row_block=found.rows)
    assert cost.time(whole) >= cost.time(found)
    # Neither a panel nor pixels of so many steps stay in a private cache.
    assert (cost.time(whole) > 1.2 * cost.time(found)) == (
        whole.depth * found.column_block * 4 > l2
    )


def test_rows_in_windows_cost_the_lines_that_do_not_stay() -> None:
    near = convolution(64, 64, 14, "sapphirerapids")
    assert near.cost._cache_time(near.tiling, 2, 1) == pytest.approx(
        0.0, abs=near.cost.core.l2_load
    )
    shared = near.cost.core.shared_load
    assert shared > near.cost.core.l2_load > 0
    # A panel that no private cache holds comes from the one that threads share.
    steps = near.cost.steps
    near.cost.core = replace(near.cost.core, l2_bytes=near.cost.width * steps)
    assert near.cost._cache_time(near.tiling, 2, 1) >= shared


def test_results_that_take_the_time_are_stored_row_by_row() -> None:
    target = chip("sapphirerapids")
    # The last cache keeps a sixth of the results.
    few, many = (TilingCost(product(36864, 4096, k), target, 16, 1) for k in (8, 1024))
    found = choose_tiling(few)
    assert found is not None
    assert (found.row_block, found.column_block) == (found.rows, 4096)
    across = found._replace(row_block=36864)
    assert few.time(across) > 1.1 * few.time(found)
    # Not of many steps: all rows of a panel use its columns then, one after the other.
    found = choose_tiling(many)
    assert found is not None
    assert found.row_block > found.rows


def obeyed(tiled: Tiled) -> Tiling:
    """The tiling that the schedule of a contraction in tiles says."""
    cost = tiled.cost
    schedule = Schedule(schedule_of(tiled), "product", "imaginary:one")
    return scheduled([cost.product], lambda _: cost, schedule).tiling


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("threads", [None, 1])
def test_what_is_chosen_is_a_schedule_that_is_obeyed(arch: str, threads: int | None) -> None:
    target = chip(arch)
    for sizes in ((1024, 1024, 1024), (127, 3073, 769), (4608, 4096, 8), (64, 512, 512)):
        cost = TilingCost(product(*sizes), target, target.vector_bits // 32, threads)
        found = choose_tiling(cost)
        assert found is not None
        assert obeyed(Tiled(cost, found, None)) == found
    # A panel of 64 columns and 2304 steps has 576 KiB, on the stack if this is in a tile.
    for channels, pixels in ((256, 24), (64, 14), (512, 14)):
        tiled = convolution(channels, 64, pixels, arch, threads)
        assert obeyed(tiled) == tiled.tiling


WORDS = """
func.func @main(%a: memref<96x{k}xbf16>, %b: memref<{k}x200xbf16>, %c: memref<96x200xf32>) {{
  %z = arith.constant 0.0 : f32
  affine.for %i = 0 to 96 {{ affine.for %j = 0 to 200 {{
    %s = affine.for %l = 0 to {k} iter_args(%p = %z) -> (f32) {{
      %v = affine.load %a[%i, %l] : memref<96x{k}xbf16>
      %w = affine.load %b[%l, %j] : memref<{k}x200xbf16>
      %x = arith.extf %v : bf16 to f32
      %y = arith.extf %w : bf16 to f32
      %m = arith.mulf %x, %y fastmath<reassoc,contract> : f32
      %u = arith.addf %p, %m fastmath<reassoc,contract> : f32
      affine.yield %u : f32
    }}
    affine.store %s, %c[%i, %j] : memref<96x200xf32>
  }} }}
  return
}}
"""
SEVERAL_PRODUCTS = [
    CONVOLUTION.format(c=64, o=96, m=7, h=9),
    CONVOLUTION.format(c=32, o=64, m=28, h=30),
    GRADIENT.format(n=2, m=14, p=16, c=24, o=40),
    WORDS.format(k=96),
    WORDS.format(k=2048),
]


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("text", SEVERAL_PRODUCTS)
@pytest.mark.parametrize("threads", [None, 1])
def test_products_are_ranked_as_if_all_were_searched(
    arch: str, text: str, threads: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = mlir.parse(text)
    with module.context:
        sequence = reader.read(module)
        contraction = contraction_of(sequence.nests()[0].body)
        assert contraction is not None
        views, target = FlatViews(sequence), chip(arch)
        products = candidate_products(contraction, views, target)
        best: list[tuple[float, Tiling]] = []
        for product_ in products:
            cost = cost_of(product_, target, threads, None)
            space = TilingSpace(cost)
            least, tilings = cost.least_time(space.register_tiles()), list(space.tilings())
            assert all(cost.time(tiling) >= least for tiling in tilings)
            if tilings:
                fastest = min(tilings, key=cost.time)
                best.append((cost.seconds(cost.time(fastest)) or 0.0, fastest))
        searched: list[TilingCost] = []
        monkeypatch.setattr(
            choice, "choose_tiling", lambda cost: searched.append(cost) or choose_tiling(cost)
        )
        ranked = tilings_of(contraction, views, target, threads)
        found = [next(ranked)]
        few = len(searched)
        found += ranked
    assert len(searched) == len(products)
    if threads and text in SEVERAL_PRODUCTS[:2] and target.vector_bits == 512:
        # Windows are so much faster that the others are not searched.
        assert few < len(products)
    best.sort(key=lambda one: one[0])
    assert [(tiled.seconds, tiled.tiling) for tiled in found] == best
