"""``wgmma``: the matrix unit of 9.0 that four warps call, with operands in shared memory.

Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions": fragments of the accumulator,
matrix descriptors, and the canonical layouts with a swizzle of 128 bytes.

LLVM has no function for the instruction. MLIR calls a declared one whose name says all that is no
operand: ``polyblocks.wgmma.m64n256k16.f32.f16.00``; the digits say whether the rows of the first
operand, and the columns of the second one, lie in panels; ``r`` in place of the first one that the
first operand is in registers, and ``.new`` that there are no sums yet. LLVM optimizes inline
assembly, which is a call again where the simulator reads the result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from polyblocks.target import Fragment
from polyblocks.targets.gpu_description import UnitRate

#: Bytes of a line, and lines of a group of them.
LINE, LINES = 128, 8
#: The functions that the core calls, and those that they become.
CALL, WAIT = "llvm.polyblocks.wgmma", "llvm.polyblocks.wgmma.wait"
WITH_REGISTERS = "llvm.polyblocks.wgmma.registers"
PREFIX = "polyblocks.wgmma."
#: Columns of the instruction's shapes that are used, and rows.
COLUMNS, ROWS = (256, 128, 64), 64
#: Registers of a first operand; of 16 bits.
OPERAND = 4
#: The predicate of a call that has no sums yet, and how its function's name ends.
NEW = "new"
#: How names end of calls in PTX, where waits name no registers: these have their sums at once.
AT_ONCE = ".at_once"


@dataclass(frozen=True)
class Kind:
    """An instruction by its operands.

    Attributes:
        name: of the operands' type in PTX.
        sums: of the accumulator's.
        accumulator, register: its dtype, and the type of its registers.
        steps: of a call.
        rate: times that of operands of 16 bits.
        by_columns: whether operands may lie in panels; it says so for each of them.
    """

    name: str
    sums: str
    accumulator: str
    register: str
    steps: int
    rate: int
    by_columns: bool


#: dtype of the operands -> the instruction.
KINDS = {
    "float16": Kind("f16", "f32", "float32", "f32", 16, 1, True),
    "bfloat16": Kind("bf16", "f32", "float32", "f32", 16, 1, True),
    "int8": Kind("s8", "s32", "int32", "i32", 32, 2, False),
}
_BY_NAME = {kind.name: kind for kind in KINDS.values()}

_FUNCTION = re.compile(r"polyblocks\.wgmma\.m64n(\d+)k\d+\.\w+\.(\w+)\.([01r])([01])(\.new)?")
_WAIT = re.compile(r"polyblocks\.wgmma\.wait\.(\d+)\.(\w+?)\.(\d+)")
#: A declaration, and a call, as LLVM writes them.
_DECLARED = re.compile(r"^declare .*@polyblocks\.wgmma\..*\n", re.MULTILINE)
_ASSEMBLY = re.compile(r'asm sideeffect "([^"]*wgmma\.[^"]*)", "([^"]*)"\(')
#: Instructions by their assembly.
_WAIT_CODE = re.compile(r"wgmma\.wait_group\.sync\.aligned (\d+);")
_CODE = re.compile(
    r"\.(m64n\d+k\d+\.\w+\.\w+)\.\w+ \{[^{}]*\}, (\{?).*, (p|new)(?:, 1, 1, ([01, ]+))?; \}"
)
_CALLED = re.compile(r"(call [^@\n]*)@(?:llvm\.)?(polyblocks\.wgmma\.[\w.]+)\(")


def sums_of(columns: int, register: str) -> Fragment:
    """The accumulator's elements: each warp has 16 rows, as those of ``mma.sync``."""
    lanes = ((0, 2), (0, 4), (1, 0), (2, 0), (4, 0), (16, 0), (32, 0))
    blocks = tuple((0, 8 << bit) for bit in range((columns // 8).bit_length() - 1))
    return Fragment(lanes, ((0, 1), (8, 0), *blocks), register)


#: The first operand's elements: as those of ``mma.sync``, of 16 rows for each warp.
_OPERAND = Fragment(
    ((0, 2), (0, 4), (1, 0), (2, 0), (4, 0), (16, 0), (32, 0)), ((0, 1), (8, 0), (0, 8)), "i32"
)


def units(rate: float) -> tuple[UnitRate, ...]:
    """The instructions that code is generated for.

    Args:
        rate: multiply-adds per cycle of one multiprocessor, of operands of 16 bits.
    """
    return tuple(
        UnitRate(
            f"wgmma.m{ROWS}n{n}k{kind.steps}",
            (ROWS, n, kind.steps),
            dtype,
            kind.accumulator,
            rate * kind.rate,
            intrinsic=f"{CALL}.m{ROWS}n{n}k{kind.steps}.{kind.sums}.{kind.name}",
            group=(
                ("group", 4),
                ("accumulator_fragment", sums_of(n, kind.register)),
                ("line", LINE),
                ("by_columns", kind.by_columns),
                ("visible", "llvm.nvvm.fence.proxy.async.shared_cta"),
                ("begin", "llvm.nvvm.wgmma.fence.sync.aligned"),
                ("close", "llvm.nvvm.wgmma.commit_group.sync.aligned"),
                ("wait", WAIT),
                *_with_registers(n, kind),
            ),
        )
        for dtype, kind in KINDS.items()
        for n in COLUMNS
    )


def _with_registers(columns: int, kind: Kind) -> tuple[tuple[str, object], ...]:
    """Attributes of a unit whose first operand may be in registers."""
    if not kind.by_columns:
        return ()
    name = f"{WITH_REGISTERS}.m{ROWS}n{columns}k{kind.steps}.{kind.sums}.{kind.name}"
    return ("operand_fragment", _OPERAND), ("with_registers", name)


def function_of(intrinsic: str, panels: tuple[bool | None, bool], new: bool = False) -> str:
    """The name of the declared function of a call by the core.

    Args:
        intrinsic: of the unit.
        panels: whether each operand is in panels; None: the first one is in registers.
        new: whether there are no sums yet.
    """
    digits = "".join("r" if each is None else str(int(each)) for each in panels)
    name = intrinsic.replace(f"{WITH_REGISTERS}.", f"{CALL}.").removeprefix("llvm.")
    return f"{name}.{digits}{f'.{NEW}' if new else ''}"


def wait_of(pending: int, type_: str, registers: int) -> str:
    """The name of the declared function that waits, with registers of a type (``f32``)."""
    return f"{PREFIX}wait.{pending}.{type_}.{registers}"


def descriptor_bits(leading: int, stride: int) -> int:
    """A descriptor but for its address: offsets in bytes, and the swizzle of 128 bytes."""
    return 1 << 62 | stride >> 4 << 32 | leading >> 4 << 16


#: Bits of an address that a descriptor has, and how far they are shifted.
ADDRESS_BITS, SHIFT = 0x3FFFF, 4


def as_assembly(text: str) -> str:
    """LLVM IR whose calls of declared functions are inline assembly."""
    if PREFIX not in text:
        return text
    text = _DECLARED.sub("", text)
    return _CALLED.sub(lambda m: f"{m[1]}asm sideeffect {_assembly(m[2])}(", text)


def as_functions(text: str) -> str:
    """LLVM IR with calls of functions as if LLVM had them, for inline assembly."""
    return _ASSEMBLY.sub(lambda m: f"@llvm.{_function(m[1], m[2])}(", text)


def _function(code: str, constraints: str) -> str:
    """The declared function of an instruction; its operands are the same."""
    if (wait := _WAIT_CODE.search(code)) is not None:
        type_ = "i32" if constraints.startswith("=r") else "f32"
        return wait_of(int(wait[1]), type_, len(re.findall("=[rf]", constraints)))
    called = _CODE.search(code)
    assert called is not None
    unit, braces, predicate, panels = called.groups()
    digits = (panels or "0, 0").split(", ")
    first = "r" if braces else digits[0]
    return f"{PREFIX}{unit}.{first}{digits[-1]}{f'.{NEW}' if predicate == NEW else ''}"


def _assembly(function: str) -> str:
    """The instruction and the constraints of its operands."""
    if (wait := _WAIT.fullmatch(function)) is not None:
        count = int(wait[3])
        code = f"wgmma.wait_group.sync.aligned {wait[1]};"
        return f'"{code}", "{",".join([*_tied(count, wait[2]), "~{memory}"])}"'
    called = _FUNCTION.fullmatch(function)
    assert called is not None
    columns, dtype, *panels, new = called.groups()
    kind, count = _BY_NAME[dtype], int(columns) // 2
    sums = ", ".join(f"${k}" for k in range(count))
    operands = range(count if new else 2 * count, 1 << 16)
    inputs = ["r"] * OPERAND if panels[0] == "r" else ["l"]
    *given, second = (f"${n}" for n, _ in zip(operands, [*inputs, "l"], strict=False))
    first = f"{{{', '.join(given)}}}" if panels[0] == "r" else given[0]
    # Operands are multiplied by 1; those of 8 bits are not, and their steps follow each other.
    rest = f", 1, 1, {', '.join(p for p in panels if p != 'r')}" if kind.by_columns else ""
    adds, test = (NEW, "ne") if new else ("p", "eq")
    code = (
        f"{{ .reg .pred {adds}; setp.{test}.b32 {adds}, 0, 0; "
        f"wgmma.mma_async.sync.aligned.m{ROWS}n{columns}k{kind.steps}.{kind.sums}.{dtype}.{dtype} "
        f"{{{sums}}}, {first}, {second}, {adds}{rest}; }}"
    )
    changed = _tied(count, kind.register)
    constraints = [*(islice(changed, count) if new else changed), *inputs, "l", "~{memory}"]
    return f'"{code}", "{",".join(constraints)}"'


def _tied(count: int, type_: str) -> Iterator[str]:
    """Constraints of registers that an instruction changes."""
    yield from ["=r" if type_ == "i32" else "=f"] * count
    yield from map(str, range(count))
