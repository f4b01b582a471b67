"""Instructions of LLVM IR as ops of MLIR's LLVM dialect."""

from __future__ import annotations

from collections.abc import Callable

from polyblocks.simt.llvm_ir.calls import call
from polyblocks.simt.llvm_ir.tokens import Cursor
from polyblocks.simt.llvm_ir.types import read_value_type, spelled
from polyblocks.simt.llvm_ir.values import BINARY, CASTS, FLAGS, Values
from polyblocks.simt.types import Int, Vector

_ORDERINGS = ("unordered", "monotonic", "acquire", "release", "acq_rel", "seq_cst")
#: Kinds of ``atomicrmw`` that MLIR spells otherwise.
_KINDS = {"and": "_and", "or": "_or", "xor": "_xor"}
#: Relations of ``fcmp`` that MLIR spells otherwise.
_RELATIONS = {"true": "_true", "false": "_false"}


def instruction(cursor: Cursor, values: Values) -> str:
    """The op of an instruction that is no phi and no terminator, from its name on.

    Returns:
        the op without its result; empty for an instruction that does nothing.

    Raises:
        UnsupportedError: an instruction that the simulator does not know.
    """
    name = cursor.take()
    if name in ("tail", "musttail", "notail"):
        name = cursor.take()
    while name not in _VOLATILE and cursor.accept(*FLAGS):
        pass
    if name == "ptrtoaddr":
        name = "ptrtoint"
    if name in BINARY:
        first, type_ = values.typed(cursor)
        cursor.expect(",")
        return f"llvm.{name} {first}, {values.operand(cursor, type_)} : {spelled(type_)}"
    if name in CASTS:
        value, type_ = values.typed(cursor)
        cursor.expect("to")
        return f"llvm.{name} {value} : {spelled(type_)} to {spelled(read_value_type(cursor))}"
    read = _READERS.get(name)
    if read is None:
        raise cursor.error(f"'{name}' is no instruction that it knows")
    return read(cursor, values)


def _compare(name: str) -> Callable[[Cursor, Values], str]:
    def read(cursor: Cursor, values: Values) -> str:
        relation = cursor.take()
        first, type_ = values.typed(cursor)
        cursor.expect(",")
        second = values.operand(cursor, type_)
        relation = _RELATIONS.get(relation, relation)
        return f'llvm.{name} "{relation}" {first}, {second} : {spelled(type_)}'

    return read


def _one(name: str) -> Callable[[Cursor, Values], str]:
    def read(cursor: Cursor, values: Values) -> str:
        value, type_ = values.typed(cursor)
        return f"llvm.{name} {value} : {spelled(type_)}"

    return read


def _select(cursor: Cursor, values: Values) -> str:
    condition, boolean = values.typed(cursor)
    cursor.expect(",")
    first, type_ = values.typed(cursor)
    cursor.expect(",")
    second, _ = values.typed(cursor)
    return f"llvm.select {condition}, {first}, {second} : {spelled(boolean)}, {spelled(type_)}"


def _address(cursor: Cursor, values: Values) -> str:
    while cursor.ahead == "inrange":
        cursor.take()
        cursor.skip_group()
    return values.address(cursor)


def _alignment(cursor: Cursor) -> str:
    while cursor.accept(","):
        if cursor.accept("align"):
            return f" {{alignment = {cursor.number()} : i64}}"
        cursor.take()
        cursor.skip_group()
    return ""


def _order(cursor: Cursor) -> str:
    """The synchronization scope and the orderings."""
    found = ""
    if cursor.accept("syncscope"):
        cursor.expect("(")
        found = f" syncscope({cursor.take()})"
        cursor.expect(")")
    while ordering := cursor.accept(*_ORDERINGS):
        found += f" {ordering}"
    return found


def _load(cursor: Cursor, values: Values) -> str:
    atomic = " atomic" if cursor.accept("atomic") else ""
    volatile = "volatile " if cursor.accept("volatile") else ""
    type_ = read_value_type(cursor)
    cursor.expect(",")
    address, pointer = values.typed(cursor)
    order = f"{atomic}{_order(cursor)}{_alignment(cursor)}"
    return f"llvm.load {volatile}{address}{order} : {spelled(pointer)} -> {spelled(type_)}"


def _store(cursor: Cursor, values: Values) -> str:
    atomic = " atomic" if cursor.accept("atomic") else ""
    volatile = "volatile " if cursor.accept("volatile") else ""
    value, type_ = values.typed(cursor)
    cursor.expect(",")
    address, pointer = values.typed(cursor)
    order = f"{atomic}{_order(cursor)}{_alignment(cursor)}"
    return f"llvm.store {volatile}{value}, {address}{order} : {spelled(type_)}, {spelled(pointer)}"


def _fence(cursor: Cursor, values: Values) -> str:
    return f"llvm.fence{_order(cursor)}"


