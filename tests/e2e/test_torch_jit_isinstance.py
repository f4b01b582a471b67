"""``torch.jit.isinstance`` of classes does not end a graph: torchaudio's spectrograms call it."""

import pytest
import torch

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch


def scaled(x, by):
    if torch.jit.isinstance(by, str):
        return x * len(by)
    return x + 1 if torch.jit.isinstance(by, (bool, complex)) else x * by


def test_classes_are_asked_for_in_a_graph():
    compiled = polyblocks_jit_torch(scaled, compile_options={"strict_target": True})
    x = torch.randn(3)
    for by in ("abc", True, 2.5, 3):
        torch.testing.assert_close(compiled(x, by), scaled(x, by))


def test_elements_are_asked_for_beside_graphs():
    def chosen(x, places):
        return x * 2 if torch.jit.isinstance(places, list[int]) else x

    compiled = polyblocks_jit_torch(chosen)
    x = torch.randn(3)
    for places in ([1], ["a"]):
        torch.testing.assert_close(compiled(x, places), chosen(x, places))
    with pytest.raises(RuntimeError, match="without a contained type"):
        polyblocks_jit_torch(lambda x: torch.jit.isinstance(x, list))(x)
