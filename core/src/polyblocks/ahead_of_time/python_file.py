"""Functions of Python files for ``polyblocks compile FILE.py:NAME``."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from polyblocks.ahead_of_time.examples import made_up
from polyblocks.ahead_of_time.function import aot, original
from polyblocks.artifact import Artifact
from polyblocks.errors import InputError, PolyBlocksError
from polyblocks.explanation.file_module import file_module, run_module
from polyblocks.explanation.run import parse_input
from polyblocks.registry.frontend_choice import chosen_frontend
from polyblocks.registry.registry import get_registry
from polyblocks.runtime.arrays import ArrayInterface

#: Attribute of a function or module with its example inputs, or a function that makes them.
EXAMPLES = "example_inputs"


def compile_function(
    path: Path, name: str, inputs: Sequence[str], options: Mapping[str, Any]
) -> Artifact:
    """Compile a function of a Python file ahead of time.

    Args:
        path: the file; what runs only as a script in it does not run.
        name: of a function, a module or an exported program in it, decorated or not.
        inputs: of each argument, ``float32[3,224,224]``; if there are none, what
            :func:`polyblocks.aot` takes by default, else those of its attribute ``example_inputs``.
        options: of the compiler; ``arch`` may have several names with commas between.

    Raises:
        InputError: there is no such file or function, or it cannot be one program.
    """
    with file_module(path) as module:
        named = _named(module, path, name)
        frontend = chosen_frontend(named)
        examples = _examples(named, name, path, inputs, get_registry().frontend(frontend).hook)
        try:
            return aot(named, examples, options, frontend=frontend)
        except PolyBlocksError:
            raise
        except Exception as error:
            raise InputError(
                f"{name} raised {_describe_error(error, path)}; an --input is needed for each "
                "argument"
            ) from error


def _named(module: ModuleType, path: Path, name: str) -> Any:
    """The object ``name`` of a Python file."""
    try:
        names = run_module(module)
    except Exception as error:
        raise InputError(f"{path} raised {_describe_error(error, path)}") from error
    found = names.get(name)
    if found is None:
        callables = [n for n, v in names.items() if callable(v) and n[:1] != "_"]
        raise InputError(f"{path} has no function '{name}'; it has {', '.join(callables)}")
    return found


def _examples(named: Any, name: str, path: Path, inputs: Sequence[str], hook: Any) -> Any:
    """The example inputs: those asked for, else the program's own, else the attribute's."""
    if inputs:
        arrays: ArrayInterface = hook.array_interface()
        numbers = np.random.default_rng(0)
        return [made_up(arrays, parse_input(text), numbers) for text in inputs]
    _, examples = hook.exported(function=original(named))
    if examples is not None:
        return examples
    examples = getattr(named, EXAMPLES, None)
    if callable(examples):
        try:
            examples = examples()
        except Exception as error:
            raise InputError(
                f"{EXAMPLES} of {name} raised {_describe_error(error, path)}"
            ) from error
    if examples is None:
        raise InputError(
            f"{name} needs example inputs: name each with --input, as in --input "
            f"'float32[1,3,224,224]', or give it an attribute '{EXAMPLES}' in {path}, a list "
            "or a function that returns one"
        )
    return examples


def _describe_error(error: Exception, path: Path) -> str:
    """An error of the user's in one line, with the last line of their file that it went through."""
    lines = [
        number
        for frame, number in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename == str(path)
    ]
    if isinstance(error, SyntaxError) and error.lineno is not None:
        lines.append(error.lineno)
    where = f" at {path}:{lines[-1]}" if lines else ""
    text = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}{where}: {text}"
