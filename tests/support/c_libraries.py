"""Libraries for C that were written, called with NumPy's arrays."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import polyblocks

if TYPE_CHECKING:
    from polyblocks.artifact import Artifact


class Written:
    """A library that was written, loaded.

    Args:
        folder: where it is.
        name: of the function.
    """

    def __init__(self, folder: Path, name: str = "program") -> None:
        self.name = name
        self.header = (folder / f"{name}.h").read_text()
        self.code = ctypes.CDLL(str(folder / f"lib{name}.so"))
        self.function = getattr(self.code, name)
        self.function.restype = ctypes.c_int32
        for text in ("error", "arch"):
            getattr(self.code, f"{name}_{text}").restype = ctypes.c_char_p

    def __call__(self, *arrays: Any, counts: Sequence[int] | None = None) -> int:
        """The status; arrays may be addresses, whose counts are given."""
        return int(self.function(*self.arguments(arrays, counts)))

    def on_stream(self, stream: int, arrays: Sequence[Any], counts: Sequence[int]) -> int:
        """The status of a program whose arrays are on a device."""
        given = self.arguments(arrays, counts)
        return int(self.function(ctypes.c_void_p(stream), *given))

    def weight_names(self, count: int) -> list[str | None]:
        """What ``NAME_weight_name`` returns of the first numbers."""
        function = getattr(self.code, f"{self.name}_weight_name")
        function.restype = ctypes.c_char_p
        return [name.decode() if (name := function(k)) is not None else None for k in range(count)]

    def bind(self, weights: Sequence[Any], counts: Sequence[int] | None = None) -> tuple[int, Any]:
        """Status and handle of ``NAME_bind``."""
        given = self.arguments(weights, counts)
        bound = ctypes.c_void_p(1)
        status = getattr(self.code, f"{self.name}_bind")(
            (ctypes.c_void_p * len(weights))(*(each.value for each in given[::2])),
            (ctypes.c_size_t * len(weights))(*(each.value for each in given[1::2])),
            ctypes.byref(bound),
        )
        return int(status), bound

    def run(self, bound: Any, *arrays: Any, counts: Sequence[int] | None = None) -> int:
        """Status of ``NAME_run``."""
        return int(getattr(self.code, f"{self.name}_run")(bound, *self.arguments(arrays, counts)))

    def run_on_stream(
        self, bound: Any, stream: int, arrays: Sequence[Any], counts: Sequence[int]
    ) -> int:
        """The same of a program whose arrays are on a device."""
        given = self.arguments(arrays, counts)
        return int(getattr(self.code, f"{self.name}_run")(bound, ctypes.c_void_p(stream), *given))

    def unbind(self, bound: Any) -> int:
        """Status of ``NAME_unbind``."""
        return int(getattr(self.code, f"{self.name}_unbind")(bound))

    def synchronize(self, stream: int = 0) -> int:
        """What ``NAME_synchronize`` returns."""
        return int(getattr(self.code, f"{self.name}_synchronize")(ctypes.c_void_p(stream)))

    def release(self) -> int:
        """What ``NAME_release`` returns."""
        return int(getattr(self.code, f"{self.name}_release")())

    def error(self) -> str:
        """What was wrong with this thread's last call."""
        return str(getattr(self.code, f"{self.name}_error")().decode())

    def arch(self) -> str | None:
        """What ``NAME_arch`` returns."""
        found = getattr(self.code, f"{self.name}_arch")()
        return found.decode() if found is not None else None

    @staticmethod
    def arguments(arrays: Sequence[Any], counts: Sequence[int] | None) -> list[Any]:
        """Address and count of each array."""
        arguments: list[Any] = []
        for k, array in enumerate(arrays):
            is_array = isinstance(array, np.ndarray)
            address = array.ctypes.data if is_array else array
            complex_ = is_array and array.dtype.kind == "c"
            count = counts[k] if counts is not None else span(array) * (2 if complex_ else 1)
            arguments += [ctypes.c_void_p(address), ctypes.c_size_t(count)]
        return arguments


class Library(Written):
    """A library that is written and loaded; the C compiler runs once for libraries that are alike.

    Args:
        artifact: of a target that makes libraries.
        folder: where it is written.
        name: of the function.
    """

    def __init__(self, artifact: Artifact, folder: Path, name: str = "program") -> None:
        manifest = json.dumps(artifact.manifest, sort_keys=True)
        alike = (manifest, *sorted(artifact.blobs.items()), name, os.environ.get("CC"))
        if (written := _WRITTEN.get(alike)) is None:
            files = polyblocks.write_library(artifact, folder, name)
            _WRITTEN[alike] = {file.name: file.read_bytes() for file in files}
        else:
            folder.mkdir(parents=True, exist_ok=True)
            for file, data in written.items():
                # Who has the former one loaded keeps that.
                (folder / file).unlink(missing_ok=True)
                (folder / file).write_bytes(data)
        super().__init__(folder, name)


def quick_compiler(folder: Path) -> str:
    """A value of ``CC``: gcc without optimizations, for which it takes two thirds of its time."""
    path = folder / "quick-cc"
    path.write_text('#!/bin/sh\nexec gcc "$@" -O0\n')
    path.chmod(0o700)
    return str(path)


#: What libraries are made of -> name and contents of their files.
_WRITTEN: dict[tuple[Any, ...], dict[str, bytes]] = {}


def span(array: np.ndarray) -> int:
    """Elements from an array's first to its last one."""
    steps = zip(array.shape, array.strides, strict=True)
    return 1 + sum((extent - 1) * step // array.itemsize for extent, step in steps)
