"""Registers of PTX as values: which types they have, where they come from, what is made of them.

A kernel is gone through twice. The first time finds as what each register is read and written: one
that is a float wherever that matters is a float everywhere. The second time makes the ops. One
that is written in several places, or read where it may not have been written, is an argument of
the blocks that it lives into.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from polyblocks_nvgpu.ptx_reader.statements import Entry, Instruction

_WIDTHS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "f16": 16, "bf16": 16, "f32": 32,
           "f64": 64, "vector<2xf16>": 32, "vector<2xbf16>": 32, "vector<2xi16>": 32}  # fmt: skip
SPACES = {"global": 1, "shared": 3, "const": 4, "local": 5}
_ADDRESS = re.compile(r"^\[\s*([%\w$.]+)\s*(?:\+\s*(-?\d+))?\s*\]$")
_SPECIAL = re.compile(r"^%(?:(?:tid|ctaid|ntid|nctaid)\.[xyz]|laneid|warpid|nwarpid|lanemask_\w+)$")

Handler = Callable[["Emitter", Instruction], None]


def number_of(operand: str) -> int:
    """An integer as PTX writes it: ``-1``, ``0x3340U``."""
    return int(operand.rstrip("U"), 0)


def width_of(type_: str) -> int:
    """Bits of a type."""
    return _WIDTHS[type_]


class Emitter:
    """Makes the ops of one kernel.

    Attributes:
        lines: the ops of the block that is being made.
        constants: ops of the entry block.
    """

    def __init__(self, entry: Entry, symbols: dict[str, int]) -> None:
        self.entry = entry
        self.symbols = symbols
        self.lines: list[str] = []
        self.constants: list[str] = []
        self.place = ""
        self.collecting = True
        self._known: dict[str, str] = {}
        self._count = 0
        self._types: dict[str, set[str]] = {}
        self._written: dict[str, int] = {}
        self._used_first: list[set[str]] = []
        self._defined: list[set[str]] = []
        self._version: dict[str, str] = {}
        self.live: list[list[str]] = []

    # Registers.
    def width(self, register: str) -> int:
        """Bits of a register."""
        prefix = register if register in self.entry.widths else register.rstrip("0123456789")
        return self.entry.widths[prefix]

    def is_register(self, operand: str) -> bool:
        """Whether an operand is a register that instructions write."""
        if not operand.startswith("%"):
            return False
        return operand in self.entry.widths or operand.rstrip("0123456789") in self.entry.widths

    def kind(self, operand: str) -> str:
        """The type that a register is held in."""
        types = self._types.get(operand, set())
        if not self.collecting and len(types) == 1:
            return next(iter(types))
        return f"i{self.width(operand)}"

    def read(self, operand: str, type_: str) -> str:
        """The value of an operand as a type of its width."""
        if not self.is_register(operand):
            return self._immediate(operand, type_)
        if self.collecting:
            self._note_read(operand)
            self._types.setdefault(operand, set()).add(type_)
            return "%_"
        return self.cast(self._version[operand], self.kind(operand), type_)

    def read_plain(self, operand: str, type_: str) -> str:
        """As :meth:`read`, for an instruction that does not say what the bits mean."""
        if not self.collecting or not self.is_register(operand):
            return self.read(operand, type_)
        self._note_read(operand)
        return "%_"

    def _note_read(self, operand: str) -> None:
        if operand not in self._defined[-1]:
            self._used_first[-1].add(operand)

    def write(self, operand: str, value: str, type_: str) -> None:
        """Let a register hold a value."""
        if self.collecting and operand != "_":
            self._types.setdefault(operand, set()).add(type_)
        self.write_plain(operand, value, type_)

    def write_plain(self, operand: str, value: str, type_: str) -> None:
        """As :meth:`write`, for an instruction that does not say what the bits mean."""
        if operand == "_":
            return
        if self.collecting:
            self._defined[-1].add(operand)
            self._written[operand] = self._written.get(operand, 0) + 1
            return
        self._version[operand] = self.cast(value, type_, self.kind(operand))

    # Ops.
    def op(self, text: str) -> str:
        """The result of an op."""
        if self.collecting:
            return "%_"
        self._count += 1
        self.lines.append(f"%v{self._count} = {text}{self.place}")
        return f"%v{self._count}"

    def do(self, text: str) -> None:
        """An op without a result."""
        if not self.collecting:
            self.lines.append(f"{text}{self.place}")

    def cast(self, value: str, type_: str, to: str) -> str:
        """The same bits as another type; integers are cut off, or filled up with zeros."""
        if type_ == to or self.collecting:
            return value
        if width_of(type_) == width_of(to):
            return self.op(f"llvm.bitcast {value} : {type_} to {to}")
        narrow = f"i{width_of(type_)}"
        value = self.cast(value, type_, narrow)
        word = "trunc" if width_of(type_) > width_of(to) else "zext"
        value = self.op(f"llvm.{word} {value} : {narrow} to i{width_of(to)}")
        return self.cast(value, f"i{width_of(to)}", to)

    def call(self, name: str, values: Sequence[str], types: Sequence[str], result: str) -> str:
        """The result of an intrinsic; of one without (``()``) nothing."""
        signature = f"({', '.join(types)}) -> {result}"
        text = f'llvm.call_intrinsic "{name}"({", ".join(values)}) : {signature}'
        if result == "()":
            self.do(text)
            return ""
        return self.op(text)

    def constant(self, bits: int, type_: str) -> str:
        """A number by its bits."""
        width = width_of(type_)
        bits &= (1 << width) - 1
        if type_ == "i1":
            return self.once(f"llvm.mlir.constant({'true' if bits else 'false'}) : i1")
        if type_.startswith("vector"):
            whole = self.constant(bits, "i32")
            return self.once(f"llvm.bitcast {whole} : i32 to {type_}")
        text = f"0x{bits:0{width // 4}X}" if "f" in type_ else str(_signed(bits, width))
        return self.once(f"llvm.mlir.constant({text} : {type_}) : {type_}")

    def once(self, op: str) -> str:
        """The result of an op of the entry block, which is there once."""
        if self.collecting:
            return "%_"
        if op not in self._known:
            self._known[op] = f"%c{len(self._known)}"
            self.constants.append(f"{self._known[op]} = {op}")
        return self._known[op]

    def _immediate(self, operand: str, type_: str) -> str:
        if operand in self.symbols:
            return self.symbol(operand)
        if any(operand == name for name, *_ in self.entry.parameters):
            return self.once(f"llvm.ptrtoint %arg_{operand} : !llvm.ptr<1> to i64")
        if _SPECIAL.match(operand):
            name = operand[1:].replace("_", ".")
            intrinsic = f"llvm.nvvm.read.ptx.sreg.{name}"
            return self.cast(self.call(intrinsic, [], [], "i32"), "i32", type_)
        if operand.startswith(("0f", "0d", "0F", "0D")):
            return self.constant(int(operand[2:], 16), type_)
        return self.constant(number_of(operand), type_)

    def symbol(self, name: str) -> str:
        """The address of an array as a number of 64 bits."""
        space = self.symbols[name]
        if space == SPACES["local"]:
            return self.once(f"llvm.ptrtoint %array_{name} : !llvm.ptr<5> to i64")
        address = self.once(f'llvm.mlir.addressof @"{name}" : !llvm.ptr<{space}>')
        return self.once(f"llvm.ptrtoint {address} : !llvm.ptr<{space}> to i64")

    def address(self, operand: str, space: int, instruction: Instruction) -> str:
        """The pointer of ``[%rd1+4]``."""
        match = _ADDRESS.match(operand)
        if match is None:
            raise instruction.error(f"'{operand}' is no address that it knows")
        base, offset = match[1], int(match[2] or 0)
        value = self.read(base, f"i{self.width(base)}" if self.is_register(base) else "i64")
        if self.is_register(base):
            value = self.cast(value, f"i{self.width(base)}", "i64")
        if offset:
            value = self.op(f"llvm.add {value}, {self.constant(offset, 'i64')} : i64")
        return self.op(f"llvm.inttoptr {value} : i64 to {pointer(space)}")

    # Blocks.
    def begin_collecting(self) -> None:
        """A block begins, the first time."""
        self._used_first.append(set())
        self._defined.append(set())

    def finish_collecting(self, successors: list[list[int]]) -> None:
        """Find what lives into each block, of what must be an argument."""
        live: list[set[str]] = [set(used) for used in self._used_first]
        changed = True
        while changed:
            changed = False
            for at in reversed(range(len(live))):
                out: set[str] = set().union(*(live[s] for s in successors[at]))
                new = self._used_first[at] | (out - self._defined[at])
                changed |= new != live[at]
                live[at] = new
        many = {register for register, count in self._written.items() if count > 1} | live[0]
        self.live = [sorted(registers & many) for registers in live]
        self.collecting = False

    def begin(self, at: int) -> str:
        """A block begins; its arguments as MLIR writes them."""
        self.lines = []
        given = []
        for register in self.live[at]:
            self._count += 1
            self._version[register] = f"%v{self._count}"
            given.append(f"%v{self._count}: {self.kind(register)}")
        return f"({', '.join(given)})" if given else ""

    def target(self, at: int, first: bool = False) -> str:
        """A block to go to, with its arguments; ``first``: nothing has been written yet."""
        registers = self.live[at]
        types = [self.kind(register) for register in registers]
        values = [
            self.once(f"llvm.mlir.undef : {type_}") if first else self._version[register]
            for register, type_ in zip(registers, types, strict=True)
        ]
        given = f"({', '.join(values)} : {', '.join(types)})" if registers else ""
        return f"^bb{at}{given}"


def pointer(space: int) -> str:
    """The type of pointers to a memory."""
    return f"!llvm.ptr<{space}>" if space else "!llvm.ptr"


def _signed(bits: int, width: int) -> int:
    return bits - (1 << width) if bits >> (width - 1) else bits
