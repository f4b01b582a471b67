"""Globals of LLVM IR: shared arrays, and tables of numbers."""

from __future__ import annotations

import numpy as np

from polyblocks.simt.llvm_ir.numbers import bits_of, string_bytes
from polyblocks.simt.llvm_ir.tokens import Cursor
from polyblocks.simt.llvm_ir.types import begins_type, read_value_type, spelled
from polyblocks.simt.llvm_ir.values import symbol
from polyblocks.simt.types import Float, Int, Sequence, Type, Vector

_EMPTY = ("undef", "poison", "zeroinitializer")


def global_array(line: str) -> str:
    """The ``llvm.mlir.global`` of a line of LLVM IR.

    Raises:
        UnsupportedError: its initializer has other things than numbers.
    """
    cursor = Cursor(line)
    name = symbol(cursor.take())
    cursor.expect("=")
    space, external = 0, False
    while not begins_type(cursor.ahead):
        word = cursor.take()
        external |= word == "external"
        if word == "addrspace":
            cursor.expect("(")
            space = cursor.number()
            cursor.expect(")")
    type_ = read_value_type(cursor)
    spaced = f"{{addr_space = {space} : i32}} : {spelled(type_)}"
    if external:
        return f"llvm.mlir.global external {name}() {spaced}"
    if cursor.ahead in _EMPTY:
        kind = "zero" if cursor.take() == "zeroinitializer" else "undef"
        value = f"%0 = llvm.mlir.{kind} : {spelled(type_)}"
        region = f"{{\n{value}\nllvm.return %0 : {spelled(type_)}\n}}"
        return f"llvm.mlir.global internal {name}() {spaced} {region}"
    element = _innermost(type_)
    numbers = _numbers(cursor, type_, element)
    raw = np.array(numbers, np.uint64).astype(f"uint{8 * _bytes(element)}").tobytes().hex().upper()
    table = f"tensor<{len(numbers)}x{spelled(element)}>"
    return f'llvm.mlir.global internal {name}(dense<"0x{raw}"> : {table}) {spaced}'


def _innermost(type_: Type) -> Type:
    while isinstance(type_, (Vector, Sequence)):
        type_ = type_.element
    return type_


def _bytes(element: Type) -> int:
    if isinstance(element, Float):
        return {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}[element.name]
    assert isinstance(element, Int)
    return element.bits // 8


def _numbers(cursor: Cursor, type_: Type, element: Type) -> list[int]:
    """The numbers of an initializer in order."""
    if not isinstance(element, Float) and element not in (Int(8), Int(16), Int(32), Int(64)):
        raise cursor.error("expected a table of numbers")
    token = cursor.take()
    count = 1
    inner: Type = type_
    while isinstance(inner, (Vector, Sequence)):
        count, inner = count * inner.count, inner.element
    if token in _EMPTY:
        return [0] * count
    if token.startswith('c"'):
        return list(string_bytes(token))
    if token in ("[", "<"):
        found = []
        while not cursor.accept("]", ">"):
            found += _numbers(cursor, read_value_type(cursor), element)
            cursor.accept(",")
        return found
    if token == "splat":
        cursor.expect("(")
        found = _numbers(cursor, read_value_type(cursor), element) * count
        cursor.expect(")")
        return found
    bits = bits_of(token, element)
    if bits is None:
        raise cursor.error("expected a table of numbers")
    return [bits]
