"""Which elements the lanes of a warp have in the operands of ``mma.sync``.

Source: PTX ISA, "Matrix Fragments for mma.m16n8k8" and for m16n8k16, m8n8k16 and m16n8k32: lane
``4 g + t`` has rows ``g`` and ``g + 8`` of the first operand and of the accumulator, column ``g``
of the second one, and of steps (columns of the accumulator) neighbours from a multiple of ``t`` on.
Of .tf32 it has steps ``t`` and ``t + 4``. So in "Matrix Fragments for mma.m8n8k4 with .f64 floating
point type": row ``g`` and step ``t`` of the first operand.

"Matrix Fragments for mma.m8n8k4 with .f16 floating point type": four groups of lanes, ``4 p`` to
``4 p + 3`` and those 16 above, multiply 8 x 8 x 4 each. Here bit 0 of ``p`` is for which of two
blocks of rows, and bit 1 for which of two blocks of columns, so that they are one unit together.
"""

from __future__ import annotations

from polyblocks.target import Fragment, TileLoads

_GROUPS = ((1, 0), (2, 0), (4, 0))
_PAIRS = ((0, 2), (0, 4))
_ACCUMULATOR = Fragment((*_PAIRS, *_GROUPS), ((0, 1), (8, 0)), "f32")
#: ``ldmatrix``, by columns with ``.trans``.
TILE_LOADS = TileLoads(
    "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16",
    "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16",
    (*_PAIRS, *_GROUPS),
)
#: dtype -> type of a register of an operand.
_REGISTERS = {"float16": "vector<2xf16>", "bfloat16": "i32"}

#: Shape and dtype of the operands -> fragments of a unit that adds in 32 bits, and its function.
UNITS: dict[tuple[tuple[int, int, int], str], tuple[tuple[Fragment, Fragment, Fragment], str]] = {}

for _dtype, _name in (("float16", "f32.f32"), ("bfloat16", "bf16")):
    for _k, _rest in ((8, ()), (16, ((0, 8),))):
        _lanes = (*_PAIRS, *_GROUPS)
        UNITS[(16, 8, _k), _dtype] = (
            (
                Fragment(_lanes, ((0, 1), (8, 0), *_rest), _REGISTERS[_dtype]),
                Fragment(_lanes, ((0, 1), *_rest), _REGISTERS[_dtype]),
                _ACCUMULATOR,
            ),
            f"llvm.nvvm.mma.m16n8k{_k}.row.col.{_name}",
        )

_HIGH, _SAME = 4, (0, 0)
UNITS[(16, 16, 4), "float16"] = (
    (
        Fragment(((1, 0), (2, 0), (8, 0), _SAME, (_HIGH, 0)), ((0, 1), (0, 2)), "vector<2xf16>"),
        Fragment(((1, 0), (2, 0), _SAME, (8, 0), (_HIGH, 0)), ((0, 1), (0, 2)), "vector<2xf16>"),
        Fragment(((1, 0), (0, 2), (8, 0), (0, 8), (_HIGH, 0)), ((0, 1), (2, 0), (0, 4)), "f32"),
    ),
    "llvm.nvvm.mma.m8n8k4.row.col.f32.f32",
)

#: ``cvt.rna.tf32.f32``
TF32_ROUNDING = "llvm.nvvm.f2tf32.rna"
_ONES = ((0, 1), (0, 2))
UNITS[(16, 8, 8), "tfloat32"] = (
    (
        Fragment((*_ONES, *_GROUPS), ((8, 0), (0, 4)), "i32"),
        Fragment((*_ONES, *_GROUPS), ((0, 4),), "i32"),
        _ACCUMULATOR,
    ),
    "llvm.nvvm.mma.m16n8k8.row.col.tf32",
)

UNITS[(8, 8, 4), "float64"] = (
    (
        Fragment((*_ONES, *_GROUPS), (), "f64"),
        Fragment((*_ONES, *_GROUPS), (), "f64"),
        Fragment((*_PAIRS, *_GROUPS), ((0, 1),), "f64"),
    ),
    "llvm.nvvm.mma.m8n8k4.row.col.f64",
)

#: Pieces of four neighbouring steps of 8 bits.
_FOURS = ((0, 4), (0, 8))
_SUMS = Fragment((*_PAIRS, *_GROUPS), ((0, 1), (8, 0)), "i32")
UNITS[(16, 8, 32), "int8"] = (
    (
        Fragment((*_FOURS, *_GROUPS), ((0, 1), (0, 2), (8, 0), (0, 16)), "i32"),
        Fragment((*_FOURS, *_GROUPS), ((0, 1), (0, 2), (0, 16)), "i32"),
        _SUMS,
    ),
    "llvm.nvvm.mma.m16n8k32.row.col.s8",
)
UNITS[(8, 8, 16), "int8"] = (
    (
        Fragment((*_FOURS, *_GROUPS), ((0, 1), (0, 2)), "i32"),
        Fragment((*_FOURS, *_GROUPS), ((0, 1), (0, 2)), "i32"),
        Fragment((*_PAIRS, *_GROUPS), ((0, 1),), "i32"),
    ),
    "llvm.nvvm.mma.m8n8k16.row.col.s8",
)
