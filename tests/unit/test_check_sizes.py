"""A tensor that is taken for one of another size is found, whoever cast it."""

from __future__ import annotations

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from polyblocks import mlir
from polyblocks.errors import UnsupportedError
from polyblocks.passes.tensor.casts import unequal_cast
from polyblocks.passes.tensor.check_sizes import CheckSizesPass
from polyblocks_torch.importing.lowering import lower_graph

CASTS = """
func.func @main(%x: tensor<8x3xf32>) -> tensor<{size}xf32> {{
  %a = tensor.cast %x : tensor<8x3xf32> to tensor<?x3xf32>
  %b = tensor.cast %a : tensor<?x3xf32> to tensor<?x?xf32>
  %c = tensor.cast %b : tensor<?x?xf32> to tensor<{size}xf32>
  return %c : tensor<{size}xf32>
}}
"""


@pytest.mark.parametrize("size", ["8x4", "7x3", "9x3"])
def test_another_size(size: str) -> None:
    module = mlir.parse(CASTS.format(size=size))
    with pytest.raises(ValueError, match=rf"tensor<8x3xf32> is cast to tensor<{size}xf32>.*loc"):
        CheckSizesPass().run(module, None)


@pytest.mark.parametrize("size", ["8x3", "?x3", "8x?"])
def test_the_same_size(size: str) -> None:
    assert CheckSizesPass().run(mlir.parse(CASTS.format(size=size)), None) is False


def test_a_size_from_nowhere() -> None:
    module = mlir.parse(
        """
        func.func @main(%x: tensor<8xf32>, %n: index) -> tensor<4xf32> {
          %a = tensor.extract_slice %x[0] [%n] [1] : tensor<8xf32> to tensor<?xf32>
          %b = tensor.cast %a : tensor<?xf32> to tensor<4xf32>
          return %b : tensor<4xf32>
        }
        """
    )
    with pytest.raises(ValueError, match="whose size it need not have"):
        CheckSizesPass().run(module, None)


def test_no_casts() -> None:
    assert unequal_cast([]) is None


def test_what_torch_mlir_casts() -> None:
    x, weight = torch.randn(2, 8, 9, 9), torch.randn(16, 1, 3, 3)

    def backward(grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        of_x, of_weight, _ = torch.ops.aten.convolution_backward(
            *(grad, x, weight, None, [2, 2], [1, 1], [1, 1], False, [0, 0], 8),
            [True, True, False],
        )
        return of_x.sum() + of_weight.sin()

    # As it comes, without our decomposition of it.
    graph = make_fx(backward, tracing_mode="fake")(torch.randn(2, 16, 5, 5), x, weight)
    with pytest.raises(UnsupportedError, match=r"convolution_backward.*tensor<16x8x3x3xf32> for"):
        lower_graph(graph)
