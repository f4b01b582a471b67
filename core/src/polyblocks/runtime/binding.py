"""A loaded program as a framework sees it that calls it in its own way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from polyblocks.runtime.bound_weights import BoundWeights
from polyblocks.runtime.executable import Executable
from polyblocks.runtime.slots import Signature


@dataclass(frozen=True)
class Binding:
    """The input of :meth:`polyblocks.runtime.arrays.ArrayInterface.own_call`.

    Attributes:
        executable: the loaded program.
        signature: of it.
        plain: the function that does without the framework. It checks all and may be called
            instead at any time; its attribute ``check`` does only that: called with a sequence of
            arrays, it raises what the function raises, and returns where they are.
        num_threads: threads of each call; None: see :mod:`polyblocks.runtime.threads`.
        num_iters: run the program this many times per call.
        blobs: of the artifact.
        weights: arrays for the last inputs, if some are bound: those of ``signature.weights``.
    """

    executable: Executable
    signature: Signature
    plain: Callable[..., Any]
    num_threads: int | None
    num_iters: int
    blobs: Mapping[str, bytes]
    weights: BoundWeights | None = None

    @property
    def function(self) -> str:
        """The program's name, for messages."""
        return str(self.executable.manifest.get("name", "main"))
