"""Names of the arrays that a function holds, as checkpoints of its framework call them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from polyblocks.ahead_of_time.seen_program import Seen, is_copy
from polyblocks.runtime.arrays import HOST, ArrayInterface


def names_of_weights(
    named: Sequence[tuple[str, Any]], seen: Seen, rows: Sequence[int], arrays: ArrayInterface
) -> list[list[str]]:
    """For each array that a program takes from its function the names that it has there.

    Args:
        named: what :func:`held_arrays` finds.
        seen: the program, after a call.
        rows: numbers of the arrays among the program's arguments.
        arrays: of the framework.

    Returns:
        All names of each, since one array may stand in several places; none for an array that
        stands nowhere by a name, or that the framework has copied and that others equal.
    """
    assert seen.addresses is not None
    held = [(name, array) for name, array in named if arrays.device(array) == HOST]
    places: dict[int, list[str]] = {}
    for name, array in held:
        if arrays.describe(array).numel:
            places.setdefault(arrays.pointer(array), []).append(name)
    found = {row: places.get(seen.addresses[row], []) for row in rows}
    known = {name for names in found.values() for name in names}
    left = [(name, array) for name, array in held if name not in known]
    for row in rows:
        if not found[row]:
            alike = [(name, array) for name, array in left if is_copy(arrays, array, seen, row)]
            if len({arrays.pointer(array) for _, array in alike}) == 1:
                found[row] = [name for name, _ in alike]
    return [found[row] for row in rows]


def held_arrays(owner: Any, arrays: ArrayInterface) -> Iterator[tuple[str, Any]]:
    """The arrays of an object, or those of the variables that a function names, with their names.

    Those of the object itself, or of the object whose method it is, have the names of
    :meth:`ArrayInterface.named`; those of a variable have its name before that.

    Args:
        owner: what the user gave: a function, a module, an exported program.
        arrays: of the framework.
    """
    yield from arrays.named(owner).items()
    if isinstance(owner, functools.partial):
        yield from held_arrays(owner.func, arrays)
        variables: Mapping[str, Any] = owner.keywords
    elif inspect.ismethod(owner):
        yield from arrays.named(owner.__self__).items()
        return
    else:
        variables = _variables(inspect.unwrap(owner)) if inspect.isroutine(owner) else {}
    for variable, value in variables.items():
        for name, array in arrays.named(value).items():
            yield ".".join(filter(None, (variable, name))), array


def _variables(function: Any) -> dict[str, Any]:
    """Variables of the places around a function, and of its module, that it names."""
    code = getattr(function, "__code__", None)
    if code is None:
        return {}
    outer = function.__globals__
    around = {name: outer[name] for name in code.co_names if name in outer}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            around[name] = cell.cell_contents
        except ValueError:  # not set yet
            continue
    return around
