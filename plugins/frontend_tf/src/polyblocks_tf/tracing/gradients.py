"""Compiled functions under a gradient tape of the caller: the gradient is compiled, too."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow.python.eager import forwardprop_util, record, tape

from polyblocks.errors import FallbackError
from polyblocks.frontends.function_report import FunctionReport
from polyblocks.options import CompileOptions
from polyblocks_tf.compiler import compile_function
from polyblocks_tf.tracing.graph import Graph


def forward_mode_watches(concrete: Any, leaves: list[Any]) -> bool:
    """Whether a ``tf.autodiff.ForwardAccumulator`` watches an argument or a variable."""
    handles = [variable.handle for variable in concrete.graph.variables]
    return bool(forwardprop_util.pack_tangents([*leaves, *handles]).tangents)


class Recorded:
    """A traced function whose calls a tape records.

    Forward it is the compiled function. Backward it is a second one that computes the function
    again and goes back through it: nothing between the two has to be kept.

    A function that assigns variables cannot be computed twice; TensorFlow runs it under a tape,
    and the report says so.
    """

    def __init__(
        self, concrete: Any, name: str, options: CompileOptions, report: FunctionReport
    ) -> None:
        self._concrete = concrete
        self._name = name
        self._options = options
        self._report = report
        self._variables = [v for v in concrete.graph.variables if v.trainable]
        effects = [node for node in Graph.of(concrete).nodes if node.runs_once]
        self._effect = effects[0].op if effects else None
        # Calling it under a tape, as going back does, adds outputs to it.
        self._outputs = [tf.TensorSpec(output.shape, output.dtype) for output in concrete.outputs]
        self._forward: Any = None
        self._backward: Any = None

    def is_needed(self, leaves: list[Any]) -> bool:
        """Whether a tape watches an argument or a variable."""
        for variable in self._variables:
            tape.variable_accessed(variable)
        handles = [variable.handle for variable in self._variables]
        return bool(record.should_record_backprop([*leaves, *handles]))

    def __call__(self, *leaves: Any) -> Any:
        if self._effect is not None:
            self._by_tensorflow(self._effect)
            return self._concrete(*leaves)
        if self._forward is None:
            self._forward = compile_function(
                self._concrete,
                name=self._name,
                arrays=[False] * len(leaves),
                options=self._options,
                report=self._report,
                kind="forward",
            )
        with record.stop_recording():
            result = self._forward(*leaves)
        flat = [t for t in tf.nest.flatten(result, expand_composites=True) if t is not None]
        watched = [*leaves, *(variable.handle for variable in self._variables)]
        record.record_operation(
            self._name, flat, watched, lambda *grads: self._gradients(leaves, grads)
        )
        return result

    def _gradients(self, leaves: tuple[Any, ...], grads: tuple[Any, ...]) -> list[Any]:
        given = [
            tf.zeros(output.shape, output.dtype) if grad is None else tf.convert_to_tensor(grad)
            for output, grad in zip(self._outputs, grads, strict=True)
        ]
        if self._backward is None:
            self._backward = self._make_backward(len(leaves))
        found = self._backward(*leaves, *given)
        return list(found)

    def _make_backward(self, count: int) -> Any:
        from polyblocks_tf.function import CompiledFunction

        concrete, variables = self._concrete, self._variables

        def backward(*tensors: Any) -> list[Any]:
            inputs, grads = tensors[:count], tensors[count:]
            with tf.GradientTape() as inner:
                inner.watch([t for t in inputs if t.dtype.is_floating or t.dtype.is_complex])
                outputs = concrete(*inputs)
            flat = [t for t in tf.nest.flatten(outputs, expand_composites=True) if t is not None]
            sources = [*inputs, *variables]
            pairs = [
                (output, grad)
                for output, grad in zip(flat, grads, strict=True)
                if output.dtype.is_floating or output.dtype.is_complex
            ]
            found = inner.gradient(
                [output for output, _ in pairs], sources, [grad for _, grad in pairs]
            )
            return [None if g is None else tf.convert_to_tensor(g) for g in found]

        backward.__name__ = f"{self._name}_backward"
        made = CompiledFunction(backward, backward, self._options, None, False)
        made._report = self._report
        return made

    def _by_tensorflow(self, effect: tf.Operation) -> None:
        reason = "it has an effect, and a gradient tape outside needs to compute it twice"
        if self._options.strict_target:
            raise FallbackError(
                f"{reason}; strict_target forbids that TensorFlow runs it", op=effect.type
            )
        from polyblocks_tf.location import source_location

        self._report.left_to_framework(
            {
                "op": effect.type,
                "reason": reason,
                "cause": "unsupported",
                "location": source_location(effect),
            }
        )
