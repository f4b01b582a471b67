"""fold-constants: what depends on constants alone is computed now, where that saves time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from polyblocks.affine.steps import StepFunction
from polyblocks.passes import facts
from polyblocks.passes.tensor.constant_values import Evaluator
from polyblocks.passes.tensor.scalar_values import DTYPES, Unknown

#: Largest size, in elements, of tables that are always worth a constant: code uses numbers.
FEW = 1024
#: Elements of a table of places that were rounded, such as those of an image that is enlarged.
MANY = 1 << 14
#: Bytes that one constant may have, and on a GPU, where they are text of the kernels.
MOST_BYTES, MOST_BYTES_OF_BLOCKS = 4 << 20, 4 << 10
#: Operations of an element that are computed again, on a GPU, rather than by a kernel of their own.
AGAIN = 4
#: Scalar operations that may be spent on one constant: a tenth of a second.
MOST_WORK = 1 << 27
#: Scalar operations of an element that is one of two, at most, if it stays code.
CHOICE = 16

#: Conversions of floats to integers.
_ROUNDS = {"arith.fptosi", "arith.fptoui"}


@dataclass(frozen=True)
class FoldConstantsPass:
    """Replace an expression of constants by a constant.

    A filter that is divided by its sum has known taps then. A large table replaces what makes it if
    loading it is predicted to take less time than computing it again; positions of elements, and
    arithmetic on them, are not worth memory, and stay. So do masks: choices between two numbers.

    Before::

        %k = arith.constant dense<[1.0, 2.0, 1.0]> : tensor<3xf32>
        %r = linalg.generic … ins(%k : tensor<3xf32>) {
            %x = arith.divf %in, %four : f32
            linalg.yield %x : f32
        } -> tensor<3xf32>

    After::

        %r = arith.constant dense<[0.25, 0.5, 0.25]> : tensor<3xf32>
    """

    name: ClassVar[str] = "fold-constants"
    needs: ClassVar[frozenset[str]] = frozenset({facts.TENSORS})

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite in place; returns whether anything was folded."""
        from polyblocks import signature

        operations = [op.operation for op in signature.main_of(module).body.blocks[0].operations]
        evaluator = Evaluator()
        found = [op for op in operations if evaluator.learns(op)]
        gone: set[Any] = set()
        folded: list[tuple[Any, Any]] = []
        # Users come after an operation: by then it is known whether it is needed.
        for op in reversed(found):
            users = [use.owner.operation for use in op.results[0].uses]
            if op.name in ("arith.constant", "tensor.empty") or all(u in gone for u in users):
                gone.add(op)
            elif _is_worth(op, evaluator, context.target):
                try:
                    values = evaluator.value(op.results[0])
                except Unknown:
                    continue
                if _chooses(op, values, evaluator):
                    continue
                if _is_worth_its_text(values, context.target):
                    folded.append((op, values))
                    gone.add(op)
        for op, values in folded:
            _replace(op, values)
        if folded:
            for op in reversed(found):
                if op in gone and not any(True for _ in op.results[0].uses):
                    op.erase()
        return bool(folded)


def _is_worth(op: Any, evaluator: Evaluator, target: Any) -> bool:
    """Whether a constant is better than what makes it."""
    type_ = op.results[0].type
    element = str(type_.element_type)
    if element not in DTYPES:
        return False
    elements = int(np.prod(type_.shape, dtype=np.int64))
    nbytes = elements * np.dtype(DTYPES[element]).itemsize
    if (
        element == "index"
        or not 0 < nbytes <= MOST_BYTES
        or any(_is_destination(use) for use in op.results[0].uses)
    ):
        return False
    blocks = target.code_holds_constants
    if blocks and nbytes > MOST_BYTES_OF_BLOCKS and not element.startswith("i"):
        return False
    tree = list(_tree(op))
    try:
        cost = sum(evaluator.work(each) for each in tree)
    except Unknown:
        return False
    if not cost or cost > MOST_WORK:
        return False
    names = {name for each in tree for name in evaluator.names(each)}
    counted = "linalg.index" in names
    if element not in ("f32", "f64"):
        # Numbers of elements stay arithmetic: as indices they may be affine, unless they were
        # rounded.
        most = MANY if names & _ROUNDS else 0 if counted else FEW
        return elements <= most
    sources = max((_stored(each) for each in tree), default=0)
    if sources and not counted and elements <= max(FEW, sources):
        return True
    if blocks and elements <= FEW and cost > AGAIN * elements:
        return True
    return _seconds_of_work(cost, element, target) > _seconds_of_loads(nbytes, target)


