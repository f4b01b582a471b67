"""Passes for what most programs do not have: certain element types, or certain operations."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

#: Prefix of types that are in memory, in :class:`Contents`.
MEMORY = "memory of "

#: Ops whose results are of the type of an operand, or that have none: most ops are of these.
_NO_NEW_TYPES = frozenset(
    {
        *(f"arith.{name}f" for name in "add sub mul div rem maximum minimum neg".split()),
        *(f"arith.{name}i" for name in "add sub mul and or xor maxs mins maxu minu shl".split()),
        *("arith.select", "math.absf", "math.fma", "math.sqrt"),
        *("affine.store", "memref.store", "vector.store", "affine.yield", "scf.yield"),
    }
)


class Contents:
    """Element types and ops of a module: found at the first question, in one walk, and kept.

    The passes that share it must not add any of those that later ones ask for.
    """

    def __init__(self) -> None:
        self._module: Any = None
        self._types: frozenset[str] = frozenset()
        self._ops: frozenset[str] = frozenset()

    def types(self, module: Any) -> frozenset[str]:
        """Names of the element types (``f32``), also of memory (``memory of i1``)."""
        self._find(module)
        return self._types

    def ops(self, module: Any) -> frozenset[str]:
        """Names of the ops."""
        self._find(module)
        return self._ops

    def forget(self) -> None:
        """Look again at the next question."""
        self._module = None

    def _find(self, module: Any) -> None:
        if self._module is not module:
            self._module = module
            self._types, self._ops = _contents(module)


class OnlyWith:
    """Runs a pass on modules with values of certain element types; for others it does nothing.

    Asking once is several times quicker than letting every such pass look for something to do.
    Such a pass may add anything.

    Attributes:
        inner: the pass.
        kinds: parts of the names of these element types (:class:`Contents`).
    """

    def __init__(self, pass_: Any, kinds: tuple[str, ...], contents: Contents) -> None:
        self.name: str = pass_.name
        self.__doc__ = pass_.__doc__
        self.inner = pass_
        self.kinds = kinds
        self._contents = contents

    def run(self, module: Any, context: Any) -> bool:
        """Run the pass if there is something for it; returns whether."""
        found = self._contents.types(module)
        if not any(kind in name for name in found for kind in self.kinds):
            return False
        self.inner.run(module, context)
        self._contents.forget()
        return True


class OnlyWithOps:
    """Runs a pass on modules with certain ops; in others there is nothing for it to do.

    Attributes:
        inner: the pass.
        ops: names of the ops.
    """

    def __init__(self, pass_: Any, ops: Collection[str], contents: Contents) -> None:
        self.name: str = pass_.name
        self.__doc__ = pass_.__doc__
        self.inner = pass_
        self.ops = frozenset(ops)
        self._contents = contents

    def run(self, module: Any, context: Any) -> bool:
        """Run the pass if there is something for it; returns whether it changed anything."""
        if self.ops.isdisjoint(self._contents.ops(module)):
            return False
        return self.inner.run(module, context) is not False


def _contents(module: Any) -> tuple[frozenset[str], frozenset[str]]:
    """Names of the element types and of the ops of a module."""
    from polyblocks.mlir import ir

    types: set[Any] = set()
    ops: set[str] = set()
    go_on = ir.WalkResult.ADVANCE

    def visit(op: Any) -> Any:
        name = op.name
        ops.add(name)
        if name in _NO_NEW_TYPES:
            return go_on
        types.update([result.type for result in op.results])
        regions = op.regions
        if len(regions):
            for region in regions:
                for block in region.blocks:
                    types.update([argument.type for argument in block.arguments])
            if name in ("func.func", "gpu.func"):
                declared = op.attributes["function_type"].value
                types.update((*declared.inputs, *declared.results))
        elif name == "memref.global":
            types.add(op.attributes["type"].value)
        return go_on

    module.operation.walk(visit)
    names = set()
    for type_ in types:
        element = str(type_.element_type if isinstance(type_, ir.ShapedType) else type_)
        names.add(element)
        if isinstance(type_, ir.MemRefType):
            names.add(f"{MEMORY}{element}")
    return frozenset(names), frozenset(ops)
