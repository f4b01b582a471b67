"""Calls of LLVM IR: intrinsics, and functions of the module."""

from __future__ import annotations

from polyblocks.simt.llvm_ir.tokens import Cursor
from polyblocks.simt.llvm_ir.types import begins_type, read_type, spelled
from polyblocks.simt.llvm_ir.values import Operand, Values, symbol
from polyblocks.simt.types import Type

#: Intrinsics that say something to LLVM alone.
_SILENT = ("llvm.dbg.", "llvm.experimental.noalias.scope.decl", "llvm.sideeffect")


def call(cursor: Cursor, values: Values) -> str:
    """The op of a call, from what stands behind ``call`` on; empty for one that does nothing."""
    while not begins_type(cursor.ahead):
        if not cursor.ahead or cursor.ahead.startswith(("@", "%")):
            raise cursor.error("expected the type of what is called")
        cursor.take()
        if cursor.ahead == "(":
            cursor.skip_group()
    result = read_type(cursor)
    if cursor.ahead == "(":
        # The type of the function, where its result alone does not say enough.
        cursor.skip_group()
    if not cursor.ahead.startswith("@"):
        raise cursor.error("it calls no function by name")
    token = cursor.take()
    name = token[1:].strip('"')
    if name.startswith(_SILENT):
        return ""
    cursor.expect("(")
    operands: list[Operand] = []
    while not cursor.accept(")"):
        operands.append(values.typed(cursor))
        cursor.accept(",")
    if name == "llvm.assume":
        # Further assumptions about addresses are not checked.
        return f"llvm.intr.assume {operands[0][0]} : i1"
    if name.startswith("llvm.is.fpclass."):
        return _class(cursor, operands[0], values)
    if name.startswith("llvm."):
        return f"llvm.call_intrinsic {_quoted(name)}{_signature(operands, result)}"
    return f"llvm.call {symbol(token)}{_signature(operands, result)}"


def _class(cursor: Cursor, operand: Operand, values: Values) -> str:
    """The classes are an attribute in MLIR."""
    classes = cursor.text[: cursor.text.rindex(")")].rpartition(" ")[2]
    value, type_ = operand
    return f'"llvm.intr.is.fpclass"({value}) <{{bit = {classes} : i32}}> : ({spelled(type_)}) -> i1'


def _signature(operands: list[Operand], result: Type | None) -> str:
    given = ", ".join(value for value, _ in operands)
    types = ", ".join(spelled(type_) for _, type_ in operands)
    return f"({given}) : ({types}) -> {spelled(result) if result is not None else '()'}"


def _quoted(name: str) -> str:
    return f'"{name}"'
