"""AMD's machine code, from the assembly that LLVM's code generator prints.

Results of memory are announced to counters, which return in order: loads, stores, and the local
data share and scalar loads (one counter up to gfx11, two from gfx12 on). Registers of the vector
and scalar units are looked after by the hardware. Source: AMD's RDNA 3 and RDNA 4 ISA guides,
"Data Dependency Resolution".
"""

from __future__ import annotations

import re

from bench.gpu_static.instructions import Code, Instruction, Kind, Wait

WARP = 32
_LABEL = re.compile(r"^(\.?[\w$.]+):")
_BEGIN = re.compile(r"^\s*\.type\s+(\S+),@function")
_END = re.compile(r"^\.Lfunc_end\d+:")
_REGISTERS = re.compile(r"\b([vs])(?:\[(\d+):(\d+)\]|(\d+)\b)|\b(vcc)(?:_lo|_hi)?\b|\b(scc)\b")
_COUNT = re.compile(r"(\w+cnt)\((\d+)\)")
_SHAPE = re.compile(r"v_s?wmma_(\w+?)_(\d+)x(\d+)x(\d+)_(\w+)")
_SIZE = re.compile(r"_(?:[biuf]|d16_[bui])?(8|16|32|64|96|128)(?:_|$)")

#: Counters to which a memory instruction is announced: that of gfx11, and that of gfx12.
_LOADED, _STORED = ("vmcnt", "loadcnt"), ("vscnt", "storecnt")
_LOCAL, _SCALAR_LOADED = ("lgkmcnt", "dscnt"), ("lgkmcnt", "kmcnt")
_SPECIAL = ("v_exp", "v_log", "v_rcp", "v_rsq", "v_sqrt", "v_sin", "v_cos")
_MULTIPLIERS = ("v_fma_", "v_fmac_", "v_pk_fma", "v_dual_fmac", "v_dual_fmaak", "v_dot")
_CONTROL = (
    "s_branch", "s_cbranch", "s_wait", "s_delay_alu", "s_clause", "s_nop", "s_endpgm", "s_sendmsg",
    "s_barrier_signal", "s_setprio", "s_sleep", "s_code_end", "s_set_inst_prefetch",
    "s_inst_prefetch", "buffer_gl", "global_inv", "global_wb", "s_icache", "s_sched",
)  # fmt: skip
_DTYPES = {
    "f32": "float32", "f16": "float16", "bf16": "bfloat16", "i32": "int32", "iu8": "int8",
    "fp8_fp8": "float8_e4m3", "bf8_bf8": "float8_e5m2",
}  # fmt: skip


def parse(text: str) -> dict[str, Code]:
    """The kernels of an assembly file by name.

    Raises:
        ValueError: a matrix instruction has types that are not known here.
    """
    found: dict[str, Code] = {}
    name, instructions, labels = "", [], {}
    for raw in text.splitlines():
        line = raw.split(";")[0].rstrip()
        if match := _BEGIN.match(line):
            name, instructions, labels = match[1], [], {}
        elif _END.match(line):
            found[name] = Code(name, tuple(instructions), labels)
            name = ""
        elif match := _LABEL.match(line):
            labels[match[1]] = len(instructions)
        elif name and line.startswith(("\t", " ")) and not line.lstrip().startswith("."):
            instructions.append(_instruction(line.strip()))
    return found


