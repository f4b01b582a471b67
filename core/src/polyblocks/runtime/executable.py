"""Executable: an artifact loaded on a device, from a target's ``load_artifact``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from polyblocks.options import CompileOptions
    from polyblocks.runtime.native_entry import NativeEntry


class Executable:
    """A loaded program: a target derives its own class.

    Attributes:
        manifest: the artifact's manifest; ``manifest["arguments"]`` is the order of the pointers.
        entry: ``entry(pointers, num_threads) -> status``. ``pointers`` are the addresses of all
            arguments in the manifest's order, packed as unsigned 64-bit integers in native byte
            order: ``struct.pack("3Q", a, b, c)``. They are addresses of the host: a program for
            devices copies the arrays. ``num_threads`` is how many CPU threads the call may use.
            Status 0 is success; ``k > 0`` is the failed run-time check
            ``manifest["checks"][k - 1]``. It runs on the calling thread without the GIL, and
            several threads may be inside at once, each with its own workspace.
        preparation: the program that fills the argument of role ``kept``, or None.
        takes_device_arrays: whether the program also takes arrays that are on a device. It then
            is a :class:`polyblocks.runtime.device.executable.DeviceExecutable`. False by default.
    """

    manifest: dict[str, Any]
    entry: Callable[[bytes, int], int]
    preparation: Executable | None = None
    takes_device_arrays: ClassVar[bool] = False

    @property
    def native_entry(self) -> NativeEntry | None:
        """``entry`` for callers without Python; None, the default: ``entry`` is a C function."""
        return None

    def configure(self, options: CompileOptions) -> None:
        """Take the options of the run, before the first one; does nothing by default."""
        del options

    def profile(self) -> list[dict[str, Any]]:
        """How long the kernels took so far, of a program compiled with the option ``profile``.

        Returns:
            One row per kernel call of the program, the whole program first: ``kernel`` and
            ``nest`` (empty for the whole), ``calls``, ``seconds`` of all of them and ``minimum`` of
            one (None before the first). Nothing by default.
        """
        return []

    def close(self) -> None:
        """Unload the program; ``entry`` must not run, nor be called any more."""
        raise NotImplementedError
