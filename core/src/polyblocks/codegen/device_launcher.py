"""Launches of a GPU program in a loop of machine code, in LLVM IR.

One text serves all programs and vendors: what it must know of a program is in tables, see
:mod:`polyblocks.runtime.device.launches.native_launcher`, with the addresses of the driver's
functions. It allocates nothing and knows nothing of Python, so that it runs without the
interpreter's lock; it needs no relocation, so what was compiled once is put into memory as it is.
"""

from __future__ import annotations

from polyblocks.codegen.ir_text import expand

#: ``i32 launch(ptr table, ptr stream, ptr failed)``: put all kernels on a stream.
#: ``i32 replay(ptr table, ptr graph, ptr stream)``: run a graph.
#: ``i32 move(ptr table, ptr graph, ptr stream, ptr values, ptr marks, ptr failed)``: run a graph
#: with other values in its argument block. All return the driver's status, or one of those below;
#: ``failed`` gets the number of the launch that the driver refused, -1 for the graph itself.
LAUNCH, REPLAY, MOVE = "polyblocks_launch", "polyblocks_replay", "polyblocks_move"
#: ``i32 run(ptr pointers, i32 ignored)``: the entry of a call, see :data:`POINTERS`.
#: Returns 0, :data:`NOT_DONE` or :data:`REFUSED`.
RUN = "polyblocks_run"
#: ``i32 take(ptr lane)``: whether the lane was free, and is the caller's now. ``i32 give(ptr
#: lane)`` gives it back; returns 0.
TAKE, GIVE = "polyblocks_take", "polyblocks_give"

#: Statuses of our own: the stream records a graph of the caller's, or does not tell; more launches
#: change than the table's limit. Nothing was done.
RECORDING, TOO_MANY = -1, -2
#: Of :data:`RUN`: nothing was done; the driver has refused a launch.
NOT_DONE, REFUSED = -1, -2

