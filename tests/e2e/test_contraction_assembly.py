"""Inner loops of contractions: multiply-adds, loads, fetches ahead, a counter, no more."""

from __future__ import annotations

import re

import pytest
from product_loops import PRODUCT

from polyblocks import mlir
from polyblocks.options import CompileOptions
from polyblocks.passes.standard import standard_pipeline
from polyblocks.pipeline import PassContext, run_stage
from polyblocks_cpu.describe import describe
from polyblocks_cpu.lower import lower_to_assembly

pytestmark = pytest.mark.cpu

#: What multiplies and adds, and what else an inner loop may have: loads, integers, its branch,
#: and fetches of what comes later.
X86 = (
    r"vfmadd\d+ps\s",
    r"v(p?broadcast(ss|d)|mov[ua]p[sd]|movd?q[ua](64)?)\s+[^%]*\(.*\), %"
    r"|(add|sub|inc|dec|cmp|lea|j|mov|imul|shl|test|prefetch)\w*\s|\.p2align",
)
ARM = (
    r"fmla\s",
    r"(ld|ldr|ldp|ldur|add|sub|subs|cmp|b\.|b|mov|madd|mul|lsl|dup|cbn?z|prfm)\w*\s|\.p2align",
)


def assembly(arch: str, m: int, n: int, k: int, product: str = PRODUCT, **types: str) -> str:
    """The assembly of a product, as the compiler makes it of loops."""
    options = CompileOptions(arch=arch)
    target = describe(options)
    module = mlir.parse(product.format(m=m, n=n, k=k, **types))
    passes = standard_pipeline(target, options).stages["S3"]
    run_stage("S3", passes, module, PassContext.create(target, options))
    return lower_to_assembly(mlir.parse(str(module)), target, options)


def inner_loops(text: str, multiply_add: str) -> list[list[str]]:
    """Blocks that jump to themselves and multiply and add, without labels and comments."""
    blocks: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        label = re.match(r"(\.?L?\w+):", line)
        if label:
            blocks.append((label[1], []))
        elif blocks and line.strip():
            blocks[-1][1].append(line.split("#")[0].split("//")[0].strip())
    return [
        lines
        for label, lines in blocks
        if any(re.search(rf"\s{re.escape(label)}$", line) for line in lines)
        and sum(bool(re.match(multiply_add, line)) for line in lines) >= 4
    ]


def products_of_loops(text: str, multiply_add: str, others: str) -> set[int]:
    """How many products inner loops have, which have nothing but these and ``others``."""
    loops = inner_loops(text, multiply_add)
    assert loops
    counts = set()
    for lines in loops:
        products = [line for line in lines if re.match(multiply_add, line)]
        rest = [line for line in lines if line not in products]
        stores = [line for line in rest if re.search(r", -?\d*\(%r[sb]p|^st", line)]
        assert not stores, "spilled"
        assert all(re.match(others, line) for line in rest), rest
        # A line of the rows below, and one or two of the next panel.
        assert sum(bool(re.match("prefetch|prfm", line)) for line in rest) <= 3
        counts.add(len(products))
    return counts


@pytest.mark.parametrize(
    ("arch", "rows", "vectors"),
    [("x86-64-v4", 14, 2), ("x86-64-v3", 6, 2), ("neoverse-n1", 6, 4)],
)
def test_inner_loops_multiply_add_and_load(arch: str, rows: int, vectors: int) -> None:
    multiply_add, others = ARM if arch.startswith("neoverse") else X86
    lanes = {"x86-64-v4": 16, "x86-64-v3": 8, "neoverse-n1": 4}[arch]
    text = assembly(arch, 16 * rows, 32 * vectors * lanes, 120)
    counts = products_of_loops(text, multiply_add, others)
    assert max(counts) % vectors == 0
    assert max(counts) >= 0.75 * rows * vectors


#: Products of narrow numbers, and what differs between their types.
NARROW = """
func.func @main(%a: memref<{m}x{k}x{e}>, %b: memref<{k}x{n}x{e}>, %c: memref<{m}x{n}x{t}>) {{
  %z = arith.constant {zero} : {t}
  affine.for %i = 0 to {m} {{ affine.for %j = 0 to {n} {{
    %r = affine.for %k = 0 to {k} iter_args(%s = %z) -> ({t}) {{
      %x = affine.load %a[%i, %k] : memref<{m}x{k}x{e}>
      %y = affine.load %b[%k, %j] : memref<{k}x{n}x{e}>
      %xw = arith.{extend} %x : {e} to {t}
      %yw = arith.{extend} %y : {e} to {t}
      %p = arith.{multiply} %xw, %yw {flags} : {t}
      %u = arith.{add} %s, %p {flags} : {t}
      affine.yield %u : {t}
    }}
    affine.store %r, %c[%i, %j] : memref<{m}x{n}x{t}>
  }} }}
  return
}}
"""
BYTES = {
    "e": "i8",
    "t": "i32",
    "zero": "0",
    "extend": "extsi",
    "multiply": "muli",
    "add": "addi",
    "flags": "",
}
BFLOATS = {
    "e": "bf16",
    "t": "f32",
    "zero": "0.0",
    "extend": "extf",
    "multiply": "mulf",
    "add": "addf",
    "flags": "fastmath<reassoc,contract>",
}


@pytest.mark.parametrize(
    ("arch", "types", "dot"),
    [
        ("znver4", BFLOATS, "vdpbf16ps"),
        ("znver4", BYTES, "vpdpbusd"),
        ("cascadelake", BYTES, "vpdpbusd"),
        ("alderlake", BYTES, r"\{vex\}\s+vpdpbusd"),
        ("neoverse-v2", BFLOATS, "bfdot"),
        ("neoverse-n1", BYTES, "sdot"),
    ],
)
def test_inner_loops_of_narrow_numbers(arch: str, types: dict[str, str], dot: str) -> None:
    """Dot products, loads, a counter: a step is one load of each row, and of each vector."""
    arm = arch.startswith("neoverse")
    _, others = ARM if arm else X86
    text = assembly(arch, 84, 256, 480, NARROW, **types)
    multiply_add = rf"{dot}\s"
    counts = products_of_loops(text, multiply_add, others)
    assert max(counts) >= 8


@pytest.mark.parametrize(("types", "product"), [(BFLOATS, "tdpbf16ps"), (BYTES, "tdpbssd")])
def test_inner_loops_of_tiles(types: dict[str, str], product: str) -> None:
    """Four products of tiles, for which two tiles of rows and two of columns are loaded."""
    text = assembly("sapphirerapids", 2048, 2048, 2048, NARROW, **types)
    loops = inner_loops(text, rf"{product}\s")
    assert loops
    for lines in loops:
        tiles = [line.split()[0] for line in lines if "%tmm" in line]
        assert sorted(tiles) == [product] * 4 + ["tileloadd"] * 4
        rest = [line for line in lines if "%tmm" not in line]
        assert all(re.match(X86[1], line) for line in rest), rest
        assert not any(re.search(r"\(%r[sb]p\)", line) for line in rest), "spilled"
    assert len(re.findall(r"ldtilecfg\s", text)) == len(re.findall(r"tilerelease", text)) == 1


def test_chips_without_dot_products_multiply_and_add() -> None:
    text = assembly("x86-64-v4", 84, 256, 480, NARROW, **BFLOATS)
    assert "vdpbf16ps" not in text
    assert inner_loops(text, X86[0])
