"""Schedules of GPU kernels: what is edited takes effect, or is refused with the limit it breaks."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from bench.programs import in_torch
from tests.support.gpu_target import gpu_target
from tests.support.schedules import edited, emitted, run_emitted, scheduled, schedules

from polyblocks import mlir
from polyblocks.affine.plan.old_keys import read
from polyblocks.errors import OldSpellingWarning, UnsupportedError
from polyblocks.options import CompileOptions
from polyblocks.passes.map.emit_kernels import EmitKernelsPass
from polyblocks.pipeline import PassContext

r = torch.randn


def same_results(text: str, other: str, inputs: list[torch.Tensor]) -> tuple[Any, Any]:
    """The launches of two modules whose results agree."""
    (first,), launches = run_emitted(text, inputs)
    (second,), others = run_emitted(other, inputs)
    np.testing.assert_allclose(first, second, rtol=2e-5, atol=2e-6)
    return launches, others


PRODUCT = """
func.func @main(%a: memref<40x48xf32> IN, %b: memref<48x33xf32> IN, %c: memref<40x33xf32> OUT) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 40 {
    affine.for %j = 0 to 33 {
      %s = affine.for %k = 0 to 48 iter_args(%t = %zero) -> (f32) {
        %x = affine.load %a[%i, %k] : memref<40x48xf32>
        %y = affine.load %b[%k, %j] : memref<48x33xf32>
        %z = arith.mulf %x, %y fastmath<reassoc> : f32
        %w = arith.addf %t, %z fastmath<reassoc> : f32
        affine.yield %w : f32
      }
      affine.store %s, %c[%i, %j] : memref<40x33xf32>
    }
  } {polyblocks.schedule = {
    register_tile = [2, 2], block_tile = [16, 16], k_block = 8, kernel = "product"}}
  return
}
"""


@pytest.fixture(scope="module")
def product() -> tuple[str, list[torch.Tensor]]:
    rows = {"IN": ("input", 40, 48), "OUT": ("output", 40, 33)}
    text = PRODUCT
    for role, (name, n, m) in rows.items():
        row = (
            f'{{polyblocks.arg = {{role = "{name}", name = "{name}", dtype = "float32", '
            f"shape = array<i64: {n}, {m}>, strides = array<i64: {m}, 1>, constant = false, "
            "updates = -1}}"
        )
        text = text.replace(f" {role}", f" {row}")
    return text, [r(40, 48), r(48, 33)]


@pytest.fixture(scope="module")
def softmax() -> tuple[str, list[torch.Tensor]]:
    inputs = [r(64, 500)]
    return scheduled(in_torch.softmax, inputs), inputs


@pytest.fixture(scope="module")
def blur() -> tuple[str, list[torch.Tensor]]:
    inputs = [r(3, 70, 75)]
    return scheduled(in_torch.blur_x_blur_y, inputs), inputs


@pytest.mark.parametrize(
    ("register_tile", "block_tile", "k_block"), [([4, 4], [32, 32], 4), ([1, 3], [7, 15], 3)]
)
def test_another_tile_is_another_kernel_with_the_same_results(
    register_tile: list[int], block_tile: list[int], k_block: int, product: Any
) -> None:
    text, inputs = product
    assert schedules(text)[0]["register_tile"] != register_tile
    sizes = {"register_tile": register_tile, "block_tile": block_tile, "k_block": k_block}
    (before,), (after,) = same_results(text, edited(text, 0, **sizes), inputs)
    rows, columns = block_tile
    assert after.threads == rows * columns // (register_tile[0] * register_tile[1])
    assert after.blocks == -(-40 // rows) * -(-33 // columns)
    assert (after.threads, after.blocks) != (before.threads, before.blocks)


def test_a_contraction_may_be_shared_out_otherwise(product: Any) -> None:
    text, inputs = product
    gone = tuple(schedules(text)[0])
    (before,), (after,) = same_results(text, edited(text, 0, *gone, group=1, groups=32), inputs)
    assert (after.threads, after.blocks) == (32, -(-40 * 33 // 32))
    assert before.threads == 64


@pytest.mark.parametrize("group", [32, 128])
def test_other_groups(group: int, softmax: Any) -> None:
    text, inputs = softmax
    before, after = same_results(
        text, edited(text, 0, "places", "barriers", group=group, groups=2), inputs
    )
    assert [(x.threads, x.blocks) for x in after] == [(2 * group, 32)]
    assert [x.threads for x in before] != [2 * group]


def test_buffers_live_where_the_schedule_says(softmax: Any) -> None:
    text, inputs = softmax
    places = schedules(text)[0]["places"]
    assert "distributed registers" in places
    shared = [p.replace("distributed registers", "shared") for p in places]
    other = edited(text, 0, "barriers", places=shared)
    same_results(text, other, inputs)
    count = [
        re.search(r"gpu.func @\w+\(.*?workgroup\((.*?)\)", str(emitted(t))) for t in (text, other)
    ]
    assert count[1] is not None
    assert "x500xf32" in count[1][1]
    assert count[0] is None or "500xf32" not in count[0][1]


def test_more_barriers_and_another_order(blur: Any) -> None:
    text, inputs = blur
    schedule = schedules(text)[0]
    loops = schedule["distributed"]
    assert len(schedule["barriers"]) == len(loops) - 1
    first = {"loop": loops[0]["loop"], "order": loops[0]["order"][::-1], "pitch": 0, "lead": 0}
    other = edited(text, 0, barriers=[x["loop"] for x in loops], distributed=[first, *loops[1:]])
    same_results(text, other, inputs)
    added = str(emitted(other)).count("gpu.barrier") - str(emitted(text)).count("gpu.barrier")
    assert added == 1


def test_another_name() -> None:
    text = scheduled(torch.neg, [r(100)])
    assert "gpu.func @mine(" in str(emitted(edited(text, 0, kernel="mine")))


def test_the_prediction_of_a_kernel_is_what_it_was_chosen_by() -> None:
    text = scheduled(lambda x: x.cumsum(0), [r(100, 2000)])
    chosen = [s["predicted"]["predicted_seconds"] for s in schedules(text)]
    kernels = str(emitted(text)).split("gpu.func @")[1:]
    told = [
        float(re.search(r"polyblocks.estimate = .*?predicted_seconds = (\S+) : f64", k)[1])
        for k in kernels
    ]
    assert told == pytest.approx(chosen, rel=1e-3)


def test_names_stay_apart() -> None:
    text = scheduled(lambda x: (x.cumsum(0), x.flip(0) * 2), [r(100000)])
    for number, _ in enumerate(schedules(text)):
        text = edited(text, number, kernel="twice")
    names = re.findall(r"gpu.func @(\w+)\(", str(emitted(text)))
    assert {"twice", "twice_1"} <= set(names)
    assert len(set(names)) == len(names)


def test_wide_accesses_as_the_schedule_says() -> None:
    inputs = [r(2048, 2048)]
    text = scheduled(torch.exp, inputs)
    assert schedules(text)[0]["width"] == 4
    assert "vector<4xf32>" in str(emitted(text))
    assert "vector<2xf32>" in str(emitted(edited(text, 0, width=2)))
    assert "vector<" not in str(emitted(edited(text, 0, width=1)))


def test_what_is_left_out_is_found_as_it_would_have_been_chosen(softmax: Any, blur: Any) -> None:
    for text, _ in (softmax, blur):
        schedule = schedules(text)[0]
        kept = {"group": schedule["group"], "groups": schedule["groups"]}
        bare = edited(text, 0, *(schedule.keys() - kept.keys()))
        assert schedules(bare) == [kept]
        assert str(emitted(bare)) == str(emitted(text))


TILE = {
    "threads": (
        {"block_tile": [128, 64]},
        "expected at most 1024 threads of a block on imaginary:one, got 2048; reduce 'block_tile'",
    ),
    "shared memory": (
        {"register_tile": [16, 16], "block_tile": [256, 256], "k_block": 48},
        r"expected at most 49152 bytes of shared memory of a block on imaginary:one, got \d+; "
        "reduce 'block_tile' or 'k_block'",
    ),
    "registers": (
        {"register_tile": [16, 16], "block_tile": [64, 256], "k_block": 1},
        r"expected at most 255 registers of a thread on imaginary:one, got \d+; reduce 'register_",
    ),
    "steps": ({"k_block": 300}, "expected at most 48 steps along K, got 300; reduce 'k_block'"),
    "two": (
        {"register_tile": [4]},
        r"expected two whole numbers from 1 on for 'register_tile', got \[4\]",
    ),
    "zero": (
        {"block_tile": [0, 32]},
        r"expected two whole numbers from 1 on for 'block_tile', got \[0, 32\]",
    ),
    "whole": (
        {"block_tile": [16, 15]},
        r"expected a multiple of 2 \(register tiles along N\) for 'block_tile', got 15",
    ),
    "no number": (
        {"k_block": "deep"},
        "expected a whole number from 1 on for 'k_block', got 'deep'",
    ),
    "key": (
        {"dept": 3},
        r"expected keys of tiles by lanes \(kernel, .*k_block, register_tile, .*\), got 'dept'",
    ),
    "of cores": ({"chunks": [1, 1]}, r"expected keys of tiles by lanes \(.*\), got 'chunks'"),
    "staging": (
        {"staging": {"shared": []}},
        r"expected \{'at_once': .*, 'shared': \[\[.*\]\]\} for 'staging', which follows from the "
        r"other keys, got \{'shared': \[\]\}; change those, or omit it",
    ),
    "name": ({"kernel": 3}, "expected a name for 'kernel', got 3"),
    "resident": ({"resident": 0}, "expected a whole number from 1 on for 'resident', got 0"),
}


@pytest.mark.parametrize("name", TILE)
def test_a_wrong_tile_is_refused(name: str, product: Any) -> None:
    text, _ = product
    changes, message = TILE[name]
    with pytest.raises(UnsupportedError, match=f"invalid schedule for .*: {message}"):
        emitted(edited(text, 0, **changes))


#: A product of halves, as a matrix unit computes it.
UNITS = (
    PRODUCT.replace("f32>", "f16>")
    .replace("arith.mulf %x, %y", "arith.mulf %u, %v")
    .replace(
        "        %z =",
        "        %u = arith.extf %x : f16 to f32\n"
        "        %v = arith.extf %y : f16 to f32\n        %z =",
    )
    .replace(
        "      affine.store %s,",
        "      %h = arith.truncf %s : f32 to f16\n      affine.store %h,",
    )
    .replace(" IN", "")
    .replace(" OUT", "")
    .replace(
        'register_tile = [2, 2], block_tile = [16, 16], k_block = 8, kernel = "product"',
        'unit = "unit", register_tile = [16, 32], block_tile = [32, 32], k_block = 32, stages = 2',
    )
)
UNIT: dict[str, tuple[dict[str, Any], str]] = {
    "unit": (
        {"unit": "mma"},
        r"expected a unit that computes the nest \(unit\), got 'mma'",
    ),
    "form": ({"unit": 3}, r"expected a unit that computes the nest \(unit\), got 3"),
    "two": (
        {"block_tile": [4]},
        r"expected two whole numbers from 1 on for 'block_tile', got \[4\]",
    ),
    "rows": (
        {"register_tile": [8, 32]},
        r"expected a multiple of 16 \(rows of unit\) for 'register_tile', got 8",
    ),
    "columns": (
        {"register_tile": [16, 8]},
        r"expected a multiple of 16 \(columns of unit\) for 'register_tile', got 8",
    ),
    "k": ({"k_block": 40}, r"expected a multiple of 16 \(steps of unit\) for 'k_block', got 40"),
    "whole": (
        {"block_tile": [24, 32]},
        r"expected a multiple of 16 \(register tiles along M\) for 'block_tile', got 24",
    ),
    "stages": ({"stages": 1}, "expected a whole number from 2 on for 'stages', got 1"),
    "steps": ({"k_block": 0}, "expected a whole number from 1 on for 'k_block', got 0"),
    "threads": (
        {"block_tile": [128, 256]},
        "expected at most 1024 threads of a block on imaginary:one, got 2048; reduce 'block_tile'",
    ),
    "registers": (
        {"register_tile": [128, 128], "block_tile": [256, 128]},
        r"expected at most 255 registers of a thread on imaginary:one, got \d+; reduce 'register_",
    ),
    "shared memory": (
        {"k_block": 640, "register_tile": [32, 32], "block_tile": [128, 128]},
        r"expected at most 232448 bytes of shared memory of a block on imaginary:one, got \d+; "
        "reduce 'block_tile' or 'k_block'",
    ),
    "cluster": (
        {"cluster": [2, 1]},
        r"expected a cluster of two tiles beside each other whose parts unit can copy in boxes, "
        r"got \[2, 1\]; omit 'cluster'",
    ),
    "key": ({"call": 3}, r"expected keys of tiles by a unit \(kernel, .*\), got 'call'"),
    "staged": (
        {"staged": True},
        "expected false for 'staged', which follows from the other keys, got true; change those",
    ),
    "staging": (
        {"staging": {"in_flight": 1}},
        r"expected \{.*\} for 'staging', which follows from the other keys, got "
        r"\{'in_flight': 1\}; change those, or omit it",
    ),
}


@pytest.mark.parametrize("name", UNIT)
def test_a_wrong_schedule_of_units_is_refused(name: str) -> None:
    changes, message = UNIT[name]
    with pytest.raises(UnsupportedError, match=f"invalid schedule for .*: {message}"):
        emitted(edited(UNITS, 0, **changes))


def test_a_schedule_of_units_is_obeyed() -> None:
    text = str(emitted(edited(UNITS, 0, block_tile=[16, 64], k_block=48, stages=4)))
    assert "memref<4x16x48xf16, #gpu.address_space<workgroup>>" in text
    assert "memref<4x64x48xf16, #gpu.address_space<workgroup>>" in text
    # Each call of two units; one tile of the reduction, so no loop.
    assert text.count("llvm.imaginary.multiply") == 2 * 3


def test_units_compute_only_what_they_do(product: Any) -> None:
    text, _ = product
    with pytest.raises(UnsupportedError, match=r"a unit that computes the nest \(none\), got "):
        emitted(edited(text, 0, unit="unit"))


#: Keys as they were called before, beside those of today.
OLD: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "lanes": (
        "product",
        {"thread_tile": [4, 2], "threads": [4, 8], "depth": 6},
        {"register_tile": [4, 2], "block_tile": [16, 16], "k_block": 6},
    ),
    "units": (
        "units",
        {
            "unit": ["unit", "float16"],
            "warps": [2, 1],
            "units_of_warp": [1, 2],
            "calls": 3,
            "staging": {"asynchronous": [False, False], "exchange": False},
        },
        {
            "unit": "unit",
            "register_tile": [16, 32],
            "block_tile": [32, 32],
            "k_block": 48,
            "staged": False,
            "staging": {"asynchronous": [False, False]},
        },
    ),
}


@pytest.mark.parametrize("name", OLD)
def test_old_keys_are_read_with_a_warning(name: str) -> None:
    _, old, new = OLD[name]
    with pytest.warns(OldSpellingWarning, match="schedule of 'k': old spelling of '"):
        found = read(old | {"kernel": "k"}, "n", gpu_target())
    assert found.given == new | {"kernel": "k"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(new, "n", gpu_target()).given == new


def test_kernels_of_old_keys_are_those_of_new_ones(product: Any) -> None:
    gone = ("register_tile", "block_tile", "k_block")
    for text, name in ((product[0], "lanes"), (UNITS, "units")):
        _, old, new = OLD[name]
        olds, news = ({k: v for k, v in d.items() if k != "staging"} for d in (old, new))
        with pytest.warns(
            OldSpellingWarning, match=r"write block_tile = \[\d+, \d+\], k_block = \d+, "
        ):
            found = emitted(edited(text, 0, *gone, **olds))
        assert str(found) == str(emitted(edited(text, 0, **news)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"thread_tile": [2, 2]}, "two whole numbers from 1 on for 'threads', got None"),
        ({"depth": 3}, "'k_block' is given twice, once by its old key; omit that"),
        ({"unit": ["mma", "float16"], "warps": [1, 1]}, r"one of unit for 'unit', got \['mma', "),
    ],
)
def test_old_keys_without_a_meaning_are_refused(
    changes: dict[str, Any], message: str, product: Any
) -> None:
    with pytest.raises(UnsupportedError, match=f"invalid schedule for 'product': .*{message}"):
        emitted(edited(product[0], 0, **changes))


GROUPS: dict[str, tuple[str, dict[str, Any], str]] = {
    "power": ("softmax", {"group": 48}, "expected a power of two for 'group', got 48"),
    "warp": ("softmax", {"group": 16}, "expected 1 or a multiple of 32 .* for 'group' unless"),
    "block": (
        "softmax",
        {"group": 512, "groups": 4},
        "expected at most 1024 threads of a block on imaginary:one, got 2048",
    ),
    "strided": (
        "softmax",
        {"group": 4, "groups": 12, "strided": True},
        "expected a multiple or a part of 32 .* for 'groups' of a strided block",
    ),
    "bool": ("softmax", {"strided": 1}, "expected true or false for 'strided', got 1"),
    "order": ("blur", {"order": [0]}, r"expected 2 non-negative integers for 'order', got \[0\]"),
    "loops": (
        "blur",
        {"order": [1, 1]},
        r"expected a permutation of loops \[0, 1\] for 'order', got \[1, 1\]",
    ),
    "distributed": (
        "blur",
        {"distributed": [{"loop": 99}]},
        "an entry of 'distributed' names a 'loop', not {'loop': 99}",
    ),
    "inside": (
        "blur",
        {"distributed": [{"loop": 2}, {"loop": 3}]},
        "'distributed' names a loop inside of another one",
    ),
    "barriers": (
        "blur",
        {"barriers": []},
        r"missing barrier before \[\d+.*\]: threads exchange data there; add them to 'barriers'",
    ),
    "inner": (
        "softmax",
        {"barriers": [2]},
        r"barrier before \[2\], which not all threads of the block reach",
    ),
    "places": ("blur", {"places": ["shared"]}, "expected one of 'private', 'distributed"),
    "private": ("blur", {"places": ["private", "shared"]}, "local buffer 0 can live in 'shared'"),
    "pitch": (
        "blur",
        {"distributed": [{"loop": 2, "pitch": 1, "lead": 0}]},
        r"expected 0 for 'pitch' of loop 2, or at least \d+ for a loop over rows",
    ),
    "copies": ("softmax", {"copies": [0]}, "buffer 0 cannot be copied: not all groups read"),
    "width": ("softmax", {"width": 4}, "'width' is 4, and one access is for 1 neighbouring"),
    "no contraction": (
        "softmax",
        {"register_tile": [1, 1]},
        r"expected keys of tiles by lanes \(.*\), got 'barriers'",
    ),
}


@pytest.mark.parametrize("name", GROUPS)
def test_a_wrong_group_is_refused(name: str, softmax: Any, blur: Any) -> None:
    program, changes, message = GROUPS[name]
    text, _ = {"softmax": softmax, "blur": blur}[program]
    with pytest.raises(UnsupportedError, match=f"invalid schedule for .*: {message}"):
        emitted(edited(text, 0, **changes))


def test_tiles_are_of_contractions(softmax: Any) -> None:
    text, _ = softmax
    gone = tuple(schedules(text)[0])
    with pytest.raises(UnsupportedError, match="'register_tile' is of contractions"):
        emitted(edited(text, 0, *gone, register_tile=[1, 1], block_tile=[8, 8], k_block=1))


def emit(text: str) -> None:
    """Make kernels of nests without copies."""
    EmitKernelsPass().run(mlir.parse(text), PassContext.create(gpu_target(), CompileOptions()))


def test_a_nest_without_schedule_is_refused(softmax: Any) -> None:
    text = softmax[0].replace("polyblocks.schedule", "polyblocks.other")
    with pytest.raises(UnsupportedError, match="has 0 schedules, .*; run choose-kernels before"):
        emit(text)


LOOP = """
func.func @main(%a: memref<64xf32>, %n: memref<1xindex>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %end = memref.load %n[%zero] : memref<1xindex>
  scf.for %k = %zero to %end step %one {
    affine.for %i = 0 to 64 {
      %x = affine.load %a[%i] : memref<64xf32>
      %y = arith.negf %x : f32
      affine.store %y, %a[%i] : memref<64xf32>
    } {polyblocks.schedule = {group = FIRST, groups = 1}}
    affine.for %i = 0 to 64 {
      %x = affine.load %a[%i] : memref<64xf32>
      %y = math.absf %x : f32
      affine.store %y, %a[%i] : memref<64xf32>
    } {polyblocks.schedule = {group = SECOND, groups = GROUPS}}
  } {polyblocks.region = "loop"}
  return
}
"""


def of_loop(first: int, second: int, groups: int) -> str:
    text = LOOP.replace("FIRST", str(first)).replace("SECOND", str(second))
    return text.replace("GROUPS", str(groups))


def test_one_block_runs_all_nests_of_a_loop_that_memory_decides_about() -> None:
    assert "known_block_size = array<i32: 64, 1, 1>" in str(emitted(of_loop(64, 64, 1)))
    message = r"'group' must be the same for all, got \[32, 64\]"
    with pytest.raises(UnsupportedError, match=message):
        emitted(of_loop(64, 32, 1))
    with pytest.raises(UnsupportedError, match="so 'groups' must be 1"):
        emitted(of_loop(64, 64, 2))
    tiles = {"register_tile": [1, 1], "block_tile": [8, 8], "k_block": 1}
    message = "keys of groups of threads, since one block runs several nests, got a schedule of til"
    with pytest.raises(UnsupportedError, match=message):
        emit(edited(of_loop(64, 64, 1), 0, "group", "groups", **tiles))
