"""A loaded host program as a function that XLA calls itself, through its FFI.

XLA then allocates the results, runs the program on a thread of its choice, and several calls may
run at once, each with a workspace of its own. The code between XLA and the program is made once per
machine and cached like any program; linking it is all that happens later.
"""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import math
import mmap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polyblocks.artifact import KEPT, Artifact
from polyblocks.errors import InputError
from polyblocks.program import DTYPES
from polyblocks.runtime.buffers import size_class
from polyblocks.runtime.executable import Executable
from polyblocks.runtime.kept.memory import Kept
from polyblocks.runtime.native import native_code, native_workspaces
from polyblocks.runtime.pages import HUGE_PAGE


class _Row(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_int32),
        ("index", ctypes.c_int32),
        ("bytes", ctypes.c_int64),
        ("place", ctypes.c_int64),
    )


class _Table(ctypes.Structure):
    """See :mod:`polyblocks.codegen.xla_handler`."""

    _fields_ = (
        ("entry", ctypes.c_void_p),
        ("messages", ctypes.c_void_p),
        ("rows", ctypes.c_void_p),
        ("count", ctypes.c_int32),
        ("threads", ctypes.c_int32),
        ("iterations", ctypes.c_int32),
        ("message_count", ctypes.c_int32),
        ("workspace_bytes", ctypes.c_int64),
        ("acquire", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("pool", ctypes.c_void_p),
        ("huge", ctypes.c_int64),
        ("advice", ctypes.c_int32),
        ("width", ctypes.c_int32),
        ("changing", ctypes.c_int32),
        ("listed", ctypes.c_int32),
        ("pointers", ctypes.c_void_p),
        ("busy", ctypes.c_int64),
        ("filled", ctypes.c_int64),
    )


class XlaCall:
    """A program's handler.

    Attributes:
        address: of the handler, a C function ``XLA_FFI_Error* (XLA_FFI_CallFrame*)``.
    """

    def __init__(
        self,
        executable: Executable,
        *,
        threads: int,
        iterations: int = 1,
        kept: Kept | None = None,
        constants: Mapping[int, np.ndarray[Any, Any]] | None = None,
        listed: Sequence[int] = (),
    ) -> None:
        """Link a handler to a program.

        An argument that the program updates takes over the place of a result: what makes the
        call tells XLA which one.

        Args:
            executable: the loaded program; kept alive.
            threads: how many the program may use.
            iterations: runs of it per call.
            kept: what the program's preparation has filled, if it has one; kept alive.
            constants: arrays that are read where they are instead of being passed by XLA, by the
                numbers of the program's inputs; kept alive. Of those that only the preparation
                reads, none.
            listed: numbers of inputs whose addresses, in this order, are in a first argument that
                is XLA's alone, see :mod:`polyblocks.codegen.xla_handler`; the caller keeps what is
                there alive.

        Raises:
            InputError: the program returns an updated argument as a result of its own.
        """
        from polyblocks.codegen import xla_handler

        native = executable.native_entry
        constants = dict(constants or {})
        rows, pages = _rows(
            executable.manifest,
            0 if kept is None else kept.address,
            {number: array.ctypes.data for number, array in constants.items()},
            listed,
        )
        texts = [text.encode() for text in executable.manifest.get("checks", [])]
        messages = (ctypes.c_void_p * (len(texts) + 1))(
            *(ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p) for text in texts),
            # Exceptions of a Python function come after failed checks.
            native.text if native is not None else None,
        )
        entry: Any = native.function if native is not None else executable.entry
        pool = native_workspaces.pool()
        width = len(executable.manifest["arguments"])
        pointers = (ctypes.c_void_p * max(width, 1))()
        table = _Table(
            ctypes.cast(entry, ctypes.c_void_p).value,
            ctypes.addressof(messages),
            ctypes.addressof(rows),
            len(rows),
            threads,
            iterations,
            len(texts) + (native is not None),
            size_class(pages * xla_handler.PAGE) if pages else 0,
            pool.acquire,
            pool.release,
            ctypes.addressof(pool.state),
            HUGE_PAGE,
            getattr(mmap, "MADV_HUGEPAGE", -1),
            width,
            sum(row.kind not in xla_handler.LASTING for row in rows),
            bool(listed),
            ctypes.addressof(pointers),
        )
        madvise = ctypes.cast(ctypes.CDLL(None).madvise, ctypes.c_void_p).value or 0
        library = native_code.link(
            xla_handler.handler_text(),
            (xla_handler.HANDLER,),
            {xla_handler.TABLE: ctypes.addressof(table), "madvise": madvise},
        )
        self.address: int = library[xla_handler.HANDLER]
        held = rows, texts, messages, table, pointers, library
        self._kept = executable, held, kept, constants


