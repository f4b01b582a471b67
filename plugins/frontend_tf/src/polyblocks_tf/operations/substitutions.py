"""Operations that TensorFlow's bridge does not translate, or otherwise than TensorFlow computes
them, written in operations that it does.

To add one: write a function of the operation and its input tensors that computes its outputs with
TensorFlow's functions, and enter it in :data:`SUBSTITUTIONS`. It gives None where it cannot stand
for the operation; then TensorFlow runs that. Shapes are static here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from polyblocks_tf.operations import (
    branches,
    checks,
    factorizations,
    images,
    kernels,
    ragged,
    random_numbers,
    resizing,
    rules,
    searches,
    shapes,
)
from polyblocks_tf.tracing.graph import CHECKS, Graph

Substitute = Callable[[Any, list[tf.Tensor]], Sequence[tf.Tensor] | None]


def _branch(op: Any, inputs: list[tf.Tensor]) -> Sequence[tf.Tensor] | None:
    known = branches.known_branch(op, inputs, SUBSTITUTIONS)
    return checks.guard(op, inputs) if known is None else known


def _branch_without_assertions(op: Any, inputs: list[tf.Tensor]) -> Sequence[tf.Tensor] | None:
    return branches.known_branch(op, inputs, WITHOUT_ASSERTIONS)


def substitutions_for(graph: Graph) -> dict[str, Substitute]:
    """The substitutions for the operations of a function.

    Assertions stay where they are between effects of parts: those behind it must not happen.
    """
    effects = any(
        op.op_def.is_stateful and not rules.is_random(op)
        for node in graph.nodes
        if node.runs_once
        for op in node.everything()
        if op.type not in CHECKS
    )
    parts = effects and any(
        rules.refused(op)
        for node in graph.nodes
        for op in node.everything()
        if op.type not in CHECKS and op.type not in SUBSTITUTIONS
    )
    return WITHOUT_ASSERTIONS if parts else SUBSTITUTIONS


SUBSTITUTIONS: dict[str, Substitute] = {
    **checks.SUBSTITUTIONS,
    **factorizations.SUBSTITUTIONS,
    **kernels.SUBSTITUTIONS,
    "If": _branch,
    "StatelessIf": _branch,
    "ImageProjectiveTransformV2": images.projective_transform,
    "ImageProjectiveTransformV3": images.projective_transform,
    "DenseBincount": shapes.bincount,
    "CropAndResize": images.crop_and_resize,
    "RaggedTensorToTensor": ragged.ragged_to_tensor,
    "ResizeBilinear": resizing.resize_bilinear,
    "ResizeBicubic": resizing.resize_bicubic,
    "ResizeBicubicGrad": resizing.resize_bicubic_grad,
    "ResizeNearestNeighborGrad": resizing.resize_nearest_grad,
    "ResizeArea": resizing.resize_area,
    "ScaleAndTranslate": resizing.scale_and_translate,
    "ScaleAndTranslateGrad": resizing.scale_and_translate_grad,
    "LowerBound": searches.bound,
    "UpperBound": searches.bound,
    "EnsureShape": shapes.ensured,
    "StatelessRandomGetKeyCounter": random_numbers.key_and_counter,
    "StatelessRandomGetAlg": random_numbers.algorithm,
    "StatelessRandomNormalV2": random_numbers.normal,
    "StatelessRandomUniformV2": random_numbers.uniform,
    "StatelessRandomUniformIntV2": random_numbers.uniform_integers,
    "StatelessRandomUniformFullIntV2": random_numbers.any_integers,
}

WITHOUT_ASSERTIONS: dict[str, Substitute] = {
    **{type_: made for type_, made in SUBSTITUTIONS.items() if type_ not in checks.ASSERTIONS},
    **dict.fromkeys(("If", "StatelessIf"), _branch_without_assertions),
    "Assert": checks.known_assertion,
}
