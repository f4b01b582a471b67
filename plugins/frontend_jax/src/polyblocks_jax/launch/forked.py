"""Errors for a forked child of a process that used JAX, which would wait forever."""

from __future__ import annotations

from jax._src import xla_bridge

from polyblocks.errors import ExecutionError
from polyblocks.isolation import forks

_lacks_threads = False


@forks.in_child
def _look() -> None:
    # Not by the function that says so: it takes a lock, which another thread may have held.
    global _lacks_threads
    _lacks_threads = _lacks_threads or bool(getattr(xla_bridge, "_backends", None))


def lacks_threads() -> bool:
    """Whether the process was forked after JAX had started its threads."""
    return _lacks_threads


def check_can_compile(name: str) -> None:
    """Check that JAX can compile in this process.

    Args:
        name: the function's.

    Raises:
        ExecutionError: the process was forked after JAX had started its threads, which are not in
            a child; XLA's compiler would wait for them forever.
    """
    if _lacks_threads:
        raise ExecutionError(
            f"'{name}' is compiled for new arguments in a process that was forked after JAX had "
            "been used, and JAX's compiler waits there for threads that only the parent has; call "
            "it with such arguments before the fork, or start processes with the method 'spawn'"
        )
