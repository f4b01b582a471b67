"""Example inputs that are no arrays yet: made-up values for what only describes an array."""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyblocks.program import DTYPES, ArraySpec
from polyblocks.runtime.arrays import HOST, ArrayInterface


def arrays_of(arrays: ArrayInterface, inputs: Any) -> Any:
    """The same structure, with arrays of the framework for what only describes one.

    Args:
        arrays: of the framework.
        inputs: of a function; arrays in it stay.

    Raises:
        InputError: a size is not known.
    """
    numbers = np.random.default_rng(0)
    return arrays.with_arrays(inputs, lambda spec: made_up(arrays, spec, numbers))


def made_up(arrays: ArrayInterface, spec: ArraySpec, numbers: np.random.Generator) -> Any:
    """An array with distinct contents: positive numbers, and proper truth values.

    Args:
        arrays: of the framework.
        spec: its layout.
        numbers: where its values come from.
    """
    array = arrays.empty(spec, HOST)
    if spec.nbytes:
        memory = (ctypes.c_uint8 * spec.nbytes).from_address(arrays.pointer(array))
        view = np.ctypeslib.as_array(memory)
        count = spec.nbytes // DTYPES[spec.dtype][1]
        if spec.dtype.startswith(("float", "complex")):
            view.view(spec.dtype)[:count] = numbers.random(count)
        else:
            # Bytes that are positive and finite numbers in every dtype.
            view[:] = numbers.integers(0, 2 if spec.dtype == "bool" else 0x40, spec.nbytes)
    return array


def names_of(owner: Callable[..., Any], inputs: Sequence[Any], arrays: ArrayInterface) -> list[str]:
    """For each array of the inputs a name: of its parameter, with a number if that holds several.

    Args:
        owner: a function or module.
        inputs: its arguments, arrays in structures.
        arrays: of the framework.
    """
    parameters = _parameters(owner)
    names = []
    for number, value in enumerate(inputs):
        name = parameters[number] if number < len(parameters) else f"input{number}"
        count = sum(arrays.is_array(leaf) for leaf in arrays.leaves(value))
        names += [name] if count == 1 else [f"{name}_{k}" for k in range(count)]
    return names


def _parameters(owner: Any) -> list[str]:
    """Names of positional parameters; of a module those of the method that computes."""
    methods = [getattr(owner, name, None) for name in ("forward", "call")]
    found = [each for each in methods if inspect.ismethod(each)]
    called = found[0] if found and not inspect.isroutine(owner) else owner
    try:
        parameters = inspect.signature(called).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
