"""The module that a Python file of the user's is, while something in it is compiled."""

from __future__ import annotations

import contextlib
import itertools
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from polyblocks.errors import InputError

_numbers = itertools.count()


@contextlib.contextmanager
def file_module(path: Path) -> Iterator[types.ModuleType]:
    """A module for a Python file, which has not run yet.

    Inside, the module can be imported by its name, as frameworks do to read what its functions read
    of it, and so can what lies beside the file, since functions may import when they are called.

    Raises:
        InputError: there is no such file.
    """
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    # A name of its own each time: frameworks keep what they have imported by its name.
    module = types.ModuleType(f"polyblocks_file_{next(_numbers)}")
    module.__file__ = str(path)
    saved = list(sys.path)
    sys.path.insert(0, str(path.resolve().parent))
    sys.modules[module.__name__] = module
    try:
        yield module
    finally:
        sys.path[:] = saved
        sys.modules.pop(module.__name__, None)


def run_module(module: types.ModuleType) -> dict[str, Any]:
    """Run the file of a module; what runs only as a script in it does not run.

    Returns:
        Its definitions, by name.
    """
    path = str(module.__file__)
    code = compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)
    exec(code, vars(module))
    return vars(module)
