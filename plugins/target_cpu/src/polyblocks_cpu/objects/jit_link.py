"""Links objects of other formats than ELF into this process, with LLVM's linker."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from polyblocks.isolation import forks
from polyblocks.isolation.forks import fork_lock

_numbers = itertools.count()
_lock = forks.lock()
_linker: Any = None


def link(objects: Sequence[bytes], exports: Sequence[str], imports: Mapping[str, int]) -> Any:
    """Link objects of this machine.

    Returns:
        The library: ``library[name]`` is the address of an export; ``library.close()`` unloads it.

    Raises:
        ValueError: they cannot be linked; says why.
        ImportError: llvmlite is not installed.
    """
    with fork_lock:
        from llvmlite import binding

        builder = binding.JITLibraryBuilder()
        for data in objects:
            builder.add_object_img(data)
        for name in exports:
            builder.export_symbol(name)
        for name, address in imports.items():
            builder.import_symbol(name, address)
        try:
            return builder.link(_jit(), f"polyblocks-{next(_numbers)}")
        except RuntimeError as error:
            raise ValueError(str(error)) from error


def _jit() -> Any:
    """One linker per process: an own one per artifact would cost memory and 10 ms each."""
    global _linker
    with _lock:
        if _linker is None:
            from llvmlite import binding

            binding.initialize_native_target()
            binding.initialize_native_asmprinter()
            _linker = binding.create_lljit_compiler(use_jit_link=True)
        return _linker