def _update(cursor: Cursor, values: Values) -> str:
    volatile = "volatile " if cursor.accept("volatile") else ""
    kind = cursor.take()
    address, pointer = values.typed(cursor)
    cursor.expect(",")
    value, type_ = values.typed(cursor)
    order = f"{_order(cursor)}{_alignment(cursor)}"
    what = f"{volatile}{_KINDS.get(kind, kind)} {address}, {value}"
    return f"llvm.atomicrmw {what}{order} : {spelled(pointer)}, {spelled(type_)}"


def _exchange(cursor: Cursor, values: Values) -> str:
    words = ""
    while word := cursor.accept("weak", "volatile"):
        words += f"{word} "
    address, pointer = values.typed(cursor)
    cursor.expect(",")
    expected, type_ = values.typed(cursor)
    cursor.expect(",")
    new, _ = values.typed(cursor)
    order = f"{_order(cursor)}{_alignment(cursor)}"
    what = f"{words}{address}, {expected}, {new}"
    return f"llvm.cmpxchg {what}{order} : {spelled(pointer)}, {spelled(type_)}"


def _place(cursor: Cursor, values: Values) -> str:
    """``alloca``: a private array of constant size."""
    type_, count, space = read_value_type(cursor), values.integer(1), ""
    while cursor.accept(","):
        if cursor.accept("align"):
            cursor.number()
        elif cursor.accept("addrspace"):
            cursor.expect("(")
            space = f"<{cursor.number()}>"
            cursor.expect(")")
        else:
            bits = read_value_type(cursor)
            assert isinstance(bits, Int)
            count = values.integer(cursor.number(), 32)
    return f"llvm.alloca {count} x {spelled(type_)} : (i32) -> !llvm.ptr{space}"


def _element(cursor: Cursor, values: Values) -> str:
    vector, type_ = values.typed(cursor)
    cursor.expect(",")
    index, bits = values.typed(cursor)
    return f"llvm.extractelement {vector}[{index} : {spelled(bits)}] : {spelled(type_)}"


def _insert_element(cursor: Cursor, values: Values) -> str:
    vector, type_ = values.typed(cursor)
    cursor.expect(",")
    value, _ = values.typed(cursor)
    cursor.expect(",")
    index, bits = values.typed(cursor)
    return f"llvm.insertelement {value}, {vector}[{index} : {spelled(bits)}] : {spelled(type_)}"


def _shuffle(cursor: Cursor, values: Values) -> str:
    first, type_ = values.typed(cursor)
    cursor.expect(",")
    second, _ = values.typed(cursor)
    cursor.expect(",")
    picked = read_value_type(cursor)
    assert isinstance(picked, Vector)
    mask = [0] * picked.count
    if cursor.accept("poison", "undef"):
        mask = [-1] * picked.count
    elif cursor.accept("splat"):
        cursor.expect("(")
        read_value_type(cursor)
        mask = [cursor.number()] * picked.count
    elif cursor.accept("<"):
        for position in range(picked.count):
            read_value_type(cursor)
            mask[position] = -1 if cursor.accept("poison", "undef") else cursor.number()
            cursor.accept(",")
    elif not cursor.accept("zeroinitializer"):
        raise cursor.error("expected a mask of constants")
    return f"llvm.shufflevector {first}, {second} {mask} : {spelled(type_)}"


def _position(cursor: Cursor) -> str:
    found = []
    while cursor.ahead == "," and not cursor.after.startswith("!"):
        cursor.take()
        found.append(cursor.number())
    return str(found)


def _field(cursor: Cursor, values: Values) -> str:
    whole, type_ = values.typed(cursor)
    return f"llvm.extractvalue {whole}{_position(cursor)} : {spelled(type_)}"


def _insert_field(cursor: Cursor, values: Values) -> str:
    whole, type_ = values.typed(cursor)
    cursor.expect(",")
    value, _ = values.typed(cursor)
    return f"llvm.insertvalue {value}, {whole}{_position(cursor)} : {spelled(type_)}"


#: Instructions whose names are not followed by flags that say nothing to the simulator.
_VOLATILE = {"load", "store", "atomicrmw", "cmpxchg", "fence"}
_READERS: dict[str, Callable[[Cursor, Values], str]] = {
    "icmp": _compare("icmp"),
    "fcmp": _compare("fcmp"),
    "fneg": _one("fneg"),
    "freeze": _one("freeze"),
    "select": _select,
    "getelementptr": _address,
    "load": _load,
    "store": _store,
    "fence": _fence,
    "atomicrmw": _update,
    "cmpxchg": _exchange,
    "alloca": _place,
    "extractelement": _element,
    "insertelement": _insert_element,
    "shufflevector": _shuffle,
    "extractvalue": _field,
    "insertvalue": _insert_field,
    "call": call,
}
