"""A call of a loaded program in machine code, in LLVM IR: arrays are checked, results are made.

One text serves all programs whose arrays a frontend reads in the same way; a table holds what is of
one program. All that the code calls is in the table too: it needs no relocation, so what was
compiled once is put into memory as it is.

The code takes only what is exactly as the program expects. Everything else goes to a Python
function, ``slow`` of the table, which takes it or says what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from polyblocks.codegen.ir_text import expand

#: ``PyObject *call(PyObject *self, PyObject *const *arrays, Py_ssize_t count, PyObject *names)``,
#: a function of Python's protocol ``METH_FASTCALL | METH_KEYWORDS``. The word of ``self`` at
#: :data:`SELF_OFFSET` is the address of the table.
CALL = "polyblocks_call"
#: ``i32 unmoved(ptr state, ptr arrays, ptr rows, ptr addresses, i64 count)``: whether all these
#: arrays, which were read before, still lie as they did.
UNMOVED = "polyblocks_unmoved"
#: Where an object of ctypes has the address of its memory.
SELF_OFFSET = 16

#: Fields of the table, 8 bytes each.
TABLE: tuple[str, ...] = (
    "slow",  # PyObject*, is called with the same arguments
    "failed",  # PyObject*, is called with the status of a failed run, and raises
    "state",  # of the reader
    "rows",  # ROW of each input, then of each result that is made
    "passed",  # how many inputs the caller passes
    "inputs",  # how many there are: those that are passed, then those that are bound
    "bound",  # PyObject* of each bound input
    "bound_written",  # whether some of these are updated
    "reading",  # PyObject** of what bound inputs were read with, a BOUND at SELF_OFFSET; or null
    "fresh",  # results that are made
    "makers",  # {PyObject *function, PyObject *arguments} of each
    "slots",  # SLOT of each: first those that change with each call
    "slot_count",
    "changing_count",
    "pointer_count",  # of the entry's arguments
    "pointers",  # memory for them, which one call at a time may use
    "busy",  # 1: one does
    "filled",  # the number of the reading that it was filled from; 0: it has not been filled
    "stream",  # {PyObject *function, PyObject *arguments} of the current stream; or null
    "instead",  # PyObject*, is called with the address of the entry's arguments, its status, and
    # how often it is still to be run: makes up for a run that was not done, or raises; or null
    "results",  # the number of each result among inputs and fresh results
    "result_count",
    "in_tuple",  # whether a single result, or none, comes in a tuple like several
    "order",  # int64 of each input: numbers of inputs, sorted by address at the last call
    "written",  # how many inputs are updated
    "updated",  # int64 of each: its number
    "updating",  # PyObject*, is called with them before that; or null
    "entry",  # int32 (void **pointers, int32 threads)
    "iterations",  # how often the program is run per call
    "threads",  # of a call; 0: as the framework is set, else the default
    "thread_limits",  # int64 of available CPUs and of the default; 0: not known
    "workspace_bytes",
    "pool",  # see workspace_pool
    "acquire",
    "release",
    "poison",  # whether workspaces are filled with a pattern
    "none",  # PyObject*
    # Functions of Python and of C.
    "PyObject_Call",
    "PyObject_Vectorcall",
    "Py_IncRef",
    "Py_DecRef",
    "PyTuple_New",
    "PyTuple_SetItem",
    "PyLong_FromLong",
    "PyLong_FromVoidPtr",
    "PyLong_AsVoidPtr",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
    "memset",
)

#: Where bound inputs are, 8 bytes each.
BOUND: tuple[str, ...] = (
    "number",  # of this reading, which no other has; not 0
    "addresses",  # of each, when it was last read
    "watched",  # whether what follows tells if they are still there; else they are read again
    "guard",  # see array_guards; null: of none
    "groups",
    "group_count",
    "group_rows",
    "unmoved",  # UNMOVED of their reader, for those without a guard; null: of none
    "state",  # of that reader
    "arrays",  # these and the rest are its arguments
    "rows",
    "array_addresses",
    "array_count",
)

#: The expected properties of an array, 8 bytes each. ``mask``: address bits that must be 0.
#: ``nbytes``: bytes of the memory that the array spans.
ROW: tuple[str, ...] = ("dtype", "rank", "shape", "strides", "mask", "nbytes", "flags")
#: Flags of a row.
WRITTEN, EMPTY, COMPLEX = 1, 2, 4

#: Arguments of the entry that follow each other, 8 bytes each. ``place``: the number of the first.
SLOT: tuple[str, ...] = ("kind", "value", "count", "place")
#: Kinds of a slot. The value is the number of an array (inputs, then fresh results), an address,
#: a byte of the workspace, or the number of a bound input, which others may follow; of a status
#: word and of the stream there is one.
ARRAY, FIXED, WORKSPACE, STATUS, HELD, STREAM = 0, 1, 2, 3, 4, 5
#: Those that stay as they are until bound inputs are read anew.
LASTING = (FIXED, HELD)

_CALL_TEXT = """
; Whether an array lies as its row says. Strides of extents of 1 never matter.
define internal i1 @fits(ptr %row, i64 %rank, ptr %shape, ptr %strides, ptr %data) #0 {
start:
  LOAD ROW.rank i64 %row -> %expected.rank
  %same.rank = icmp eq i64 %rank, %expected.rank
  br i1 %same.rank, label %begin, label %no
