"""LLVM IR text -> functions of this process. For tools that execute modules; programs are objects.

LLVM's own passes do not run here, so that what is executed is what the text says.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import sys
from collections.abc import Collection, Mapping
from typing import Any

from polyblocks.codegen import llvm

_numbers = itertools.count()

#: Where the functions of C's mathematical library are, if not in the process itself.
_LIBM = {"linux": "libm.so.6", "darwin": "libSystem.dylib"}


class Jitted:
    """Linked code; alive as long as this object."""

    def __init__(self, library: Any, addresses: dict[str, int]) -> None:
        self._library = library
        self.addresses = addresses


def load(text: str, exports: Collection[str], imports: Mapping[str, int]) -> Jitted:
    """Compile and link LLVM IR for the host.

    Args:
        text: LLVM IR as MLIR prints it.
        exports: names whose addresses are wanted.
        imports: addresses by name; what is missing is looked for in libm and in the process.

    Raises:
        UnsupportedError: LLVM does not accept the IR.
        RuntimeError: a function that the code calls is nowhere; names it.
    """
    from llvmlite import binding

    features = binding.get_host_cpu_features().flatten()
    machine = llvm.Machine("", str(binding.get_host_cpu_name()), features, opt_level=0)
    module, target_machine = llvm.optimize(text, machine)
    data = llvm.emit_object(module, target_machine)
    builder = binding.JITLibraryBuilder().add_object_img(data).add_current_process()
    for name in exports:
        builder.export_symbol(name)
    for name, address in _resolve(module, imports).items():
        builder.import_symbol(name, address)
    linker = binding.create_lljit_compiler(use_jit_link=True)
    library = builder.link(linker, f"polyblocks-tool-{next(_numbers)}")
    jitted = Jitted(library, {name: library[name] for name in exports})
    jitted._linker = linker  # type: ignore[attr-defined]
    return jitted


def _resolve(module: Any, imports: Mapping[str, int]) -> dict[str, int]:
    """Addresses of the functions that the module declares, and of the imports."""
    libraries = [ctypes.CDLL(None)]
    with contextlib.suppress(OSError):
        libraries.insert(0, ctypes.CDLL(_LIBM.get(sys.platform, "")))
    found = dict(imports)
    for function in module.functions:
        name = function.name
        if not function.is_declaration or name.startswith("llvm.") or name in found:
            continue
        library = next((each for each in libraries if hasattr(each, name)), None)
        if library is None:
            raise RuntimeError(f"it calls '{name}', which is nowhere")
        found[name] = ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
    return found
