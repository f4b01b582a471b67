"""Arrays that a program computes once of variables, until one of them is assigned."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from polyblocks.runtime.kept.preparer import Preparer
from polyblocks_tf.capture import Captured
from polyblocks_tf.specs import TF_DTYPES
from polyblocks_tf.variables.library import Library


class Prepared(NamedTuple):
    """The computed arrays, and the values that they depend on.

    Values that are held are not written: the same address then means the same value.

    Attributes:
        record: the address of words: the address of what has been computed, then those of the
            variables' values.
        held: what keeps all of them alive.
    """

    record: int
    held: Any


class Preparation:
    """Computes it.

    Args:
        functions: of TensorFlow's libraries.
        preparer: of the program.
        arguments: those of :attr:`Preparer.inputs`, in order.
        num_threads: tells the threads of a preparation.
    """

    def __init__(
        self,
        functions: Library,
        preparer: Preparer,
        arguments: Sequence[Captured],
        num_threads: Callable[[], int],
    ) -> None:
        self._functions = functions
        self._preparer = preparer
        self._arguments = arguments
        self._num_threads = num_threads
        self._count = sum(argument.kind == "variable" for argument in arguments)

    def nothing(self) -> Prepared:
        """As before the first call: no value has the address 0."""
        return self._record(0, [0] * self._count, None)

    def __call__(self) -> Prepared:
        """Read the variables and compute."""
        tensors = [_tensor(argument) for argument in self._arguments]
        addresses = [self._functions.memory_of(tensor)[0] for tensor in tensors]
        kept = self._preparer(addresses, self._num_threads())
        variables = [
            address
            for address, argument in zip(addresses, self._arguments, strict=True)
            if argument.kind == "variable"
        ]
        return self._record(kept.address, variables, (tensors, kept))

    def _record(self, address: int, values: Sequence[int], held: Any) -> Prepared:
        words = (ctypes.c_uint64 * (1 + self._count))(address, *values)
        return Prepared(ctypes.addressof(words), (words, held))


def _tensor(argument: Captured) -> Any:
    if argument.kind == "array":
        return argument.held
    assert argument.spec is not None
    dtype = TF_DTYPES[argument.spec.dtype]
    return tf.raw_ops.ReadVariableOp(resource=argument.held, dtype=dtype)