def _chooses(op: Any, values: Any, evaluator: Evaluator) -> bool:
    """Whether a table is one of two numbers at each place: a mask, which may bound loops."""
    if values.size <= FEW or not np.issubdtype(values.dtype, np.floating):
        return False
    tree = list(_tree(op))
    if not any("linalg.index" in evaluator.names(each) for each in tree):
        return False
    if sum(evaluator.work(each) for each in tree) > CHOICE * values.size:
        return False
    least, most = values.min(), values.max()
    return bool(least < most and ((values == least) | (values == most)).all())


def _is_worth_its_text(values: Any, target: Any) -> bool:
    """Whether a table is small on a GPU, or will be an expression (``raise-tables``)."""
    if not target.code_holds_constants or values.nbytes <= MOST_BYTES_OF_BLOCKS:
        return True
    integers = np.issubdtype(values.dtype, np.integer)
    return bool(integers) and StepFunction.of(values.reshape(-1).tolist()) is not None


def _seconds_of_work(cost: int, element: str, target: Any) -> float:
    rate = target.flops.get("float64" if element == "f64" else "float32", 0.0)
    return cost / rate if rate else 0.0


def _seconds_of_loads(nbytes: int, target: Any) -> float:
    """From the smallest level of the memory that has room for it."""
    levels = [level for level in target.memory if level.bandwidth]
    fitting = [level for level in levels if not level.size or level.size >= nbytes]
    return nbytes / fitting[0].bandwidth if fitting else float("inf")


def _tree(root: Any) -> Iterator[Any]:
    """The operations that a value is computed by, each once."""
    seen = set()
    waiting = [root]
    while waiting:
        op = waiting.pop()
        if op in seen:
            continue
        seen.add(op)
        yield op
        waiting += [operand.owner for operand in op.operands]


def _stored(op: Any) -> int:
    """Elements of a constant that are not all the same; 0 for any other operation."""
    from polyblocks.mlir import ir

    if op.name != "arith.constant":
        return 0
    attribute = op.attributes["value"]
    if not isinstance(attribute, ir.DenseElementsAttr) or attribute.is_splat:
        return 0
    return int(np.prod(op.results[0].type.shape, dtype=np.int64))


def _is_destination(use: Any) -> bool:
    """Whether an op overwrites the value; folding would add a copy."""
    owner = use.owner.operation
    if owner.name == "linalg.generic":
        return bool(use.operand_number >= owner.attributes["operandSegmentSizes"][0])
    if owner.name == "tensor.insert_slice":
        return bool(use.operand_number == 1)
    return owner.name.startswith(("scf.", "tm_tensor."))


def _replace(op: Any, values: Any) -> None:
    from polyblocks.mlir import dialect, ir

    type_ = op.results[0].type
    element = type_.element_type
    with op.location, ir.InsertionPoint(op):
        # Of a strided view, say one column, ``reshape`` may be one, too.
        values = np.ascontiguousarray(values)
        flat = values.reshape(-1)
        if flat.size and (flat.view(np.uint8).reshape(flat.size, -1) == _first(flat)).all():
            attribute = ir.DenseElementsAttr.get_splat(type_, _number(element, flat[0]))
        else:
            attribute = ir.DenseElementsAttr.get(values, type=element)
        constant = dialect("arith").ConstantOp(type_, attribute).result
    op.results[0].replace_all_uses_with(constant)


def _first(flat: Any) -> Any:
    """The bytes of the first element."""
    return flat[:1].view(np.uint8)


def _number(element: Any, value: Any) -> Any:
    from polyblocks.mlir import ir

    if isinstance(value, np.floating):
        return ir.FloatAttr.get(element, float(value))
    return ir.IntegerAttr.get(element, int(value))
