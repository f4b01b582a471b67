"""The frameworks of the group ``cliffs`` and their peers."""

from __future__ import annotations

OURS = "polyblocks"

#: By name, the modules that have ``CASES``, ``PEERS`` and what :mod:`bench.cliffs.worker` asks for.
FRAMEWORKS = {
    "PyTorch": "bench.cliffs.in_torch",
    "JAX": "bench.cliffs.in_jax",
    "TensorFlow": "bench.cliffs.in_tensorflow",
}

#: The framework as it comes; its results are those that others are compared with.
ITSELF = {"PyTorch": "eager", "JAX": "jax.jit", "TensorFlow": "eager"}

#: Its own compiler, where that is another way.
COMPILER = {"PyTorch": "Inductor", "TensorFlow": "XLA"}
#: Of these, what takes seconds for an operation.
SLOW_COMPILER = frozenset({"Inductor"})

#: What a row may be slower than the best of the others.
BAR = 1 / 1.3
#: Seconds of compiling.
COMPILE_BAR_S = 1.0
#: The same of factorizations.
FACTORIZATION_BAR_S = 2.0


def compile_bar(factorization: bool) -> float:
    """What an operation may compile for, in seconds."""
    return FACTORIZATION_BAR_S if factorization else COMPILE_BAR_S
