"""NVIDIA's machine code (SASS), from what ``nvdisasm -c -hex`` prints of a cubin.

Since Volta an instruction has 128 bits, of which the assembler's decisions are bits 105 to 125: the
cycles that the warp stalls (4 bits), a hint to yield, the counters to which results and read
operands are announced (3 bits each, 7 is none), and the counters that have to be zero before (6
bits). Source: Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking",
2018, chapter 2, whose layout later generations keep.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.gpu_static.instructions import Code, Instruction, Kind, Wait
from polyblocks_nvgpu.ptxas import places_of

WARP = 32
_FUNCTION = re.compile(r"^\s*\.type\s+(\S+),@function")
_LABEL = re.compile(r"^(\.?[\w$.]+):\s*$")
_FIRST = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;\s*/\* 0x([0-9a-f]{16}) \*/")
_SECOND = re.compile(r"^\s*/\* 0x([0-9a-f]{16}) \*/")
_TARGET = re.compile(r"`\((\.?[\w$.]+)\)")
_PREDICATE = re.compile(r"^@(!?U?P[T\d]+)\s+")
_SCOREBOARD = re.compile(r"\b(SB\d|gsb0)(?:,\s*0x([0-9a-f]+))?")
#: Shape of a matrix operation that four warps call, and the counter of the groups of these.
_TOGETHER = re.compile(r"(\d+)x(\d+)x(\d+)")
GROUP = "gsb0"
_REGISTER = re.compile(r"\bR\d+\b")
_NONE = 7
_CONTROL_BITS = (1 << 21) - 1
#: What a part of the cache that all share serves in a cycle (NVIDIA, "A100 Tensor Core GPU
#: Architecture", 2020), and the bytes of it that are there or not.
UNIT, SECTOR = 64, 32

#: Shape of a matrix operation by its suffix.
_SHAPES = {
    "16816": (16, 8, 16),
    "1688": (16, 8, 8),
    "884": (8, 8, 4),
    "16832": (16, 8, 32),
    "8816": (8, 8, 16),
}
_MATRIX = ("HMMA", "IMMA", "DMMA", "QMMA", "HGMMA", "IGMMA")
#: Those that several warps call -> bytes of an operand's number.
_GROUPS = {"HGMMA": 2, "IGMMA": 1}
#: Warps that call an operation together.
_WARPS = 4
#: What lies on the stack is in the first cache, which is the same memory.
_SHARED = ("LDS", "LDSM", "STS", "STSM", "ATOMS", "SHFL", "LDL", "STL")
_LOADS = ("LDG", "LD")
_STORES = ("STG", "ST", "RED", "ATOMG", "ATOM")
_MULTIPLIERS = ("FFMA", "FMUL", "FADD", "HFMA2", "HMUL2", "HADD2", "IMAD", "IDP", "DFMA", "DADD")
#: Multiply-adds of a lane.
_MULTIPLY_ADDS = {"FFMA": 1, "DFMA": 1, "HFMA2": 2, "IMAD": 1}
_SPECIAL = ("MUFU", "I2F", "F2I", "F2F", "I2I", "S2R", "POPC", "FLO", "FRND", "R2UR", "S2UR")
_SCALAR = ("UMOV", "ULDC", "LDC", "LDCU", "CS2R")
_CONTROL = (
    "BRA", "EXIT", "NOP", "BSSY", "BSYNC", "WARPSYNC", "DEPBAR", "LDGDEPBAR", "RET", "CALL", "BRX",
    "ERRBAR", "CCTL", "MEMBAR", "YIELD", "BREAK", "BMOV", "NANOSLEEP", "FENCE", "PREEXIT",
    "ACQBULK", "WARPGROUP", "SYNCS", "UTMALDG", "USETMAXREG", "ELECT",
)  # fmt: skip


def find() -> str:
    """The disassembler: of CUDA, or of the ``nvidia-cuda-nvdisasm`` wheel.

    Raises:
        LookupError: there is none; says what to install.
    """
    found = next((str(path) for path in _candidates() if path.is_file()), None)
    if found is None:
        raise LookupError(
            "no disassembler for NVIDIA's machine code: nvdisasm is neither on the PATH nor in an "
            "installed package; pip install nvidia-cuda-nvdisasm"
        )
    return found


def _candidates() -> Iterator[Path]:
    return places_of("nvdisasm", ("cu13", "cuda_nvdisasm"))


def disassemble(cubin: bytes) -> str:
    """The text of a cubin.

    Raises:
        LookupError: see :func:`find`.
        ValueError: the disassembler does not take it; holds what it says.
    """
    program = find()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernels.cubin"
        path.write_bytes(cubin)
        command = [program, "-c", "-hex", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise ValueError(f"{' '.join(command)} fails: {done.stderr.strip()}")
    return done.stdout


def parse(text: str) -> dict[str, Code]:
    """The kernels of a disassembly by name.

    Raises:
        ValueError: an operation is unknown; names it, so that it can be added to the lists here.
    """
    found: dict[str, Code] = {}
    name, instructions, labels = "", [], {}
    half: tuple[str, int] | None = None
    for line in text.splitlines():
        if match := _FUNCTION.match(line):
            name, instructions, labels = match[1], [], {}
        elif match := _FIRST.match(line):
            half = match[1], int(match[2], 16)
        elif half is not None and (match := _SECOND.match(line)):
            instructions.append(_instruction(half[0], int(match[1], 16)))
            half = None
            found[name] = Code(name, tuple(instructions), labels)
        elif match := _LABEL.match(line):
            labels[match[1]] = len(instructions)
    return found


def _instruction(text: str, high: int) -> Instruction:
    predicate = _PREDICATE.match(text)
    name, _, rest = _PREDICATE.sub("", text).partition(" ")
    base = name.split(".")[0]
    waits = base == "DEPBAR" or name.startswith("WARPGROUP.DEPBAR")
    board = _SCOREBOARD.search(rest) if waits else None
    target = _TARGET.search(rest) if base == "BRA" else None
    registers = _REGISTER.findall(rest)
    return instruction(
        name,
        high >> 41 & _CONTROL_BITS,
        # Sums that begin at zero have no register to begin with.
        addend=registers[-1] if registers and "RZ" not in rest.split(",")[-1] else "",
        sums=registers[0] if registers else "",
        group=Wait(board[1], int(board[2] or "0", 16)) if board else None,
        ends_group=base in _GROUPS and GROUP in rest,
        target=target[1] if target else "",
        active=predicate is None or predicate[1] not in ("!PT", "!UPT"),
    )


def instruction(
    name: str,
    control: int,
    *,
    addend: str = "",
    sums: str = "",
    group: Wait | None = None,
    ends_group: bool = False,
    target: str = "",
    active: bool = True,
    pieces: int = 0,
) -> Instruction:
    """An instruction by its name and the assembler's decisions.

    Args:
        name: with all suffixes.
        control: bits 105 to 125.
        addend, sums: see :class:`Instruction`; kept where it multiplies.
        group: copies, or products, that are waited for.
        ends_group: whether products that go on since the last one are a group.
        target: of a branch.
        active: whether its predicate may be true.
        pieces: of memory that a warp's access touches, where that is known: each takes a
            :data:`UNIT`, and two if a sector is written in part, which is read before.

    Raises:
        ValueError: the model does not know what the instruction does.
    """
    base = name.split(".")[0]
    # Where warps of their own start copies of boxes, these are no part of what others execute.
    kind = Kind.COPY if base == "UTMALDG" and pieces else _kind(base)
    shape, operands, accumulator = _matrix(name) if kind is Kind.MATRIX else (None, "", "")
    if shape is not None:
        products = shape[0] * shape[1] * shape[2]
    else:
        products = WARP * _MULTIPLY_ADDS.get(name if base == "IMAD" else base, 0)
    together = base in _GROUPS
    result, read = control >> 5 & 7, control >> 8 & 7
    signals = () if result == _NONE else (f"SB{result}",)
    waits = tuple(Wait(f"SB{n}") for n in range(6) if control >> 11 + n & 1)
    nbytes = _bytes(name, kind)
    in_part = kind is Kind.STORE and nbytes < pieces * SECTOR
    return Instruction(
        name,
        kind,
        bytes=_GROUPS[base] * _numbers_of_tiles(shape)
        if together and shape
        else max(nbytes, pieces * UNIT * (1 + in_part)),
        products=products,
        shape=shape,
        operands=operands,
        accumulator=accumulator,
        addend=addend if products else "",
        sums=sums if products else "",
        stall=max(control & 0xF, 1),
        waits=waits if group is None else (*waits, group),
        signals=(*signals, GROUP) if ends_group else signals,
        frees="" if read == _NONE else f"SB{read}",
        closes=base == "LDGDEPBAR" or name.startswith("SYNCS.PHASECHK"),
        target=target,
        active=active,
        asynchronous=together,
    )


def pieces(instruction: Instruction) -> int:
    """Pieces of memory that an instruction was said to touch; 0: none were."""
    kind = instruction.kind
    if kind not in (Kind.LOAD, Kind.STORE, Kind.COPY) or instruction.bytes == _bytes(
        instruction.name, kind
    ):
        return 0
    found = instruction.bytes // UNIT
    in_part = kind is Kind.STORE and _bytes(instruction.name, kind) < found // 2 * SECTOR
    return found // (1 + in_part)


def _numbers_of_tiles(shape: tuple[int, int, int]) -> int:
    """Read from shared memory, a warp's share: its rows of one operand, a part of the other one."""
    rows, columns, steps = shape
    return steps * (rows + columns // _WARPS)


def _kind(base: str) -> Kind:
    for names, kind in (
        (_MATRIX, Kind.MATRIX),
        (_SHARED, Kind.SHARED),
        (("LDGSTS",), Kind.COPY),
        (_LOADS, Kind.LOAD),
        (_STORES, Kind.STORE),
        (_CONTROL, Kind.CONTROL),
        (_SPECIAL, Kind.SPECIAL),
        (_SCALAR, Kind.SCALAR),
        (_MULTIPLIERS, Kind.FLOAT),
        (("BAR",), Kind.BARRIER),
    ):
        if base in names:
            return kind
    if base in ("QGMMA", "UTCHMMA", "UBLKCP"):
        raise ValueError(f"{base} runs asynchronously, which this model does not describe")
    return Kind.SCALAR if base.startswith("U") else Kind.INTEGER


def _matrix(name: str) -> tuple[tuple[int, int, int], str, str]:
    """Shape and dtypes, e.g. of ``HMMA.16816.F32.BF16``; without a type they are half ones."""
    base, *parts = name.split(".")
    shape = next((_SHAPES[p] for p in parts if p in _SHAPES), None)
    if base in _GROUPS and (match := _TOGETHER.search(name)) is not None:
        shape = int(match[1]) // _WARPS, int(match[2]), int(match[3])
    if shape is None:
        raise ValueError(f"{name}: a matrix instruction of an unknown shape")
    if base in ("IMMA", "IGMMA"):
        return shape, "int8", "int32"
    if base == "DMMA":
        return shape, "float64", "float64"
    if base == "QMMA":
        return shape, "float8_e4m3", "float32"
    operands = "bfloat16" if "BF16" in parts else "tfloat32" if "TF32" in parts else "float16"
    return shape, operands, "float32" if "F32" in parts else "float16"


def _bytes(name: str, kind: Kind) -> int:
    base, *parts = name.split(".")
    if kind not in (Kind.SHARED, Kind.LOAD, Kind.STORE, Kind.COPY):
        return 0
    if base in ("LDSM", "STSM"):
        # Tiles of 8 by 8 halves.
        return 128 * int(next((p for p in parts if p in ("2", "4")), "1"))
    sizes = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
    return WARP * next((sizes[p] for p in reversed(parts) if p in sizes), 4)
