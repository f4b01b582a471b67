"""Which pass a failure is due to, as a PassError with a reproducer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from polyblocks.errors import MachineError, PassError, PolyBlocksError, of_machine
from polyblocks.failures import reproducer


@contextmanager
def attribute_failure(
    snapshot: bytes,
    stage: str,
    finished: Sequence[Any],
    context: Any,
    running: Any = None,
    *,
    verified: bool = True,
) -> Iterator[None]:
    """Turn a failure inside the block into an error that names the pass; errors of ours pass.

    Args:
        snapshot: the module at the begin of the stage, as bytecode.
        stage: for example ``S3``.
        finished: the passes of the stage that are through.
        context: the PassContext.
        running: the pass that runs inside the block; None while what the finished ones did is
            written or verified. Then the first one that fails when each writes for itself, and is
            verified, is to blame.
        verified: whether what the finished passes left is known to be valid; else the same holds
            for them and the one that runs.

    Raises:
        PassError: names the pass, and a file with the module as it was before it.
        MachineError: the machine is to blame, not the pass.
    """
    try:
        yield
    except PolyBlocksError:
        raise
    except Exception as error:
        if (problem := of_machine(error)) is not None:
            where = f" in pass '{running.name}'" if running is not None else ""
            raise MachineError(f"{problem.reason}{where}") from error
        culprit, before, cause = running, finished, error
        if culprit is None or not verified:
            passes = [*finished, *([] if running is None else [running])]
            culprit, before, cause = _first_failure(snapshot, passes, context, error)
        path = reproducer.write(snapshot, stage, before, culprit.name, context)
        # MLIR's notes repeat the operation over many lines; the reproducer has it anyway.
        detail = " ".join(f"{type(cause).__name__}: {cause}".partition("\n note:")[0].split())
        raise PassError(culprit.name, stage, detail, path) from error


def _first_failure(
    snapshot: bytes, passes: Sequence[Any], context: Any, error: Exception
) -> tuple[Any, Sequence[Any], Exception]:
    """The pass, those before it, and its error; the last pass if none fails by itself."""
    from polyblocks import mlir

    module = mlir.parse(snapshot, mlir.make_context())
    for index, p in enumerate(passes):
        try:
            p.run(module, context)
            module.operation.verify()
        except Exception as cause:
            return p, passes[:index], cause
    return passes[-1], passes[:-1], error
