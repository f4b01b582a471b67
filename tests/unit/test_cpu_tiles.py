"""Units of tiles of the CPU target: when there are any, what they are told, what is refused."""

from __future__ import annotations

import pytest

from polyblocks import mlir
from polyblocks.codegen.units.lower_units import LowerUnitsPass
from polyblocks.errors import UnsupportedError
from polyblocks.options import CompileOptions
from polyblocks.pipeline import PassContext
from polyblocks_cpu import host as host_module
from polyblocks_cpu.describe import describe, required_features
from polyblocks_cpu.host import host, identify
from polyblocks_cpu.instructions import tiles
from polyblocks_cpu.instructions.tile_code import TileConfiguration
from polyblocks_cpu.instructions.tiles import tile_units
from polyblocks_cpu.lower import TILE_EMITTERS

PRODUCT = """
func.func @main(%a: memref<64x64xi32>, %b: memref<64x64xi32>, %c: memref<64x64xi32>) {{
  affine.for %i = 0 to 2 {{
    "polyblocks.multiply"(%a, %b, %c, %i) {{
      unit = "{unit}", shape = array<i64: {rows}, 32, 64>,
      accumulator = affine_map<(d0)[s0, s1] -> (d0 * 32 + s0, s1)>,
      a = affine_map<(d0)[s0, s1] -> (d0 * 32 + s0, s1)>,
      b = affine_map<(d0)[s0, s1] -> ({place})>
    }} : (memref<64x64xi32>, memref<64x64xi32>, memref<64x64xi32>, index) -> ()
  }}
  return
}}
"""
RIGHT = {"rows": "32", "place": "s0, s1", "unit": "tdpbssd"}


def lower(**changes: str) -> str:
    """The module of a product of tiles after the pass."""
    module = mlir.parse(PRODUCT.format(**RIGHT | changes))
    target = describe(CompileOptions(arch="sapphirerapids"))
    LowerUnitsPass(TILE_EMITTERS).run(module, PassContext.create(target, CompileOptions()))
    return str(module)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": "64"}, "'tdpbssd' needs 14 tiles, expected 8 at most"),
        ({"place": "s1, s0"}, "'tdpbssd' must have rows evenly apart and columns side by side"),
        ({"place": "s0 mod 8, s1"}, "rows evenly apart"),
        ({"unit": "tdpother"}, "'tdpother' and brings no instructions of it; .*: tdpbf16ps, "),
    ],
)
def test_products_that_the_unit_cannot_compute(changes: dict[str, str], message: str) -> None:
    lowered = lower()
    assert '"llvm.x86.tdpbssd"' in lowered
    assert "polyblocks" not in lowered
    with pytest.raises(UnsupportedError, match=message):
        lower(**changes)


def test_a_dot_product_without_instructions() -> None:
    text = """func.func @main(%s: i32, %x: i32) -> i32 {
      %r = llvm.call_intrinsic "llvm.polyblocks.dot.other"(%s, %x, %x) : (i32, i32, i32) -> i32
      return %r : i32
    }"""
    context = PassContext.create(describe(CompileOptions(arch="znver4")), CompileOptions())
    message = "'cpu' describes the matrix unit 'other' and brings no .* one of: none"
    with pytest.raises(UnsupportedError, match=message):
        LowerUnitsPass().run(mlir.parse(text), context)


def test_sizes_are_told_as_the_chip_reads_them() -> None:
    data = TileConfiguration(((16, 16), (5, 7))).packed()
    assert len(data) == 64
    assert data[:2] == b"\x01\x00"
    assert data[16:20] == bytes([64, 0, 28, 0])
    assert data[48:51] == bytes([16, 5, 0])


def test_units_are_those_of_the_features() -> None:
    assert tile_units(["amx-bf16"], 1e9) == ()
    (unit,) = tile_units(["amx-tile", "amx-bf16"], 1e9)
    assert unit.name == "tdpbf16ps"
    assert unit.shape == (16, 16, 32)
    # 16 x 16 x 32 multiplications and additions in 16 cycles.
    assert unit.flops == 1024e9
    names = [u.name for u in tile_units(["amx-tile", "amx-int8"], 1e9)]
    assert names == ["tdpbssd", "tdpbsud", "tdpbusd", "tdpbuud"]


def test_code_for_a_chip_with_tiles_needs_them() -> None:
    needed = required_features(describe(CompileOptions(arch="sapphirerapids")))
    assert {"amx-tile", "amx-bf16", "amx-int8"} <= set(needed)
    assert "amx-tile" not in required_features(describe(CompileOptions(arch="icelake-server")))


def test_a_virtual_machine_with_the_number_of_an_older_chip_has_tiles() -> None:
    flags = "avx2 fma avx512f avx512bw avx512cd avx512dq avx512vl amx_tile amx_bf16"
    flags += " avx bmi1 bmi2 f16c abm movbe cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3"
    text = f"vendor_id: GenuineIntel\ncpu family: 6\nmodel: 167\nflags: {flags}\n"
    assert identify(text)[0].name == "sapphirerapids"
    assert identify(text.replace("amx_tile ", ""))[0].name == "x86-64-v4"


def test_tiles_that_the_system_does_not_grant_are_not_there(monkeypatch) -> None:
    features = ("+amx-bf16", "+amx-int8", "+amx-tile", "+avx2")
    arch = describe(CompileOptions(arch="sapphirerapids")).arch
    found = (host_module.ARCHS[arch], features)
    monkeypatch.setattr(host_module, "identify", lambda _: found)
    for granted in (True, False):
        monkeypatch.setattr(host_module, "permitted", lambda granted=granted: granted)
        host.cache_clear()
        assert ("+amx-tile" in host().features) == granted
        assert ("-amx-bf16" in host().features) != granted
        assert "+avx2" in host().features
    host.cache_clear()


def test_a_system_that_knows_no_tiles_grants_none(monkeypatch) -> None:
    monkeypatch.setattr(tiles.platform, "machine", lambda: "aarch64")
    assert not tiles.permitted()
