"""The function that chooses machine code by the type of the first argument, in LLVM IR."""

from __future__ import annotations

from polyblocks.codegen.ir_text import expand
from polyblocks.codegen.native_call import SELF_OFFSET

#: The protocol of :data:`polyblocks.codegen.native_call.CALL`; calls one of several functions, by
#: the exact type of the first array.
DISPATCH = "polyblocks_dispatch"

#: Fields of the table of :data:`DISPATCH`.
DISPATCH_TABLE: tuple[str, ...] = (
    "slow",  # PyObject*, is called where no type fits
    "targets",  # {PyTypeObject *type, function, PyObject *self} of each
    "count",
    "PyObject_Vectorcall",
)

_TEXT = """
define ptr @DISPATCH(ptr %self, ptr %arguments, i64 %count, ptr %names) #0 {
start:
  %table.at = getelementptr i8, ptr %self, i64 SELF_OFFSET
  %table = load ptr, ptr %table.at
  %none = icmp eq i64 %count, 0
  br i1 %none, label %slow, label %look
look:
  %first = load ptr, ptr %arguments
  %type.at = getelementptr i8, ptr %first, i64 8
  %type = load ptr, ptr %type.at
  LOAD TABLE.targets ptr %table -> %targets
  LOAD TABLE.count i64 %table -> %known
  br label %next
next:
  %i = phi i64 [ 0, %look ], [ %i.next, %try ]
  %more = icmp ult i64 %i, %known
  br i1 %more, label %try, label %slow
try:
  %target = getelementptr { ptr, ptr, ptr }, ptr %targets, i64 %i
  %its.type = load ptr, ptr %target
  %i.next = add i64 %i, 1
  %fits = icmp eq ptr %type, %its.type
  br i1 %fits, label %enter, label %next
enter:
  %function.at = getelementptr { ptr, ptr, ptr }, ptr %targets, i64 %i, i32 1
  %function = load ptr, ptr %function.at
  %its.self.at = getelementptr { ptr, ptr, ptr }, ptr %targets, i64 %i, i32 2
  %its.self = load ptr, ptr %its.self.at
  %answer = tail call ptr %function(ptr %its.self, ptr %arguments, i64 %count, ptr %names)
  ret ptr %answer
slow:
  LOAD TABLE.slow ptr %table -> %fallback
  LOAD TABLE.PyObject_Vectorcall ptr %table -> %vectorcall
  %found = tail call ptr %vectorcall(ptr %fallback, ptr %arguments, i64 %count, ptr %names)
  ret ptr %found
}

attributes #0 = { nounwind "no-jump-tables"="true" "no-builtins" }
"""


def dispatch_text() -> str:
    """The LLVM IR of :data:`DISPATCH`."""
    return expand(
        _TEXT, {"DISPATCH": DISPATCH, "SELF_OFFSET": SELF_OFFSET}, {"TABLE": DISPATCH_TABLE}
    )
