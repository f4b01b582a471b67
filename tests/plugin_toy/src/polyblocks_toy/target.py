"""The hooks of the target `toy`: loops become Python source, run with numpy's scalars."""

from __future__ import annotations

from typing import Any

from polyblocks import hookimpl
from polyblocks.target import MemoryLevel, ParallelLevel, TargetDescription

POLYBLOCKS_API = 2


@hookimpl
def describe_target(options: Any) -> TargetDescription:
    """One worker with no vectors."""
    return TargetDescription(
        name="toy",
        arch=options.arch or "v1",
        parallel=(ParallelLevel("team", 1),),
        memory=(MemoryLevel("L1", 32 << 10), MemoryLevel("main", 0)),
    )


@hookimpl
def lower_program(module: Any) -> Any:
    """Stage S4 is one upstream pass, S5 prints Python."""
    from polyblocks_toy.emit import lower

    return lower(module)


@hookimpl
def load_artifact(artifact: Any) -> Any:
    """Define the function that the source says."""
    from polyblocks_toy.run import PythonExecutable

    return PythonExecutable(artifact)


@hookimpl
def preload() -> list[str]:
    """What lowering imports."""
    return ["polyblocks_toy.emit"]