begin:
  LOAD ROW.shape ptr %row -> %expected.shape
  LOAD ROW.strides ptr %row -> %expected.strides
  LOAD ROW.flags i64 %row -> %flags
  LOAD ROW.mask i64 %row -> %mask
  %empty.bit = and i64 %flags, EMPTY
  %empty = icmp ne i64 %empty.bit, 0
  br label %dimension
dimension:
  %d = phi i64 [ 0, %begin ], [ %d.next, %next ]
  %more = icmp ult i64 %d, %rank
  br i1 %more, label %extent, label %address
extent:
  %a.at = getelementptr i64, ptr %shape, i64 %d
  %a = load i64, ptr %a.at
  %b.at = getelementptr i64, ptr %expected.shape, i64 %d
  %b = load i64, ptr %b.at
  %same.extent = icmp eq i64 %a, %b
  br i1 %same.extent, label %stride, label %no
stride:
  %s.at = getelementptr i64, ptr %strides, i64 %d
  %s = load i64, ptr %s.at
  %t.at = getelementptr i64, ptr %expected.strides, i64 %d
  %t = load i64, ptr %t.at
  %same.stride = icmp eq i64 %s, %t
  %unit = icmp eq i64 %a, 1
  %unused = or i1 %unit, %empty
  %fine = or i1 %same.stride, %unused
  br i1 %fine, label %next, label %no
next:
  %d.next = add i64 %d, 1
  br label %dimension
address:
  %number = ptrtoint ptr %data to i64
  %odd = and i64 %number, %mask
  %aligned = icmp eq i64 %odd, 0
  %there = icmp ne ptr %data, null
  %usable = and i1 %aligned, %there
  %good = or i1 %usable, %empty
  ret i1 %good
no:
  ret i1 false
}

; Whether an input that is updated shares memory with another one. The order of the addresses is
; mostly that of the last call, so sorting takes one look at each.
define internal i1 @overlap(ptr %addresses, ptr %rows, i64 %count, ptr %order) #0 {
start:
  br label %insert
insert:
  %i = phi i64 [ 1, %start ], [ %i.next, %placed ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %take, label %scan
take:
  %key.at = getelementptr i64, ptr %order, i64 %i
  %key = load i64, ptr %key.at
  %key.address.at = getelementptr i64, ptr %addresses, i64 %key
  %key.address = load i64, ptr %key.address.at
  br label %shift
shift:
  %j = phi i64 [ %i, %take ], [ %before, %move ]
  %first = icmp eq i64 %j, 0
  br i1 %first, label %placed, label %compare
compare:
  %before = sub i64 %j, 1
  %other.at = getelementptr i64, ptr %order, i64 %before
  %other = load i64, ptr %other.at
  %other.address.at = getelementptr i64, ptr %addresses, i64 %other
  %other.address = load i64, ptr %other.address.at
  %later = icmp ugt i64 %other.address, %key.address
  br i1 %later, label %move, label %placed
move:
  %j.at = getelementptr i64, ptr %order, i64 %j
  store i64 %other, ptr %j.at
  br label %shift
placed:
  %place.at = getelementptr i64, ptr %order, i64 %j
  store i64 %key, ptr %place.at
  %i.next = add i64 %i, 1
  br label %insert
scan:
  %k = phi i64 [ 0, %insert ], [ %k.next, %apart ]
  %end = phi i64 [ 0, %insert ], [ %end.next, %apart ]
  %end.written = phi i64 [ 0, %insert ], [ %end.written.next, %apart ]
  %left = icmp ult i64 %k, %count
  br i1 %left, label %look, label %no
look:
  %n.at = getelementptr i64, ptr %order, i64 %k
  %n = load i64, ptr %n.at
  %low.at = getelementptr i64, ptr %addresses, i64 %n
  %low = load i64, ptr %low.at
  %row = getelementptr %row, ptr %rows, i64 %n
  LOAD ROW.nbytes i64 %row -> %nbytes
  LOAD ROW.flags i64 %row -> %flags
  %high = add i64 %low, %nbytes
  %written.bit = and i64 %flags, WRITTEN
  %written = icmp ne i64 %written.bit, 0
  %limit = select i1 %written, i64 %end, i64 %end.written
  %shared = icmp ult i64 %low, %limit
  br i1 %shared, label %yes, label %apart
apart:
  %larger = icmp ugt i64 %high, %end
  %end.next = select i1 %larger, i64 %high, i64 %end
  %larger.written = icmp ugt i64 %high, %end.written
  %raise = and i1 %larger.written, %written
  %end.written.next = select i1 %raise, i64 %high, i64 %end.written
  %k.next = add i64 %k, 1
  br label %scan
yes:
  ret i1 true
no:
  ret i1 false
}

