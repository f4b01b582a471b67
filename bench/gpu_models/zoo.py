"""The models: modules in evaluation mode or steps of training, and inputs for a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.func import functional_call, grad_and_value

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

Inputs = tuple[torch.Tensor, ...]

#: Tokens that a decoder has seen, and those of a prompt.
SEEN, PROMPT = 1024, 512


@dataclass(frozen=True)
class Model:
    """What is compiled.

    Attributes:
        make: the module for a batch.
        inputs: for a batch.
        layers: that are alike; 0 if none are.
        bar: launches, of a layer where there are layers, at most; 0: none is set.
    """

    make: Callable[[int], nn.Module]
    inputs: Callable[[int], Inputs]
    layers: int = 0
    bar: int = 0


class ResNetStep(nn.Module):
    """Images and classes (N) -> the loss, and the weights of a ResNet-18 after a step of SGD.

    Another network may take its place.
    """

    def __init__(self, network: nn.Module | None = None, rate: float = 0.01) -> None:
        super().__init__()
        self.network, self.rate = network or ResNet18(), rate
        for part in self.network.modules():
            if isinstance(part, nn.BatchNorm2d):
                # The means of a batch alone: no array changes in place.
                part.track_running_stats = False
                part.running_mean = part.running_var = part.num_batches_tracked = None

    def forward(self, images: torch.Tensor, classes: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The loss before the step, and all weights after it."""
        weights = {name: p.detach() for name, p in self.network.named_parameters()}

        def loss(weights: dict[str, torch.Tensor]) -> torch.Tensor:
            scores = functional_call(self.network, weights, (images,))
            return nn.functional.cross_entropy(scores, classes)

        gradients, value = grad_and_value(loss)(weights)
        return value, *(w - self.rate * gradients[name] for name, w in weights.items())


def _image(batch: int) -> Inputs:
    return (torch.rand(batch, 3, 224, 224),)


def _tokens(length: int) -> Callable[[int], Inputs]:
    return lambda batch: (torch.randint(0, 30000, (batch, length)),)


def _masked_tokens(length: int) -> Callable[[int], Inputs]:
    def inputs(batch: int) -> Inputs:
        (tokens,) = _tokens(length)(batch)
        return tokens, torch.ones_like(tokens)

    return inputs


def _llama(batch: int) -> nn.Module:
    return Llama(8, 2048, 16, 4, 32000, SEEN, batch)


def _prompt(batch: int) -> Inputs:
    return torch.randint(0, 30000, (batch, PROMPT)), torch.arange(PROMPT)


def _next(batch: int) -> Inputs:
    return torch.randint(0, 30000, (batch, 1)), torch.tensor([SEEN - 1])


def _states(batch: int) -> Inputs:
    return torch.randn(batch, 128, 512), torch.randn(batch, 128, 512)


def _latents(batch: int) -> Inputs:
    return torch.randn(batch, 320, 64, 64), torch.randn(batch, 1280), torch.randn(batch, 77, 768)


def _classes(batch: int) -> Inputs:
    return (*_image(batch), torch.randint(0, 1000, (batch,)))


MODELS: dict[str, Model] = {
    "ResNet-50": Model(lambda batch: ResNet50(), _image, bar=60),
    "BERT-base 128": Model(lambda batch: Bert(), _masked_tokens(128), 12, 6),
    "MobileNetV2": Model(lambda batch: MobileNetV2(), _image, bar=60),
    "GPT-2 128": Model(lambda batch: GPT2(), _tokens(128), 12, 6),
    "Llama prefill 512": Model(_llama, _prompt, 8, 7),
    "Llama decode 1024": Model(_llama, _next, 8, 6),
    "ViT-B/16": Model(lambda batch: ViT(), _image, 12),
    "ResNet-18": Model(lambda batch: ResNet18(), _image),
    "ConvNeXt-T": Model(lambda batch: ConvNeXt(), _image),
    "EfficientNet-B0": Model(lambda batch: EfficientNetB0(), _image),
    "BERT-base 512": Model(lambda batch: Bert(), _masked_tokens(512), 12, 6),
    "Whisper encoder": Model(
        lambda batch: WhisperEncoder(), lambda batch: (torch.randn(batch, 80, 3000),), 6
    ),
    "diffusion blocks 64": Model(lambda batch: DiffusionBlocks(), _latents, 2),
    "U-Net": Model(lambda batch: UNet(), _image),
    "encoder, training": Model(lambda batch: TrainingStep(4, 512, 8), _states, 4),
    "ResNet-18, training": Model(lambda batch: ResNetStep(), _classes),
}


def empty(name: str, batch: int, dtype: torch.dtype) -> tuple[nn.Module, Inputs]:
    """A model whose weights have no values: their memory is never touched, and takes no room."""
    model = MODELS[name]
    with torch.device("meta"):
        module = model.make(batch).to(dtype)
    module = module.to_empty(device="cpu")
    module.train("training" in name)
    return module, tuple(x.to(dtype) if x.is_floating_point() else x for x in model.inputs(batch))
