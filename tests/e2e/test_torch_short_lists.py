"""Windows given by one number for all dimensions, which torch-mlir read past the end of."""

from __future__ import annotations

import pytest

PROGRAM = """
import torch
import torch.nn.functional as F
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

def check(function, *shapes):
    arguments = [torch.rand(shape, requires_grad=True) for shape in shapes]
    compiled = polyblocks_jit_torch(compile_options={"target": "cpu", "strict_target": True})
    expected, found = function(*arguments), compiled(function)(*arguments)
    torch.testing.assert_close(found, expected)
    assert found.stride() == expected.stride()
    gradients = [torch.autograd.grad(y.square().sum(), arguments) for y in (found, expected)]
    torch.testing.assert_close(*gradients)

"""
POOLS = """
check(lambda x: F.avg_pool2d(x, 2, None, (0,)), (1, 2, 7, 6))
check(lambda x: F.avg_pool2d(x, (3,), (2,), (1,)), (2, 7, 6))
check(lambda x: F.avg_pool3d(x, 2, None, (1,)), (1, 2, 5, 6, 7))
check(lambda x: F.max_pool2d(x, (3,), None, (1,), (1,)), (1, 2, 7, 6))
check(lambda x: F.max_pool3d(x, 2, None, (1,)), (1, 2, 5, 6, 7))
"""
CONVOLUTIONS = """
check(lambda x, w, b: torch.conv_tbc(x, w, b), (3, 1, 1), (1, 1, 1), (1,))
check(lambda x, w, b: torch.conv_tbc(x, w, b, 2), (7, 2, 3), (3, 3, 5), (5,))
check(lambda x, w: F.conv2d(x, w, None, (2,), (1,), (1,)), (1, 2, 7, 6), (3, 2, 3, 3))
"""


@pytest.mark.extended
def test_pools_and_convolutions(run_python):
    code = PROGRAM + POOLS + CONVOLUTIONS
    done = run_python(code, preloaded="torch", limit=200)
    assert (done.returncode, done.stderr) == (0, "")