; Give up the results that have been made.
define internal void @drop(ptr %table, ptr %made, i64 %count) #0 {
start:
  LOAD TABLE.Py_DecRef ptr %table -> %release
  br label %each
each:
  %i = phi i64 [ 0, %start ], [ %i.next, %one ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %one, label %done
one:
  %at = getelementptr ptr, ptr %made, i64 %i
  %object = load ptr, ptr %at
  call void %release(ptr %object)
  %i.next = add i64 %i, 1
  br label %each
done:
  ret void
}

define i32 @UNMOVED_NAME(ptr %state, ptr %arrays, ptr %rows, ptr %addresses, i64 %count) #0 {
start:
  br label %each
each:
  %i = phi i64 [ 0, %start ], [ %i.next, %next ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %look, label %yes
look:
  %array.at = getelementptr ptr, ptr %arrays, i64 %i
  %array = load ptr, ptr %array.at
  %address.at = getelementptr ptr, ptr %addresses, i64 %i
  %address = load ptr, ptr %address.at
  %row = getelementptr %row, ptr %rows, i64 %i
  %unmoved = call i1 @unmoved(ptr %state, ptr %array, ptr %row, ptr %address)
  br i1 %unmoved, label %next, label %no
next:
  %i.next = add i64 %i, 1
  br label %each
yes:
  ret i32 1
no:
  ret i32 0
}

; Whether bound inputs are where they were.
define internal i1 @stay(ptr %bound) #0 {
start:
  LOAD BOUND.watched i64 %bound -> %watched
  %known = icmp ne i64 %watched, 0
  br i1 %known, label %guarded, label %no
guarded:
  LOAD BOUND.guard ptr %bound -> %guard
  %unguarded = icmp eq ptr %guard, null
  br i1 %unguarded, label %others, label %compare
compare:
  LOAD BOUND.groups ptr %bound -> %groups
  LOAD BOUND.group_count i64 %bound -> %group.count
  LOAD BOUND.group_rows ptr %bound -> %group.rows
  %same = call i32 %guard(ptr %groups, i64 %group.count, ptr %group.rows)
  %unchanged = icmp ne i32 %same, 0
  br i1 %unchanged, label %others, label %no
others:
  LOAD BOUND.unmoved ptr %bound -> %unmoved
  %none = icmp eq ptr %unmoved, null
  br i1 %none, label %yes, label %ask
ask:
  LOAD BOUND.state ptr %bound -> %state
  LOAD BOUND.arrays ptr %bound -> %arrays
  LOAD BOUND.rows ptr %bound -> %rows
  LOAD BOUND.array_addresses ptr %bound -> %addresses
  LOAD BOUND.array_count i64 %bound -> %count
  %answer = call i32 %unmoved(ptr %state, ptr %arrays, ptr %rows, ptr %addresses, i64 %count)
  %lies = icmp ne i32 %answer, 0
  ret i1 %lies
yes:
  ret i1 true
no:
  ret i1 false
}

; What bound inputs were read with stays alive until the program has run: another thread may bind
; other memory in the meantime.
define ptr @CALL_NAME(ptr %self, ptr %arguments, i64 %count, ptr %names) #0 {
start:
  %table.at = getelementptr i8, ptr %self, i64 SELF_OFFSET
  %table = load ptr, ptr %table.at
  LOAD TABLE.reading ptr %table -> %reading.at
  %unbound = icmp eq ptr %reading.at, null
  br i1 %unbound, label %enter, label %hold
hold:
  %reading = load ptr, ptr %reading.at
  %bound.at = getelementptr i8, ptr %reading, i64 SELF_OFFSET
  %bound = load ptr, ptr %bound.at
  LOAD TABLE.Py_IncRef ptr %table -> %increment
  call void %increment(ptr %reading)
  br label %enter
enter:
  %held = phi ptr [ null, %start ], [ %reading, %hold ]
  %places = phi ptr [ null, %start ], [ %bound, %hold ]
  %answer = call ptr @call(ptr %table, ptr %places, ptr %arguments, i64 %count, ptr %names)
  br i1 %unbound, label %done, label %let.go
let.go:
  LOAD TABLE.Py_DecRef ptr %table -> %decrement
  call void %decrement(ptr %held)
  br label %done
done:
  ret ptr %answer
}

