"""Whole models with random weights: by name a module in evaluation mode and its inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from bench.programs.bert import Bert, BertStates
from bench.programs.convnext import Block, ConvNeXt
from bench.programs.gpt import GPT2
from bench.programs.llama import Layer as LlamaLayer
from bench.programs.mobilenet import MobileNetV2
from bench.programs.resnet import ResNet18, ResNet50
from bench.programs.training import TrainingStep
from bench.programs.vit import ViT

Model = tuple[torch.nn.Module, tuple[torch.Tensor, ...]]


def resnet18() -> Model:
    """ResNet-18 on one image of 224 x 224."""
    return ResNet18().eval(), (torch.rand(1, 3, 224, 224),)


def resnet50() -> Model:
    """ResNet-50 on one image of 224 x 224."""
    return ResNet50().eval(), (torch.rand(1, 3, 224, 224),)


def mobilenet_v2() -> Model:
    """MobileNetV2 on one image of 224 x 224."""
    return MobileNetV2().eval(), (torch.rand(1, 3, 224, 224),)


def convnext_tiny() -> Model:
    """ConvNeXt-T on one image of 224 x 224."""
    return ConvNeXt().eval(), (torch.rand(1, 3, 224, 224),)


def bert_base() -> Model:
    """BERT-base on 128 tokens."""
    tokens = torch.randint(0, 30000, (1, 128))
    return Bert().eval(), (tokens, torch.ones_like(tokens))


def bert_states() -> Model:
    """The same, one result."""
    return BertStates().eval(), bert_base()[1]


def gpt2() -> Model:
    """GPT-2 on 128 tokens."""
    return GPT2().eval(), (torch.randint(0, 50257, (1, 128)),)


def vit() -> Model:
    """ViT-B/16 on one image of 224 x 224."""
    return ViT().eval(), (torch.rand(1, 3, 224, 224),)


def llama_layer() -> Model:
    """A layer of Llama's kind on 256 tokens."""
    return LlamaLayer().eval(), (torch.randn(1, 256, 1024), torch.arange(256))


def training_step() -> Model:
    """A step of training on eight batches of 128 tokens."""
    return TrainingStep().train(), (torch.randn(8, 128, 256), torch.randn(8, 128, 256))


MODELS: dict[str, Callable[[], Model]] = {
    "ResNet-18": resnet18,
    "BERT-base": bert_base,
    "ResNet-50": resnet50,
    "MobileNetV2": mobilenet_v2,
    "ConvNeXt-T": convnext_tiny,
    "BERT-base states": bert_states,
    "GPT-2": gpt2,
    "ViT-B/16": vit,
    "Llama layer": llama_layer,
    "training step": training_step,
}


def with_weights(name: str) -> torch.nn.Module:
    """A model whose weights and statistics are the same in every process."""
    return randomized(lambda: MODELS[name]()[0])


def randomized(make: Callable[[], torch.nn.Module]) -> torch.nn.Module:
    """A module whose weights and statistics are the same in every process.

    What a new module leaves neutral is random, too: a shortcut around a block that adds nothing, or
    a normalization that changes nothing, would hide errors.
    """
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        module = make()
        for part in module.modules():
            if isinstance(part, torch.nn.BatchNorm2d):
                part.weight.uniform_(0.5, 1.5)
                part.bias.normal_(std=0.1)
                if part.track_running_stats:
                    part.running_mean.normal_(std=0.1)
                    part.running_var.uniform_(0.5, 1.5)
            elif isinstance(part, torch.nn.Conv2d):
                # Activations keep their size (He et al., 2015, equation 10).
                torch.nn.init.kaiming_normal_(part.weight, nonlinearity="relu")
            elif isinstance(part, Block):
                part.scale.uniform_(0.1, 1.0)
    return module


def built_for(target: str, arch: str) -> Callable[[Any], Any]:
    """What compiles a function for a target and checks that nothing falls back.

    Nothing is launched, so that no device is needed: a call returns memory that nobody writes.
    """
    from polyblocks import driver
    from polyblocks.ahead_of_time.seen_program import Seen
    from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

    options = {"target": target, "arch": arch, "strict_target": True}

    def make(function: Any) -> Any:
        compiled = polyblocks_jit_torch(function, compile_options=options)

        def call(*inputs: torch.Tensor) -> Any:
            with driver.loading_with(Seen):
                return compiled(*inputs)

        call.polyblocks_report = compiled.polyblocks_report  # type: ignore[attr-defined]
        return call

    return make
