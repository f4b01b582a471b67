"""PolyBlocks compiles functions written in PyTorch, TensorFlow or JAX for CPUs and GPUs.

Importing this package loads no framework, no MLIR, no LLVM and no plugin: what is below is
imported at its first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyblocks import errors
    from polyblocks.ahead_of_time.function import aot
    from polyblocks.ahead_of_time.library import write_library
    from polyblocks.api import compile, frontends, load, targets
    from polyblocks.explanation.run import explain
    from polyblocks.hookspecs import hookimpl
    from polyblocks.options import CompileOptions

__version__ = "0.1.0"
#: Our distribution; plugins use it to detect another project's package of the same name.
__distribution__ = "polyblocks-compiler"

__all__ = [
    "CompileOptions",
    "aot",
    "compile",
    "errors",
    "explain",
    "frontends",
    "hookimpl",
    "load",
    "targets",
    "write_library",
]

#: Public name -> the module that has it; the module itself where there is no attribute.
_PUBLIC: dict[str, tuple[str, str | None]] = {
    "CompileOptions": ("polyblocks.options", "CompileOptions"),
    "aot": ("polyblocks.ahead_of_time.function", "aot"),
    "compile": ("polyblocks.api", "compile"),
    "errors": ("polyblocks.errors", None),
    "explain": ("polyblocks.explanation.run", "explain"),
    "frontends": ("polyblocks.api", "frontends"),
    "hookimpl": ("polyblocks.hookspecs", "hookimpl"),
    "load": ("polyblocks.api", "load"),
    "targets": ("polyblocks.api", "targets"),
    "write_library": ("polyblocks.ahead_of_time.library", "write_library"),
}


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'polyblocks' has no attribute '{name}'")
    module_name, attribute = _PUBLIC[name]
    module = importlib.import_module(module_name)
    value = module if attribute is None else getattr(module, attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
