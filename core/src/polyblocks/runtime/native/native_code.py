"""Helpers of the runtime that are code themselves: LLVM IR, compiled once per machine, and linked.

The object is cached like any program, so that later processes only link it.
"""

from __future__ import annotations

import itertools
import logging
import platform
from collections.abc import Collection, Mapping
from typing import Any

from polyblocks.artifact import Artifact
from polyblocks.isolation import forks
from polyblocks.isolation.forks import fork_lock
from polyblocks.runtime.native import flat_code

_OBJECT = "code.o"

_lock = forks.lock()
_numbers = itertools.count()
_linker: Any = None
#: LLVM IR -> its object.
_objects: dict[str, bytes] = {}
#: LLVM IR -> addresses of its functions, None where there can be none.
_placed: dict[str, dict[str, int] | None] = {}
#: Libraries that :func:`place` has linked.
_linked: list[Any] = []
_log = logging.getLogger(__name__)


def link(text: str, exports: Collection[str], imports: Mapping[str, int]) -> Any:
    """Link LLVM IR into this process.

    Args:
        text: self-contained but for the imports.
        exports: names of functions to look up.
        imports: addresses of what the text declares.

    Returns:
        The library: ``library[name]`` is the address of an export, as long as it is alive.
    """
    with _lock:
        return _link(_object(text), exports, imports)


def _link(data: bytes, exports: Collection[str], imports: Mapping[str, int]) -> Any:
    global _linker
    with fork_lock:
        from llvmlite import binding

        if _linker is None:
            binding.initialize_native_target()
            binding.initialize_native_asmprinter()
            _linker = binding.create_lljit_compiler(use_jit_link=True)
        builder = binding.JITLibraryBuilder().add_object_img(data)
        for name in exports:
            builder.export_symbol(name)
        for name, address in imports.items():
            builder.import_symbol(name, address)
        return builder.link(_linker, f"polyblocks-helper-{next(_numbers)}")


def place(text: str, *names: str) -> dict[str, int] | None:
    """Put LLVM IR that refers to nothing else into this process, until its end.

    Args:
        text: self-contained, without data.
        names: of functions to look up.

    Returns:
        name -> address of these. None where that cannot be: it was never compiled on this machine
        and LLVM is not installed, or the system allows no generated code or has no memory for it.
    """
    with _lock:
        if text not in _placed:
            try:
                _placed[text] = _place(text, names)
            except (ImportError, OSError, MemoryError) as error:
                _log.debug("no machine code for calls: %s", error)
                _placed[text] = None
        return _placed[text]


def _place(text: str, names: Collection[str]) -> dict[str, int]:
    data = _object(text)
    try:
        flat = flat_code.flat_code(data)
    except ValueError as error:
        # Of another format, which LLVM's linker knows. The process keeps what it has linked.
        _log.debug("machine code for calls is linked by LLVM: %s", error)
        _linked.append(_link(data, names, {}))
        return {name: _linked[-1][name] for name in names}
    placed = flat_code.place(flat)
    return {name: placed[name] for name in names}


def _object(text: str) -> bytes:
    if text not in _objects:
        _objects[text] = _artifact(text).blobs[_OBJECT]
    return _objects[text]


def _artifact(text: str) -> Artifact:
    from polyblocks.cache.cache import cache_key, default_cache, toolchain_versions

    key = cache_key(["helper", text, platform.machine(), repr(toolchain_versions())])
    cache = default_cache()
    found = cache.get(key)
    if found is None:
        import llvmlite  # noqa: F401 - or leave the cache as it is

        with cache.lock(key):
            found = cache.get(key)
            if found is None:
                found = Artifact({"kind": "helper"}, {_OBJECT: _compile(text)})
                cache.put(key, found)
    return found


def _compile(text: str) -> bytes:
    from polyblocks.codegen import llvm

    with fork_lock:
        # Extensions of one chip over its family are of no use here.
        module, machine = llvm.parse(text, llvm.Machine("", "", opt_level=2))
        llvm.optimize_kernels(module, machine, 2)
        return llvm.emit_object(module, machine)
