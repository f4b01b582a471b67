"""Errors that TensorFlow's kernels raise for values, and that XLA's bridge knows nothing of.

Where TensorFlow raises for an index out of range, a divisor of zero or a negative integer power,
the bridge clamps, leaves out or makes a number up. So operands that may be wrong go through an
operation that checks them, which the import compiles
(:data:`polyblocks.stablehlo.extensions.CHECK`); it takes part in the loop that reads it. Operands
known to be right are not checked. Gathers are checked by :mod:`polyblocks_tf.operations.marks`.

The bridge has one operation that it hands on as it is, a barrier of the optimizer. A check is a
barrier of the value, the truth values and the bytes of the message, which begin with :data:`MARK`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops

from polyblocks_tf.tracing.graph import (
    CHECK_OPERATION,
    OUTPUTS,
    PENDING,
    Graph,
    called_graph,
    is_constant,
    only_if,
    repeat,
    replay,
)

Tensors = Sequence[tf.Tensor] | None

#: Prefix of the text of a check.
MARK = "polyblocks.check:"

#: Beginning of the messages of assertions of the program's own.
_ASSERTION = "assertion failed: "

#: Operations of the branches that ``tf.debugging`` makes.
_OF_GUARDS = frozenset(("Assert", "Const", "Identity", "NoOp", "Placeholder"))


def checked(value: tf.Tensor, holds: tf.Tensor, message: str) -> tf.Tensor:
    """The value; the program fails with the message unless all of ``holds`` are true.

    Args:
        value: any array.
        holds: truth values, as many.
        message: what was expected.
    """
    text = tf.constant(np.frombuffer(f"{MARK}{message}".encode(), np.uint8))
    same, *_ = gen_xla_ops.xla_optimization_barrier(input=[value, holds, text])
    same.set_shape(value.shape)
    return same


def unchecked(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """The operation that checks where TensorFlow runs what follows, and checks it again.

    An assertion of the program's own is one of TensorFlow's again.
    """
    del op
    value, holds, text = inputs
    known = tf.get_static_value(text)
    message = "" if known is None else known.tobytes().decode().removeprefix(MARK)
    if not message.startswith(_ASSERTION):
        return inputs
    with tf.control_dependencies([_asserted(tf.reduce_all(holds), message)]):
        return [tf.identity(value), holds, text]


def assertion(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """``Assert``: results are those of a call in which it held. The message has the texts that
    TensorFlow's has, not the values.
    """
    if not _is_known(inputs[0]) and not _can_require():
        return None
    _require(inputs[0], _text_of(inputs[1:]))
    return []


def known_assertion(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """``Assert``: one that holds for sure says nothing."""
    del op
    return [] if _is_known(inputs[0]) else None


def finite(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """``CheckNumerics``: as :func:`assertion`, for elements that are not finite."""
    (value,) = inputs
    if not _can_require():
        return None
    given = op.get_attr("message").decode(errors="replace")
    _require(
        tf.reduce_all(tf.math.is_finite(value)),
        f"{_ASSERTION}{given} : Tensor had NaN or Inf values",
    )
    return inputs


def guard(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """``If`` around nothing but assertions, as ``tf.debugging`` writes them: they hold, or their
    branch is not taken.
    """
    branches = [called_graph(op, name) for name in ("then_branch", "else_branch")]
    if inputs[0].shape.rank != 0 or None in branches or not _can_require():
        return None
    types = [{each.type for each in branch.get_operations()} for branch in branches]
    if "Assert" not in set.union(*types) or not set.union(*types) <= _OF_GUARDS:
        return None
    outputs = []
    for taken, branch in zip((inputs[0], ~inputs[0]), branches, strict=True):
        graph = Graph(branch)
        values = dict(zip(graph.values, inputs[1:], strict=True))

        def within(inner: Any, given: list[tf.Tensor], taken: tf.Tensor = taken) -> Tensors:
            del inner
            _require(tf.reduce_all(given[0]) | ~taken, _text_of(given[1:]))
            return []

        replay(graph.nodes, values, {"Assert": within})
        outputs.append([values[value] for value in graph.outputs])
    return [tf.where(inputs[0], a, b) for a, b in zip(*outputs, strict=True)]


def _text_of(data: Sequence[tf.Tensor]) -> str:
    """The text of an assertion, without the values that are not known."""
    texts = [
        known.item().decode(errors="replace")
        for tensor in data
        if tensor.dtype == tf.string and (known := tf.get_static_value(tensor)) is not None
        if not known.shape
    ]
    return _ASSERTION + " ".join(f"[{text.strip()}]" for text in texts if text.strip())


def _is_known(holds: tf.Tensor) -> bool:
    known = tf.get_static_value(holds)
    return known is not None and bool(known.all())


def _can_require() -> bool:
    """Whether what is being traced gives something that can be checked."""
    outputs = tf.compat.v1.get_default_graph().get_collection(OUTPUTS)
    return any(_is_number(t) and t.shape.num_elements() != 0 for t in outputs)


def _require(holds: tf.Tensor, message: str) -> None:
    """Fail unless a truth value holds: one of the outputs of what is being traced is checked."""
    if _is_known(holds):
        return

    def passed(outputs: list[tf.Tensor]) -> list[tf.Tensor]:
        places = [i for i, t in enumerate(outputs) if _may_be_checked(t)]
        if not places:
            # Their sizes are known now, and zero.
            _asserted(holds, message)
            return outputs
        chosen = min(places, key=lambda i: _preference(outputs[i]))
        value = outputs[chosen]
        same = checked(value, tf.broadcast_to(tf.reduce_all(holds), value.shape), message)
        return [*outputs[:chosen], same, *outputs[chosen + 1 :]]

    tf.compat.v1.get_default_graph().add_to_collection(PENDING, passed)


def _asserted(holds: tf.Tensor, message: str) -> tf.Operation:
    text = message.removeprefix(_ASSERTION)
    return tf.raw_ops.Assert(condition=holds, data=[tf.constant(text)], summarize=3)


def _is_number(tensor: tf.Tensor) -> bool:
    return bool(tensor.dtype.is_floating or tensor.dtype.is_integer or tensor.dtype.is_bool)


def _may_be_checked(tensor: tf.Tensor) -> bool:
    return _is_number(tensor) and bool(tensor.shape.num_elements())


def _preference(tensor: tf.Tensor) -> tuple[bool, bool, int]:
    """Counters and what passes through a loop are left as they are: they say how often it runs."""
    return (
        tensor.op.type == "Placeholder",
        not tensor.dtype.is_floating,
        tensor.shape.num_elements(),
    )


@only_if(lambda op: op.inputs[1].dtype.is_integer)
def division(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """Integers are not divided by zero."""
    dividend, divisor = inputs
    if not divisor.dtype.is_integer:
        return None
    known = tf.get_static_value(divisor)
    if known is not None and np.all(known != 0):
        return None
    message = "Integer division by zero"
    return repeat(op, [dividend, checked(divisor, divisor != 0, message)])


@only_if(lambda op: op.inputs[0].dtype.is_integer)
def power(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """Integers have no negative powers."""
    base, exponent = inputs
    if not base.dtype.is_integer or base.dtype.is_unsigned:
        return None
    known = tf.get_static_value(exponent)
    if known is not None and np.all(known >= 0):
        return None
    message = "Integers to negative integer powers are not allowed"
    return repeat(op, [base, checked(exponent, exponent >= 0, message)])


def scatter(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """``TensorScatterUpdate`` and others: each index of a vector is in its dimension."""
    array, indices, updates = inputs
    shape = _shape_of(array) if array.dtype == tf.resource else array.shape
    found = within(indices, shape)
    return None if found is None else repeat(op, [array, found, updates])


def scatter_rows(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """``ResourceScatterAdd`` and others: indices of the first axis of a variable."""
    handle, indices, updates = inputs
    shape = _shape_of(handle)
    found = _in_axis(indices, shape[0]) if shape is not None and shape.rank else None
    return None if found is None else repeat(op, [handle, found, updates])


def scatter_new(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """``ScatterNd``: as :func:`scatter`, into zeros of a shape that is an operand."""
    indices, updates, shape = inputs
    known = tf.get_static_value(shape)
    found = None if known is None else within(indices, tf.TensorShape(known.tolist()))
    return None if found is None else repeat(op, [found, updates, shape])


def segments(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """``UnsortedSegmentSum`` and others: less than the number of segments; negative ones do not
    count.
    """
    values, numbers, count = inputs
    known, given = tf.get_static_value(count), tf.get_static_value(numbers)
    if known is None or (given is not None and np.all(given < known)):
        return None
    message = f"segment ids must be less than {int(known)}, the number of segments"
    limit = tf.constant(int(known), numbers.dtype)
    return repeat(op, [values, checked(numbers, numbers < limit, message), count])


def labels(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """``SparseSoftmaxCrossEntropyWithLogits``: labels are classes, whose logits are looked up.

    The bridge multiplies all logits with ones and zeros, and so needs them after their sums.
    """
    logits, classes = inputs
    found = _in_axis(classes, logits.shape[-1], "a label")
    if logits.dtype not in (tf.float32, tf.float64):
        return None if found is None else repeat(op, [logits, found])
    chosen = classes if found is None else found
    _, gradient = repeat(op, [logits, chosen])
    shifted = logits - tf.reduce_max(logits, -1, keepdims=True)
    total = tf.reduce_sum(tf.exp(shifted), -1)
    return [tf.math.log(total) - tf.gather(shifted, chosen, batch_dims=1), gradient]


def reversed_part(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """``ReverseSequence``: no more is reversed than there is."""
    array, lengths = inputs
    extent = array.shape[op.get_attr("seq_dim")]
    found = _in_axis(lengths, None if extent is None else extent + 1, "a length")
    return None if found is None else repeat(op, [array, found])


def permutation(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """``InvertPermutation``: places of the array, each of them once."""
    (given,) = inputs
    known, extent = tf.get_static_value(given), given.shape[0]
    if extent is None or (known is not None and sorted(known.tolist()) == list(range(extent))):
        return None
    places = _in_axis(given, extent, "an element of a permutation")
    (inverse,) = repeat(op, [given if places is None else places])
    # Of two that are equal the inverse holds one place.
    once = tf.gather(inverse, given) == tf.range(extent, dtype=given.dtype)
    return [checked(inverse, once, "a permutation must hold each of its places once")]


@only_if(lambda op: not is_constant(op.inputs[1]))
def cut(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """``Slice`` at a place that is computed: all of it is in the array."""
    array, begin, size = inputs
    sizes = tf.get_static_value(size)
    if tf.get_static_value(begin) is not None or sizes is None or not array.shape.rank:
        return None
    if not array.shape.is_fully_defined() or np.any(sizes < 0):
        return None
    last = tf.constant([d - s for d, s in zip(array.shape, sizes.tolist(), strict=True)])
    last = tf.cast(last, begin.dtype)
    message = f"a slice of {sizes.tolist()} must lie in an array of {array.shape.as_list()}"
    return repeat(op, [array, checked(begin, (begin >= 0) & (begin <= last), message), size])


@only_if(lambda op: not is_constant(op.inputs[1]))
def taken(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """``StridedSlice`` with an index that is computed (``x[i]``): it is in the array.

    Negative ones count from the end. Ends of ranges may be outside, for TensorFlow as well.
    """
    array, begin, end, strides = inputs
    shrinks = op.get_attr("shrink_axis_mask")
    if not shrinks or tf.get_static_value(begin) is not None or not array.shape.rank:
        return None
    extents = _extents_of_slice(op, array.shape, begin.shape[0])
    if extents is None:
        return None
    # XLA wants to see the other places, which are constants.
    places = list(begin.op.inputs) if begin.op.type == "Pack" else tf.unstack(begin)
    for k, place in enumerate(places):
        if shrinks >> k & 1 and tf.get_static_value(place) is None:
            limit = tf.constant(extents[k], place.dtype)
            message = f"an index must be at least {-extents[k]} and less than {extents[k]}"
            places[k] = checked(place, (place >= -limit) & (place < limit), message)
    return repeat(op, [array, tf.stack(places), end, strides])


def list_access(op: Any, inputs: list[tf.Tensor]) -> Tensors:
    """``TensorListGetItem`` and ``TensorListSetItem``: the item is in the list."""
    if op.type == "TensorListSetItem" and op.get_attr("resize_if_index_out_of_bounds"):
        return None
    items, index, *rest = inputs
    length = tf.raw_ops.TensorListLength(input_handle=items)
    holds = (index >= 0) & (index < length)
    message = "an index of a TensorArray must be at least 0 and less than its size"
    return repeat(op, [items, checked(index, holds, message), *rest])


def _extents_of_slice(op: Any, shape: tf.TensorShape, count: int) -> dict[int, int] | None:
    """Position in ``begin`` -> the size of the axis that it is for."""
    ellipsis, new_axis = op.get_attr("ellipsis_mask"), op.get_attr("new_axis_mask")
    axes = sum(not (ellipsis | new_axis) >> k & 1 for k in range(count))
    axis, found = 0, {}
    for k in range(count):
        if ellipsis >> k & 1:
            axis += shape.rank - axes
        elif not new_axis >> k & 1:
            extent = shape[axis] if axis < shape.rank else None
            if extent is None:
                return None
            found[k] = extent
            axis += 1
    return found


def _in_axis(indices: tf.Tensor, extent: int | None, what: str = "an index") -> tf.Tensor | None:
    """The indices, checked; None where they need not or cannot be."""
    known = tf.get_static_value(indices)
    if extent is None or (known is not None and np.all((known >= 0) & (known < extent))):
        return None
    limit = tf.constant(min(extent, indices.dtype.max), indices.dtype)
    message = f"{what} must be at least 0 and less than {extent}"
    return checked(indices, (indices >= 0) & (indices < limit), message)


def within(indices: tf.Tensor, shape: tf.TensorShape | None) -> tf.Tensor | None:
    """Vectors of indices of an array of this shape, checked; None where they need not be."""
    depth = indices.shape[-1] if indices.shape.rank else None
    if shape is None or not depth or shape.rank is None:
        return None
    extents = shape.as_list()[:depth]
    known = tf.get_static_value(indices)
    if None in extents or (known is not None and np.all((known >= 0) & (known < extents))):
        return None
    limits = tf.constant(extents, indices.dtype)
    message = f"an index must be at least 0 and less than {' and '.join(map(str, extents))}"
    return checked(indices, (indices >= 0) & (indices < limits), message)


def _shape_of(handle: tf.Tensor) -> tf.TensorShape | None:
    """Of the variable that a handle stands for."""
    data = getattr(handle, "_handle_data", None)
    if data is None or not data.is_set or len(data.shape_and_type) != 1:
        return None
    shape = tf.TensorShape(data.shape_and_type[0].shape)
    return shape if shape.is_fully_defined() else None


_SCATTERS = ("Update", "Add", "Sub", "Min", "Max")

#: Those that fail at the end of the program, whenever that is.
ASSERTIONS = {"Assert": assertion, **dict.fromkeys(("CheckNumerics", "CheckNumericsV2"), finite)}

SUBSTITUTIONS = {
    **ASSERTIONS,
    **dict.fromkeys(("Div", "FloorDiv", "FloorMod", "Mod", "TruncateDiv", "TruncateMod"), division),
    "Pow": power,
    **{f"TensorScatter{kind}": scatter for kind in ("Update", "Add", "Sub")},
    **{f"ResourceScatterNd{kind}": scatter for kind in _SCATTERS},
    **{f"ResourceScatter{kind}": scatter_rows for kind in (*_SCATTERS, "Mul", "Div")},
    "ScatterNd": scatter_new,
    **{f"UnsortedSegment{kind}": segments for kind in ("Sum", "Prod", "Max", "Min")},
    "SparseSoftmaxCrossEntropyWithLogits": labels,
    "ReverseSequence": reversed_part,
    "InvertPermutation": permutation,
    "Slice": cut,
    "StridedSlice": taken,
    **dict.fromkeys(("TensorListGetItem", "TensorListSetItem"), list_access),
}

#: For what TensorFlow runs.
WITHOUT_CHECKS = {CHECK_OPERATION: unchecked}
