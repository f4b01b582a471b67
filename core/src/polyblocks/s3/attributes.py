"""verify-s3's rules on attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyblocks.attributes import COPY, KIND_ATTRIBUTE, LEVEL_ATTRIBUTE
from polyblocks.mlir import ir
from polyblocks.s3.contract import ATTRIBUTES, FASTMATH, KINDS, MAIN, NAMED_NEST, REGIONS
from polyblocks.s3.violation import violation
from polyblocks.target import TargetDescription

_OURS = "polyblocks."
_TYPES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "string": ("a string", lambda a: isinstance(a, ir.StringAttr)),
    "strings": ("a list of strings", lambda a: _list_of(a, ir.StringAttr)),
    "integers": ("an array<i64>", lambda a: isinstance(a, ir.DenseI64ArrayAttr)),
    "unit": ("a unit", lambda a: isinstance(a, ir.UnitAttr)),
    "dictionary": ("a dictionary", lambda a: isinstance(a, ir.DictAttr)),
    "dictionaries": ("a list of dictionaries", lambda a: _list_of(a, ir.DictAttr)),
}


def check_module(op: Any) -> None:
    """The attributes of the module.

    Raises:
        ValueError: one of ours that does not belong there, or is of another type.
    """
    for name in op.attributes:
        if name.startswith(_OURS):
            _check_one(op, name, op.attributes[name], ("module",))


def check(op: Any, place: str, target: TargetDescription) -> None:
    """The attributes of an operation of ``@main``.

    Raises:
        ValueError: as above; or flags, a level or a kind that there is not.
    """
    given = op.attributes
    owners: tuple[str, ...] = ()
    if place == MAIN:
        owners = ("nest", "region") if op.name in REGIONS else ("nest",)
    if op.name == "affine.parallel":
        owners = (*owners, "parallel")
    elif op.name == "affine.for":
        owners = (*owners, "loop")
    elif op.name in ("affine.load", "affine.store", COPY):
        owners = (*owners, "access")
    elif op.name == "memref.alloca":
        owners = (*owners, "buffer")
    elif op.name in ("arith.extf", "arith.truncf"):
        owners = (*owners, "conversion")
    for name in given:
        if name.startswith(_OURS):
            _check_one(op, name, given[name], owners)
    if "fastmath" in given:
        _check_flags(op, given["fastmath"])
    if op.name == "affine.parallel":
        _check_level(op, target)
    named = [name for name in NAMED_NEST if name in given]
    if named and len(named) < len(NAMED_NEST):
        missing = next(name for name in NAMED_NEST if name not in given)
        raise violation(op, f"a nest with {named[0]} also has {missing}")
    if named and given[KIND_ATTRIBUTE].value not in KINDS:
        raise violation(op, f"{KIND_ATTRIBUTE} is one of {', '.join(KINDS)}")


def _check_one(op: Any, name: str, value: Any, owners: tuple[str, ...]) -> None:
    known = ATTRIBUTES.get(name)
    if known is None:
        raise violation(op, f"there is no attribute {name}; there are {', '.join(ATTRIBUTES)}")
    if known.owner not in owners:
        raise violation(op, f"{name} is an attribute of {_OWNERS[known.owner]}")
    what, fits = _TYPES[known.type]
    if not fits(value):
        raise violation(op, f"{name} is {what}, not {value}")


_OWNERS = {
    "module": "the module",
    "argument": "an argument of @main",
    "nest": "a nest, on its outermost operation",
    "loop": "an affine.for",
    "parallel": "an affine.parallel",
    "region": "a loop or branch of the program",
    "access": "an affine.load, affine.store or polyblocks.copy",
    "buffer": "a memref.alloca",
    "conversion": "an arith.extf or arith.truncf",
}


def _check_level(op: Any, target: TargetDescription) -> None:
    levels = [level.name for level in target.parallel]
    given = op.attributes
    if LEVEL_ATTRIBUTE not in given or given[LEVEL_ATTRIBUTE].value not in levels:
        raise violation(
            op,
            f"a parallel loop has a {LEVEL_ATTRIBUTE}, for '{target.name}' one of "
            + ", ".join(levels),
        )


def _check_flags(op: Any, flags: Any) -> None:
    text = str(flags)
    names = text[text.index("<") + 1 : text.index(">")].split(",")
    if not {name.strip() for name in names} <= {"none", *FASTMATH}:
        raise violation(op, f"fastmath allows {', '.join(FASTMATH)} only, not {text}")


def _list_of(attribute: Any, kind: Any) -> bool:
    return isinstance(attribute, ir.ArrayAttr) and all(isinstance(a, kind) for a in attribute)
