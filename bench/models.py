"""Whole models, to be compiled for any target: by name a module and its inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Model = tuple[torch.nn.Module, tuple[torch.Tensor, ...]]


def resnet18() -> Model:
    """ResNet-18 on one image of 224 x 224."""
    from bench.programs.resnet import ResNet18

    return ResNet18().eval(), (torch.rand(1, 3, 224, 224),)


def bert_base() -> Model:
    """BERT-base on 128 tokens."""
    from bench.programs.bert import Bert

    tokens = torch.randint(0, 30000, (1, 128))
    return Bert().eval(), (tokens, torch.ones_like(tokens))


MODELS: dict[str, Callable[[], Model]] = {"ResNet-18": resnet18, "BERT-base": bert_base}


def built_for(target: str, arch: str) -> Callable[[Any], Any]:
    """What compiles a function for a target and checks that nothing falls back.

    Nothing is launched, so that no device is needed: a call returns memory that nobody writes.
    """
    from polyblocks import driver
    from polyblocks.seen_program import Seen
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