define internal ptr @call(ptr %table, ptr %places, ptr %arguments, i64 %count, ptr %names) #0 {
start:
  %status = alloca i64
  %unlocked = alloca i64
  %argument = alloca ptr
  %three = alloca ptr, i64 3
  LOAD TABLE.passed i64 %table -> %passed
  %unnamed = icmp eq ptr %names, null
  %all = icmp eq i64 %count, %passed
  %plain = and i1 %unnamed, %all
  br i1 %plain, label %ask, label %slow

ask:
  LOAD TABLE.state ptr %table -> %state
  %allowed = call i1 @allowed(ptr %state)
  br i1 %allowed, label %begin, label %slow

begin:
  LOAD TABLE.inputs i64 %table -> %inputs
  LOAD TABLE.bound ptr %table -> %bound
  LOAD TABLE.fresh i64 %table -> %fresh
  LOAD TABLE.rows ptr %table -> %rows
  %arrays = add i64 %inputs, %fresh
  %addresses = alloca ptr, i64 %arrays
  %made = alloca ptr, i64 %fresh
  br label %input

input:
  %i = phi i64 [ 0, %begin ], [ %i.next, %taken ]
  %more.inputs = icmp ult i64 %i, %passed
  br i1 %more.inputs, label %take, label %inputs.taken
take:
  %array.at = getelementptr ptr, ptr %arguments, i64 %i
  %array = load ptr, ptr %array.at
  %row = getelementptr %row, ptr %rows, i64 %i
  %address.at = getelementptr ptr, ptr %addresses, i64 %i
  %good = call i1 @read(ptr %state, ptr %array, ptr %row, ptr %address.at)
  br i1 %good, label %taken, label %slow
taken:
  %i.next = add i64 %i, 1
  br label %input

inputs.taken:
  %own = icmp eq ptr %places, null
  br i1 %own, label %threads, label %locate
locate:
  LOAD BOUND.addresses ptr %places -> %bound.addresses
  LOAD TABLE.bound_written i64 %table -> %bound.written
  LOAD TABLE.written i64 %table -> %any.written
  %updates.bound = icmp ne i64 %bound.written, 0
  br i1 %updates.bound, label %bind, label %watch
watch:
  %unmoved.all = call i1 @stay(ptr %places)
  br i1 %unmoved.all, label %stayed, label %slow
; Their addresses are compared with those of inputs that are updated.
stayed:
  %compares = icmp ne i64 %any.written, 0
  br i1 %compares, label %copy, label %threads
copy:
  %c = phi i64 [ 0, %stayed ], [ %c.next, %copy.one ]
  %c.number = add i64 %passed, %c
  %more.copies = icmp ult i64 %c.number, %inputs
  br i1 %more.copies, label %copy.one, label %threads
copy.one:
  %c.from = getelementptr ptr, ptr %bound.addresses, i64 %c
  %c.address = load ptr, ptr %c.from
  %c.to = getelementptr ptr, ptr %addresses, i64 %c.number
  store ptr %c.address, ptr %c.to
  %c.next = add i64 %c, 1
  br label %copy

; Where some of them are updated, these are read anew.
bind:
  %b = phi i64 [ 0, %locate ], [ %b.next, %bound.taken ]
  %b.number = add i64 %passed, %b
  %more.bound = icmp ult i64 %b.number, %inputs
  br i1 %more.bound, label %find, label %threads
find:
  %b.array.at = getelementptr ptr, ptr %bound, i64 %b
  %b.array = load ptr, ptr %b.array.at
  %b.row = getelementptr %row, ptr %rows, i64 %b.number
  %b.address.at = getelementptr ptr, ptr %addresses, i64 %b.number
  %b.last.at = getelementptr ptr, ptr %bound.addresses, i64 %b
  %b.last = load ptr, ptr %b.last.at
  LOAD ROW.flags i64 %b.row -> %b.flags
  %b.written.bit = and i64 %b.flags, WRITTEN
  %b.written = icmp ne i64 %b.written.bit, 0
  br i1 %b.written, label %reread, label %glance
glance:
  %unmoved = call i1 @unmoved(ptr %state, ptr %b.array, ptr %b.row, ptr %b.last)
  br i1 %unmoved, label %stay, label %slow
stay:
  store ptr %b.last, ptr %b.address.at
  br label %bound.taken
reread:
  %b.good = call i1 @read(ptr %state, ptr %b.array, ptr %b.row, ptr %b.address.at)
  br i1 %b.good, label %compare, label %slow
compare:
  %b.address = load ptr, ptr %b.address.at
  %b.same = icmp eq ptr %b.address, %b.last
  br i1 %b.same, label %bound.taken, label %slow
bound.taken:
  %b.next = add i64 %b, 1
  br label %bind

threads:
  LOAD TABLE.threads i64 %table -> %option
  %has.option = icmp ne i64 %option, 0
  br i1 %has.option, label %updates, label %find.threads
