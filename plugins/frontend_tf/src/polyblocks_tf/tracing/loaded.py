"""Functions without Python source: traced ones, and those of a loaded SavedModel."""

from __future__ import annotations

import re
from typing import Any

from tensorflow.python.eager.polymorphic_function.concrete_function import ConcreteFunction
from tensorflow.python.saved_model.function_deserialization import RestoredFunction
from tensorflow.python.util import compat

#: TensorFlow's decoration of a function's name when it traces and exports it.
_DECORATION = re.compile(r"^(?:__inference_)?(?:signature_wrapper_)?(.+?)(?:_\d+)?$")


def is_loaded(function: Any) -> bool:
    """Whether it is a ``tf.function`` of a SavedModel: its Python function knows no defaults."""
    return isinstance(function, RestoredFunction)


def name_of(function: Any) -> str | None:
    """The user's name of a traced or loaded function; None for others."""
    if isinstance(function, RestoredFunction):
        concrete = next(iter(function.concrete_functions), None)
    else:
        concrete = function if isinstance(function, ConcreteFunction) else None
    if concrete is None:
        return None
    match = _DECORATION.match(compat.as_str(concrete.name))
    return match[1] if match else None
