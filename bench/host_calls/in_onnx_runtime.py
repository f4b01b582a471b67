"""Calls of ONNX Runtime on the function that PyTorch exports, with arrays that are bound once."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch

from bench.host_calls import cases, torch_programs
from bench.host_calls.cases import Case
from bench.host_calls.measure import Call, Peer


class _Adds(torch.nn.Module):
    """The exporter takes modules."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *arrays: torch.Tensor) -> Any:
        return self.function(*arrays)


def peers(case: Case, folder: Path) -> list[Peer]:
    """The runtime alone; what it runs has neither trees nor keywords."""
    if case.kind in (cases.TREE, cases.KEYWORDS):
        return []
    return [Peer("ONNX Runtime", lambda: _bound(case))]


def _bound(case: Case) -> Call:
    function, positional, _ = torch_programs.program(case)
    module = function if isinstance(function, torch.nn.Module) else _Adds(function)
    data = io.BytesIO()
    torch.onnx.export(module.eval(), positional, dynamo=True, verbose=False).save(data)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(data.getvalue(), options, ["CPUExecutionProvider"])
    binding = session.io_binding()
    for described, value in zip(session.get_inputs(), case.inputs, strict=True):
        binding.bind_ortvalue_input(described.name, onnxruntime.OrtValue.ortvalue_from_numpy(value))
    (output,) = session.get_outputs()
    held = onnxruntime.OrtValue.ortvalue_from_shape_and_type([cases.ELEMENTS], np.float32)
    binding.bind_ortvalue_output(output.name, held)

    def run() -> Any:
        session.run_with_iobinding(binding)
        return held

    return Call(run)


def arrays_of(result: Any) -> list[np.ndarray[Any, Any]]:
    """The array that is bound."""
    return [result.numpy()]


def wait(result: Any) -> None:
    """Nothing runs on after a call."""