#: Fields of the launches of a plan, 8 bytes each.
LAUNCHES: tuple[str, ...] = (
    "launch",  # i32 (ptr function, i32 grid[3], i32 block[3], i32 shared, ptr stream,
    #                ptr operands, ptr extra)
    "capturing",  # i32 (ptr stream, ptr i32)
    "replay",  # i32 (ptr graph, ptr stream)
    "update",  # i32 (ptr graph, ptr node, ptr parameters)
    "kernels",  # KERNEL of each launch
    "block",  # the argument block
    "count",  # of launches
    "slots",  # of the argument block
    "limit",  # launches that may change
)
#: Fields of a launch, 8 bytes each.
KERNEL: tuple[str, ...] = (
    "function",
    *(f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz"),
    "shared",
    "operands",  # addresses in the argument block
    "node",  # of the graph
    "parameters",  # of the node, in the vendor's form
    "slots",  # numbers of the slots that the operands are in, i32 each
    "count",  # of operands
)
#: Fields of a lane, 8 bytes each: launches that one thread at a time can make.
LANE: tuple[str, ...] = (
    "lock",  # 1: a thread uses it
    "table",  # LAUNCHES; null: there are none yet
    "graph",  # of them; null: they are launched one by one
    "stream",  # of the graph
    "last_use",  # the context's clock at that time
)
#: Fields of a program on a device, 8 bytes each.
CONTEXT: tuple[str, ...] = (
    "lanes",
    "lane_count",
    "current",  # i32 (ptr handle): what is current to the thread
    "device",  # what must be
    "word",  # where the host sees failed checks, i32; or null
    "sources",  # {i64 slot, i64 pointer, i64 offset}: what the argument block gets in each call
    "source_count",
    "clock",
)
#: Arguments of :data:`RUN`, 8 bytes each, and then the addresses of the plan's rows.
POINTERS: tuple[str, ...] = (
    "context",
    "stream",
    "refusal",  # gets the driver's status
    "refused",  # gets the number of the launch
    "workspace",
    "status",  # address of the status word on the device
)

# The marks: a byte for each slot.
_TEXT = """
%kernel = type { KERNEL_WORDS }
%lane = type { LANE_WORDS }

define i32 @LAUNCH(ptr %table, ptr %stream, ptr %failed) #0 {
start:
  LOAD LAUNCHES.launch ptr %table -> %launch
  LOAD LAUNCHES.kernels ptr %table -> %kernels
  LOAD LAUNCHES.count i32 %table -> %count
  br label %next
next:
  %i = phi i32 [ 0, %start ], [ %i.next, %done ]
  %more = icmp slt i32 %i, %count
  br i1 %more, label %take, label %end
take:
  %kernel = getelementptr %kernel, ptr %kernels, i32 %i
  LOAD KERNEL.function ptr %kernel -> %function
  LOAD KERNEL.grid_x i32 %kernel -> %gx
  LOAD KERNEL.grid_y i32 %kernel -> %gy
  LOAD KERNEL.grid_z i32 %kernel -> %gz
  LOAD KERNEL.block_x i32 %kernel -> %bx
  LOAD KERNEL.block_y i32 %kernel -> %by
  LOAD KERNEL.block_z i32 %kernel -> %bz
  LOAD KERNEL.shared i32 %kernel -> %shared
  LOAD KERNEL.operands ptr %kernel -> %operands
  %status = call i32 %launch(ptr %function, i32 %gx, i32 %gy, i32 %gz, i32 %bx, i32 %by, i32 %bz,
                             i32 %shared, ptr %stream, ptr %operands, ptr null)
  %bad = icmp ne i32 %status, 0
  br i1 %bad, label %refused, label %done
refused:
  store i32 %i, ptr %failed
  ret i32 %status
done:
  %i.next = add i32 %i, 1
  br label %next
end:
  ret i32 0
}

define internal i1 @recording(ptr %table, ptr %stream) #0 {
  %word = alloca i32
  store i32 0, ptr %word
  LOAD LAUNCHES.capturing ptr %table -> %capturing
  %status = call i32 %capturing(ptr %stream, ptr %word)
  %state = load i32, ptr %word
  %either = or i32 %status, %state
  %is = icmp ne i32 %either, 0
  ret i1 %is
}

define i32 @REPLAY(ptr %table, ptr %graph, ptr %stream) #0 {
  %recording = call i1 @recording(ptr %table, ptr %stream)
  br i1 %recording, label %left, label %run
left:
  ret i32 RECORDING
run:
  LOAD LAUNCHES.replay ptr %table -> %replay
  %status = call i32 %replay(ptr %graph, ptr %stream)
  ret i32 %status
}

; Whether one of the slots of a launch is marked.
define internal i1 @changed(ptr %kernel, ptr %marks) #0 {
start:
  LOAD KERNEL.slots ptr %kernel -> %slots
  LOAD KERNEL.count i32 %kernel -> %count
  br label %next
next:
  %i = phi i32 [ 0, %start ], [ %i.next, %look ]
  %more = icmp slt i32 %i, %count
  br i1 %more, label %look, label %none
look:
  %slot.at = getelementptr i32, ptr %slots, i32 %i
  %slot = load i32, ptr %slot.at
  %mark.at = getelementptr i8, ptr %marks, i32 %slot
  %mark = load i8, ptr %mark.at
  %marked = icmp ne i8 %mark, 0
  %i.next = add i32 %i, 1
  br i1 %marked, label %one, label %next
one:
  ret i1 true
none:
  ret i1 false
}

define i32 @MOVE(ptr %table, ptr %graph, ptr %stream, ptr %values, ptr %marks, ptr %failed) #0 {
start:
  store i32 -1, ptr %failed
  %recording = call i1 @recording(ptr %table, ptr %stream)
  br i1 %recording, label %left, label %compare
left:
  ret i32 RECORDING
compare:
  LOAD LAUNCHES.update ptr %table -> %update
  LOAD LAUNCHES.kernels ptr %table -> %kernels
  LOAD LAUNCHES.block ptr %table -> %block
  LOAD LAUNCHES.count i32 %table -> %count
  LOAD LAUNCHES.slots i32 %table -> %slots
  LOAD LAUNCHES.limit i32 %table -> %limit
  br label %next.slot
next.slot:
  %s = phi i32 [ 0, %compare ], [ %s.next, %slot ]
  %more.slots = icmp slt i32 %s, %slots
  br i1 %more.slots, label %slot, label %counting
slot:
  %old.at = getelementptr i64, ptr %block, i32 %s
  %old = load i64, ptr %old.at
  %new.at = getelementptr i64, ptr %values, i32 %s
  %new = load i64, ptr %new.at
  %differs = icmp ne i64 %old, %new
  %mark = zext i1 %differs to i8
  %mark.at = getelementptr i8, ptr %marks, i32 %s
  store i8 %mark, ptr %mark.at
  %s.next = add i32 %s, 1
  br label %next.slot
counting:
  br label %next.counted
next.counted:
  %c = phi i32 [ 0, %counting ], [ %c.next, %counted ]
  %total = phi i32 [ 0, %counting ], [ %total.next, %counted ]
  %more.counted = icmp slt i32 %c, %count
  br i1 %more.counted, label %counted, label %judge
counted:
  %counted.kernel = getelementptr %kernel, ptr %kernels, i32 %c
  %is = call i1 @changed(ptr %counted.kernel, ptr %marks)
  %one = zext i1 %is to i32
  %total.next = add i32 %total, %one
  %c.next = add i32 %c, 1
  br label %next.counted
judge:
  %too.many = icmp sgt i32 %total, %limit
  br i1 %too.many, label %refused, label %fill
refused:
  ret i32 TOO_MANY
fill:
  %f = phi i32 [ 0, %judge ], [ %f.next, %filled ]
  %more.values = icmp slt i32 %f, %slots
  br i1 %more.values, label %filled, label %next.kernel
filled:
  %from = getelementptr i64, ptr %values, i32 %f
  %value = load i64, ptr %from
  %to = getelementptr i64, ptr %block, i32 %f
  store i64 %value, ptr %to
  %f.next = add i32 %f, 1
  br label %fill
next.kernel:
  %i = phi i32 [ 0, %fill ], [ %i.next, %kept ]
  %more = icmp slt i32 %i, %count
  br i1 %more, label %take, label %run
take:
  %kernel = getelementptr %kernel, ptr %kernels, i32 %i
  %changed = call i1 @changed(ptr %kernel, ptr %marks)
  br i1 %changed, label %set, label %kept
set:
  LOAD KERNEL.node ptr %kernel -> %node
  LOAD KERNEL.parameters ptr %kernel -> %parameters
  %status = call i32 %update(ptr %graph, ptr %node, ptr %parameters)
  %bad = icmp ne i32 %status, 0
  br i1 %bad, label %broken, label %kept
broken:
  store i32 %i, ptr %failed
  ret i32 %status
kept:
  %i.next = add i32 %i, 1
  br label %next.kernel
run:
  LOAD LAUNCHES.replay ptr %table -> %replay
  %replayed = call i32 %replay(ptr %graph, ptr %stream)
  ret i32 %replayed
}

define i32 @TAKE(ptr %lane) #0 {
  %pair = cmpxchg ptr %lane, i64 0, i64 1 acq_rel monotonic
  %got = extractvalue { i64, i1 } %pair, 1
  %answer = zext i1 %got to i32
  ret i32 %answer
}

define i32 @GIVE(ptr %lane) #0 {
  store atomic i64 0, ptr %lane release, align 8
  ret i32 0
}

; Whether a graph's argument block holds what a call comes with.
define internal i1 @holds(ptr %context, ptr %pointers, ptr %block) #0 {
start:
  LOAD CONTEXT.sources ptr %context -> %sources
  LOAD CONTEXT.source_count i64 %context -> %count
  br label %next
next:
  %i = phi i64 [ 0, %start ], [ %i.next, %look ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %look, label %yes
look:
  %slot.at = getelementptr { i64, i64, i64 }, ptr %sources, i64 %i
  %slot = load i64, ptr %slot.at
  %value = call i64 @value(ptr %slot.at, ptr %pointers)
  %place = getelementptr i64, ptr %block, i64 %slot
  %held = load i64, ptr %place
  %same = icmp eq i64 %held, %value
  %i.next = add i64 %i, 1
  br i1 %same, label %next, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

define internal i64 @value(ptr %source, ptr %pointers) #0 {
  %number.at = getelementptr i64, ptr %source, i64 1
  %number = load i64, ptr %number.at
  %offset.at = getelementptr i64, ptr %source, i64 2
  %offset = load i64, ptr %offset.at
  %pointer.at = getelementptr i64, ptr %pointers, i64 %number
  %pointer = load i64, ptr %pointer.at
  %value = add i64 %pointer, %offset
  ret i64 %value
}

define internal void @fill(ptr %context, ptr %pointers, ptr %block) #0 {
start:
  LOAD CONTEXT.sources ptr %context -> %sources
  LOAD CONTEXT.source_count i64 %context -> %count
  br label %next
next:
  %i = phi i64 [ 0, %start ], [ %i.next, %one ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %one, label %done
one:
  %slot.at = getelementptr { i64, i64, i64 }, ptr %sources, i64 %i
  %slot = load i64, ptr %slot.at
  %value = call i64 @value(ptr %slot.at, ptr %pointers)
  %place = getelementptr i64, ptr %block, i64 %slot
  store i64 %value, ptr %place
  %i.next = add i64 %i, 1
  br label %next
done:
  ret void
}

define i32 @RUN(ptr %pointers, i32 %ignored) #0 {
start:
  %handle = alloca i64
  %failed = alloca i32
  LOAD POINTERS.context ptr %pointers -> %context
  LOAD POINTERS.stream ptr %pointers -> %stream
  LOAD CONTEXT.lanes ptr %context -> %lanes
  LOAD CONTEXT.lane_count i64 %context -> %count
  %any = icmp ne i64 %count, 0
  br i1 %any, label %check, label %left

; A failed check of an earlier call is raised by Python.
check:
  LOAD CONTEXT.word ptr %context -> %word
  %unchecked = icmp eq ptr %word, null
  br i1 %unchecked, label %where, label %look
look:
  %failure = load atomic i32, ptr %word monotonic, align 4
  %good = icmp eq i32 %failure, 0
  br i1 %good, label %where, label %left
where:
  LOAD CONTEXT.current ptr %context -> %current
  LOAD CONTEXT.device i64 %context -> %device
  store i64 0, ptr %handle
  %asked = call i32 %current(ptr %handle)
  %here = load i64, ptr %handle
  %known = icmp eq i32 %asked, 0
  %is.current = icmp eq i64 %here, %device
  %there = and i1 %known, %is.current
  br i1 %there, label %lane, label %left

lane:
  %i = phi i64 [ 0, %where ], [ %i.next, %next ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %glance, label %left
next:
  %i.next = add i64 %i, 1
  br label %lane

; A look without the lock first: most lanes are of other streams, or empty.
glance:
  %lane.here = getelementptr %lane, ptr %lanes, i64 %i
  %maybe = call i1 @serves(ptr %lane.here, ptr %stream)
  br i1 %maybe, label %take, label %next
take:
  %got = call i32 @TAKE(ptr %lane.here)
  %mine = icmp ne i32 %got, 0
  br i1 %mine, label %mine.now, label %next
mine.now:
  %is = call i1 @serves(ptr %lane.here, ptr %stream)
  br i1 %is, label %use, label %other
other:
  %given.back = call i32 @GIVE(ptr %lane.here)
  br label %next
use:
  LOAD LANE.table ptr %lane.here -> %table
  LOAD LANE.graph ptr %lane.here -> %graph
  LOAD LAUNCHES.block ptr %table -> %block
  %plain = icmp eq ptr %graph, null
  br i1 %plain, label %launch, label %compare
compare:
  %same = call i1 @holds(ptr %context, ptr %pointers, ptr %block)
  br i1 %same, label %replay, label %other
replay:
  %clock = getelementptr i64, ptr %context, i64 CLOCK
  %time = atomicrmw add ptr %clock, i64 1 monotonic
  %use.at = getelementptr i64, ptr %lane.here, i64 LAST_USE
  store atomic i64 %time, ptr %use.at monotonic, align 8
  %replayed = call i32 @REPLAY(ptr %table, ptr %graph, ptr %stream)
  %gave.graph = call i32 @GIVE(ptr %lane.here)
  %done = icmp eq i32 %replayed, 0
  br i1 %done, label %success, label %left
launch:
  call void @fill(ptr %context, ptr %pointers, ptr %block)
  %status = call i32 @LAUNCH(ptr %table, ptr %stream, ptr %failed)
  %gave = call i32 @GIVE(ptr %lane.here)
  %launched = icmp eq i32 %status, 0
  br i1 %launched, label %success, label %refused
refused:
  %wide.status = sext i32 %status to i64
  %refusal = getelementptr i64, ptr %pointers, i64 REFUSAL
  store i64 %wide.status, ptr %refusal
  %number = load i32, ptr %failed
  %wide.number = sext i32 %number to i64
  %number.at = getelementptr i64, ptr %pointers, i64 REFUSED_LAUNCH
  store i64 %wide.number, ptr %number.at
  ret i32 REFUSED
success:
  ret i32 0
left:
  ret i32 NOT_DONE
}

; Whether a lane has launches for a stream.
define internal i1 @serves(ptr %lane, ptr %stream) #0 {
  LOAD LANE.table ptr %lane -> %table
  LOAD LANE.graph ptr %lane -> %graph
  LOAD LANE.stream ptr %lane -> %its
  %filled = icmp ne ptr %table, null
  %plain = icmp eq ptr %graph, null
  %same = icmp eq ptr %its, %stream
  %fits = or i1 %plain, %same
  %serves = and i1 %filled, %fits
  ret i1 %serves
}

; Neither tables of jumps nor calls of the C library: both would need relocations.
attributes #0 = { nounwind "no-jump-tables"="true" "no-builtins" }
"""


def launcher_text() -> str:
    """The LLVM IR of the functions."""
    words = {
        "LAUNCH": LAUNCH,
        "REPLAY": REPLAY,
        "MOVE": MOVE,
        "RUN": RUN,
        "TAKE": TAKE,
        "GIVE": GIVE,
        "RECORDING": str(RECORDING),
        "TOO_MANY": str(TOO_MANY),
        "NOT_DONE": str(NOT_DONE),
        "REFUSED": str(REFUSED),
        "KERNEL_WORDS": ", ".join(["i64"] * len(KERNEL)),
        "LANE_WORDS": ", ".join(["i64"] * len(LANE)),
        "CLOCK": str(CONTEXT.index("clock")),
        "LAST_USE": str(LANE.index("last_use")),
        "REFUSAL": str(POINTERS.index("refusal")),
        "REFUSED_LAUNCH": str(POINTERS.index("refused")),
    }
    structs = {
        "LAUNCHES": LAUNCHES,
        "KERNEL": KERNEL,
        "LANE": LANE,
        "CONTEXT": CONTEXT,
        "POINTERS": POINTERS,
    }
    return expand(_TEXT, words, structs)
