"""Small models in float16 on a simulated GPU: whole, without findings, as near as eager mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from bench.gpu_models.zoo import MODELS
from bench.programs.bert import Bert
from bench.programs.efficientnet import Block as EfficientBlock
from bench.programs.gpt import GPT2
from bench.programs.llama import Layer as Decoder
from bench.programs.mobilenet import InvertedResidual
from bench.programs.resnet import Block, Bottleneck
from bench.programs.whisper import WhisperEncoder
from sweeps import sweep
from tests.extended.test_half_programs_simulated import of_module
from tests.extended.test_kernels_simulated import simulate
from torch import nn

pytestmark = pytest.mark.cpu

Inputs = tuple[torch.Tensor, ...]
r = torch.randn


def tokens(count: int) -> torch.Tensor:
    return torch.randint(0, 90, (1, count))


def caches() -> Inputs:
    return tuple(r(1, 1, 32, 32) for _ in range(2))


#: Of models of the table: a small one, or a block of those whose sizes are fixed, and its inputs.
SMALL: dict[str, tuple[Callable[[], nn.Module], Callable[[], Inputs]]] = {
    "ResNet-50": (lambda: Bottleneck(16, 8, 2), lambda: (r(1, 16, 8, 8),)),
    "BERT-base 128": (
        lambda: Bert(2, 64, 2, 100),
        lambda: (tokens(16), torch.ones(1, 16, dtype=torch.int64)),
    ),
    "MobileNetV2": (lambda: InvertedResidual(8, 16, 2, 6), lambda: (r(1, 8, 8, 8),)),
    "GPT-2 128": (lambda: GPT2(2, 64, 2, 100), lambda: (tokens(16),)),
    "Llama prefill 512": (
        lambda: Decoder(64, 2, 1, 128),
        lambda: (r(1, 12, 64), torch.arange(12), *caches()),
    ),
    "Llama decode 1024": (
        lambda: Decoder(64, 2, 1, 128),
        lambda: (r(1, 1, 64), torch.tensor([9]), *caches()),
    ),
    "ResNet-18": (lambda: Block(16, 24, 2), lambda: (r(1, 16, 8, 8),)),
    "EfficientNet-B0": (lambda: EfficientBlock(8, 16, 2, 6, 5), lambda: (r(1, 8, 8, 8),)),
    "Whisper encoder": (lambda: WhisperEncoder(1, 64, 2, 24), lambda: (r(1, 80, 48),)),
}


def test_names_are_those_of_the_table() -> None:
    assert SMALL.keys() <= MODELS.keys()


@pytest.mark.parametrize("name", sweep(SMALL, "BERT-base 128", extended=[*SMALL][2:]))
def test_models_are_right(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.Tensor, "index_copy_", torch.Tensor.index_copy)
    torch.manual_seed(0)
    make, inputs = SMALL[name]
    module = make().half().eval()
    for part in module.modules():
        if hasattr(part, "inplace"):
            part.inplace = False
    for key, buffer in list(module.named_buffers()):
        # Arguments like the weights are.
        if buffer.is_floating_point():
            owner, _, last = key.rpartition(".")
            part = module.get_submodule(owner)
            del part._buffers[last]
            part.register_parameter(last, nn.Parameter(buffer))
    given = (x.half() if x.is_floating_point() else x for x in inputs())
    with torch.no_grad():
        function, arrays = of_module(module, *given)
        found, launches = simulate(function, arrays, "sm_80")
        exact = results(function, [x.double() if x.is_floating_point() else x for x in arrays])
        eager = results(function, arrays)
    assert [str(finding) for launch in launches for finding in launch.findings] == []
    for array, theirs, right in zip(found, eager, exact, strict=True):
        ours = torch.from_numpy(array).double().reshape(right.shape)
        allowed = (theirs.double() - right).abs().max()
        assert (ours - right).abs().max() <= 2 * allowed + 1e-3 * right.abs().max()


def results(function: Callable[..., Any], given: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    found = function(*given)
    return tuple(found) if isinstance(found, tuple | list) else (found,)