find.threads:
  LOAD TABLE.thread_limits ptr %table -> %limits
  %available = load i64, ptr %limits
  %default.at = getelementptr i64, ptr %limits, i64 1
  %default = load i64, ptr %default.at
  %set = call i64 @threads(ptr %state)
  %is.set = icmp ne i64 %set, 0
  %few = icmp slt i64 %set, %available
  %cut = select i1 %few, i64 %set, i64 %available
  %found = select i1 %is.set, i64 %cut, i64 %default
  %known = icmp ne i64 %found, 0
  br i1 %known, label %updates, label %slow

updates:
  %wide.threads = phi i64 [ %option, %threads ], [ %found, %find.threads ]
  LOAD TABLE.written i64 %table -> %written
  %updates.any = icmp ne i64 %written, 0
  br i1 %updates.any, label %check, label %find.stream
check:
  LOAD TABLE.order ptr %table -> %order
  %shared = call i1 @overlap(ptr %addresses, ptr %rows, i64 %inputs, ptr %order)
  br i1 %shared, label %slow, label %announce
announce:
  LOAD TABLE.updating ptr %table -> %updating
  %silent = icmp eq ptr %updating, null
  br i1 %silent, label %find.stream, label %gather
gather:
  LOAD TABLE.updated ptr %table -> %updated
  %told = alloca ptr, i64 %written
  br label %gather.next
gather.next:
  %u = phi i64 [ 0, %gather ], [ %u.next, %gather.one ]
  %u.more = icmp ult i64 %u, %written
  br i1 %u.more, label %gather.one, label %tell
gather.one:
  %u.at = getelementptr i64, ptr %updated, i64 %u
  %u.number = load i64, ptr %u.at
  %u.object = call ptr @chosen(ptr %table, ptr %arguments, ptr null, i64 %u.number)
  %told.at = getelementptr ptr, ptr %told, i64 %u
  store ptr %u.object, ptr %told.at
  %u.next = add i64 %u, 1
  br label %gather.next
tell:
  LOAD TABLE.PyObject_Vectorcall ptr %table -> %tell.call
  %answered = call ptr %tell.call(ptr %updating, ptr %told, i64 %written, ptr null)
  %untold = icmp eq ptr %answered, null
  br i1 %untold, label %out.of.memory, label %was.told
was.told:
  LOAD TABLE.Py_DecRef ptr %table -> %forget
  call void %forget(ptr %answered)
  br label %find.stream

find.stream:
  LOAD TABLE.stream ptr %table -> %streams
  %no.stream = icmp eq ptr %streams, null
  br i1 %no.stream, label %making, label %ask.stream
ask.stream:
  LOAD TABLE.PyObject_Call ptr %table -> %stream.call
  LOAD TABLE.PyLong_AsVoidPtr ptr %table -> %to.pointer
  LOAD TABLE.Py_DecRef ptr %table -> %forget.stream
  %stream.function = load ptr, ptr %streams
  %stream.given.at = getelementptr ptr, ptr %streams, i64 1
  %stream.given = load ptr, ptr %stream.given.at
  %stream.object = call ptr %stream.call(ptr %stream.function, ptr %stream.given, ptr null)
  %streamless = icmp eq ptr %stream.object, null
  br i1 %streamless, label %out.of.memory, label %streamed
streamed:
  %stream.found = call ptr %to.pointer(ptr %stream.object)
  call void %forget.stream(ptr %stream.object)
  br label %making

making:
  %stream = phi ptr [ null, %find.stream ], [ %stream.found, %streamed ]
  LOAD TABLE.makers ptr %table -> %makers
  LOAD TABLE.PyObject_Call ptr %table -> %object.call
  br label %result
result:
  %k = phi i64 [ 0, %making ], [ %k.next, %placed ]
  %more.results = icmp ult i64 %k, %fresh
  br i1 %more.results, label %make, label %workspace
make:
  %maker = getelementptr { ptr, ptr }, ptr %makers, i64 %k
  %function = load ptr, ptr %maker
  %given.at = getelementptr { ptr, ptr }, ptr %makers, i64 %k, i32 1
  %given = load ptr, ptr %given.at
  %object = call ptr %object.call(ptr %function, ptr %given, ptr null)
  %raised = icmp eq ptr %object, null
  br i1 %raised, label %give.up, label %keep
keep:
  %made.at = getelementptr ptr, ptr %made, i64 %k
  store ptr %object, ptr %made.at
  %k.next = add i64 %k, 1
  %number = add i64 %inputs, %k
  %made.row = getelementptr %row, ptr %rows, i64 %number
  %made.address.at = getelementptr ptr, ptr %addresses, i64 %number
  %readable = call i1 @read(ptr %state, ptr %object, ptr %made.row, ptr %made.address.at)
  br i1 %readable, label %placed, label %undo
placed:
  br label %result
give.up:
  call void @drop(ptr %table, ptr %made, i64 %k)
  ret ptr null

