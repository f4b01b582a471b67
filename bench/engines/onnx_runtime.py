"""ONNX Runtime's CPU provider, on the function that PyTorch exports."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import onnxruntime
import onnxscript
import torch

from bench.arrays import tensor
from bench.engines import Prepared, written_in

OUTPUTS = {"onnxruntime": "one buffer that is bound once, written at each call"}
DISTRIBUTIONS = {"onnxruntime": ("onnxruntime", "onnx", "onnxscript", "torch")}

#: Of results.
_DTYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32}


class _Module(torch.nn.Module):
    def __init__(self, program: str) -> None:
        super().__init__()
        self.function = written_in("in_torch", program)

    def forward(self, *arguments: torch.Tensor) -> torch.Tensor:
        return self.function(*arguments)


_threads = 1


def warm_up(name: str, threads: int) -> None:
    """Remember the threads; export and run something small."""
    global _threads
    _threads = threads
    onnxruntime.set_default_logger_severity(3)
    prepare(name, "softmax", (np.ones((4, 4), np.float32),)).call()


def prepare(name: str, program: str, inputs: tuple[np.ndarray[Any, Any], ...]) -> Prepared:
    """The exported function; exporting and optimizing belong to the first call."""
    session: Any = None
    binding: Any = None

    def call() -> Any:
        nonlocal session, binding
        if session is None:
            session = _session(program, inputs)
            binding = _bind(session, inputs)
        session.run_with_iobinding(binding)
        return binding

    return Prepared(call, lambda bound: bound.copy_outputs_to_cpu()[0])


def _session(program: str, inputs: tuple[np.ndarray[Any, Any], ...]) -> Any:
    examples = tuple(tensor(x) for x in inputs)
    exported = torch.onnx.export(
        _Module(program),
        examples,
        dynamo=True,
        verbose=False,
        custom_translation_table={torch.ops.aten._int_mm.default: _int8_matmul},
    )
    data = io.BytesIO()
    exported.save(data)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = _threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    return onnxruntime.InferenceSession(data.getvalue(), options, ["CPUExecutionProvider"])


def _int8_matmul(x: Any, w: Any) -> Any:
    """What PyTorch's exporter lacks."""
    return onnxscript.opset18.MatMulInteger(x, w)


def _bind(session: Any, inputs: tuple[np.ndarray[Any, Any], ...]) -> Any:
    binding = session.io_binding()
    for described, value in zip(session.get_inputs(), inputs, strict=True):
        binding.bind_ortvalue_input(described.name, onnxruntime.OrtValue.ortvalue_from_numpy(value))
    (output,) = session.get_outputs()
    dtype = _DTYPES[output.type]
    buffer = onnxruntime.OrtValue.ortvalue_from_shape_and_type(output.shape, dtype)
    binding.bind_ortvalue_output(output.name, buffer)
    return binding
