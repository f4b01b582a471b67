"""Kernels of contractions that the model would not choose: all of them have to be right."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf, isfinite
from typing import Any

import pytest

from polyblocks.affine.cost.predicted import Predicted
from polyblocks.affine.gpu import choose, split_k
from polyblocks.affine.gpu.plans.unit_access import nest_accesses
from polyblocks.affine.gpu.plans.units import UnitPlan
from polyblocks.affine.gpu.tiles import lanes_cost
from polyblocks.affine.gpu.tiles.unit_plans import unit_plans
from polyblocks.affine.gpu.tiles.units_cost import predict_units

Predict = Callable[..., Predicted]


def predict_by(patch: pytest.MonkeyPatch, predict: Predict, kind: str = "matrix") -> None:
    """Let other seconds decide among kernels; none is left out unseen, and none split.

    Args:
        patch: takes it back.
        predict: in the place of ``predict_units``, or of ``predict_lanes``.
        kind: ``matrix``, or ``contraction``: the kernels without a unit.
    """
    # A kernel that the model would not choose is often slower than several of parts.
    patch.setattr(split_k, "WORTH_PARTS", 0.0)
    if kind == "contraction":
        patch.setattr(lanes_cost, "predict_lanes", predict)
        patch.setattr(lanes_cost, "least_lanes", lambda *_: lambda kernel: -inf)
        patch.setattr(lanes_cost, "least_of_all", lambda *_: -inf)
        return

    def quickest(nest: Any, target: Any, chip: Any, beside: Any = ()) -> Any:
        kernels = [
            (kernel, predict(kernel, target, chip))
            for found in nest_accesses(nest, target.matrix_units)
            for kernel in unit_plans(chip, found)
            if kernel.shared_bytes() <= chip.shared_per_block_optin
            # Kernels with clusters are launched by themselves.
            if not beside or kernel.cluster == (1, 1)
        ]
        return min(kernels, key=lambda entry: entry[1].seconds, default=None)

    patch.setattr(choose, "quickest_units", quickest)


@contextmanager
def any_unit(numbers: random.Random | None, of: type[UnitPlan] = UnitPlan) -> Iterator[list[Any]]:
    """Inside, a contraction gets any kernel of a unit that is possible; gives those that are.

    Args:
        numbers: choose it; None: the model chooses, as outside.
        of: what kernels those are.
    """
    seen: list[Any] = []

    def predict(kernel: Any, *given: Any) -> Predicted:
        found = predict_units(kernel, *given)
        possible = isinstance(kernel, of) and isfinite(found.seconds)
        seen.extend([kernel] * possible)
        if numbers is None:
            return found
        return Predicted(-numbers.random() if possible else 1e9, 0.0, 0.0)

    with pytest.MonkeyPatch.context() as patch:
        predict_by(patch, predict)
        yield seen
