"""Kernels of matrix units that the model would not choose: all of them have to be right."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from typing import Any

from polyblocks.codegen.gpu.mapping import choose
from polyblocks.codegen.gpu.mapping.kernel_cost import Predicted
from polyblocks.codegen.gpu.matrix.cost import predict_matrix


@contextmanager
def any_unit(numbers: random.Random | None) -> Iterator[None]:
    """Inside, a contraction gets any kernel of a unit that is possible.

    Args:
        numbers: choose it; None: the model chooses, as outside.
    """

    def predict(kernel: Any, *given: Any) -> Predicted:
        possible = isfinite(predict_matrix(kernel, *given).seconds)
        return Predicted(-numbers.random() if numbers and possible else 1e9, 0.0, 0.0)

    if numbers is not None:
        choose.predict_matrix = predict
    try:
        yield
    finally:
        choose.predict_matrix = predict_matrix