workspace:
  LOAD TABLE.workspace_bytes i64 %table -> %bytes
  %no.workspace = icmp eq i64 %bytes, 0
  br i1 %no.workspace, label %filling, label %acquire
acquire:
  LOAD TABLE.acquire ptr %table -> %acquirer
  LOAD TABLE.pool ptr %table -> %pool
  %block = call ptr %acquirer(ptr %pool, i64 %bytes)
  %denied = icmp eq ptr %block, null
  br i1 %denied, label %undo, label %acquired
acquired:
  LOAD TABLE.poison i64 %table -> %poisoned
  %clean = icmp eq i64 %poisoned, 0
  br i1 %clean, label %filling, label %poison
poison:
  LOAD TABLE.memset ptr %table -> %fill
  %ignored = call ptr %fill(ptr %block, i32 PATTERN, i64 %bytes)
  br label %filling

filling:
  %space = phi ptr [ null, %workspace ], [ %block, %acquired ], [ %block, %poison ]
  LOAD TABLE.slots ptr %table -> %slots
  LOAD TABLE.slot_count i64 %table -> %slot.count
  br i1 %own, label %choose, label %look.number
look.number:
  LOAD BOUND.number i64 %places -> %bound.number
  br label %choose
; What does not change stays in the table's memory from one call to the next. A call that begins
; while another one runs, on another thread or inside of it, has its own memory.
choose:
  %reading = phi i64 [ 1, %filling ], [ %bound.number, %look.number ]
  LOAD TABLE.busy i64 %table -> %busy
  %before = atomicrmw xchg ptr %busy.at, i64 1 acquire
  %free = icmp eq i64 %before, 0
  br i1 %free, label %again.there, label %elsewhere
again.there:
  LOAD TABLE.pointers ptr %table -> %kept.pointers
  LOAD TABLE.filled i64 %table -> %filled
  LOAD TABLE.changing_count i64 %table -> %changing
  %same.reading = icmp eq i64 %filled, %reading
  %to.fill = select i1 %same.reading, i64 %changing, i64 %slot.count
  store i64 %reading, ptr %filled.at
  br label %fill.slots
elsewhere:
  LOAD TABLE.pointer_count i64 %table -> %pointer.count
  %own.pointers = alloca ptr, i64 %pointer.count
  br label %fill.slots
fill.slots:
  %pointers = phi ptr [ %kept.pointers, %again.there ], [ %own.pointers, %elsewhere ]
  %fill.count = phi i64 [ %to.fill, %again.there ], [ %slot.count, %elsewhere ]
  %lock = phi ptr [ %busy.at, %again.there ], [ %unlocked, %elsewhere ]
  br label %slot
slot:
  %n = phi i64 [ 0, %fill.slots ], [ %n.next, %stored ], [ %n.next, %held ]
  %more.slots = icmp ult i64 %n, %fill.count
  br i1 %more.slots, label %fill.slot, label %run
fill.slot:
  %n.next = add i64 %n, 1
  %this.slot = getelementptr %slot, ptr %slots, i64 %n
  LOAD SLOT.kind i64 %this.slot -> %kind
  LOAD SLOT.value i64 %this.slot -> %value
  LOAD SLOT.place i64 %this.slot -> %place
  %pointer.at = getelementptr ptr, ptr %pointers, i64 %place
  switch i64 %kind, label %of.array [
    i64 FIXED, label %fixed
    i64 WORKSPACE, label %in.workspace
    i64 STATUS, label %stored
    i64 HELD, label %in.bound
    i64 STREAM, label %of.stream
  ]
of.array:
  %source.at = getelementptr ptr, ptr %addresses, i64 %value
  %source = load ptr, ptr %source.at
  br label %stored
fixed:
  %constant = inttoptr i64 %value to ptr
  br label %stored
of.stream:
  br label %stored
in.workspace:
  %in.space = getelementptr i8, ptr %space, i64 %value
  br label %stored
stored:
  %pointer = phi ptr [ %source, %of.array ], [ %constant, %fixed ], [ %in.space, %in.workspace ],
                     [ %status, %fill.slot ], [ %stream, %of.stream ]
  store ptr %pointer, ptr %pointer.at
  br label %slot
in.bound:
  LOAD SLOT.count i64 %this.slot -> %held.count
  LOAD BOUND.addresses ptr %places -> %held.addresses
  %held.first = getelementptr ptr, ptr %held.addresses, i64 %value
  br label %held
held:
  %q = phi i64 [ 0, %in.bound ], [ %q.next, %held.one ]
  %more.held = icmp ult i64 %q, %held.count
  br i1 %more.held, label %held.one, label %slot
held.one:
  %held.at = getelementptr ptr, ptr %held.first, i64 %q
  %held.address = load ptr, ptr %held.at
  %held.to = getelementptr ptr, ptr %pointer.at, i64 %q
  store ptr %held.address, ptr %held.to
  %q.next = add i64 %q, 1
  br label %held

