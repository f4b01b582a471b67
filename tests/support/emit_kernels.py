"""The passes that make nests kernels, one after the other."""

from __future__ import annotations

from typing import Any

from polyblocks.options import CompileOptions
from polyblocks.passes.map.choose_kernels import ChooseKernelsPass
from polyblocks.passes.map.emit_kernels import EmitKernelsPass
from polyblocks.passes.map.stage_operands import StageOperandsPass
from polyblocks.pipeline import PassContext
from polyblocks.target import TargetDescription


def emit_kernels(module: Any, target: TargetDescription) -> Any:
    """The module, with kernels in the place of its nests."""
    context = PassContext.create(target, CompileOptions())
    ChooseKernelsPass().run(module, context)
    StageOperandsPass().run(module, context)
    EmitKernelsPass().run(module, context)
    return module
