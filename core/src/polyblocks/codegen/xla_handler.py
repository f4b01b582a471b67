"""The function through which XLA calls a compiled program: a handler of XLA's FFI, in LLVM IR.

One handler serves all programs: what it must know of one is in a table that is linked to it, see
:mod:`polyblocks.runtime.xla_call`. It is written against the C ABI of XLA's foreign function
interface (``xla/ffi/api/c_api.h``, version 0.x); the offsets below are those of its structures on
machines with 64-bit pointers. XLA gives the version of its interface at registration and refuses
what does not fit.
"""

from __future__ import annotations

from polyblocks.codegen.ir_text import expand

#: The handler's name, and the name of the table that it reads.
HANDLER, TABLE = "polyblocks_xla_handler", "polyblocks_xla_table"

#: Version of the interface that the handler asks for: the oldest whose structures are those below.
#: XLA keeps to a version for a year at least; that of JAX 0.10, which has 0.3, takes 0.1 as well.
API_MAJOR, API_MINOR = 0, 1

#: Where an address comes from, in a row of the table: the data of an argument or of a result of
#: the call, a word of the handler's own for the program's status, the workspace, the row itself,
#: whose ``bytes`` then are the address, or the list of addresses that is the call's first argument,
#: and ``bytes`` are how many of them are taken, one behind the other. ``index`` is the number of
#: the argument, result or (first) address, or the workspace's first page; ``place`` that of the
#: (first) argument of the entry.
#: A list is words: a number that no list of other addresses has, not 0, and then the addresses.
ARGUMENT, RESULT, STATUS, WORKSPACE, FIXED, LISTED = 0, 1, 2, 3, 4, 5
#: Those that stay as they are as long as the list does.
LASTING = (FIXED, LISTED)

