"""OpenVINO's CPU plugin, on the function that PyTorch exports."""

from __future__ import annotations

from typing import Any

import numpy as np
import openvino
import torch

from bench.arrays import tensor
from bench.engines import Prepared, written_in

OUTPUTS = {"openvino": "one buffer of its own, written at each call"}
DISTRIBUTIONS = {"openvino": ("openvino", "torch")}


class _Module(torch.nn.Module):
    def __init__(self, program: str) -> None:
        super().__init__()
        self.function = written_in("in_torch", program)

    def forward(self, *arguments: torch.Tensor) -> torch.Tensor:
        return self.function(*arguments)


_threads = 1


def warm_up(name: str, threads: int) -> None:
    """Remember the threads; compile something small."""
    global _threads
    _threads = threads
    prepare(name, "softmax", (np.ones((4, 4), np.float32),)).call()


def prepare(name: str, program: str, inputs: tuple[np.ndarray[Any, Any], ...]) -> Prepared:
    """The exported function in float32; conversion and compilation belong to the first call."""
    arguments = list(inputs)
    request: Any = None

    def call() -> Any:
        nonlocal request
        if request is None:
            request = _compile(program, inputs)
        return request.infer(arguments, share_inputs=True, share_outputs=True)

    return Prepared(call, lambda result: result[0])


def _compile(program: str, inputs: tuple[np.ndarray[Any, Any], ...]) -> Any:
    examples = tuple(tensor(x) for x in inputs)
    exported = torch.export.export(_Module(program), examples)
    model = openvino.convert_model(exported, example_input=examples)
    settings = {
        "INFERENCE_NUM_THREADS": _threads,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
    }
    return openvino.compile_model(model, "CPU", settings).create_infer_request()