def _rows(
    manifest: dict[str, Any],
    kept: int = 0,
    constants: Mapping[int, int] | None = None,
    listed: Sequence[int] = (),
) -> tuple[Any, int]:
    """The table's rows in its order, and the number of pages of all workspaces together.

    Args:
        manifest: of the program.
        kept: address of what is kept.
        constants: addresses of inputs that XLA does not pass, by their numbers among the inputs.
        listed: numbers of those whose addresses it passes in its first argument.
    """
    from polyblocks.codegen.xla_handler import (
        ARGUMENT,
        FIXED,
        LASTING,
        LISTED,
        PAGE,
        RESULT,
        STATUS,
        WORKSPACE,
    )

    arguments: Sequence[dict[str, Any]] = manifest["arguments"]
    constants = constants or {}
    numbers_in_list = {number: k for k, number in enumerate(listed)}
    inputs, passed, outputs = itertools.count(), itertools.count(bool(listed)), itertools.count()
    found: list[_Row] = []
    pages = 0
    for place, row in enumerate(arguments):
        if row["role"] == "input":
            number = next(inputs)
            if number in constants:
                found.append(_Row(FIXED, 0, constants[number], place))
            elif number in numbers_in_list:
                index = numbers_in_list[number]
                last = found[-1] if found else _Row(ARGUMENT)
                if last.kind == LISTED and last.index + last.bytes == index:
                    last.bytes += 1
                else:
                    found.append(_Row(LISTED, index, 1, place))
            else:
                found.append(_Row(ARGUMENT, next(passed), 0, place))
        elif row["role"] == "output":
            if row["updates"] is not None:
                raise InputError(f"'{row['name']}' is updated in place, which XLA does not allow")
            found.append(_Row(RESULT, next(outputs), _worth_huge_pages(row), place))
        elif row["role"] == "workspace":
            found.append(_Row(WORKSPACE, pages, 0, place))
            pages += max(1, -(-row["shape"][0] // PAGE))
        elif row["role"] == KEPT:
            found.append(_Row(FIXED, 0, kept, place))
        else:
            found.append(_Row(STATUS, 0, 0, place))
    found.sort(key=lambda row: row.kind in LASTING)
    return (_Row * len(found))(*found), pages


def _worth_huge_pages(row: dict[str, Any]) -> int:
    """The bytes of a result that is written to fresh memory in large pages; 0 for a small one."""
    nbytes = math.prod(row["shape"]) * DTYPES[row["dtype"]][1]
    return nbytes if nbytes >= 2 * HUGE_PAGE and hasattr(mmap, "MADV_HUGEPAGE") else 0


def digest_of(artifact: Artifact) -> str:
    """A name for a program's code and signature; equal programs have equal ones."""
    manifest = artifact.manifest
    text = repr((manifest["arguments"], manifest.get("checks"), sorted(artifact.blobs)))
    digest = hashlib.sha256(text.encode())
    for name in sorted(artifact.blobs):
        digest.update(hashlib.sha256(artifact.blobs[name]).digest())
    return digest.hexdigest()[:32]
