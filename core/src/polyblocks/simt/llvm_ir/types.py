"""Types of LLVM IR, and how MLIR spells them."""

from __future__ import annotations

from polyblocks.simt.llvm_ir.tokens import Cursor
from polyblocks.simt.types import Float, Int, Pointer, Sequence, Struct, Type, Vector

_FLOATS = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}
_OTHERS = {"void", "label", "metadata", "token"}
_BRACKETS = {"[", "{", "<"}


def begins_type(token: str) -> bool:
    """Whether a token is the first one of a type."""
    if token in _FLOATS or token in _OTHERS or token in _BRACKETS or token == "ptr":
        return True
    return token[:1] == "i" and token[1:].isdigit()


def read_type(cursor: Cursor) -> Type | None:
    """The type that begins here; None for ``void`` and what is no value.

    Raises:
        UnsupportedError: a type that the simulator does not hold.
    """
    token = cursor.take()
    if token in _FLOATS:
        return Float(_FLOATS[token])
    if token in _OTHERS:
        return None
    if token == "ptr":
        return Pointer(_space(cursor))
    if token[:1] == "i" and token[1:].isdigit():
        return Int(int(token[1:]))
    if token == "<" and cursor.ahead == "{":
        cursor.take()
        fields = _fields(cursor)
        cursor.expect(">")
        return Struct(fields, packed=True)
    if token in ("<", "["):
        count = cursor.number()
        cursor.expect("x")
        element = read_value_type(cursor)
        cursor.expect(">" if token == "<" else "]")
        return Vector(count, element) if token == "<" else Sequence(count, element)
    if token == "{":
        return Struct(_fields(cursor), packed=False)
    raise cursor.error(f"'{token}' is no type that it knows")


def read_value_type(cursor: Cursor) -> Type:
    """As :func:`read_type`, where there must be a value."""
    type_ = read_type(cursor)
    if type_ is None:
        raise cursor.error("expected the type of a value")
    return type_


def _space(cursor: Cursor) -> int:
    if not cursor.accept("addrspace"):
        return 0
    cursor.expect("(")
    space = cursor.number()
    cursor.expect(")")
    return space


def _fields(cursor: Cursor) -> tuple[Type, ...]:
    found = []
    while not cursor.accept("}"):
        found.append(read_value_type(cursor))
        cursor.accept(",")
    return tuple(found)


def spelled(type_: Type) -> str:
    """The type as MLIR writes it."""
    if isinstance(type_, Int):
        return f"i{type_.bits}"
    if isinstance(type_, Float):
        return type_.name
    if isinstance(type_, Pointer):
        return f"!llvm.ptr<{type_.space}>" if type_.space else "!llvm.ptr"
    if isinstance(type_, Vector):
        return f"vector<{type_.count}x{spelled(type_.element)}>"
    if isinstance(type_, Sequence):
        return f"!llvm.array<{type_.count} x {spelled(type_.element)}>"
    assert isinstance(type_, Struct)
    fields = f"({', '.join(map(spelled, type_.fields))})"
    return f"!llvm.struct<{'packed ' if type_.packed else ''}{fields}>"
