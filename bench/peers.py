"""PyTorch's ways to run a function: how each compiles it, and what it says when it cannot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

Function = Callable[..., Any]


@dataclass(frozen=True)
class Contestant:
    """One peer on one function.

    Attributes:
        name: the peer's name in tables.
        prepare: makes the function to call; compiling happens at its first call.
        warm_up: run before the first call is timed, so that imports are not part of it.
        checked: whether it computes the function; False for the copy.
    """

    name: str
    prepare: Callable[[], Function]
    warm_up: Callable[[], object] = lambda: None
    checked: bool = True

    def explain(self, error: Exception) -> str:
        """Why it could not run, in one line."""
        if self.name == "inductor" and compiler_is_missing(error):
            return "Inductor needs a C++ compiler, and found none; install g++"
        return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]


def eager(function: Function) -> Contestant:
    """PyTorch as it is."""
    return Contestant("eager", lambda: function)


def inductor(function: Function, name: str = "inductor", **options: Any) -> Contestant:
    """``torch.compile`` with its default backend, for static shapes.

    Args:
        function: what to compile.
        name: the name in tables.
        options: further arguments of ``torch.compile``.
    """
    return Contestant(
        name,
        lambda: torch.compile(function, dynamic=False, **options),
        lambda: torch.compile(_tiny, dynamic=False, **options)(torch.ones(4)),
    )


def polyblocks(function: Function, **options: Any) -> Contestant:
    """This compiler; nothing may fall back.

    Args:
        function: a plain function, or one that is decorated already.
        options: compile options; not for a decorated function.
    """
    from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

    def warm_up() -> object:
        return polyblocks_jit_torch(_tiny)(torch.ones(4))

    def prepare() -> Function:
        if hasattr(function, "polyblocks_report"):
            return function
        return polyblocks_jit_torch(function, compile_options={"strict_target": True, **options})

    return Contestant("polyblocks", prepare, warm_up)


def copy(nbytes: int) -> Contestant:
    """Not a peer but the floor: PyTorch's copy of so many bytes, into memory that is warm.

    It reads and writes ``nbytes`` altogether. Whoever returns fresh memory pays more than this.
    """

    def prepare() -> Function:
        source = torch.ones(max(1, nbytes // 8))
        destination = torch.zeros_like(source)
        return lambda *inputs: destination.copy_(source)

    return Contestant("copy", prepare, checked=False)


#: In the order of the tables; the last is the one that the others are compared with.
PEERS: dict[str, Callable[[Function], Contestant]] = {
    "eager": eager,
    "inductor": inductor,
    "polyblocks": polyblocks,
}


def compiler_is_missing(error: BaseException) -> bool:
    """Whether Inductor failed because there is no C++ compiler."""
    seen: BaseException | None = error
    while seen is not None:
        if type(seen).__name__ == "InvalidCxxCompiler" or "InvalidCxxCompiler" in str(seen):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def _tiny(x: torch.Tensor) -> torch.Tensor:
    return x + 1
