"""The models of the GPU table at sizes that a simulator runs in seconds, held to float64."""

from __future__ import annotations

import copy
import random
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from bench.gpu_models.zoo import ResNetStep
from bench.models import randomized
from bench.programs.bert import Bert
from bench.programs.convnext import ConvNeXt
from bench.programs.diffusion import DiffusionBlocks
from bench.programs.efficientnet import EfficientNetB0
from bench.programs.gpt import GPT2
from bench.programs.llama import Llama
from bench.programs.mobilenet import MobileNetV2
from bench.programs.resnet import ResNet18, ResNet50
from bench.programs.training import TrainingStep
from bench.programs.unet import UNet
from bench.programs.vit import ViT
from bench.programs.whisper import WhisperEncoder
from tests.support.any_unit import any_unit
from tests.support.simulated_chips import on_chip
from torch import nn

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

Inputs = tuple[torch.Tensor, ...]
r = torch.randn


class Scores(nn.Module):
    """What a decoder chooses by, and what it chooses."""

    def __init__(self, batch: int) -> None:
        super().__init__()
        self.inner = Llama(2, 48, 4, 2, 75, 40, batch)

    def forward(self, tokens: torch.Tensor, places: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Scores and tokens."""
        scores = self.inner.scores(tokens, places)
        return scores, scores.argmax(-1)


def _image(*shape: int) -> Callable[[int], Inputs]:
    return lambda batch: (torch.rand(batch, 3, *shape),)


def _tokens(length: int) -> Callable[[int], Inputs]:
    return lambda batch: (torch.randint(0, 90, (batch, length)),)


def _masked(length: int) -> Callable[[int], Inputs]:
    """Tokens of which the last three do not count."""
    return lambda batch: (
        torch.randint(0, 90, (batch, length)),
        (torch.arange(length) < length - 3).long().expand(batch, -1).contiguous(),
    )


#: The module for a batch, and its inputs.
SMALL: dict[str, tuple[Callable[[int], nn.Module], Callable[[int], Inputs]]] = {
    "ResNet-50": (lambda batch: ResNet50((2, 1), 8, 23), _image(16, 19)),
    "BERT-base 128": (lambda batch: Bert(2, 48, 2, 90), _masked(16)),
    "MobileNetV2": (
        lambda batch: MobileNetV2(((1, 6, 1, 1), (6, 8, 2, 2)), 8, 40, 23),
        _image(16, 19),
    ),
    "GPT-2 128": (lambda batch: GPT2(2, 48, 2, 90), _tokens(16)),
    "Llama prefill 512": (
        Scores,
        lambda batch: (torch.randint(0, 75, (batch, 13)), torch.arange(13)),
    ),
    "Llama decode 1024": (
        Scores,
        lambda batch: (torch.randint(0, 75, (batch, 1)), torch.tensor([33])),
    ),
    "ViT-B/16": (lambda batch: ViT(1, 48, 3, 48, 23), _image(48, 48)),
    "ResNet-18": (lambda batch: ResNet18((1, 1, 1), 8, 23), _image(24, 27)),
    "ConvNeXt-T": (lambda batch: ConvNeXt((1, 1), (16, 24), 23), _image(24, 20)),
    "EfficientNet-B0": (
        lambda batch: EfficientNetB0(((1, 6, 1, 1, 3), (6, 8, 2, 2, 5)), 8, 40, 23),
        _image(16, 19),
    ),
    "BERT-base 512": (lambda batch: Bert(1, 32, 2, 90), _masked(77)),
    "Whisper encoder": (
        lambda batch: WhisperEncoder(1, 64, 2, 23),
        lambda batch: (r(batch, 80, 46),),
    ),
    "diffusion blocks 64": (
        lambda batch: DiffusionBlocks(1, 64, 48, 40),
        lambda batch: (r(batch, 64, 6, 5), r(batch, 48), r(batch, 7, 40)),
    ),
    "U-Net": (lambda batch: UNet((8, 16)), _image(10, 12)),
    "encoder, training": (
        lambda batch: TrainingStep(4, 32, 2),
        lambda batch: (r(batch, 12, 32), r(batch, 12, 32)),
    ),
    "ResNet-18, training": (
        lambda batch: ResNetStep(ResNet18((1, 1), 8, 10)),
        lambda batch: (torch.rand(batch, 3, 16, 16), torch.randint(0, 10, (batch,))),
    ),
}
#: What an error may be where eager mode's is smaller: of the largest number, a unit in the last
#: place.
UNIT = {torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7, torch.float32: 2.0**-22}


@dataclass(frozen=True)
class Outcome:
    """Of a model on a chip.

    Attributes:
        problems: what is wrong with it; none if it is right.
        launches: of all kernels.
        matrix: instructions of matrix units.
        ratio: the largest error beside float64 of all results, as a multiple of eager mode's.
        seconds: of the processor, for compiler and simulator.
    """

    problems: tuple[str, ...]
    launches: int
    matrix: int
    ratio: float
    seconds: float


def outcome_of(
    name: str, arch: str, dtype: torch.dtype, batch: int, units: random.Random | None = None
) -> Outcome:
    """Compile a model whole, run it on a simulated chip, and compare it with float64.

    Args:
        name: one of :data:`SMALL`.
        arch: the chip, one of :data:`ALL_CHIPS`.
        dtype: of weights and inputs.
        batch: how many of them.
        units: chooses any kernels of matrix units in the place of the best ones.
    """
    make, inputs = SMALL[name]
    module = randomized(lambda: make(batch)).to(dtype).train("training" in name)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(batch)
        given = _as(dtype, inputs(batch))
    exact, eager = (copy.deepcopy(module).to(each) for each in (torch.float64, dtype))
    torch._dynamo.reset()
    begin, problems = time.process_time(), []
    chosen = nullcontext() if units is None else any_unit(units)
    with torch.no_grad(), on_chip(arch) as seen, chosen:
        wanted = _results(exact, _as(torch.float64, given))
        theirs = _results(eager, given)
        compiled = polyblocks_jit_torch(module, compile_options={"strict_target": True})
        try:
            found = _flat(compiled(*given)) + list(module.buffers())
        except Exception as error:  # whatever it is, the model has failed
            text = (str(error).strip() or "no message").splitlines()[0]
            problems.append(f"{type(error).__name__}: {text}")
            found = []
    problems += [*seen.findings, *seen.fallbacks, *seen.cuts]
    ratios = [0.0]
    for ours, own, right in zip(found, theirs, wanted, strict=False):
        error, allowed = ((x.double() - right).abs().max().item() for x in (ours, own))
        unit = UNIT[dtype] * right.abs().max().item() if right.is_floating_point() else 0.0
        if not error <= 2 * allowed + unit:
            problems.append(f"error {error:.2e}, eager mode's {allowed:.2e}")
        ratios.append(error / (allowed + unit) if error else 0.0)
    if len(compiled.polyblocks_report().parts) != 1 and not problems:
        problems.append(f"{len(compiled.polyblocks_report().parts)} programs")
    seconds = time.process_time() - begin
    return Outcome(
        tuple(problems), seen.launches, seen.instructions["matrix"], max(ratios), seconds
    )


def _as(dtype: torch.dtype, given: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    return [x.to(dtype) if x.is_floating_point() else x for x in given]


def _results(module: nn.Module, given: list[torch.Tensor]) -> list[torch.Tensor]:
    """What a call gives, and the buffers, which it may have changed."""
    return _flat(module(*given)) + list(module.buffers())


def _flat(result: Any) -> list[torch.Tensor]:
    return list(result) if isinstance(result, tuple | list) else [result]
