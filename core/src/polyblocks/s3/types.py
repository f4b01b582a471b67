"""verify-s3's rules on types."""

from __future__ import annotations

from typing import Any

from polyblocks.affine.buffers.copies import REGISTERS, SHARED
from polyblocks.mlir import ir
from polyblocks.s3.contract import COMPLEX_ELEMENTS, ELEMENTS
from polyblocks.s3.violation import violation
from polyblocks.target import TargetDescription

_SCALARS = frozenset({"index", *ELEMENTS, *COMPLEX_ELEMENTS})
_LANES = frozenset({"index", *ELEMENTS})
#: Memory spaces of a block of threads, as attributes are printed.
_SPACES = (f'"{SHARED}"', f'"{REGISTERS}"')
_STORED = frozenset({*ELEMENTS, *COMPLEX_ELEMENTS})


class Types:
    """Looks at every type once.

    Args:
        target: that the module is for.
    """

    def __init__(self, target: TargetDescription) -> None:
        self._target = target
        self._seen: dict[Any, tuple[bool, str]] = {}

    def check(self, op: Any, type_: Any) -> bool:
        """Check the type of a value that ``op`` makes; returns whether it is a vector.

        Raises:
            ValueError: the contract does not allow the type.
        """
        if type_ not in self._seen:
            self._seen[type_] = isinstance(type_, ir.VectorType), self._problem(type_)
        vector, problem = self._seen[type_]
        if problem:
            raise violation(op, f"a value of type {type_}: {problem}")
        return vector

    def _problem(self, type_: Any) -> str:
        """The problem with a type, or an empty string."""
        if isinstance(type_, ir.VectorType):
            return self._vector_problem(type_)
        if isinstance(type_, ir.MemRefType):
            return self._memref_problem(type_)
        scalars = ", ".join(sorted(_SCALARS))
        return "" if str(type_) in _SCALARS else f"scalars are of {scalars}"

    def _vector_problem(self, type_: Any) -> str:
        if not self._target.vector_bits:
            return f"the target '{self._target.name}' has no vectors"
        shape = list(type_.shape)
        if len(shape) != 1 or shape[0] & (shape[0] - 1) or type_.scalable:
            return "vectors have one dimension of a power of two"
        lanes = ", ".join(sorted(_LANES))
        return "" if str(type_.element_type) in _LANES else f"elements of vectors are of {lanes}"

    def _memref_problem(self, type_: Any) -> str:
        if str(type_.element_type) not in _STORED:
            return f"elements of memrefs are of {', '.join(sorted(_STORED))}"
        if type_.memory_space is not None:
            if self._target.multiprocessor is None:
                return "memrefs are in the default memory space"
            if str(type_.memory_space) not in _SPACES:
                return f"memrefs are in the default memory space, or in {' or '.join(_SPACES)}"
        if not type_.has_static_shape:
            return "shapes are static"
        try:
            strides, _ = type_.get_strides_and_offset()
        except (RuntimeError, ValueError):
            return "the layout of a memref is a strided one"
        if ir.ShapedType.get_dynamic_stride_or_offset() in strides:
            return "strides are static"
        return ""
