"""Operands of LLVM IR as values of MLIR: names, and constants as ops of the entry block."""

from __future__ import annotations

from polyblocks.simt.llvm_ir.numbers import bits_of, spelled_number
from polyblocks.simt.llvm_ir.tokens import Cursor
from polyblocks.simt.llvm_ir.types import read_value_type, spelled
from polyblocks.simt.types import Float, Int, Struct, Type, Vector

#: Flags of instructions and of constant expressions; what they promise is not checked.
FLAGS = {
    "nuw", "nsw", "nusw", "exact", "disjoint", "nneg", "samesign", "inbounds", "fast", "nnan",
    "ninf", "nsz", "arcp", "contract", "afn", "reassoc",
}  # fmt: skip
CASTS = {
    "trunc", "zext", "sext", "fptrunc", "fpext", "fptoui", "fptosi", "uitofp", "sitofp", "ptrtoint",
    "inttoptr", "bitcast", "addrspacecast",
}  # fmt: skip
#: Others whose two operands and result have one type.
BINARY = {
    "add", "sub", "mul", "udiv", "sdiv", "urem", "srem", "shl", "lshr", "ashr", "and", "or", "xor",
    "fadd", "fsub", "fmul", "fdiv", "frem",
}  # fmt: skip
_ATTRIBUTES = {
    "align", "byref", "byval", "captures", "dead_on_return", "dead_on_unwind", "dereferenceable",
    "dereferenceable_or_null", "immarg", "initializes", "inreg", "noalias", "nocapture", "nofree",
    "nofpclass", "nonnull", "noundef", "range", "readnone", "readonly", "returned", "signext",
    "sret", "writable", "writeonly", "zeroext",
}  # fmt: skip
#: Constant indices of address arithmetic are 32 bits wide in MLIR, and the least one has a meaning.
_INDEX = range(-(2**31) + 1, 2**31)

Operand = tuple[str, Type]


