"""``wgmma``: the matrix unit of 9.0 that four warps call, with operands in shared memory.

Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions": fragments of the accumulator,
matrix descriptors, and the canonical layouts with a swizzle of 128 bytes.

LLVM has no function for the instruction. Until PTX is written it is a call of a declared function,
whose name says all that is no operand: ``polyblocks.wgmma.m64n256k16.f32.f16.00``. The digits say
whether the rows of the first operand, and the columns of the second one, lie in panels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from polyblocks.target import Fragment, GroupUnit
from polyblocks.targets.gpu_description import UnitRate

#: Bytes of a line, and lines of a group of them.
LINE, LINES = 128, 8
#: The functions that the core calls, and those that they become.
CALL, WAIT = "llvm.polyblocks.wgmma", "llvm.polyblocks.wgmma.wait"
PREFIX = "polyblocks.wgmma."
#: Columns of the instruction's shapes that are used, rows, and steps.
COLUMNS, ROWS, STEPS = (256, 128, 64), 64, 16
#: dtype -> its name in PTX.
TYPES = {"float16": "f16", "bfloat16": "bf16"}

_FUNCTION = re.compile(r"polyblocks\.wgmma\.m64n(\d+)k16\.f32\.(\w+)\.([01])([01])")
_WAIT = re.compile(r"polyblocks\.wgmma\.wait\.(\d+)\.(\d+)")
#: A declaration, and a call, as LLVM writes them.
_DECLARED = re.compile(r"^declare .*@polyblocks\.wgmma\..*\n", re.MULTILINE)
_ASSEMBLY = re.compile(r'asm sideeffect "([^"]*wgmma\.[^"]*)", "([^"]*)"\(')
_CALLED = re.compile(r"(call [^@\n]*)@(?:llvm\.)?(polyblocks\.wgmma\.[\w.]+)\(")


def sums_of(columns: int) -> Fragment:
    """The accumulator's elements: each warp has 16 rows, as those of ``mma.sync``."""
    lanes = ((0, 2), (0, 4), (1, 0), (2, 0), (4, 0), (16, 0), (32, 0))
    blocks = tuple((0, 8 << bit) for bit in range((columns // 8).bit_length() - 1))
    return Fragment(lanes, ((0, 1), (8, 0), *blocks), "f32")


def units(rate: float) -> tuple[UnitRate, ...]:
    """The instructions with operands of 16 bits and sums of float32.

    Args:
        rate: multiply-adds per cycle of one multiprocessor.
    """
    return tuple(
        UnitRate(
            f"wgmma.m{ROWS}n{n}k{STEPS}",
            (ROWS, n, STEPS),
            dtype,
            "float32",
            rate,
            intrinsic=f"{CALL}.m{ROWS}n{n}k{STEPS}.f32.{name}",
            group=(
                ("group", 4),
                ("accumulator_fragment", sums_of(n)),
                ("line", LINE),
                ("by_columns", True),
                ("visible", "llvm.nvvm.fence.proxy.async.shared_cta"),
                ("begin", "llvm.nvvm.wgmma.fence.sync.aligned"),
                ("close", "llvm.nvvm.wgmma.commit_group.sync.aligned"),
                ("wait", WAIT),
            ),
        )
        for dtype, name in TYPES.items()
        for n in COLUMNS
    )


def function_of(intrinsic: str, panels: tuple[bool, bool]) -> str:
    """The name of the declared function of a call by the core."""
    digits = "".join(str(int(each)) for each in panels)
    return f"{intrinsic.removeprefix('llvm.')}.{digits}"


def wait_of(pending: int, registers: int) -> str:
    """The name of the declared function that waits."""
    return f"{PREFIX}wait.{pending}.{registers}"


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
    wait = re.search(r"wgmma\.wait_group\.sync\.aligned (\d+);", code)
    if wait is not None:
        return wait_of(int(wait[1]), constraints.count("=f"))
    called = re.search(r"\.(m64n\d+k16\.f32\.\w+)\.\w+ \{.*1, 1, ([01]), ([01]);", code)
    assert called is not None
    return f"{PREFIX}{called[1]}.{called[2]}{called[3]}"


def _assembly(function: str) -> str:
    """The instruction and the constraints of its operands."""
    if (wait := _WAIT.fullmatch(function)) is not None:
        count = int(wait[2])
        code = f"wgmma.wait_group.sync.aligned {wait[1]};"
        return f'"{code}", "{",".join([*_tied(count), "~{memory}"])}"'
    called = _FUNCTION.fullmatch(function)
    assert called is not None
    columns, dtype, *panels = called.groups()
    count = int(columns) // 2
    sums = ", ".join(f"${k}" for k in range(count))
    first, second = f"${2 * count}", f"${2 * count + 1}"
    code = (
        "{ .reg .pred p; setp.eq.b32 p, 0, 0; "
        f"wgmma.mma_async.sync.aligned.m{ROWS}n{columns}k{STEPS}.f32.{dtype}.{dtype} "
        f"{{{sums}}}, {first}, {second}, p, 1, 1, {', '.join(panels)}; }}"
    )
    return f'"{code}", "{",".join([*_tied(count), "l", "l", "~{memory}"])}"'


def _tied(count: int) -> Iterator[str]:
    """Constraints of registers that an instruction changes."""
    yield from ["=f"] * count
    yield from map(str, range(count))


def group_units(flops: float = 0.0) -> list[GroupUnit]:
    """The units as targets have them, for the simulator."""
    return [
        GroupUnit(
            *(u.name, u.shape, u.operands, u.accumulator, flops),
            intrinsic=u.intrinsic,
            **dict(u.group),
        )
        for u in units(0.0)
    ]
