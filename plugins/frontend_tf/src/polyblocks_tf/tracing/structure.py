"""Arguments of a call as arrays and constants; results in the structure that the function gave."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.ops import EagerTensor

from polyblocks.errors import InputError
from polyblocks.runtime.source import Source
from polyblocks_tf.models.layer import is_keras_tensor
from polyblocks_tf.numbers.number import Number
from polyblocks_tf.specs import DTYPE_NAMES, dtype_list

#: Values that are part of what is compiled.
_CONSTANTS = (bool, int, float, complex, str, bytes, type(None), tf.DType, type)

#: NumPy's kinds of dtypes that may hold strings.
_TEXTS = "USO"

#: Tensors that are made of several; data sets and iterators would be, too, but hold no numbers.
_COMPOSITES = (tf.RaggedTensor, tf.SparseTensor, tf.IndexedSlices)


@dataclass(frozen=True)
class Leaf:
    """The place of an array in a structure."""

    number: int


@dataclass(frozen=True)
class Figure:
    """The place of a Python number in a structure, and its value in this call."""

    place: int
    value: int | float


@dataclass(frozen=True)
class Composite:
    """A tensor that is made of several (ragged, sparse), and the places of these."""

    spec: Any
    parts: tuple[Leaf, ...]


@dataclass(frozen=True, eq=False)
class Held:
    """An object that is part of what is compiled, whatever it is: the same one each time."""

    value: Any


class Arguments:
    """The arguments of one call.

    Attributes:
        key: equal for calls that one variant serves.
        leaves: the arrays, in order.
        names: of the leaves, for messages.
        numbers: the values of Python numbers, in order.
        kinds: name and type of each number.
    """

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any], names: Sequence[str]) -> None:
        self.leaves: list[Any] = []
        self.names: list[str] = []
        self.numbers: list[int | float] = []
        self.kinds: list[tuple[str, type]] = []
        #: Whether an argument is symbolic: then an outer function is traced.
        self.symbolic = False
        #: Whether one stands for a tensor in a model of Keras.
        self.of_keras = False
        parts = []
        self._args = []
        for position, value in enumerate(args):
            name = names[position] if position < len(names) else f"argument {position + 1}"
            template, key = self._visit(value, name)
            self._args.append(template)
            parts.append(key)
        self._kwargs = {}
        for name in sorted(kwargs):
            template, key = self._visit(kwargs[name], name)
            self._kwargs[name] = template
            parts.append((name, key))
        self.key: tuple[Any, ...] = tuple(parts)

    def rebuild(
        self, leaves: Sequence[Any], numbers: Mapping[int, Any] | None = None
    ) -> tuple[list[Any], dict[str, Any]]:
        """The arguments with others in place of the arrays, and of the numbers at some places."""
        given = numbers or {}
        args = [_fill(template, leaves, given) for template in self._args]
        kwargs = {name: _fill(template, leaves, given) for name, template in self._kwargs.items()}
        return args, kwargs

    def key_without(self, places: Sequence[int]) -> tuple[Any, ...]:
        """Equal for calls that differ in the numbers at these places alone."""
        return _general(self.key, set(places)), tuple(places)

    def _visit(self, value: Any, name: str) -> tuple[Any, Any]:
        kind = type(value)
        if kind is EagerTensor:
            return self._leaf(value, name), (value._shape_tuple(), value._datatype_enum())
        if kind is np.ndarray or (isinstance(value, np.generic) and kind is not np.str_):
            return self._array(np.asarray(value), name)
        if isinstance(value, tf.Tensor):
            self.symbolic = True
            return self._leaf(value, name), None
        if kind is float or kind is int:
            figure = Figure(len(self.numbers), value)
            self.numbers.append(value)
            self.kinds.append((name, kind))
            # 0.0 and -0.0 are equal, and no NaN equals itself; their texts tell them apart.
            return figure, FigureKey(kind, repr(value), figure.place)
        if kind is Number:  # of a compiled function that this call is a part of
            return Held(value), (kind, id(value))
        if isinstance(value, _CONSTANTS):
            return value, (kind, repr(value) if isinstance(value, (float, complex)) else value)
        if isinstance(value, tuple):
            parts = [self._visit(v, f"{name}[{i}]") for i, v in enumerate(value)]
            items = [template for template, _ in parts]
            made = kind(*items) if hasattr(value, "_fields") else tuple(items)
            return made, (kind, tuple(key for _, key in parts))
        if kind is list:
            parts = [self._visit(v, f"{name}[{i}]") for i, v in enumerate(value)]
            return [template for template, _ in parts], (kind, tuple(key for _, key in parts))
        if isinstance(value, dict):
            found = {k: self._visit(v, f"{name}[{k!r}]") for k, v in value.items()}
            template = {k: t for k, (t, _) in found.items()}
            return template, (kind, tuple((k, key) for k, (_, key) in found.items()))
        if isinstance(value, _COMPOSITES):
            tensors = tf.nest.flatten(value, expand_composites=True)
            visited = [self._visit(v, name) for v in tensors]
            spec = value._type_spec
            return Composite(spec, tuple(part for part, _ in visited)), (
                spec,
                tuple(key for _, key in visited),
            )
        if is_keras_tensor(value):
            self.of_keras = True
        elif is_array_like(value):
            check_unmasked(value, name)
            return self._array(np.asarray(value), name)
        # Models, variables, functions: by identity; the variant keeps them alive.
        return Held(value), (kind, id(value))

    def _array(self, array: np.ndarray, name: str) -> tuple[Leaf, Any]:
        if array.dtype.kind in _TEXTS:
            # NumPy's dtype of strings says how long they are, TensorFlow's does not.
            text = as_strings(array)
            if text is not None:
                return self._leaf(text, name), (array.shape, tf.string)
        return self._leaf(array, name), (array.shape, array.dtype)

    def _leaf(self, value: Any, name: str) -> Leaf:
        self.leaves.append(value)
        self.names.append(name)
        return Leaf(len(self.leaves) - 1)


def plain_key(value: Any, leaves: list[Any]) -> Any:
    """The part of :attr:`Arguments.key` that is of one argument, found in little time.

    Args:
        value: the argument.
        leaves: receives its arrays.

    Returns:
        None where it holds something else than tensors, arrays, truth values and None, in lists,
        tuples and dictionaries.
    """
    kind = type(value)
    if kind is EagerTensor:
        leaves.append(value)
        return value._shape_tuple(), value._datatype_enum()
    if kind is np.ndarray:
        leaves.append(value)
        return value.shape, value.dtype
    if kind is bool or value is None:
        return kind, value
    if kind is tuple or kind is list:
        keys = []
        for part in value:
            key = plain_key(part, leaves)
            if key is None:
                return None
            keys.append(key)
        return kind, tuple(keys)
    if kind is dict:
        keys = []
        for name, part in value.items():
            key = plain_key(part, leaves)
            if key is None:
                return None
            keys.append((name, key))
        return kind, tuple(keys)
    return None


class FigureKey(NamedTuple):
    """A number in the key of a call."""

    kind: type
    text: str
    place: int


def _general(key: Any, places: set[int]) -> Any:
    if type(key) is FigureKey:
        return key._replace(text="") if key.place in places else key
    if type(key) is tuple:
        return tuple(_general(part, places) for part in key)
    return key


def _fill(template: Any, leaves: Sequence[Any], numbers: Mapping[int, Any]) -> Any:
    kind = type(template)
    if kind is Leaf:
        return leaves[template.number]
    if kind is Composite:
        parts = [leaves[part.number] for part in template.parts]
        return tf.nest.pack_sequence_as(template.spec, parts, expand_composites=True)
    if kind is Figure:
        return numbers.get(template.place, template.value)
    if kind is Held:
        return template.value
    if kind is list:
        return [_fill(v, leaves, numbers) for v in template]
    if isinstance(template, tuple):
        items = [_fill(v, leaves, numbers) for v in template]
        return kind(*items) if hasattr(template, "_fields") else tuple(items)
    if isinstance(template, dict):
        return {k: _fill(v, leaves, numbers) for k, v in template.items()}
    return template


def is_array_like(value: Any) -> bool:
    """Whether TensorFlow reads a value as an array at each call, as it does with all that offers
    NumPy one: its subclasses (``np.memmap``, ``np.matrix``) and arrays of other packages.
    """
    return (
        hasattr(value, "__array__")
        and not isinstance(value, (type, tf.Variable))
        and not hasattr(value, "__tf_tensor__")
        and not hasattr(value, "_should_act_as_resource_variable")
    )


def as_strings(array: np.ndarray) -> tf.Tensor | None:
    """An array of strings as a tensor; None where the objects in it are something else."""
    # TensorFlow would make texts of numbers.
    if array.dtype.kind == "O" and not all(isinstance(x, (str, bytes)) for x in array.flat):
        return None
    try:
        return tf.constant(array, tf.string)
    except (TypeError, ValueError):
        return None


def check_unmasked(value: Any, name: str) -> None:
    """TensorFlow computes with what a mask hides, and drops the mask.

    Raises:
        InputError: the value is a masked array.
    """
    if isinstance(value, np.ma.MaskedArray):
        raise InputError(
            f"{name} is a masked array, whose mask TensorFlow ignores; pass its .filled() or .data"
        )


def check_leaf(leaf: Any, name: str, target: str) -> tf.TensorSpec:
    """The TensorSpec of an array that is going to be compiled for.

    Raises:
        InputError: a dtype that no Program holds, and that is not one of strings, which TensorFlow
            computes with.
    """
    try:
        dtype = tf.as_dtype(leaf.dtype)
    except TypeError:  # NumPy has more of them than TensorFlow
        dtype = None
    # Texts are tensors; TensorFlow says the same dtype of NumPy's objects, whatever they are.
    if dtype not in DTYPE_NAMES and (dtype != tf.string or isinstance(leaf, np.ndarray)):
        convert = "tf.cast" if isinstance(leaf, tf.Tensor) else ".astype()"
        found = getattr(leaf.dtype, "name", leaf.dtype)
        raise InputError(
            f"{name} has dtype {found}, which is not one of {dtype_list()}; use {convert}"
        )
    return tf.TensorSpec(leaf.shape, dtype, name=re.sub(r"\W+", "_", name).strip("_") or "x")


def returned(source: Source, structure: Any, names: list[str]) -> str:
    """An expression that puts results in the structure that the traced function returned.

    Args:
        source: what the expression goes into.
        structure: with symbolic tensors where there are results.
        names: of the results, in the order of ``tf.nest.flatten``.
    """
    results = iter(names)
    text = _expression(source, structure, results)
    if text is not None:
        return text
    pack = source.name("pack", tf.nest.pack_sequence_as)
    whole = source.name("structure", structure)
    flat = tf.nest.flatten(structure, expand_composites=True)
    rest = iter(names)
    listed = ", ".join("None" if leaf is None else next(rest) for leaf in flat)
    return f"{pack}({whole}, [{listed}], expand_composites=True)"


def _expression(source: Source, structure: Any, results: Any) -> str | None:
    if structure is None:
        return "None"
    if isinstance(structure, tf.Tensor):
        return str(next(results))
    parts: list[str | None]
    if type(structure) in (list, tuple):
        parts = [_expression(source, part, results) for part in structure]
        if None in parts:
            return None
        text = "".join(f"{part}, " for part in parts)
        return f"[{text}]" if isinstance(structure, list) else f"({text})"
    if type(structure) is dict:
        # Flat order is that of the sorted keys.
        try:
            order = sorted(structure)
        except TypeError:
            return None
        found = {k: _expression(source, structure[k], results) for k in order}
        if None in found.values():
            return None
        return "{" + ", ".join(f"{k!r}: {found[k]}" for k in structure) + "}"
    return None