def _instruction(text: str) -> Instruction:
    name, _, rest = text.partition(" ")
    kind = _kind(name)
    operands = [_registers(part) for part in rest.split(",")]
    waits: tuple[Wait, ...] = ()
    if name.startswith("s_wait"):
        waits = _waits(name, rest)
        operands = []
    stores = kind is Kind.STORE or "_store" in name or kind in (Kind.CONTROL, Kind.BARRIER)
    writes = () if stores or not operands else operands[0]
    reads = tuple(r for part in operands[0 if stores else 1 :] for r in part)
    if name.startswith(("s_cmp", "v_cmpx")) or name.startswith("s_") and kind is Kind.SCALAR:
        writes = (*writes, "scc")
    if name.startswith("s_cbranch"):
        reads = (*reads, "scc")
    shape, factors, accumulator, products = None, "", "", 0
    if kind is Kind.MATRIX:
        shape, factors, accumulator = _matrix(name)
        products = shape[0] * shape[1] * shape[2]
    elif name.startswith(_MULTIPLIERS):
        products = WARP * (1 + text.count("::")) * (2 if "pk_" in name or "dot2" in name else 1)
    addend = operands[3] if kind is Kind.MATRIX and len(operands) > 3 else writes
    return Instruction(
        name,
        kind,
        bytes=_bytes(name, kind),
        products=products,
        shape=shape,
        operands=factors,
        accumulator=accumulator,
        addend=addend[0] if products and addend else "",
        sums=writes[0] if products and writes else "",
        waits=waits,
        signals=_signals(name, kind),
        reads=reads,
        writes=writes,
        target=rest.strip() if name.startswith(("s_branch", "s_cbranch")) else "",
    )


def _kind(name: str) -> Kind:
    if name.startswith(_CONTROL):
        return Kind.CONTROL
    if name.startswith("s_barrier"):
        return Kind.BARRIER
    if name.startswith("s_"):
        return Kind.SCALAR
    if "wmma" in name:
        return Kind.MATRIX
    if name.startswith("ds_"):
        return Kind.SHARED
    if name.startswith(("global_", "buffer_", "flat_", "scratch_")):
        return Kind.STORE if "_store" in name or "atomic" in name else Kind.LOAD
    if name.startswith(_SPECIAL):
        return Kind.SPECIAL
    if name.startswith(_MULTIPLIERS):
        return Kind.FLOAT
    return Kind.INTEGER


def _registers(text: str) -> tuple[str, ...]:
    found: list[str] = []
    for kind, first, last, single, carry, condition in _REGISTERS.findall(text):
        if first:
            found += [f"{kind}{n}" for n in range(int(first), int(last) + 1)]
        elif single:
            found.append(f"{kind}{single}")
        else:
            found.append(carry or condition)
    return tuple(found)


def _waits(name: str, rest: str) -> tuple[Wait, ...]:
    """Of ``s_waitcnt vmcnt(2) lgkmcnt(0)``, and of ``s_wait_loadcnt_dscnt 0x102`` and the like."""
    if name == "s_waitcnt":
        return tuple(Wait(counter, int(n)) for counter, n in _COUNT.findall(rest))
    if name == "s_waitcnt_vscnt":
        return (Wait("vscnt", int(rest.split(",")[-1], 0)),)
    counters = name.removeprefix("s_wait_").split("_")
    if not all(c.endswith("cnt") for c in counters):
        return ()
    number = int(rest, 0)
    values = [number] if len(counters) == 1 else [number >> 8, number & 0xFF]
    return tuple(Wait(c, n) for c, n in zip(counters, values, strict=True))


def _signals(name: str, kind: Kind) -> tuple[str, ...]:
    if kind is Kind.SHARED:
        return _LOCAL
    if kind is Kind.LOAD:
        return _LOADED
    if kind is Kind.STORE:
        return _STORED
    return _SCALAR_LOADED if name.startswith(("s_load", "s_buffer_load")) else ()


def _matrix(name: str) -> tuple[tuple[int, int, int], str, str]:
    match = _SHAPE.match(name)
    if match is None or match[1] not in _DTYPES or match[5] not in _DTYPES:
        raise ValueError(f"{name}: a matrix instruction of unknown types")
    return (int(match[2]), int(match[3]), int(match[4])), _DTYPES[match[5]], _DTYPES[match[1]]


def _bytes(name: str, kind: Kind) -> int:
    if kind not in (Kind.SHARED, Kind.LOAD, Kind.STORE):
        return 0
    size = _SIZE.search(name)
    bits = int(size[1]) if size else 32
    return WARP * bits // 8 * (2 if "2addr" in name else 1)
