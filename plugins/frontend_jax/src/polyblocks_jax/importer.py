"""JaxCapture -> Program. Runs on a cache miss only, in an isolated process."""

from __future__ import annotations

from polyblocks import events
from polyblocks.program import Program
from polyblocks_jax.capture import JaxCapture

#: Name of the import in tables of times.
STAGE = "S0"


def preload() -> None:
    """Load what every import needs: a child would do it again each time."""
    from polyblocks import mlir, stablehlo  # noqa: F401

    mlir.preload()


def import_capture(capture: JaxCapture) -> Program:
    """Parse, lower, and describe.

    Raises:
        UnsupportedError: with the op, the reason and the user's source line.
    """
    from polyblocks import stablehlo

    with events.timed_pass(STAGE, "parse"):
        module = stablehlo.parse(capture.data)
    with events.timed_pass(STAGE, "lower-stablehlo"):
        lowered = stablehlo.lower(module)
    return Program(
        capture.name,
        lowered,
        capture.arguments,
        capture.results,
        {"ops": list(capture.ops)},
    )
