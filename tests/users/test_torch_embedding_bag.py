"""nn.EmbeddingBag, with gradients."""

import copy

import pytest
import torch

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch
from polyblocks_torch.decomp import embedding_bags

INDICES = torch.tensor([1, 2, 4, 5, 4, 3, 2, 9, 4])
OFFSETS = torch.tensor([0, 3, 3, 6])
aten = torch.ops.aten


@pytest.mark.parametrize(
    "mode",
    [
        pytest.param("sum", marks=pytest.mark.slow),
        "mean",
        pytest.param("max", marks=pytest.mark.slow),
    ],
)
def test_embedding_bag(mode):
    model = torch.nn.EmbeddingBag(10, 4, mode=mode, padding_idx=4)
    twin = copy.deepcopy(model)
    fast = polyblocks_jit_torch(twin, compile_options={"strict_target": True})
    expected, result = model(INDICES, OFFSETS), fast(INDICES, OFFSETS)
    torch.testing.assert_close(result, expected)
    expected.square().sum().backward()
    result.square().sum().backward()
    torch.testing.assert_close(twin.weight.grad, model.weight.grad)
    assert fast.polyblocks_report().whole


@pytest.mark.each_choice
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding_idx", [None, 4])
def test_bags_of_a_matrix(mode, padding_idx):
    model = torch.nn.EmbeddingBag(10, 5, mode=mode, padding_idx=padding_idx)
    twin = copy.deepcopy(model)
    fast = polyblocks_jit_torch(twin, compile_options={"strict_target": True})
    indices = torch.tensor([[1, 2, 4], [4, 4, 4], [9, 9, 0], [3, 4, 9]])
    expected, result = model(indices), fast(indices)
    torch.testing.assert_close(result, expected)
    expected.square().sum().backward()
    result.square().sum().backward()
    torch.testing.assert_close(twin.weight.grad, model.weight.grad)


def test_bags_of_a_matrix_are_sums_of_rows():
    def bags(indices, weight):
        return torch.nn.functional.embedding_bag(indices, weight, mode="sum")

    fast = polyblocks_jit_torch(bags, compile_options={"strict_target": True})
    indices, weight = torch.randint(0, 10, (6, 3)), torch.randn(10, 5)
    torch.testing.assert_close(fast(indices, weight), bags(indices, weight))
    # No bag is looked for.
    assert len(fast.polyblocks_report().parts[0].kernels) <= 1
    with pytest.raises(IndexError, match="out of range"):
        fast(indices + 8, weight)


@pytest.mark.slow
def test_embedding_bag_per_sample_weights():
    model = torch.nn.EmbeddingBag(10, 4, mode="sum", include_last_offset=True)
    twin = copy.deepcopy(model)
    fast = polyblocks_jit_torch(twin, compile_options={"strict_target": True})
    offsets = torch.cat([OFFSETS, torch.tensor([9])])
    grads = []
    for network in (model, fast):
        scales = torch.linspace(0.5, 2, 9).requires_grad_()
        network(INDICES, offsets, per_sample_weights=scales).square().sum().backward()
        grads.append(scales.grad)
    torch.testing.assert_close(*grads)
    torch.testing.assert_close(twin.weight.grad, model.weight.grad)


@pytest.mark.each_choice
@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("padding_idx", [-1, 4])
@pytest.mark.parametrize("last", [False, True])
def test_embedding_bag_forms(mode, padding_idx, last):
    weight = torch.randn(10, 3, dtype=torch.float64)
    offsets = torch.cat([OFFSETS, torch.tensor([9])]) if last else OFFSETS
    scales = torch.rand(9, dtype=torch.float64) if mode == 0 else None
    given = (weight, INDICES, offsets, False, mode, False, scales, last, padding_idx)
    ours, theirs = embedding_bags.embedding_bag(*given), aten._embedding_bag(*given)
    torch.testing.assert_close(ours[0], theirs[0])
    assert [t.shape for t in ours] == [t.shape for t in theirs]
    grad = torch.randn_like(theirs[0])
    rest = (INDICES, offsets, *theirs[1:], 10, False, mode, False, scales, padding_idx)
    torch.testing.assert_close(
        embedding_bags.embedding_bag_backward(grad, INDICES, offsets, *ours[1:], *rest[5:]),
        aten._embedding_bag_backward(grad, *rest),
    )
