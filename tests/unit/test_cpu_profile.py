"""The option ``profile`` of the CPU target: the time of every kernel call."""

from __future__ import annotations

import numpy as np
from cpu_kernels import compile_text, load, pack

N = 4096

#: Two equal kernels and a check, which splits @main into blocks.
TEXT = f"""
func.func @main(%x: memref<{N}xf32>, %y: memref<{N}xf32>, %n: memref<1xi32>) {{
  affine.parallel (%i) = (0) to ({N}) {{
    %a = affine.load %x[%i] : memref<{N}xf32>
    %b = arith.addf %a, %a : f32
    affine.store %b, %y[%i] : memref<{N}xf32>
  }} {{polyblocks.kernel = "double", polyblocks.level = "team"}}
  %v = affine.load %n[0] : memref<1xi32>
  %zero = arith.constant 0 : i32
  %ok = arith.cmpi sgt, %v, %zero : i32
  cf.assert %ok, "n must be positive"
  affine.parallel (%i) = (0) to ({N}) {{
    %a = affine.load %y[%i] : memref<{N}xf32>
    %b = arith.addf %a, %a : f32
    affine.store %b, %x[%i] : memref<{N}xf32>
  }} {{polyblocks.kernel = "double_2", polyblocks.level = "team"}}
  return
}}
"""


def arrays(n: int) -> list[np.ndarray]:
    return [np.ones(N, np.float32), np.zeros(N, np.float32), np.array([n], np.int32)]


def test_every_call_is_timed():
    artifact = compile_text(TEXT, profile=True)
    (kernel,) = artifact.manifest["kernels"]
    assert (kernel["calls"], kernel["nests"]) == (2, ["double", "double_2"])
    executable = load(artifact)
    before = executable.profile()
    assert [row["nest"] for row in before] == ["", "double", "double_2"]
    assert [row["kernel"] for row in before] == ["", kernel["name"], kernel["name"]]
    assert all(row["calls"] == 0 and row["minimum"] is None for row in before)
    for _ in range(3):
        x, y, n = arrays(1)
        assert executable.entry(pack([x, y, n]), 2) == 0
        assert (x == 4).all()
    # A failed check ends the program before the second kernel.
    refused = arrays(0)
    assert executable.entry(pack(refused), 2) == 1
    whole, first, second = executable.profile()
    assert (whole["calls"], first["calls"], second["calls"]) == (4, 4, 3)
    for row in (whole, first, second):
        assert 0 < row["minimum"] * row["calls"] <= 1.001 * row["seconds"] < 10
    # The clocks of two cores may differ by some nanoseconds.
    assert whole["seconds"] >= first["seconds"] + second["seconds"] - 1e-7
    executable.close()
    assert executable.profile() == []


def test_without_the_option_nothing_is_measured():
    artifact = compile_text(TEXT)
    assert "profile" not in artifact.manifest
    executable = load(artifact)
    given = arrays(1)
    assert executable.entry(pack(given), 2) == 0
    assert executable.profile() == []


def test_two_loaded_copies_have_times_of_their_own():
    artifact = compile_text(TEXT, profile=True)
    one, two = load(artifact), load(artifact)
    given = arrays(1)
    one.entry(pack(given), 1)
    assert one.profile()[0]["calls"] == 1
    assert two.profile()[0]["calls"] == 0