# The table:
#   ptr  entry             i32 (ptr pointers, i32 threads)
#   ptr  messages          const char* of each run-time check
#   ptr  rows              {i32 kind, i32 index, i64 bytes, i64 place} each, first those that change
#                          with each call; bytes: of a result that is worth huge pages
#   i32  count             of rows
#   i32  threads
#   i32  iterations        how often the program is run per call
#   i32  messages          how many there are
#   i64  bytes             of the workspace; 0: none
#   ptr  acquire, release  see workspace_pool
#   ptr  pool
#   i64  huge              bytes of a huge page
#   i32  advice            for madvise; negative: none
#   i32  width             how many arguments the entry has
#   i32  changing          how many rows change with each call
#   i32  listed            1: the first argument is a list of addresses
#   ptr  pointers          memory for the entry's arguments, which one call at a time may use
#   i64  busy              1: one does
#   i64  filled            the number of the list that it was filled from, 1 without lists; 0: none
#
# XLA_FFI_CallFrame: extension 8, api 16, args.args 72, rets.rets 112.
# XLA_FFI_Buffer: data 24. XLA_FFI_Api: XLA_FFI_Error_Create 48.
# XLA_FFI_Metadata_Extension: type 8, metadata 24. XLA_FFI_Metadata: api_version.major 24, minor 28.
_TEXT = """
%table = type { ptr, ptr, ptr, i32, i32, i32, i32, i64, ptr, ptr, ptr, i64, i32, i32, i32,
                i32, ptr, i64, i64 }
%row = type { i32, i32, i64, i64 }
%error = type { i64, ptr, ptr, i32 }

@TABLE = external global %table
@unknown = private constant [38 x i8] c"the compiled program reports an error\\00"
@no.room = private constant [45 x i8] c"no room for the compiled program's workspace\\00"

declare i32 @madvise(ptr, i64, i32)

define ptr @HANDLER(ptr %frame) {
start:
  %extension.at = getelementptr i8, ptr %frame, i64 8
  %extension = load ptr, ptr %extension.at
  %plain = icmp eq ptr %extension, null
  br i1 %plain, label %call, label %look

look:
  %type.at = getelementptr i8, ptr %extension, i64 8
  %type = load i32, ptr %type.at
  %asked = icmp eq i32 %type, 1
  br i1 %asked, label %tell, label %call

tell:
  %metadata.at = getelementptr i8, ptr %extension, i64 24
  %metadata = load ptr, ptr %metadata.at
  %major.at = getelementptr i8, ptr %metadata, i64 24
  store i32 MAJOR, ptr %major.at
  %minor.at = getelementptr i8, ptr %metadata, i64 28
  store i32 MINOR, ptr %minor.at
  ret ptr null

call:
  %arguments.at = getelementptr i8, ptr %frame, i64 72
  %arguments = load ptr, ptr %arguments.at
  %results.at = getelementptr i8, ptr %frame, i64 112
  %results = load ptr, ptr %results.at
  %entry = load ptr, ptr @TABLE
  %rows.at = getelementptr %table, ptr @TABLE, i32 0, i32 2
  %rows = load ptr, ptr %rows.at
  %count.at = getelementptr %table, ptr @TABLE, i32 0, i32 3
  %count = load i32, ptr %count.at
  %threads.at = getelementptr %table, ptr @TABLE, i32 0, i32 4
  %threads = load i32, ptr %threads.at
  %iterations.at = getelementptr %table, ptr @TABLE, i32 0, i32 5
  %iterations = load i32, ptr %iterations.at
  %messages.at = getelementptr %table, ptr @TABLE, i32 0, i32 6
  %messages = load i32, ptr %messages.at
  %unlocked = alloca i64
  %status = alloca i64
  store i64 0, ptr %status
  %bytes.at = getelementptr %table, ptr @TABLE, i32 0, i32 7
  %bytes = load i64, ptr %bytes.at
  %plain.run = icmp eq i64 %bytes, 0
  br i1 %plain.run, label %begin, label %acquire

acquire:
  %acquire.at = getelementptr %table, ptr @TABLE, i32 0, i32 8
  %acquirer = load ptr, ptr %acquire.at
  %pool.at = getelementptr %table, ptr @TABLE, i32 0, i32 10
  %pool = load ptr, ptr %pool.at
  %block = call ptr %acquirer(ptr %pool, i64 %bytes)
  %denied = icmp eq ptr %block, null
  br i1 %denied, label %report, label %begin

begin:
  %space = phi ptr [ null, %call ], [ %block, %acquire ]
  %listed.at = getelementptr %table, ptr @TABLE, i32 0, i32 15
  %listed = load i32, ptr %listed.at
  %unlisted = icmp eq i32 %listed, 0
  br i1 %unlisted, label %choose, label %find.list

find.list:
  %list.struct = load ptr, ptr %arguments
  %list.data.at = getelementptr i8, ptr %list.struct, i64 24
  %list = load ptr, ptr %list.data.at
  %list.number = load i64, ptr %list
  %list.first = getelementptr i64, ptr %list, i64 1
  br label %choose

; What does not change stays in the table's memory from one call to the next. A call that begins
; while another one runs has its own memory.
choose:
  %addresses = phi ptr [ null, %begin ], [ %list.first, %find.list ]
  %reading = phi i64 [ 1, %begin ], [ %list.number, %find.list ]
  %busy.at = getelementptr %table, ptr @TABLE, i32 0, i32 17
  %before = atomicrmw xchg ptr %busy.at, i64 1 acquire
  %free = icmp eq i64 %before, 0
  br i1 %free, label %again.there, label %elsewhere

again.there:
  %kept.at = getelementptr %table, ptr @TABLE, i32 0, i32 16
  %kept = load ptr, ptr %kept.at
  %filled.at = getelementptr %table, ptr @TABLE, i32 0, i32 18
  %filled = load i64, ptr %filled.at
  store i64 %reading, ptr %filled.at
  %changing.at = getelementptr %table, ptr @TABLE, i32 0, i32 14
  %changing = load i32, ptr %changing.at
  %same.reading = icmp eq i64 %filled, %reading
  %to.fill = select i1 %same.reading, i32 %changing, i32 %count
  br label %fill

elsewhere:
  %width.at = getelementptr %table, ptr @TABLE, i32 0, i32 13
  %width = load i32, ptr %width.at
  %own = alloca ptr, i32 %width
  br label %fill

fill:
  %pointers = phi ptr [ %kept, %again.there ], [ %own, %elsewhere ]
  %lock = phi ptr [ %busy.at, %again.there ], [ %unlocked, %elsewhere ]
  %rows.to.fill = phi i32 [ %to.fill, %again.there ], [ %count, %elsewhere ]
  br label %row

row:
  %i = phi i32 [ 0, %fill ], [ %i.next, %stored ], [ %i.next, %copying ]
  %more = icmp slt i32 %i, %rows.to.fill
  br i1 %more, label %take, label %run

take:
  %i.next = add i32 %i, 1
  %kind.at = getelementptr %row, ptr %rows, i32 %i
  %kind = load i32, ptr %kind.at
  %index.at = getelementptr %row, ptr %rows, i32 %i, i32 1
  %index = load i32, ptr %index.at
  %place.at = getelementptr %row, ptr %rows, i32 %i, i32 3
  %place = load i64, ptr %place.at
  %slot = getelementptr ptr, ptr %pointers, i64 %place
  switch i32 %kind, label %buffer [
    i32 STATUS, label %stored
    i32 WORKSPACE, label %page
    i32 FIXED, label %fixed
    i32 LISTED, label %several
  ]

fixed:
  %number.at = getelementptr %row, ptr %rows, i32 %i, i32 2
  %fixed.number = load i64, ptr %number.at
  %there = inttoptr i64 %fixed.number to ptr
  br label %stored

several:
  %first.address = getelementptr ptr, ptr %addresses, i32 %index
  %length.at = getelementptr %row, ptr %rows, i32 %i, i32 2
  %length = load i64, ptr %length.at
  br label %copying

copying:
  %l = phi i64 [ 0, %several ], [ %l.next, %copy ]
  %l.more = icmp ult i64 %l, %length
  br i1 %l.more, label %copy, label %row

copy:
  %copy.from = getelementptr ptr, ptr %first.address, i64 %l
  %copied = load ptr, ptr %copy.from
  %copy.to = getelementptr ptr, ptr %slot, i64 %l
  store ptr %copied, ptr %copy.to
  %l.next = add i64 %l, 1
  br label %copying

page:
  %index.wide = zext i32 %index to i64
  %offset = mul i64 %index.wide, PAGE
  %in.space = getelementptr i8, ptr %space, i64 %offset
  br label %stored

buffer:
  %is.result = icmp eq i32 %kind, RESULT
  %buffers = select i1 %is.result, ptr %results, ptr %arguments
  %buffer.at = getelementptr ptr, ptr %buffers, i32 %index
  %struct = load ptr, ptr %buffer.at
  %data.at = getelementptr i8, ptr %struct, i64 24
  %data = load ptr, ptr %data.at
  %size.at = getelementptr %row, ptr %rows, i32 %i, i32 2
  %size = load i64, ptr %size.at
  %large = icmp ne i64 %size, 0
  br i1 %large, label %spread, label %stored

; XLA allocates results anew, and a fault for every small page takes longer than many programs do.
spread:
  %huge.at = getelementptr %table, ptr @TABLE, i32 0, i32 11
  %huge = load i64, ptr %huge.at
  %advice.at = getelementptr %table, ptr @TABLE, i32 0, i32 12
  %advice = load i32, ptr %advice.at
  %low = ptrtoint ptr %data to i64
  %high = add i64 %low, %size
  %mask = sub i64 0, %huge
  %above = add i64 %low, %huge
  %inner = sub i64 %above, 1
  %first = and i64 %inner, %mask
  %last = and i64 %high, %mask
  %whole = sub i64 %last, %first
  %some = icmp sgt i64 %whole, 0
  br i1 %some, label %advise, label %stored

advise:
  %first.page = inttoptr i64 %first to ptr
  %ignored = call i32 @madvise(ptr %first.page, i64 %whole, i32 %advice)
  br label %stored

stored:
  %address = phi ptr [ %status, %take ], [ %in.space, %page ], [ %there, %fixed ],
                     [ %data, %buffer ], [ %data, %spread ], [ %data, %advise ]
  store ptr %address, ptr %slot
  br label %row

run:
  %n = phi i32 [ %iterations, %row ], [ %n.next, %ran ]
  %again = icmp sgt i32 %n, 0
  br i1 %again, label %enter, label %done

enter:
  %code = call i32 %entry(ptr %pointers, i32 %threads)
  %failed = icmp ne i32 %code, 0
  br i1 %failed, label %done, label %ran

ran:
  %n.next = sub i32 %n, 1
  br label %run

done:
  %result = phi i32 [ 0, %run ], [ %code, %enter ]
  store atomic i64 0, ptr %lock release, align 8
  br i1 %plain.run, label %judge, label %release

release:
  %release.at = getelementptr %table, ptr @TABLE, i32 0, i32 9
  %releaser = load ptr, ptr %release.at
  %pool.again.at = getelementptr %table, ptr @TABLE, i32 0, i32 10
  %pool.again = load ptr, ptr %pool.again.at
  call void %releaser(ptr %pool.again, ptr %space, i64 %bytes)
  br label %judge

judge:
  %good = icmp eq i32 %result, 0
  br i1 %good, label %fine, label %bad

fine:
  ret ptr null

bad:
  %number = sub i32 %result, 1
  %known = icmp ult i32 %number, %messages
  br i1 %known, label %named, label %report

named:
  %texts.at = getelementptr %table, ptr @TABLE, i32 0, i32 1
  %texts = load ptr, ptr %texts.at
  %text.at = getelementptr ptr, ptr %texts, i32 %number
  %text = load ptr, ptr %text.at
  br label %report

report:
  %message = phi ptr [ @no.room, %acquire ], [ @unknown, %bad ], [ %text, %named ]
  %problem = alloca %error
  store i64 28, ptr %problem
  %problem.extension = getelementptr %error, ptr %problem, i32 0, i32 1
  store ptr null, ptr %problem.extension
  %problem.message = getelementptr %error, ptr %problem, i32 0, i32 2
  store ptr %message, ptr %problem.message
  %problem.code = getelementptr %error, ptr %problem, i32 0, i32 3
  store i32 INTERNAL, ptr %problem.code
  %api.at = getelementptr i8, ptr %frame, i64 16
  %api = load ptr, ptr %api.at
  %create.at = getelementptr i8, ptr %api, i64 48
  %create = load ptr, ptr %create.at
  %made = call ptr %create(ptr %problem)
  ret ptr %made
}
"""

#: Bytes of what ``index`` of a workspace counts.
PAGE = 4096

#: ``XLA_FFI_Error_Code_INTERNAL``.
_INTERNAL = 13


def handler_text() -> str:
    """The LLVM IR of the handler."""
    words = {
        "HANDLER": HANDLER,
        "TABLE": TABLE,
        "MAJOR": API_MAJOR,
        "MINOR": API_MINOR,
        "STATUS": STATUS,
        "RESULT": RESULT,
        "WORKSPACE": WORKSPACE,
        "FIXED": FIXED,
        "LISTED": LISTED,
        "PAGE": PAGE,
        "INTERNAL": _INTERNAL,
    }
    return expand(_TEXT, words)