run:
  store i64 0, ptr %status
  LOAD TABLE.entry ptr %table -> %entry
  LOAD TABLE.iterations i64 %table -> %iterations
  LOAD TABLE.PyEval_SaveThread ptr %table -> %leave
  LOAD TABLE.PyEval_RestoreThread ptr %table -> %return
  %thread.count = trunc i64 %wide.threads to i32
  %thread = call ptr %leave()
  br label %iteration
iteration:
  %left = phi i64 [ %iterations, %run ], [ %left.next, %ran ]
  %again = icmp sgt i64 %left, 0
  br i1 %again, label %enter, label %ended
enter:
  %code.now = call i32 %entry(ptr %pointers, i32 %thread.count)
  %fault = icmp ne i32 %code.now, 0
  br i1 %fault, label %ended, label %ran
ran:
  %left.next = sub i64 %left, 1
  br label %iteration
ended:
  %code = phi i32 [ 0, %iteration ], [ %code.now, %enter ]
  call void %return(ptr %thread)
  br i1 %no.workspace, label %judge, label %release
release:
  LOAD TABLE.release ptr %table -> %releaser
  LOAD TABLE.pool ptr %table -> %pool.again
  call void %releaser(ptr %pool.again, ptr %space, i64 %bytes)
  br label %judge
judge:
  %success = icmp eq i32 %code, 0
  br i1 %success, label %succeeded, label %unsuccessful
succeeded:
  store atomic i64 0, ptr %lock release, align 8
  br label %deliver

unsuccessful:
  LOAD TABLE.instead ptr %table -> %instead
  %final = icmp eq ptr %instead, null
  br i1 %final, label %fail, label %make.up
make.up:
  %wide = sext i32 %code to i64
  LOAD TABLE.PyLong_FromVoidPtr ptr %table -> %of.pointer
  LOAD TABLE.PyLong_FromLong ptr %table -> %of.number
  LOAD TABLE.PyObject_Vectorcall ptr %table -> %make.up.call
  LOAD TABLE.Py_DecRef ptr %table -> %give.back
  %where = call ptr %of.pointer(ptr %pointers)
  %what = call ptr %of.number(i64 %wide)
  %how.often = call ptr %of.number(i64 %left)
  %where.missing = icmp eq ptr %where, null
  %what.missing = icmp eq ptr %what, null
  %how.often.missing = icmp eq ptr %how.often, null
  %two.missing = or i1 %where.missing, %what.missing
  %missing = or i1 %two.missing, %how.often.missing
  br i1 %missing, label %unboxed, label %enter.python
unboxed:
  call void %give.back(ptr %where)
  call void %give.back(ptr %what)
  call void %give.back(ptr %how.often)
  br label %not.made.up
enter.python:
  store ptr %where, ptr %three
  %what.at = getelementptr ptr, ptr %three, i64 1
  store ptr %what, ptr %what.at
  %how.often.at = getelementptr ptr, ptr %three, i64 2
  store ptr %how.often, ptr %how.often.at
  %made.up = call ptr %make.up.call(ptr %instead, ptr %three, i64 3, ptr null)
  call void %give.back(ptr %where)
  call void %give.back(ptr %what)
  call void %give.back(ptr %how.often)
  %unmade = icmp eq ptr %made.up, null
  br i1 %unmade, label %not.made.up, label %made.it
made.it:
  store atomic i64 0, ptr %lock release, align 8
  call void %give.back(ptr %made.up)
  br label %deliver
not.made.up:
  store atomic i64 0, ptr %lock release, align 8
  call void @drop(ptr %table, ptr %made, i64 %fresh)
  ret ptr null

fail:
  store atomic i64 0, ptr %lock release, align 8
  call void @drop(ptr %table, ptr %made, i64 %fresh)
  LOAD TABLE.PyLong_FromLong ptr %table -> %integer
  %wide.code = sext i32 %code to i64
  %boxed = call ptr %integer(i64 %wide.code)
  %no.box = icmp eq ptr %boxed, null
  br i1 %no.box, label %out.of.memory, label %report
report:
  store ptr %boxed, ptr %argument
  LOAD TABLE.failed ptr %table -> %failed
  LOAD TABLE.PyObject_Vectorcall ptr %table -> %vectorcall
  %reported = call ptr %vectorcall(ptr %failed, ptr %argument, i64 1, ptr null)
  LOAD TABLE.Py_DecRef ptr %table -> %decrement
  call void %decrement(ptr %boxed)
  ret ptr %reported
out.of.memory:
  ret ptr null

deliver:
  LOAD TABLE.results ptr %table -> %numbers
  LOAD TABLE.result_count i64 %table -> %result.count
  LOAD TABLE.in_tuple i64 %table -> %in.tuple
  LOAD TABLE.Py_IncRef ptr %table -> %increment
  %bare = icmp eq i64 %in.tuple, 0
  br i1 %bare, label %count.results, label %several
