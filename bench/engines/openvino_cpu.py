"""OpenVINO's CPU plugin, on the function that PyTorch exports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import openvino
import torch

from bench.arrays import bfloat16, tensor
from bench.engines import Prepared, written_in

OUTPUTS = {"openvino": "one buffer of its own, written at each call"}
DISTRIBUTIONS = {"openvino": ("openvino", "torch")}


#: Operations whose weights have to be constants of the model.
_CONVOLUTIONS = {"Convolution", "GroupConvolution"}

Arrays = tuple[np.ndarray[Any, Any], ...]


class _Module(torch.nn.Module):
    """A program; what follows its first arguments may be held, as weights are."""

    def __init__(self, program: str, held: Sequence[torch.Tensor] = ()) -> None:
        super().__init__()
        self.function = written_in("in_torch", program)
        for number, value in enumerate(held):
            self.register_buffer(f"held{number}", value)

    def forward(self, *arguments: torch.Tensor) -> torch.Tensor:
        return self.function(*arguments, *self.buffers(recurse=False))


_threads = 1


def warm_up(name: str, threads: int) -> None:
    """Remember the threads; compile something small."""
    global _threads
    _threads = threads
    prepare(name, "softmax", (np.ones((4, 4), np.float32),)).call()


def prepare(name: str, program: str, inputs: Arrays) -> Prepared:
    """The exported function in its own precision; conversion and compilation are the first call.

    A program with convolutions gets all but its first argument as constants.
    """
    request: Any = None
    arguments: list[Any] = []

    def call() -> Any:
        nonlocal request
        if request is None:
            model, count = _convert(program, inputs)
            request = _compile(model, inputs)
            arguments.extend(map(_shared, inputs[:count]))
        return request.infer(arguments, share_inputs=True, share_outputs=True)

    return Prepared(call, lambda _: _array(request.get_output_tensor(0)))


def _convert(program: str, inputs: Arrays) -> tuple[Any, int]:
    """The model, and how many of the inputs are still arguments of it."""
    examples = [tensor(x) for x in inputs]
    for count in sorted({len(inputs), 1}, reverse=True):
        given = tuple(examples[:count])
        exported = torch.export.export(_Module(program, examples[count:]), given)
        model = openvino.convert_model(exported, example_input=given)
        if not any(op.get_type_name() in _CONVOLUTIONS for op in model.get_ops()):
            break
    return model, count


def _compile(model: Any, inputs: Arrays) -> Any:
    settings = {
        "INFERENCE_NUM_THREADS": _threads,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "bf16" if inputs[0].dtype.name == "bfloat16" else "f32",
    }
    return openvino.compile_model(model, "CPU", settings).create_infer_request()


def _shared(array: np.ndarray[Any, Any]) -> Any:
    """The array, or its memory as OpenVINO's bfloat16."""
    if array.dtype.name != "bfloat16":
        return array
    return openvino.Tensor(array.view(np.uint16), array.shape, openvino.Type.bf16)


def _array(result: Any) -> np.ndarray[Any, Any]:
    array: np.ndarray[Any, Any] = result.data
    return array.view(bfloat16()) if result.element_type == openvino.Type.bf16 else array
