"""Calls in TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import polyblocks
from bench.host_calls import cases
from bench.host_calls.cases import Case
from bench.host_calls.measure import Call, Peer
from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf

STRICT = {"target": "cpu", "strict_target": True}


class Held(tf.Module):  # type: ignore[misc]
    """Variables that a call reads."""

    def __init__(self, values: list[Any]) -> None:
        super().__init__()
        self.held = [tf.Variable(value) for value in values]

    def __call__(self, x: Any) -> Any:
        return cases.total(x, *self.held)


class Assigned(Held):
    """Variables that a call adds to, and the last one of them afterwards."""

    def __call__(self, x: Any) -> Any:
        for variable in self.held:
            variable.assign_add(x)
        return self.held[-1] + x


def peers(case: Case, folder: Path) -> list[Peer]:
    """Ours, a file that is made of the same function, eager, ``tf.function`` and XLA."""
    values = [tf.constant(x) for x in case.inputs]
    positional, keywords = cases.arguments_of(case.kind, values)

    def fresh() -> Callable[..., Any]:
        """The function; each peer has variables of its own, which it may change."""
        if case.kind == cases.WEIGHTS:
            return Held(case.weights)
        if case.kind == cases.UPDATES:
            return Assigned(case.weights)
        return cases.function_of(case.kind)

    def loaded() -> Call:
        one = cases.doubled_in_a_row if case.kind == cases.TREE else fresh()
        if not case.weights:
            return Call(polyblocks.load(polyblocks.aot(one, values, frontend="tf")), tuple(values))
        artifact = polyblocks.aot(one, values, frontend="tf", weights="arguments")
        names = (f"held.{number}" for number in range(case.count))
        weights = dict(zip(names, map(tf.constant, case.weights), strict=True))
        return Call(polyblocks.load(artifact, weights=weights), tuple(values))

    def made_by(compiler: Callable[..., Any]) -> Callable[[], Call]:
        return lambda: Call(compiler(fresh()), positional, keywords)

    return [
        Peer("decorated", made_by(lambda f: polyblocks_jit_tf(f, compile_options=STRICT))),
        *([] if case.kind in (cases.KEYWORDS, cases.UPDATES) else [Peer("loaded", loaded)]),
        Peer("eager", made_by(lambda f: f)),
        Peer("tf.function", made_by(tf.function)),
        Peer("XLA", made_by(lambda f: tf.function(f, jit_compile=True))),
    ]


def arrays_of(result: Any) -> list[np.ndarray[Any, Any]]:
    """The tensors of a result."""
    return [x.numpy() for x in tf.nest.flatten(result)]


def wait(result: Any) -> None:
    """Small operations run in the calling thread."""
