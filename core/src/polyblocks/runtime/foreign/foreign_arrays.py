"""Which ArrayInterface the arrays of a call need, where a program was loaded without one."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from polyblocks.registry.frontend_choice import framework_of
from polyblocks.registry.registry import FRONTENDS, get_registry
from polyblocks.runtime.arrays import ArrayInterface
from polyblocks.runtime.foreign.array_packages import ArrayPackage, package_name
from polyblocks.runtime.foreign.protocol_arrays import ProtocolArrays
from polyblocks.runtime.native.dispatch import dispatched
from polyblocks.runtime.numpy_arrays import NumpyArrays


def by_framework(
    bound: Callable[[ArrayInterface], Callable[..., Any]],
    executable: Any,
    default: ArrayInterface | None = None,
) -> Any:
    """A program as a function of arrays of any framework; results are of the first array's.

    NumPy's arrays need nothing; those of a framework whose frontend is installed go through that;
    all others must speak DLPack.

    Args:
        bound: makes a function of the program for one kind of arrays.
        executable: the loaded program, for the protocols of its vendor.
        default: of what a call without arrays returns; None: NumPy's.
    """
    plain = bound(NumpyArrays())

    def choose(*arrays: Any) -> Callable[..., Any]:
        if not arrays:
            return plain if default is None else bound(default)
        if isinstance(arrays[0], np.ndarray):  # subclasses are of any package
            return plain
        interface = interface_of(arrays[0], executable)
        return plain if interface is None else bound(interface)

    return dispatched(plain, choose)


def readers(executable: Any) -> Callable[[Any], ArrayInterface]:
    """How arrays of any package are read: a function that gives the interface of an array's.

    Args:
        executable: the loaded program, for the protocols of its vendor.
    """
    numpy = NumpyArrays()
    known: weakref.WeakKeyDictionary[type, ArrayInterface] = weakref.WeakKeyDictionary()

    def of(array: Any) -> ArrayInterface:
        if isinstance(array, np.ndarray):
            return numpy
        kind = type(array)
        if kind not in known:
            known[kind] = interface_of(array, executable) or numpy
        return known[kind]

    return of


def interface_of(array: Any, executable: Any) -> ArrayInterface | None:
    """The interface for arrays of the class of this one; None: no frontend reads them."""
    registry = get_registry()
    # A class of the user's is derived from one of the framework's.
    packages = [package_name(kind) for kind in type(array).__mro__[:-1]]
    for name in registry.names(FRONTENDS):
        # jaxlib's arrays are jax's: the package may be a part of the framework.
        if any(package.startswith(framework_of(name) or "-") for package in packages):
            interface: ArrayInterface = registry.frontend(name).hook.array_interface()
            return interface
    protocols = executable.driver.array_protocols if executable.takes_device_arrays else ()
    if hasattr(array, "__dlpack__") or any(hasattr(array, name) for name in protocols):
        return ProtocolArrays(ArrayPackage.of(array), protocols, executable)
    return None
