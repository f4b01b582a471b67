"""A stable text of a captured graph; equal graphs give equal texts, whatever their names are.

Nodes are numbered in order, so neither the names that tracing gave nor the user's file names and
line numbers matter. Constants inside the graph go in by digest. Nothing here loads MLIR.
"""

from __future__ import annotations

import functools
import hashlib
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

if TYPE_CHECKING:
    from polyblocks_torch.capture import TorchCapture


def describe(capture: TorchCapture) -> str:
    """The text of a capture: arguments, operations, results with their layouts, versions."""
    lines = [f"torch {torch.__version__}"]
    for argument in capture.arguments:
        lines.append(f"argument {argument.spec} {argument.constant}")
    for result in capture.results:
        lines.append(f"result {result.spec} {result.updates}")
    return "\n".join([*lines, *_lines(capture.graph_module)])


def _lines(module: fx.GraphModule) -> list[str]:
    numbers: dict[fx.Node, int] = {}
    lines = []
    for node in module.graph.nodes:
        numbers[node] = len(numbers)
        lines.append(_line(node, numbers, module))
    return lines


def digest(capture: TorchCapture) -> bytes:
    """SHA-256 of the text."""
    return hashlib.sha256(capture.fingerprint_text().encode()).digest()


def _line(node: fx.Node, numbers: dict[fx.Node, int], module: fx.GraphModule) -> str:
    if node.op == "placeholder":
        return f"%{numbers[node]} = placeholder : {_value(node.meta.get('val'))}"
    if node.op == "get_attr":
        return f"%{numbers[node]} = constant {_constant(getattr(module, str(node.target), None))}"
    args = ", ".join(_argument(a, numbers) for a in node.args)
    kwargs = ", ".join(f"{k}={_argument(v, numbers)}" for k, v in sorted(node.kwargs.items()))
    if node.op == "output":
        return f"return {args}"
    value = _value(node.meta.get("val"))
    return f"%{numbers[node]} = {_target(node.target)}({args}; {kwargs}) : {value}"


@functools.lru_cache(maxsize=4096)
def _target(target: Any) -> str:
    return str(target) if isinstance(target, (str, torch._ops.OpOverload)) else repr(target)


def _argument(value: Any, numbers: dict[fx.Node, int]) -> str:
    if isinstance(value, fx.Node):
        return f"%{numbers[value]}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(_argument(v, numbers) for v in value) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{k}:{_argument(v, numbers)}" for k, v in value.items()) + "}"
    # The type keeps 1, 1.0 and True apart; repr of a float is exact.
    return f"{type(value).__name__} {value!r}"


def _value(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided:
            return f"{value.dtype}{tuple(value.shape)}{value.layout}"
        flags = ("c" if value.is_conj() else "") + ("n" if value.is_neg() else "")
        return f"{value.dtype}{tuple(value.shape)}{value.stride()}{value.device.type}{flags}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(_value(v) for v in value) + "]"
    return type(value).__name__


def _constant(value: Any) -> str:
    if isinstance(value, fx.GraphModule):
        # The body of a loop or a branch.
        return hashlib.sha256("\n".join(_lines(value)).encode()).hexdigest()
    plain = value.detach().resolve_conj().resolve_neg().contiguous()
    data = plain.reshape(-1).view(torch.uint8).numpy().tobytes() if plain.numel() else b""
    return f"{_value(value)} {hashlib.sha256(data).hexdigest()}"
