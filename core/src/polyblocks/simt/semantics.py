"""Registry of what ops mean. The core registers the llvm dialect, a target its own ops.

An `Operation` is decoded once per op of a kernel: ``decode(instruction)`` reads attributes and
types and returns ``run(machine, *operands)``, which is called for all lanes of some blocks at
once. ``run`` returns the result (several results, or a struct: a tuple). Operands and results
have shape ``(lanes,)`` or ``(n, lanes)``, the last axis 1 where all lanes agree;
``machine.mask`` says which lanes execute, values of the others are ignored. Lanes are ordered by
subgroup, so that ``machine.by_subgroup(value)`` shows the operands of whole subgroups; matrix
instructions are written on that view.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from polyblocks.simt.types import Float, Int, Layout, Pointer, Type, Vector, read_type, scalar_of

Run = Callable[..., Any]


class Instruction:
    """One op of a kernel as a decoder sees it.

    Attributes:
        op: the MLIR operation.
        name: e.g. ``llvm.add``.
        operands: types of the operands.
        results: types of the results.
        layout: sizes of types in memory.
    """

    def __init__(self, op: Any, layout: Layout) -> None:
        self.op = op
        self.name: str = op.name
        self.layout = layout
        self.operands: list[Type] = [read_type(v.type) for v in op.operands]
        self.results: list[Type] = [read_type(v.type) for v in op.results]

    def has(self, name: str) -> bool:
        """Whether the op has this attribute."""
        return name in self.op.attributes

    def attribute(self, name: str) -> Any:
        """The attribute, or None."""
        return self.op.attributes[name] if self.has(name) else None

    def integer(self, name: str, default: int = 0) -> int:
        """The value of an integer or bool attribute."""
        return int(self.op.attributes[name].value) if self.has(name) else default

    def text(self, name: str) -> str:
        """An attribute as MLIR prints it, or an empty string."""
        return str(self.op.attributes[name]) if self.has(name) else ""

    def integers(self, name: str) -> list[int]:
        """The values of a dense array attribute."""
        return [int(v) for v in self.op.attributes[name]] if self.has(name) else []

    @property
    def result(self) -> Type:
        """The type of the only result."""
        return self.results[0]


Kind = str | Callable[[Instruction], Mapping[str, int]] | None


#: All subgroups of the blocks of a cluster.
CLUSTER = -1


@dataclass(frozen=True)
class Operation:
    """The meaning of an op.

    Attributes:
        decode: Instruction -> run(machine, *operands).
        kind: what it counts as: ``integer``, ``float``, ``fma`` (both by type), ``conversion``,
            ``memory``, ``control``, ``special``, ``shuffle``, ``matrix`` …; or a function of the
            instruction that returns counts; None is free.
        barrier: all threads of the block meet here; ``run`` is called before they wait.
        gathers: subgroups beside each other that go on together from here; 0 if each goes on, and
            :data:`CLUSTER` for all of a cluster's blocks.
        held: operands whose registers a unit goes on reading, until its products are waited for.
    """

    decode: Callable[[Instruction], Run]
    kind: Kind = None
    barrier: bool = False
    gathers: int = 0
    held: slice | None = None


@dataclass(frozen=True)
class Semantics:
    """A target's additions to the llvm dialect.

    Attributes:
        operations: by op name, e.g. the thread index, barriers, shuffles.
        intrinsics: by the name that ``llvm.call_intrinsic`` gives.
        functions: by the symbol of a declared function that kernels call.
    """

    operations: Mapping[str, Operation] = field(default_factory=dict)
    intrinsics: Mapping[str, Operation] = field(default_factory=dict)
    functions: Mapping[str, Operation] = field(default_factory=dict)


def width(type_: Type) -> int:
    """Elements of a vector; 1 for a scalar."""
    return type_.count if isinstance(type_, Vector) else 1


def printed(type_: Type) -> str:
    """Short name of a scalar (or a vector's element) type: ``i32``, ``f16``, ``ptr``."""
    scalar = scalar_of(type_)
    if isinstance(scalar, Int):
        return f"i{scalar.bits}"
    if isinstance(scalar, Float):
        return scalar.name
    return "ptr" if isinstance(scalar, Pointer) else "other"


def counts_of(operation: Operation, instruction: Instruction) -> dict[str, int]:
    """The counts of one thread that executes the instruction."""
    kind = operation.kind
    if kind is None:
        return {}
    if callable(kind):
        return dict(kind(instruction))
    types = [*instruction.results[:1], *instruction.operands[:1]]
    if kind in ("float", "fma"):
        name = printed(types[-1] if kind == "float" and len(types) > 1 else types[0])
        return {name if kind == "float" else f"fma.{name}": max(map(width, types))}
    if kind in ("integer", "conversion", "special"):
        return {kind: max(map(width, types), default=1)}
    return {kind: 1}
