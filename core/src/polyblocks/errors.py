"""Every error that PolyBlocks raises on purpose.

Each message is one line that says what was expected, what came, and what to do.
"""

from __future__ import annotations


class PolyBlocksError(Exception):
    """Base class of all errors raised by PolyBlocks."""


class OptionError(PolyBlocksError, ValueError):
    """An unknown compile option, or a value that the option does not take."""


class PluginError(PolyBlocksError, RuntimeError):
    """A plugin is missing, failed to load, or clashes with another one."""


class TargetError(PolyBlocksError, ValueError):
    """The target cannot be used: unknown, not installed, unknown architecture, wrong device."""


class InputError(PolyBlocksError, TypeError):
    """An argument of a compiled function has a dtype, device or layout that cannot be used."""


class UnsupportedError(PolyBlocksError, NotImplementedError):
    """Something in the captured program cannot be compiled; the frontend may fall back.

    Args:
        reason: why, in one line.
        op: the framework's name of the op, where one is known.
        location: ``file:line`` of the user's source, where known.

    Attributes:
        transient: the reason lies in this moment (no memory, a time-out, a signal from outside),
            not in the program: what follows from it must not be remembered.
    """

    transient: bool = False

    def __init__(self, reason: str, *, op: str | None = None, location: str | None = None) -> None:
        self.reason = reason
        self.op = op
        self.location = location
        where = f" at {location}" if location else ""
        what = f"{op}: " if op else ""
        super().__init__(f"{what}{reason}{where}")


class MachineError(UnsupportedError):
    """The machine kept the compiler from its work: no space or memory, a tool or library missing.

    It says nothing of the program, and what follows from it is never remembered.
    """

    transient = True


#: Python's exceptions for failures of the environment.
_OF_MACHINE = (OSError, MemoryError, ImportError)


def of_machine(error: BaseException) -> MachineError | None:
    """The error as one of the machine, if that is what it is or was raised from; else None.

    Example::

        try:
            compile_part()
        except UnsupportedError as error:
            raise of_machine(error) or error
    """
    met: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in met:
        met.append(cause)
        if isinstance(cause, MachineError):
            return cause
        if isinstance(cause, _OF_MACHINE):
            first = (str(cause).strip() or "no more is known").splitlines()[0]
            made = MachineError(
                f"{type(cause).__name__}: {first}",
                op=getattr(error, "op", None),
                location=getattr(error, "location", None),
            )
            made.__cause__ = error
            return made
        cause = cause.__cause__
    return None


class OldSpellingWarning(FutureWarning):
    """Something is read as it was called before, which the next release does not read.

    Passes warn of it; it crosses from the process that compiles to the user's.
    """


class NativeCrashError(UnsupportedError):
    """The compiler's native code died (a signal) while working in an isolated process."""


class PassError(PolyBlocksError, RuntimeError):
    """A pass failed or left an invalid module; names the pass and the reproducer file."""

    def __init__(
        self, pass_name: str, stage: str, detail: str, reproducer: str | None = None
    ) -> None:
        self.pass_name = pass_name
        self.stage = stage
        self.detail = detail
        self.reproducer = reproducer
        hint = f"; reproduce with: polyblocks compile {reproducer}" if reproducer else ""
        super().__init__(f"pass '{pass_name}' (stage {stage}) failed: {detail}{hint}")


class ArtifactError(PolyBlocksError, ValueError):
    """An artifact is damaged, foreign, or of another schema version."""


class ExecutionError(PolyBlocksError, RuntimeError):
    """A compiled program reported a failed run-time check."""


class FallbackError(UnsupportedError):
    """Raised instead of falling back to the framework when ``strict_target`` is set."""