class Values:
    """The values of one function.

    Attributes:
        constants: ops that make its constants, in order.
    """

    def __init__(self) -> None:
        self.constants: list[str] = []
        self._names: dict[str, str] = {}
        self._known: dict[str, str] = {}
        #: Constant -> how MLIR writes its number.
        self._numbers: dict[str, str] = {}

    def name(self, name: str) -> str:
        """MLIR's name of a local value."""
        return self._names.setdefault(name, f"%v{len(self._names)}")

    def typed(self, cursor: Cursor) -> Operand:
        """The operand with its type before it."""
        type_ = read_value_type(cursor)
        skip_attributes(cursor)
        return self.operand(cursor, type_), type_

    def operand(self, cursor: Cursor, type_: Type) -> str:
        """The operand of a known type.

        Raises:
            UnsupportedError: a constant that the reader does not know.
        """
        token = cursor.ahead
        if token.startswith("%"):
            return self.name(cursor.take())
        if token.startswith("@"):
            cursor.take()
            return self._make(f"llvm.mlir.addressof {symbol(token)} : {spelled(type_)}")
        if token in ("undef", "poison", "zeroinitializer", "null", "none"):
            cursor.take()
            return self.undefined(type_, zero=token not in ("undef", "poison"))
        bits = bits_of(token, type_)
        if bits is not None:
            cursor.take()
            return self._number(bits, type_)
        if token == "splat":
            cursor.take()
            cursor.expect("(")
            element = self.typed(cursor)[0]
            cursor.expect(")")
            assert isinstance(type_, Vector)
            return self._vector([element] * type_.count, type_)
        if token in ("<", "[", "{"):
            return self._aggregate(cursor, type_)
        if token == "getelementptr":
            cursor.take()
            while cursor.accept(*FLAGS) or cursor.ahead == "inrange":
                if cursor.accept("inrange"):
                    cursor.skip_group()
            cursor.expect("(")
            op = self.address(cursor)
            cursor.expect(")")
            return self._make(op)
        if token in CASTS or token in BINARY:
            return self._expression(cursor)
        raise cursor.error(f"'{token}' is no constant that it knows")

    def _expression(self, cursor: Cursor) -> str:
        """A constant that is the result of an instruction."""
        name = cursor.take()
        while cursor.accept(*FLAGS):
            pass
        cursor.expect("(")
        first, type_ = self.typed(cursor)
        if name in CASTS:
            cursor.expect("to")
            to = spelled(read_value_type(cursor))
            op = f"llvm.{name} {first} : {spelled(type_)} to {to}"
        else:
            cursor.expect(",")
            op = f"llvm.{name} {first}, {self.typed(cursor)[0]} : {spelled(type_)}"
        cursor.expect(")")
        return self._make(op)

    def address(self, cursor: Cursor) -> str:
        """The op of a ``getelementptr``, from its element type on.

        Raises:
            UnsupportedError: vectors of addresses.
        """
        element = read_value_type(cursor)
        cursor.expect(",")
        base, pointer = self.typed(cursor)
        indices, given = [], [spelled(pointer)]
        while cursor.ahead == "," and not cursor.after.startswith("!"):
            cursor.take()
            type_ = read_value_type(cursor)
            text = cursor.ahead
            if text.lstrip("-").isdigit() and int(text) in _INDEX:
                indices.append(cursor.take())
                continue
            indices.append(self.operand(cursor, type_))
            given.append(spelled(type_))
            if isinstance(type_, Vector):
                raise cursor.error("a vector of addresses")
        types = f"({', '.join(given)}) -> {spelled(pointer)}, {spelled(element)}"
        return f"llvm.getelementptr {base}[{', '.join(indices)}] : {types}"

    def undefined(self, type_: Type, zero: bool = False) -> str:
        """An undefined value, or zeros."""
        made = self._make(f"llvm.mlir.{'zero' if zero else 'undef'} : {spelled(type_)}")
        if isinstance(type_, (Int, Float)):
            self._numbers[made] = spelled_number(0, type_)
        return made

    def integer(self, number: int, bits: int = 32) -> str:
        """A constant of ``bits`` bits."""
        return self._number(number & ((1 << bits) - 1), Int(bits))

    def _aggregate(self, cursor: Cursor, type_: Type) -> str:
        """``<…>``, ``[…]`` or ``{…}`` of constants."""
        opened = cursor.take()
        packed = opened == "<" and isinstance(type_, Struct) and bool(cursor.accept("{"))
        elements = []
        while cursor.ahead not in (">", "]", "}"):
            elements.append(self.typed(cursor)[0])
            cursor.accept(",")
        cursor.take()
        if packed:
            cursor.expect(">")
        if isinstance(type_, Vector):
            return self._vector(elements, type_)
        whole = self.undefined(type_)
        for index, element in enumerate(elements):
            whole = self._make(f"llvm.insertvalue {element}, {whole}[{index}] : {spelled(type_)}")
        return whole

    def _vector(self, elements: list[str], type_: Vector) -> str:
        """Numbers as one constant, addresses one after the other."""
        numbers = [self._numbers[e] for e in elements if e in self._numbers]
        if len(numbers) == len(elements):
            typed = f"dense<[{', '.join(numbers)}]> : {spelled(type_)}"
            return self._make(f"llvm.mlir.constant({typed}) : {spelled(type_)}")
        whole = self.undefined(type_)
        for index, element in enumerate(elements):
            at = self.integer(index)
            whole = self._make(
                f"llvm.insertelement {element}, {whole}[{at} : i32] : {spelled(type_)}"
            )
        return whole

    def _number(self, bits: int, type_: Type) -> str:
        text = spelled_number(bits, type_)
        typed = text if type_ == Int(1) else f"{text} : {spelled(type_)}"
        made = self._make(f"llvm.mlir.constant({typed}) : {spelled(type_)}")
        self._numbers[made] = text
        return made

    def _make(self, op: str) -> str:
        """The result of a constant op, which is there once."""
        if op not in self._known:
            self._known[op] = f"%c{len(self._known)}"
            self.constants.append(f"{self._known[op]} = {op}")
        return self._known[op]


def symbol(token: str) -> str:
    """A symbol as MLIR writes it."""
    return token if token.startswith('@"') else f'@"{token[1:]}"'


def skip_attributes(cursor: Cursor) -> None:
    """Pass the attributes of an operand: ``noundef``, ``align 4``, ``range(i32 0, 8)``, ``"x"``."""
    while cursor.ahead in _ATTRIBUTES or cursor.ahead.startswith('"'):
        word = cursor.take()
        if cursor.ahead == "(":
            cursor.skip_group()
        elif word == "align":
            cursor.number()