count.results:
  switch i64 %result.count, label %several [
    i64 0, label %nothing
    i64 1, label %one
  ]
nothing:
  LOAD TABLE.none ptr %table -> %none
  br label %hand.over
one:
  %one.number = load i64, ptr %numbers
  %one.object = call ptr @chosen(ptr %table, ptr %arguments, ptr %made, i64 %one.number)
  br label %hand.over
hand.over:
  %only = phi ptr [ %none, %nothing ], [ %one.object, %one ]
  call void %increment(ptr %only)
  br label %finish
several:
  LOAD TABLE.PyTuple_New ptr %table -> %new.tuple
  LOAD TABLE.PyTuple_SetItem ptr %table -> %set.item
  %tuple = call ptr %new.tuple(i64 %result.count)
  %no.tuple = icmp eq ptr %tuple, null
  br i1 %no.tuple, label %finish, label %item
item:
  %m = phi i64 [ 0, %several ], [ %m.next, %put ]
  %more.items = icmp ult i64 %m, %result.count
  br i1 %more.items, label %put, label %finish
put:
  %m.at = getelementptr i64, ptr %numbers, i64 %m
  %m.number = load i64, ptr %m.at
  %m.object = call ptr @chosen(ptr %table, ptr %arguments, ptr %made, i64 %m.number)
  call void %increment(ptr %m.object)
  %ignored.set = call i32 %set.item(ptr %tuple, i64 %m, ptr %m.object)
  %m.next = add i64 %m, 1
  br label %item
finish:
  %answer = phi ptr [ %only, %hand.over ], [ null, %several ], [ %tuple, %item ]
  call void @drop(ptr %table, ptr %made, i64 %fresh)
  ret ptr %answer

undo:
  %made.count = phi i64 [ %k.next, %keep ], [ %fresh, %acquire ]
  call void @drop(ptr %table, ptr %made, i64 %made.count)
  br label %slow
slow:
  LOAD TABLE.slow ptr %table -> %fallback
  LOAD TABLE.PyObject_Vectorcall ptr %table -> %slow.call
  %slow.answer = call ptr %slow.call(ptr %fallback, ptr %arguments, i64 %count, ptr %names)
  ret ptr %slow.answer
}

; One of the arrays that are passed, bound or made, by its number.
define internal ptr @chosen(ptr %table, ptr %arguments, ptr %made, i64 %number) #0 {
  LOAD TABLE.passed i64 %table -> %passed
  LOAD TABLE.inputs i64 %table -> %inputs
  LOAD TABLE.bound ptr %table -> %bound
  %is.passed = icmp ult i64 %number, %passed
  %is.input = icmp ult i64 %number, %inputs
  %begin.others = select i1 %is.input, i64 %passed, i64 %inputs
  %begin = select i1 %is.passed, i64 0, i64 %begin.others
  %others = select i1 %is.input, ptr %bound, ptr %made
  %list = select i1 %is.passed, ptr %arguments, ptr %others
  %index = sub i64 %number, %begin
  %at = getelementptr ptr, ptr %list, i64 %index
  %object = load ptr, ptr %at
  ret ptr %object
}

; Neither tables of jumps nor calls of the C library: both would need relocations. The stack is
; touched page by page, so that too many arrays for a small one end at its guard page.
attributes #0 = { nounwind "no-jump-tables"="true" "no-builtins" "probe-stack"="inline-asm" }
"""

#: A word in capitals -> what stands for it in LLVM IR.
_WORDS: dict[str, object] = {
    "CALL_NAME": CALL,
    "UNMOVED_NAME": UNMOVED,
    "SELF_OFFSET": SELF_OFFSET,
    "WRITTEN": WRITTEN,
    "EMPTY": EMPTY,
    "COMPLEX": COMPLEX,
    "FIXED": FIXED,
    "WORKSPACE": WORKSPACE,
    "STATUS": STATUS,
    "HELD": HELD,
    "STREAM": STREAM,
    "PATTERN": 0xFF,
}


def call_text(reader: str, structs: Mapping[str, Sequence[str]]) -> str:
    """The LLVM IR of :data:`CALL` and :data:`UNMOVED`.

    Args:
        reader: see :class:`polyblocks.runtime.native.reader.NativeReader`.
        structs: fields of what the reader's text loads from.
    """
    known = {"TABLE": TABLE, "BOUND": BOUND, "ROW": ROW, "SLOT": SLOT, **structs}
    types = "".join(
        f"%{name} = type {{ {', '.join(['i64'] * len(fields))} }}\n"
        for name, fields in (("row", ROW), ("slot", SLOT))
    )
    return types + expand(reader + _CALL_TEXT, _WORDS, known)
