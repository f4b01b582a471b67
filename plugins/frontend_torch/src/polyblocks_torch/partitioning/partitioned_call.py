"""A partitioned graph as one Python function: compiled parts and framework ops in order."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from polyblocks.runtime.source import Source
from polyblocks_torch.capture import (
    EmptyOutput,
    FromConstant,
    InputOutput,
    LiteralOutput,
    OpaqueOutput,
    ResultOutput,
    TorchCapture,
)
from polyblocks_torch.launch.launcher import boxed, strided
from polyblocks_torch.partitioning.node_rules import fills_fresh_memory
from polyblocks_torch.partitioning.partition import Step, boundary
from polyblocks_torch.specs import TORCH_DTYPES, storage_key

#: Compiled parts give resolved tensors, so lazy bits are not where tracing had them.
_RESOLVE: dict[Any, str] = {
    torch.ops.aten._conj.default: ".resolve_conj()",
    torch.ops.aten._neg_view.default: ".resolve_neg()",
}

BoxedCall = Callable[[list[Any]], tuple[Any, ...]]


def make_partitioned_call(
    capture: TorchCapture, steps: Sequence[Step], parts: Sequence[BoxedCall]
) -> BoxedCall:
    """The function that runs the steps of a partitioned graph.

    Args:
        capture: the whole graph.
        steps: its steps in order.
        parts: the compiled steps as functions of the list of what they read, in order.

    Returns:
        A function of the list of the graph's arguments (emptied) that returns its outputs.
    """
    return _Writer(capture, steps, parts).write()


class _Writer:
    def __init__(
        self, capture: TorchCapture, steps: Sequence[Step], parts: Sequence[BoxedCall]
    ) -> None:
        self.capture = capture
        self.graph = capture.graph_module.graph
        self.steps = steps
        self.parts = iter(parts)
        self.source = Source()
        self.names: dict[fx.Node, str] = {}
        self.by_framework: set[fx.Node] = set()

    def write(self) -> BoxedCall:
        capture, source = self.capture, self.source
        placeholders = [n for n in self.graph.nodes if n.op == "placeholder"]
        positions = {o.position for o in capture.outputs if isinstance(o, InputOutput)}
        for node, origin in zip(placeholders, capture.sources, strict=True):
            if isinstance(origin, FromConstant):
                self.names[node] = source.name("constant", origin.tensor)
            else:
                self.names[node] = f"a{origin.position}"
                positions.add(origin.position)
        for position in sorted(positions):
            source.add(f"a{position} = args[{position}]")
        source.add("args.clear()")
        for node in self.graph.nodes:
            if node.op == "get_attr":
                value = operator.attrgetter(str(node.target))(capture.graph_module)
                self.names[node] = source.name("constant", value)
        returned = self._returned()
        results = returned[: len(capture.results)]
        self.opaque = returned[len(capture.results) :]
        dying = self._dying(returned)
        for number, step in enumerate(self.steps):
            if step.compiled:
                self._part(step)
            else:
                self._framework(step.nodes[0])
            dead = [self.names[n] for n in dying.get(number, ()) if n in self.names]
            if dead:
                source.add(f"del {', '.join(dead)}")
        values = self._finish(results, placeholders)
        source.add(f"return ({', '.join(values)}{',' if len(values) == 1 else ''})")
        return boxed(source.build(capture.name))

    def _returned(self) -> list[fx.Node]:
        output = next(n for n in self.graph.nodes if n.op == "output")
        return list(output.args[0])

    def _dying(self, returned: list[fx.Node]) -> dict[int, list[fx.Node]]:
        last: dict[fx.Node, int] = {}
        for number, step in enumerate(self.steps):
            for node in step.nodes:
                last.setdefault(node, number)
                for operand in node.all_input_nodes:
                    last[operand] = number
        kept = set(returned)
        dying: dict[int, list[fx.Node]] = {}
        for node, number in last.items():
            if node not in kept and node.op.startswith("call_"):
                dying.setdefault(number, []).append(node)
        return dying

    def _name(self, node: fx.Node) -> str:
        return self.names.setdefault(node, f"v{len(self.names)}")

    def _part(self, step: Step) -> None:
        read, needed = boundary(step, self.graph)
        operands = [self.names[node] for node in read]
        function = self.source.name("part", next(self.parts))
        targets = ", ".join(self._name(node) for node in needed) + "," if needed else "_"
        self.source.add(f"{targets} = {function}([{', '.join(operands)}])")

    def _framework(self, node: fx.Node) -> None:
        self.by_framework.add(node)
        if node.target is operator.getitem:
            producer, index = node.args
            assert isinstance(producer, fx.Node)
            self.source.add(f"{self._name(node)} = {self.names[producer]}[{index!r}]")
            return
        target = torch.Tensor.bernoulli_ if fills_fresh_memory(node) else node.target
        function = self.source.name("op", target)
        words = [self._format(a) for a in node.args]
        words += [f"{k}={self._format(v)}" for k, v in node.kwargs.items()]
        resolve = _RESOLVE.get(node.target, "")
        self.source.add(f"{self._name(node)} = {function}({', '.join(words)}){resolve}")

    def _format(self, value: Any) -> str:
        if isinstance(value, fx.Node):
            return self.names[value]
        if isinstance(value, (list, tuple)):
            inner = "".join(f"{self._format(v)}, " for v in value)
            return f"[{inner}]" if isinstance(value, list) else f"({inner})"
        plain = value is None or isinstance(value, (bool, int, str))
        if plain or (isinstance(value, float) and math.isfinite(value)):
            return repr(value)
        return self.source.name("literal", value)

    def _finish(self, results: list[fx.Node], placeholders: list[fx.Node]) -> list[str]:
        """Write the updates into the arguments, then name the caller's outputs."""
        overwritten = {
            storage_key(placeholders[r.updates].meta["val"])
            for r in self.capture.results
            if r.updates is not None
        } - {None}
        of_framework = {storage_key(node.meta.get("val")) for node in self.by_framework} - {None}
        names = []
        for index, (node, result) in enumerate(zip(results, self.capture.results, strict=True)):
            name = self.names[node]
            memory = storage_key(node.meta.get("val"))
            foreign = memory in of_framework or node in self.by_framework
            if memory in overwritten:
                # A view of an argument that is about to change.
                self.source.add(f"kept{index} = {name}.clone()")
                name, foreign = f"kept{index}", True
            if foreign and result.updates is None:
                # A view of it, or the backward graph that reads it, relies on the strides.
                conform = self.source.name("conform", conformed)
                shape, strides = result.spec.shape, result.spec.strides
                self.source.add(f"result{index} = {conform}({name}, {shape}, {strides})")
                name = f"result{index}"
            names.append(name)
        for name, result in zip(names, self.capture.results, strict=True):
            if result.updates is not None:
                self.source.add(f"{self.names[placeholders[result.updates]]}.copy_({name})")
        return [self._output(output, names) for output in self.capture.outputs]

    def _output(self, output: Any, results: list[str]) -> str:
        source = self.source
        if isinstance(output, LiteralOutput):
            return self._format(output.value)
        if isinstance(output, EmptyOutput):
            empty = source.name("empty", torch.empty_strided)
            dtype = source.name("dtype", TORCH_DTYPES[output.spec.dtype])
            return f"{empty}({output.spec.shape}, {output.spec.strides}, dtype={dtype})"
        if isinstance(output, OpaqueOutput):
            return self.names[self.opaque[output.index]]
        if isinstance(output, InputOutput):
            base = f"a{output.position}"
        else:
            assert isinstance(output, ResultOutput)
            base = results[output.index]
        return base if output.view is None else strided(source, base, output.view)


def conformed(
    value: torch.Tensor, shape: tuple[int, ...], strides: tuple[int, ...]
) -> torch.Tensor:
    """``value``, copied when its strides are not these.

    Raises:
        RuntimeError: its shape is another one; the framework's shape inference was wrong.
    """
    if tuple(value.shape) != shape:
        raise RuntimeError(
            f"PyTorch inferred shape {shape}, but the result is {tuple(value.shape)}"
        )
    if value.stride() == strides:
        return value
    made = torch.empty_strided(shape, strides, dtype=value.dtype, device=value.device)
    return made.copy_(value)
