"""The package that an array is of, where no frontend is for it: how it takes memory of ours."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from polyblocks.errors import InputError


class ArrayPackage:
    """A package with arrays.

    Attributes:
        name: its import name.
    """

    def __init__(self, name: str, from_dlpack: Callable[[Any], Any] | None) -> None:
        self.name = name
        self._from_dlpack = from_dlpack

    @classmethod
    def of(cls, array: Any) -> ArrayPackage:
        """That of an array.

        Its ``from_dlpack`` is that of the array's namespace, which the array API standard calls
        ``__array_namespace__``, else that of the package of its class or of a base class.
        """
        named = (getattr(space, "from_dlpack", None) for space in _namespaces(array))
        return cls(package_name(type(array)), next(filter(None, named), None))

    @property
    def takes_memory(self) -> bool:
        """Whether arrays of it can be on memory of ours."""
        return self._from_dlpack is not None

    def take(self, memory: Any) -> Any:
        """An array on memory of ours.

        Args:
            memory: an object with ``__dlpack__`` and ``__dlpack_device__``.

        Raises:
            InputError: the package takes none.
        """
        if self._from_dlpack is None:
            raise InputError(
                f"package '{self.name}' takes no memory through DLPack: neither the namespace of "
                "its arrays nor itself has 'from_dlpack'; install the PolyBlocks frontend for it, "
                "or pass arrays of the host"
            )
        return self._from_dlpack(memory)


def package_name(kind: type) -> str:
    """Import name of the package that a class is of."""
    return kind.__module__.partition(".")[0]


def _namespaces(array: Any) -> Iterator[Any]:
    namespace = getattr(array, "__array_namespace__", None)
    if namespace is not None:
        yield namespace()
    for kind in type(array).__mro__[:-1]:
        module = sys.modules.get(package_name(kind))
        yield module
        yield getattr(module, "dlpack", None)
