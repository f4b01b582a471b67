"""Launches of a GPU program in a loop of machine code, in LLVM IR.

One text serves all programs and vendors: what it must know of a program is in a table, see
:mod:`polyblocks.runtime.device.native_launcher`, with the addresses of the driver's functions. It
allocates nothing and knows nothing of Python, so that it runs without the interpreter's lock.
"""

from __future__ import annotations

#: ``i32 launch(ptr table, ptr stream, ptr failed)``: put all kernels on a stream.
#: ``i32 replay(ptr table, ptr graph, ptr stream)``: run a graph.
#: ``i32 move(ptr table, ptr graph, ptr stream, ptr values, ptr marks, ptr failed)``: run a graph
#: with other values in its argument block. All return the driver's status, or one of those below;
#: ``failed`` gets the number of the launch that the driver refused, -1 for the graph itself.
LAUNCH, REPLAY, MOVE = "polyblocks_launch", "polyblocks_replay", "polyblocks_move"

#: Statuses of our own: the stream records a graph of the caller's, or does not tell; more launches
#: change than the table's limit. Nothing was done.
RECORDING, TOO_MANY = -1, -2

# The table:
#   ptr  launch      i32 (ptr function, i32 grid[3], i32 block[3], i32 shared, ptr stream,
#                         ptr operands, ptr extra)
#   ptr  capturing   i32 (ptr stream, ptr i32)
#   ptr  replay      i32 (ptr graph, ptr stream)
#   ptr  update      i32 (ptr graph, ptr node, ptr parameters)
#   ptr  rows        of the launches
#   ptr  block       the argument block
#   i32  count       of launches
#   i32  slots       of the argument block
#   i32  limit       launches that may change
# A row:
#   ptr  function    and i32 grid[3], i32 block[3], i32 shared
#   ptr  operands    addresses in the argument block
#   ptr  node        of the graph
#   ptr  parameters  of the node, in the vendor's form
#   ptr  slots       numbers of the slots that the operands are in, i32 each
#   i32  operands    how many there are
# The marks: a byte for each slot.
_TEXT = """
%table = type { ptr, ptr, ptr, ptr, ptr, ptr, i32, i32, i32 }
%row = type { ptr, i32, i32, i32, i32, i32, i32, i32, ptr, ptr, ptr, ptr, i32 }

define i32 @LAUNCH(ptr %table, ptr %stream, ptr %failed) {
start:
  %launch = load ptr, ptr %table
  %rows.at = getelementptr %table, ptr %table, i32 0, i32 4
  %rows = load ptr, ptr %rows.at
  %count.at = getelementptr %table, ptr %table, i32 0, i32 6
  %count = load i32, ptr %count.at
  br label %next
next:
  %i = phi i32 [ 0, %start ], [ %i.next, %done ]
  %more = icmp slt i32 %i, %count
  br i1 %more, label %take, label %end
take:
  %row = getelementptr %row, ptr %rows, i32 %i
  %function = load ptr, ptr %row
  %gx.at = getelementptr %row, ptr %row, i32 0, i32 1
  %gx = load i32, ptr %gx.at
  %gy.at = getelementptr %row, ptr %row, i32 0, i32 2
  %gy = load i32, ptr %gy.at
  %gz.at = getelementptr %row, ptr %row, i32 0, i32 3
  %gz = load i32, ptr %gz.at
  %bx.at = getelementptr %row, ptr %row, i32 0, i32 4
  %bx = load i32, ptr %bx.at
  %by.at = getelementptr %row, ptr %row, i32 0, i32 5
  %by = load i32, ptr %by.at
  %bz.at = getelementptr %row, ptr %row, i32 0, i32 6
  %bz = load i32, ptr %bz.at
  %shared.at = getelementptr %row, ptr %row, i32 0, i32 7
  %shared = load i32, ptr %shared.at
  %operands.at = getelementptr %row, ptr %row, i32 0, i32 8
  %operands = load ptr, ptr %operands.at
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

define internal i1 @recording(ptr %table, ptr %stream) {
  %word = alloca i32
  store i32 0, ptr %word
  %capturing.at = getelementptr %table, ptr %table, i32 0, i32 1
  %capturing = load ptr, ptr %capturing.at
  %status = call i32 %capturing(ptr %stream, ptr %word)
  %state = load i32, ptr %word
  %either = or i32 %status, %state
  %is = icmp ne i32 %either, 0
  ret i1 %is
}

define i32 @REPLAY(ptr %table, ptr %graph, ptr %stream) {
  %recording = call i1 @recording(ptr %table, ptr %stream)
  br i1 %recording, label %left, label %run
left:
  ret i32 RECORDING
run:
  %replay.at = getelementptr %table, ptr %table, i32 0, i32 2
  %replay = load ptr, ptr %replay.at
  %status = call i32 %replay(ptr %graph, ptr %stream)
  ret i32 %status
}

; Whether one of the slots of a row is marked.
define internal i1 @changed(ptr %row, ptr %marks) {
start:
  %slots.at = getelementptr %row, ptr %row, i32 0, i32 11
  %slots = load ptr, ptr %slots.at
  %count.at = getelementptr %row, ptr %row, i32 0, i32 12
  %count = load i32, ptr %count.at
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

define i32 @MOVE(ptr %table, ptr %graph, ptr %stream, ptr %values, ptr %marks, ptr %failed) {
start:
  store i32 -1, ptr %failed
  %recording = call i1 @recording(ptr %table, ptr %stream)
  br i1 %recording, label %left, label %compare
left:
  ret i32 RECORDING
compare:
  %update.at = getelementptr %table, ptr %table, i32 0, i32 3
  %update = load ptr, ptr %update.at
  %rows.at = getelementptr %table, ptr %table, i32 0, i32 4
  %rows = load ptr, ptr %rows.at
  %block.at = getelementptr %table, ptr %table, i32 0, i32 5
  %block = load ptr, ptr %block.at
  %count.at = getelementptr %table, ptr %table, i32 0, i32 6
  %count = load i32, ptr %count.at
  %slots.at = getelementptr %table, ptr %table, i32 0, i32 7
  %slots = load i32, ptr %slots.at
  %limit.at = getelementptr %table, ptr %table, i32 0, i32 8
  %limit = load i32, ptr %limit.at
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
  %counted.row = getelementptr %row, ptr %rows, i32 %c
  %is = call i1 @changed(ptr %counted.row, ptr %marks)
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
  %wide = zext i32 %slots to i64
  %bytes = mul i64 %wide, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %block, ptr %values, i64 %bytes, i1 false)
  br label %next.row
next.row:
  %i = phi i32 [ 0, %fill ], [ %i.next, %kept ]
  %more = icmp slt i32 %i, %count
  br i1 %more, label %take, label %run
take:
  %row = getelementptr %row, ptr %rows, i32 %i
  %changed = call i1 @changed(ptr %row, ptr %marks)
  br i1 %changed, label %set, label %kept
set:
  %node.at = getelementptr %row, ptr %row, i32 0, i32 9
  %node = load ptr, ptr %node.at
  %parameters.at = getelementptr %row, ptr %row, i32 0, i32 10
  %parameters = load ptr, ptr %parameters.at
  %status = call i32 %update(ptr %graph, ptr %node, ptr %parameters)
  %bad = icmp ne i32 %status, 0
  br i1 %bad, label %broken, label %kept
broken:
  store i32 %i, ptr %failed
  ret i32 %status
kept:
  %i.next = add i32 %i, 1
  br label %next.row
run:
  %replay.at = getelementptr %table, ptr %table, i32 0, i32 2
  %replay = load ptr, ptr %replay.at
  %replayed = call i32 %replay(ptr %graph, ptr %stream)
  ret i32 %replayed
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


def launcher_text() -> str:
    """The LLVM IR of the functions."""
    words = {
        "LAUNCH": LAUNCH,
        "REPLAY": REPLAY,
        "MOVE": MOVE,
        "RECORDING": RECORDING,
        "TOO_MANY": TOO_MANY,
    }
    text = _TEXT
    for word, value in words.items():
        text = text.replace(word, str(value))
    return text
