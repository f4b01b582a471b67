"""Programs as modules with schedules, which tests change before kernels are made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from tests.support.captured import captured
from tests.support.gpu_target import gpu_target
from tests.support.lanes import Launch, run_main

from polyblocks import mlir, signature
from polyblocks.affine.mlir.json_attributes import from_attribute, to_attribute
from polyblocks.attributes import SCHEDULE_ATTRIBUTE
from polyblocks.options import CompileOptions
from polyblocks.passes.map.emit_kernels import EmitKernelsPass
from polyblocks.passes.map.stage_operands import StageOperandsPass
from polyblocks.passes.standard import standard_pipeline
from polyblocks.pipeline import PassContext, run_stage
from polyblocks.target import TargetDescription


def scheduled(
    function: Callable[..., Any],
    inputs: Sequence[torch.Tensor],
    target: TargetDescription | None = None,
    before: str = "emit-kernels",
) -> str:
    """The text of a program as the pass ``before`` gets it, on a GPU unless a target is given."""
    target, options = target or gpu_target(), CompileOptions()
    context = PassContext.create(target, options)
    module = captured(function, inputs).module
    pipeline = standard_pipeline(target, options)
    for stage, passes in pipeline.stages.items():
        names = [p.name for p in passes]
        end = names.index(before) if before in names else len(names)
        run_stage(stage, passes[:end], module, context)
    return str(module)


def holders(module: Any) -> list[Any]:
    """The operations that have a schedule, in order."""
    found = []

    def visit(op: Any) -> Any:
        if SCHEDULE_ATTRIBUTE in op.attributes:
            found.append(op)
        return mlir.ir.WalkResult.ADVANCE

    module.operation.walk(visit, mlir.ir.WalkOrder.PRE_ORDER)
    return found


def schedules(text: str) -> list[dict[str, Any]]:
    """All schedules of a module."""
    ops = holders(mlir.parse(text))
    return [from_attribute(op.attributes[SCHEDULE_ATTRIBUTE]) for op in ops]


def edited(text: str, number: int, *without: str, **changes: Any) -> str:
    """The module with another schedule for one of its nests."""
    module = mlir.parse(text)
    op = holders(module)[number]
    new = {**from_attribute(op.attributes[SCHEDULE_ATTRIBUTE]), **changes}
    with module.context:
        op.attributes[SCHEDULE_ATTRIBUTE] = to_attribute(
            {key: value for key, value in new.items() if key not in without}
        )
    return str(module)


def emitted(text: str) -> Any:
    """The module with kernels in the place of its nests."""
    module = mlir.parse(text)
    context = PassContext.create(gpu_target(), CompileOptions())
    StageOperandsPass().run(module, context)
    EmitKernelsPass().run(module, context)
    return module


def run_emitted(text: str, inputs: Sequence[torch.Tensor]) -> tuple[list[np.ndarray], list[Launch]]:
    """Outputs and launches of a module with schedules."""
    module = emitted(text)
    given = iter(inputs)
    arrays, outputs = [], []
    for row in signature.rows(module):
        if row["role"] == "input":
            arrays.append(next(given).numpy().copy())
        else:
            arrays.append(np.zeros(row["shape"], row["dtype"]))
            outputs.append(arrays[-1])
    return outputs, run_main(module, arrays)
