"""Executable: an artifact loaded on a device. What a target's ``load_artifact`` returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Executable(Protocol):
    """A loaded program.

    Attributes:
        manifest: the artifact's manifest; ``manifest["arguments"]`` is the order of the pointers.
        entry: ``entry(pointers, num_threads) -> status``. ``pointers`` are the addresses of all
            arguments in the manifest's order, packed as unsigned 64-bit integers in native byte
            order: ``struct.pack("3Q", a, b, c)``. Status 0 is success; ``k > 0`` is the failed
            run-time check ``manifest["checks"][k - 1]``. It runs on the calling thread without
            the GIL, and several threads may be inside at once, each with its own workspace.
    """

    manifest: dict[str, Any]
    entry: Callable[[bytes, int], int]

    # Programs for devices have more, see ``polyblocks.runtime.device``: their ``entry`` takes
    # arrays of the host all the same, and copies them; ``native_entry`` is it as a C function,
    # which the CPU's is already; ``launcher`` is for arrays that are on a device, ``configure``
    # for options of the run.
    # A target that can measure its kernels (option ``profile``) also has a method
    # ``profile() -> list[dict]``, one row per kernel call of the program, the whole program first:
    # ``kernel`` and ``nest`` (empty for the whole), ``calls``, ``seconds``, ``minimum``.

    def close(self) -> None:
        """Unload the program; ``entry`` must not run, nor be called any more."""
