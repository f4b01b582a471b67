"""One computation, three ways to write it: the same kernels.

As an operator of PyTorch, as arithmetic on tensors, and as loops in an MLIR file.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from bench.programs.in_torch import adaptive_sharpen
from s3 import kernels
from torch.nn import functional

from polyblocks.api import compile_until
from polyblocks.options import CompileOptions
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

pytestmark = pytest.mark.cpu

Function = Callable[..., torch.Tensor]

#: What this machine has, and vectors without masks: what is left of a loop is done one by one.
ARCHS = ["native", "x86-64-v3", "x86-64"]

_SOFTMAX = """
func.func @main(%x: memref<256x384xf32>, %out: memref<256x384xf32>) {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %m = memref.alloc() : memref<256xf32>
  %e = memref.alloc() : memref<256x384xf32>
  %s = memref.alloc() : memref<256xf32>
  affine.for %i = 0 to 256 {
    %r = affine.for %j = 0 to 384 iter_args(%a = %low) -> f32 {
      %v = affine.load %x[%i, %j] : memref<256x384xf32>
      %n = arith.maximumf %v, %a : f32
      affine.yield %n : f32
    }
    affine.store %r, %m[%i] : memref<256xf32>
  }
  affine.for %i = 0 to 256 {
    affine.for %j = 0 to 384 {
      %v = affine.load %x[%i, %j] : memref<256x384xf32>
      %n = affine.load %m[%i] : memref<256xf32>
      %d = arith.subf %v, %n fastmath<reassoc,contract> : f32
      %p = math.exp %d : f32
      affine.store %p, %e[%i, %j] : memref<256x384xf32>
    }
  }
  affine.for %i = 0 to 256 {
    %r = affine.for %j = 0 to 384 iter_args(%a = %zero) -> f32 {
      %v = affine.load %e[%i, %j] : memref<256x384xf32>
      %n = arith.addf %v, %a fastmath<reassoc,contract> : f32
      affine.yield %n : f32
    }
    affine.store %r, %s[%i] : memref<256xf32>
  }
  affine.for %i = 0 to 256 {
    affine.for %j = 0 to 384 {
      %v = affine.load %e[%i, %j] : memref<256x384xf32>
      %n = affine.load %s[%i] : memref<256xf32>
      %d = arith.divf %v, %n fastmath<reassoc,contract> : f32
      affine.store %d, %out[%i, %j] : memref<256x384xf32>
    }
  }
  return
}
"""

_BLUR = """
func.func @main(%x: memref<1x1x260x390xf32>, %out: memref<1x1x256x390xf32>) {
  %k0 = arith.constant 0.0625 : f32
  %k1 = arith.constant 0.25 : f32
  %k2 = arith.constant 0.375 : f32
  affine.for %i = 0 to 256 {
    affine.for %j = 0 to 390 {
      %a = affine.load %x[0, 0, %i, %j] : memref<1x1x260x390xf32>
      %b = affine.load %x[0, 0, %i + 1, %j] : memref<1x1x260x390xf32>
      %c = affine.load %x[0, 0, %i + 2, %j] : memref<1x1x260x390xf32>
      %d = affine.load %x[0, 0, %i + 3, %j] : memref<1x1x260x390xf32>
      %e = affine.load %x[0, 0, %i + 4, %j] : memref<1x1x260x390xf32>
      %0 = arith.mulf %a, %k0 fastmath<reassoc,contract> : f32
      %1 = arith.mulf %b, %k1 fastmath<reassoc,contract> : f32
      %2 = arith.mulf %c, %k2 fastmath<reassoc,contract> : f32
      %3 = arith.mulf %d, %k1 fastmath<reassoc,contract> : f32
      %4 = arith.mulf %e, %k0 fastmath<reassoc,contract> : f32
      %5 = arith.addf %0, %1 fastmath<reassoc,contract> : f32
      %6 = arith.addf %5, %2 fastmath<reassoc,contract> : f32
      %7 = arith.addf %6, %3 fastmath<reassoc,contract> : f32
      %8 = arith.addf %7, %4 fastmath<reassoc,contract> : f32
      affine.store %8, %out[0, 0, %i, %j] : memref<1x1x256x390xf32>
    }
  }
  return
}
"""


def softmax_op(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, dim=-1)


def softmax_arithmetic(x: torch.Tensor) -> torch.Tensor:
    e = torch.exp(x - x.amax(dim=-1, keepdim=True))
    return e / e.sum(dim=-1, keepdim=True)


TAPS = (0.0625, 0.25, 0.375, 0.25, 0.0625)


def blur_op(x: torch.Tensor) -> torch.Tensor:
    return functional.conv2d(x, torch.tensor(TAPS).view(1, 1, 5, 1))


def blur_arithmetic(x: torch.Tensor) -> torch.Tensor:
    n = x.shape[2] - 4
    result = TAPS[0] * x[:, :, :n]
    for i, tap in enumerate(TAPS[1:], 1):
        result = result + tap * x[:, :, i : i + n]
    return result


def layer_norm_op(x: torch.Tensor) -> torch.Tensor:
    return functional.layer_norm(x, x.shape[-1:])


def layer_norm_arithmetic(x: torch.Tensor) -> torch.Tensor:
    var, mean = torch.var_mean(x, dim=-1, keepdim=True, correction=0)
    return (x - mean) * torch.rsqrt(var + 1e-5)


CASES: dict[str, tuple[Function, Function, str, tuple[int, ...]]] = {
    "softmax": (softmax_op, softmax_arithmetic, _SOFTMAX, (256, 384)),
    "blur": (blur_op, blur_arithmetic, _BLUR, (1, 1, 260, 390)),
    "layer_norm": (layer_norm_op, layer_norm_arithmetic, "", (256, 384)),
}


def of_function(
    function: Function, shape: tuple[int, ...], folder: Path, arch: str, atol: float = 1e-5
) -> str:
    """What S3 makes of a function, whose result is compared."""
    compiled = polyblocks_jit_torch(
        function,
        compile_options={
            "strict_target": True,
            "debug": str(folder),
            "num_threads": 2,
            "arch": arch,
        },
    )
    x = torch.randn(shape)
    torch.testing.assert_close(compiled(x), function(x), rtol=1e-5, atol=atol)
    (path,) = folder.rglob("*S3*.mlir")
    return path.read_text()


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", CASES)
def test_same_kernels(name: str, arch: str, tmp_path: Path) -> None:
    operator, arithmetic, loops, shape = CASES[name]
    expected = kernels(of_function(operator, shape, tmp_path / "operator", arch))
    assert len(expected) == 1
    assert kernels(of_function(arithmetic, shape, tmp_path / "arithmetic", arch)) == expected
    if loops:
        path = tmp_path / "loops.mlir"
        path.write_text(loops)
        options = CompileOptions(num_threads=2, arch=arch)
        assert kernels(compile_until(path, options, "S3")) == expected


def test_a_pipeline_of_images_stays_one_chain_of_tiles(tmp_path: Path) -> None:
    # Roots of sums near zero are as far apart as the roots of rounding errors.
    text = of_function(adaptive_sharpen, (2048, 2048), tmp_path, "x86-64-v3", atol=1e-3)
    assert len(kernels(text)) <= 2
