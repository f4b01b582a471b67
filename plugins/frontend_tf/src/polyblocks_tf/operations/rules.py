"""Operations that TensorFlow must run itself, whatever its bridge to XLA says."""

from __future__ import annotations

import re
from typing import Any

import tensorflow as tf

from polyblocks_tf.operations import factorizations
from polyblocks_tf.tracing.graph import CHECKS

#: Draws from TensorFlow's generators: the bridge would translate them to draws from another one.
RANDOM = frozenset(
    "RandomUniform RandomStandardNormal RandomUniformInt TruncatedNormal RandomShuffle Multinomial "
    "RandomGamma RandomGammaGrad RandomPoisson RandomPoissonV2 ParameterizedTruncatedNormal "
    "RandomIndexShuffle StatefulUniform StatefulUniformInt StatefulUniformFullInt "
    "StatefulStandardNormal StatefulStandardNormalV2 StatefulTruncatedNormal "
    "StatefulRandomBinomial RngSkip RngReadAndSkip AnonymousSeedGenerator".split()
)

#: Their translation gives other bits than TensorFlow's own kernels. Those that
#: :mod:`polyblocks_tf.operations.random_numbers` can stand for do not come so far.
_OTHER_BITS = re.compile(r"Stateless(Random|TruncatedNormal|Parameterized|Multinomial|Shuffle)")


#: On a CPU the bridge calls a library for them, or writes out another algorithm than TensorFlow's
#: kernels have. Those of :mod:`polyblocks_tf.operations.factorizations` do not come so far.
_FACTORIZATIONS = frozenset(
    "CholeskyGrad Eig Lu MatrixDeterminant LogMatrixDeterminant MatrixInverse MatrixSolve "
    "MatrixSolveLs MatrixSquareRoot Qr SelfAdjointEigV2 Svd XlaSelfAdjointEig XlaSvd".split()
)


def is_random(op: Any) -> bool:
    """Whether it draws from a generator that has a state of its own."""
    return op.type in RANDOM


def refused(op: Any) -> str | None:
    """Why an operation cannot be compiled; None if nothing speaks against trying."""
    if op.type in RANDOM:
        return "it draws from TensorFlow's own random generator"
    if op.type in CHECKS:  # the bridge drops them
        return "compiled code would leave its check out"
    if _OTHER_BITS.match(op.type):
        return "compiled code would draw other numbers than TensorFlow does from the same seed"
    if op.type == "TensorListSetItem" and op.get_attr("resize_if_index_out_of_bounds"):
        return (
            "it makes a TensorArray grow, and compiled arrays have one size; say which with size="
        )
    if op.type == "Bucketize" and list(bounds := op.get_attr("boundaries")) != sorted(bounds):
        return "TensorFlow raises an error for boundaries that are not sorted"
    if op.type in _FACTORIZATIONS:
        return factorizations.refusal(op) or "it is a factorization that is not generated"
    if op.type != "Const" and any(t.dtype == tf.string for t in (*op.inputs, *op.outputs)):
        return "strings are not compiled"
    return None
