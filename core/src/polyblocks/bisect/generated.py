"""The code that was generated in the end, as something to run like a module."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from polyblocks import driver
from polyblocks.artifact import Artifact
from polyblocks.bisect.execute import VARIANTS, Arguments, Array, CheckError, Variant
from polyblocks.bisect.guarded import Guarded


def load_code(artifact: Artifact) -> Callable[[Sequence[Array], Variant, float], list[Array]]:
    """A function of inputs, variant and time limit, like :class:`execute.Program`."""
    executable: Any = driver.load(artifact)
    rows = executable.manifest["arguments"]
    checks = executable.manifest.get("checks", [])

    def call(inputs: Sequence[Array], variant: Variant, limit_s: float) -> list[Array]:
        del limit_s  # the process has one
        memory = Guarded(not variant.backwards, variant.fill)
        arguments = Arguments(rows, memory, inputs)
        packed = struct.pack(f"{len(rows)}Q", *arguments.addresses)
        status = executable.entry(packed, 1 if variant is VARIANTS[0] else 2)
        if status:
            known = 0 < status <= len(checks)
            raise CheckError(f"a check fails: {checks[status - 1] if known else status}")
        return arguments.outputs()

    return call
