"""Ops of a loop's body that may be put in another order, or done again."""

from __future__ import annotations

from typing import Any

_READS = frozenset({"vector.load", "vector.maskedload", "memref.load"})
_WRITES = frozenset({"vector.store", "vector.maskedstore", "memref.store", "memref.prefetch"})
#: Everything else that may stand in such a body has no effect.
_PURE = (
    *("arith.", "math.", "index.", "llvm.freeze", "llvm.intr.expect"),
    *("vector.shuffle", "vector.broadcast", "vector.reduction"),
)


def is_read(op: Any) -> bool:
    """Whether it reads memory, and does nothing else."""
    return op.name in _READS


def is_write(op: Any) -> bool:
    """Whether it stands for a write: what reads memory must stay on its side."""
    return op.name in _WRITES


def is_straight_line(op: Any) -> bool:
    """Whether it is a read, a write, or arithmetic on values."""
    name = op.name
    if name == "llvm.call_intrinsic":
        # Those that vector math is made of; all on values.
        return bool(len(op.results))
    return name.startswith(_PURE) or name in _READS or name in _WRITES
