"""Reads NumPy's arrays in machine code: their fields, whose places are part of NumPy's interface.

``PyArrayObject_fields`` of ``numpy/ndarraytypes.h``: the address at 16, the rank (32 bits) at 24,
the shape at 32, the strides at 40, the dtype at 56, the flags (32 bits) at 64.
"""

from __future__ import annotations

from polyblocks.codegen.array_layout import ArrayLayout, Word

#: Fields of the reader's state.
STATE = ("type",)

#: ``NPY_ARRAY_ALIGNED`` and ``NPY_ARRAY_WRITEABLE``.
ALIGNED, WRITEABLE = 0x100, 0x400

#: Arrays of larger rank are read.
_MAX_RANK = 8
LAYOUT = ArrayLayout(
    pointers=(Word(0, 32), Word(0, 40)),
    own=(Word(0, 16),),
    shared=(Word(0, 8), Word(0, 24), Word(0, 56), Word(0, 64)),
    of_rank=tuple(
        tuple(Word(part, 8 * k) for part in (1, 2) for k in range(rank))
        for rank in range(_MAX_RANK + 1)
    ),
)

TEXT = """
define internal i1 @allowed(ptr %state) #0 {
  ret i1 true
}

define internal i64 @threads(ptr %state) #0 {
  ret i64 0
}

define internal i1 @unmoved(ptr %state, ptr %array, ptr %row, ptr %address) #0 {
  %word = alloca ptr
  %good = call i1 @read(ptr %state, ptr %array, ptr %row, ptr %word)
  %data = load ptr, ptr %word
  %same = icmp eq ptr %data, %address
  %both = and i1 %good, %same
  ret i1 %both
}

define internal i1 @read(ptr %state, ptr %array, ptr %row, ptr %into) #0 {
start:
  LOAD NUMPY.type ptr %state -> %expected.type
  %type.at = getelementptr i8, ptr %array, i64 8
  %type = load ptr, ptr %type.at
  %known = icmp eq ptr %type, %expected.type
  br i1 %known, label %look, label %no
look:
  %data.at = getelementptr i8, ptr %array, i64 16
  %data = load ptr, ptr %data.at
  %rank.at = getelementptr i8, ptr %array, i64 24
  %rank.int = load i32, ptr %rank.at
  %rank = sext i32 %rank.int to i64
  %shape.at = getelementptr i8, ptr %array, i64 32
  %shape = load ptr, ptr %shape.at
  %strides.at = getelementptr i8, ptr %array, i64 40
  %strides = load ptr, ptr %strides.at
  %dtype.at = getelementptr i8, ptr %array, i64 56
  %dtype = load i64, ptr %dtype.at
  %flags.at = getelementptr i8, ptr %array, i64 64
  %flags = load i32, ptr %flags.at
  LOAD ROW.dtype i64 %row -> %expected.dtype
  LOAD ROW.flags i64 %row -> %row.flags
  %same.dtype = icmp eq i64 %dtype, %expected.dtype
  %written.bit = and i64 %row.flags, WRITTEN
  %written = icmp ne i64 %written.bit, 0
  %needed = select i1 %written, i32 ALIGNED_WRITEABLE, i32 ALIGNED
  %present = and i32 %flags, %needed
  %allowed = icmp eq i32 %present, %needed
  %good = and i1 %same.dtype, %allowed
  br i1 %good, label %compare, label %no
compare:
  store ptr %data, ptr %into
  %fits = call i1 @fits(ptr %row, i64 %rank, ptr %shape, ptr %strides, ptr %data)
  ret i1 %fits
no:
  ret i1 false
}
""".replace("ALIGNED_WRITEABLE", str(ALIGNED | WRITEABLE)).replace("ALIGNED", str(ALIGNED))
