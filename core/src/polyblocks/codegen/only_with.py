"""A pass for types that most programs have no values of."""

from __future__ import annotations

from typing import Any

from polyblocks.codegen.walk import nested

#: What elements of memory are called in :class:`ElementTypes`, in addition to their type's name.
MEMORY = "memory of "


class ElementTypes:
    """Names of the element types in a module (``f32``), also of its memory (``memory of i1``).

    Found at the first question and kept, so the passes that share it must not add any of those
    that later ones ask for.
    """

    def __init__(self) -> None:
        self._module: Any = None
        self._names: frozenset[str] = frozenset()

    def of(self, module: Any) -> frozenset[str]:
        """The names for a module."""
        if self._module is not module:
            self._module, self._names = module, _names(module)
        return self._names


class OnlyWith:
    """Runs a pass on modules with values of certain element types; for others it does nothing.

    Asking once is several times quicker than letting every such pass look for something to do.

    Attributes:
        inner: the pass.
        kinds: parts of the names of these element types (:class:`ElementTypes`).
    """

    def __init__(self, pass_: Any, kinds: tuple[str, ...], types: ElementTypes) -> None:
        self.name: str = pass_.name
        self.__doc__ = pass_.__doc__
        self.inner = pass_
        self.kinds = kinds
        self._types = types

    def run(self, module: Any, context: Any) -> bool:
        """Run the pass if there is something for it; returns whether."""
        found = self._types.of(module)
        if not any(kind in name for name in found for kind in self.kinds):
            return False
        self.inner.run(module, context)
        return True


def _names(module: Any) -> frozenset[str]:
    from polyblocks.mlir import ir

    types: set[Any] = set()
    for op in nested(module.operation):
        types.update([result.type for result in op.results])
        regions = op.regions
        if len(regions):
            for region in regions:
                for block in region.blocks:
                    types.update([argument.type for argument in block.arguments])
        if op.name in ("func.func", "gpu.func"):
            declared = op.attributes["function_type"].value
            types.update((*declared.inputs, *declared.results))
        elif op.name == "memref.global":
            types.add(op.attributes["type"].value)
    names = set()
    for type_ in types:
        element = str(getattr(type_, "element_type", type_))
        names.add(element)
        if isinstance(type_, ir.MemRefType):
            names.add(f"{MEMORY}{element}")
    return frozenset(names)
