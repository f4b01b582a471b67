"""The function that runs a program on variables where they are, in LLVM IR.

It reads the addresses of the variables' values, holding these so that they outlive other threads'
assignments, runs the program, and exchanges the buffers of assigned variables with those that it
wrote the new values to. Nothing of this needs Python or the operations of TensorFlow.
"""

from __future__ import annotations

from polyblocks.codegen.ir_text import expand

#: The function: ``i32 (ptr table, ptr given, ptr prepared, i32 threads)``.
CALL = "polyblocks_tf_call"
#: ``i32 (ptr flag)``: whether the flag was clear; it is set then.
CLAIM = "polyblocks_tf_claim"
#: The functions of :mod:`polyblocks_tf.variables.library` that they call.
IMPORTS = (
    "copy",
    "destroy",
    "allocate",
    "data",
    "is_same_shape",
    "is_unshared",
    "lock",
    "unlock",
    "lock_shared",
    "unlock_shared",
    "executor_of",
    "is_async",
    "wait",
    "delete_executor",
    "new_status",
    "code_of",
    "delete_status",
)

#: Where an address comes from, in a row of the table: the next of those that are given, or the
#: variable of this number among those that are read, or among those that are assigned, or the first
#: word of what is prepared. The other words are the addresses of the values that it is of.
GIVEN, READ, ASSIGNED, PREPARED = 0, 1, 2, 3

#: Status of a call that ran nothing: a variable is not as it was bound, or an operation in the
#: thread's queue has failed; what was computed once is of other values; another call is assigning
#: the same variable; and, less the variable's number among those that are assigned, there is no
#: memory of the right size for its new value.
REFUSED, CHANGED, BUSY, UNUSABLE = -1, -2, -3, -4

# The table:
#   ptr  entry         i32 (ptr pointers, i32 threads)
#   ptr  rows          {i32 kind, i32 number} each
#   ptr  read          {ptr tensor, ptr mutex, ptr flags, i64 bytes, i32 lasting, ptr shape} each;
#                      lasting: which word of what is prepared is its address, or negative
#   ptr  assigned      {ptr tensor, ptr mutex, ptr spare, ptr busy, i64 bytes, ptr type, i32 dtype}
#                      each; spare: the tensor that gets the new value; type: of its buffer
#   ptr  context       of TensorFlow
#   i32  count         of rows
#   i32  read_count
#   i32  assigned_count
#   i32  iterations    how often the program is run per call
#   i32  poison        whether the memory of new values is filled before
_TEXT = """
%table = type { ptr, ptr, ptr, ptr, ptr, i32, i32, i32, i32, i32 }
%row = type { i32, i32 }
%read = type { ptr, ptr, ptr, i64, i32, ptr }
%assigned = type { ptr, ptr, ptr, ptr, i64, ptr, i32 }
%tensor = type [4 x i64]

declare void @copy(ptr, ptr)
declare void @destroy(ptr)
declare void @allocate(ptr, i32, ptr)
declare { i64, ptr } @data(ptr)
declare i8 @is_same_shape(ptr, ptr)
declare i8 @is_unshared(ptr)
declare void @lock(ptr)
declare void @unlock(ptr)
declare void @lock_shared(ptr)
declare void @unlock_shared(ptr)
declare ptr @executor_of(ptr)
declare i8 @is_async(ptr)
declare void @wait(ptr, ptr)
declare void @delete_executor(ptr)
declare ptr @new_status()
declare i32 @code_of(ptr)
declare void @delete_status(ptr)
declare ptr @memset(ptr, i32, i64)

define i32 @CLAIM(ptr %flag) {
  %tried = cmpxchg ptr %flag, i32 0, i32 1 acquire monotonic
  %got = extractvalue { i32, i1 } %tried, 1
  %result = zext i1 %got to i32
  ret i32 %result
}

define i32 @CALL(ptr %table, ptr %given, ptr %prepared, i32 %threads) {
start:
  %entry = load ptr, ptr %table
  %rows.at = getelementptr %table, ptr %table, i32 0, i32 1
  %rows = load ptr, ptr %rows.at
  %reads.at = getelementptr %table, ptr %table, i32 0, i32 2
  %reads = load ptr, ptr %reads.at
  %assigns.at = getelementptr %table, ptr %table, i32 0, i32 3
  %assigns = load ptr, ptr %assigns.at
  %context.at = getelementptr %table, ptr %table, i32 0, i32 4
  %context = load ptr, ptr %context.at
  %count.at = getelementptr %table, ptr %table, i32 0, i32 5
  %count = load i32, ptr %count.at
  %n.read.at = getelementptr %table, ptr %table, i32 0, i32 6
  %n.read = load i32, ptr %n.read.at
  %n.assigned.at = getelementptr %table, ptr %table, i32 0, i32 7
  %n.assigned = load i32, ptr %n.assigned.at
  %iterations.at = getelementptr %table, ptr %table, i32 0, i32 8
  %iterations = load i32, ptr %iterations.at
  %poison.at = getelementptr %table, ptr %table, i32 0, i32 9
  %poison = load i32, ptr %poison.at
  %poisoned = icmp ne i32 %poison, 0
  %holds = alloca %tensor, i32 %n.read, align 16
  %old.values = alloca ptr, i32 %n.read
  %new.values = alloca ptr, i32 %n.assigned
  %pointers = alloca ptr, i32 %count
  %fresh = alloca %tensor, align 16
; Operations that this thread has called may be waiting in a queue, and assign. Not all queues: the
; operation that called this one may be in another thread's.
  %executor = call ptr @executor_of(ptr %context)
  %async.byte = call i8 @is_async(ptr %executor)
  %async = trunc i8 %async.byte to i1
  br i1 %async, label %settle, label %settled

settle:
  %status = call ptr @new_status()
  call void @wait(ptr %executor, ptr %status)
  %queue.code = call i32 @code_of(ptr %status)
  call void @delete_status(ptr %status)
  br label %settled

settled:
  %queue.result = phi i32 [ 0, %start ], [ %queue.code, %settle ]
  call void @delete_executor(ptr %executor)
  %queue.good = icmp eq i32 %queue.result, 0
  br i1 %queue.good, label %claim, label %failed.queue

; An operation there has failed; the next one that is called raises what has happened.
failed.queue:
  ret i32 REFUSED

; Take the memory of the new values, if nothing else has it.
claim:
  %a = phi i32 [ 0, %settled ], [ %a.next, %claimed ]
  %a.more = icmp slt i32 %a, %n.assigned
  br i1 %a.more, label %claim.one, label %hold

claim.one:
  %busy.at = getelementptr %assigned, ptr %assigns, i32 %a, i32 3
  %busy = load ptr, ptr %busy.at
  %tried = cmpxchg ptr %busy, i32 0, i32 1 acquire monotonic
  %got = extractvalue { i32, i1 } %tried, 1
  br i1 %got, label %claim.check, label %giving.up

claim.check:
  %a.next = add i32 %a, 1
  %spare.at = getelementptr %assigned, ptr %assigns, i32 %a, i32 2
  %spare = load ptr, ptr %spare.at
  %buffer.at = getelementptr %tensor, ptr %spare, i32 0, i32 3
  %buffer = load ptr, ptr %buffer.at
  %empty = icmp eq ptr %buffer, null
  br i1 %empty, label %giving.up, label %claim.type

claim.type:
  %its.type = load ptr, ptr %buffer
  %type.at = getelementptr %assigned, ptr %assigns, i32 %a, i32 5
  %type = load ptr, ptr %type.at
  %own = icmp eq ptr %its.type, %type
  %unshared.byte = call i8 @is_unshared(ptr %spare)
  %unshared.bit = and i8 %unshared.byte, 1
  %unshared = icmp ne i8 %unshared.bit, 0
  %usable = and i1 %own, %unshared
  %spare.view = call { i64, ptr } @data(ptr %spare)
  %spare.size = extractvalue { i64, ptr } %spare.view, 0
  %spare.data = extractvalue { i64, ptr } %spare.view, 1
  %new.size.at = getelementptr %assigned, ptr %assigns, i32 %a, i32 4
  %new.size = load i64, ptr %new.size.at
  %fits = icmp eq i64 %spare.size, %new.size
  br i1 %fits, label %claim.whose, label %giving.up

claim.whose:
  br i1 %usable, label %claim.take, label %claim.renew

; Others hold this buffer, or it is not TensorFlow's own: another one of the same shape.
claim.renew:
  %dtype.at = getelementptr %assigned, ptr %assigns, i32 %a, i32 6
  %dtype = load i32, ptr %dtype.at
  call void @allocate(ptr %fresh, i32 %dtype, ptr %spare)
  %fresh.words = load <4 x i64>, ptr %fresh, align 8
  %spare.words = load <4 x i64>, ptr %spare, align 8
  store <4 x i64> %fresh.words, ptr %spare, align 8
  store <4 x i64> %spare.words, ptr %fresh, align 8
  call void @destroy(ptr %fresh)
  %fresh.view = call { i64, ptr } @data(ptr %spare)
  %fresh.size = extractvalue { i64, ptr } %fresh.view, 0
  %fresh.data = extractvalue { i64, ptr } %fresh.view, 1
  %fresh.fits = icmp eq i64 %fresh.size, %new.size
  %fresh.there = icmp ne ptr %fresh.data, null
  %renewed = and i1 %fresh.fits, %fresh.there
  br i1 %renewed, label %claim.take, label %giving.up

claim.take:
  %new.data = phi ptr [ %spare.data, %claim.whose ], [ %fresh.data, %claim.renew ]
  %new.value.at = getelementptr ptr, ptr %new.values, i32 %a
  store ptr %new.data, ptr %new.value.at
  br i1 %poisoned, label %claim.fill, label %claimed

claim.fill:
  %ignored.fill = call ptr @memset(ptr %new.data, i32 PATTERN, i64 %new.size)
  br label %claimed

claimed:
  br label %claim

giving.up:
  %a.held = phi i32 [ %a, %claim.one ], [ %a.next, %claim.check ], [ %a.next, %claim.type ],
                    [ %a.next, %claim.renew ]
  %a.unusable = sub i32 UNUSABLE, %a
  %a.why = select i1 %got, i32 %a.unusable, i32 BUSY
  br label %unclaim

; Hold the old values.
hold:
  %h = phi i32 [ 0, %claim ], [ %h.next, %held ]
  %h.more = icmp slt i32 %h, %n.read
  br i1 %h.more, label %hold.one, label %row

hold.one:
  %h.next = add i32 %h, 1
  %mutex.at = getelementptr %read, ptr %reads, i32 %h, i32 1
  %mutex = load ptr, ptr %mutex.at
  %flags.at = getelementptr %read, ptr %reads, i32 %h, i32 2
  %flags.there = load ptr, ptr %flags.at
  %tensor.at = getelementptr %read, ptr %reads, i32 %h, i32 0
  %tensor = load ptr, ptr %tensor.at
  %kept.at = getelementptr %tensor, ptr %holds, i32 %h
  call void @lock_shared(ptr %mutex)
  %flags = load i16, ptr %flags.there
  %ready = icmp eq i16 %flags, 1
  br i1 %ready, label %hold.copy, label %hold.refuse

hold.refuse:
  call void @unlock_shared(ptr %mutex)
  br label %release

hold.copy:
  call void @copy(ptr %kept.at, ptr %tensor)
  call void @unlock_shared(ptr %mutex)
  %view = call { i64, ptr } @data(ptr %kept.at)
  %size = extractvalue { i64, ptr } %view, 0
  %value = extractvalue { i64, ptr } %view, 1
  %bytes.at = getelementptr %read, ptr %reads, i32 %h, i32 3
  %bytes = load i64, ptr %bytes.at
  %same.size = icmp eq i64 %size, %bytes
  br i1 %same.size, label %hold.shape, label %hold.drop

; A tensor begins with its shape.
hold.shape:
  %shape.at = getelementptr %read, ptr %reads, i32 %h, i32 5
  %shape = load ptr, ptr %shape.at
  %same.shape.byte = call i8 @is_same_shape(ptr %kept.at, ptr %shape)
  %same.shape = trunc i8 %same.shape.byte to i1
  br i1 %same.shape, label %hold.compare, label %hold.drop

hold.compare:
  %old.value.at = getelementptr ptr, ptr %old.values, i32 %h
  store ptr %value, ptr %old.value.at
  %lasting.at = getelementptr %read, ptr %reads, i32 %h, i32 4
  %lasting = load i32, ptr %lasting.at
  %lasts = icmp sge i32 %lasting, 0
  br i1 %lasts, label %hold.expect, label %held

hold.expect:
  %expected.at = getelementptr ptr, ptr %prepared, i32 %lasting
  %expected.value = load ptr, ptr %expected.at
  %same = icmp eq ptr %expected.value, %value
  br i1 %same, label %held, label %hold.drop

hold.drop:
  %why = phi i32 [ REFUSED, %hold.copy ], [ REFUSED, %hold.shape ], [ CHANGED, %hold.expect ]
  br label %release

held:
  br label %hold

; The addresses, in the program's order.
row:
  %i = phi i32 [ 0, %hold ], [ %i.next, %stored ]
  %g = phi i32 [ 0, %hold ], [ %g.next, %stored ]
  %i.more = icmp slt i32 %i, %count
  br i1 %i.more, label %row.one, label %run

row.one:
  %kind.at = getelementptr %row, ptr %rows, i32 %i, i32 0
  %kind = load i32, ptr %kind.at
  %number.at = getelementptr %row, ptr %rows, i32 %i, i32 1
  %number = load i32, ptr %number.at
  switch i32 %kind, label %row.given [
    i32 READ, label %row.read
    i32 ASSIGNED, label %row.assigned
    i32 PREPARED, label %row.prepared
  ]

row.given:
  %given.at = getelementptr ptr, ptr %given, i32 %g
  %g.more = add i32 %g, 1
  br label %stored

row.read:
  %row.old.at = getelementptr ptr, ptr %old.values, i32 %number
  br label %stored

row.assigned:
  %row.new.at = getelementptr ptr, ptr %new.values, i32 %number
  br label %stored

row.prepared:
  br label %stored

stored:
  %g.next = phi i32 [ %g.more, %row.given ], [ %g, %row.read ], [ %g, %row.assigned ],
                    [ %g, %row.prepared ]
  %address.at = phi ptr [ %given.at, %row.given ], [ %row.old.at, %row.read ],
                        [ %row.new.at, %row.assigned ], [ %prepared, %row.prepared ]
  %address = load ptr, ptr %address.at
  %slot = getelementptr ptr, ptr %pointers, i32 %i
  store ptr %address, ptr %slot
  %i.next = add i32 %i, 1
  br label %row

run:
  %n = phi i32 [ %iterations, %row ], [ %n.next, %ran ]
  %again = icmp sgt i32 %n, 0
  br i1 %again, label %enter, label %release

enter:
  %code = call i32 %entry(ptr %pointers, i32 %threads)
  %failed = icmp ne i32 %code, 0
  br i1 %failed, label %release, label %ran

ran:
  %n.next = sub i32 %n, 1
  br label %run

release:
  %n.held = phi i32 [ %h, %hold.refuse ], [ %h.next, %hold.drop ], [ %n.read, %run ],
                    [ %n.read, %enter ]
  %result = phi i32 [ REFUSED, %hold.refuse ], [ %why, %hold.drop ], [ 0, %run ],
                    [ %code, %enter ]
  br label %drop

drop:
  %d = phi i32 [ 0, %release ], [ %d.next, %drop.one ]
  %d.more = icmp slt i32 %d, %n.held
  br i1 %d.more, label %drop.one, label %judge

drop.one:
  %d.next = add i32 %d, 1
  %drop.at = getelementptr %tensor, ptr %holds, i32 %d
  call void @destroy(ptr %drop.at)
  br label %drop

judge:
  %good = icmp eq i32 %result, 0
  br i1 %good, label %assign, label %unclaim

; Give the variables their new values; their old buffers are the memory of the next ones.
assign:
  %s = phi i32 [ 0, %judge ], [ %s.next, %assign.one ]
  %s.more = icmp slt i32 %s, %n.assigned
  br i1 %s.more, label %assign.one, label %unclaim

assign.one:
  %s.next = add i32 %s, 1
  %s.tensor.at = getelementptr %assigned, ptr %assigns, i32 %s, i32 0
  %s.tensor = load ptr, ptr %s.tensor.at
  %s.mutex.at = getelementptr %assigned, ptr %assigns, i32 %s, i32 1
  %s.mutex = load ptr, ptr %s.mutex.at
  %s.spare.at = getelementptr %assigned, ptr %assigns, i32 %s, i32 2
  %s.spare = load ptr, ptr %s.spare.at
  call void @lock(ptr %s.mutex)
  %s.old = load <4 x i64>, ptr %s.tensor, align 8
  %s.new = load <4 x i64>, ptr %s.spare, align 8
  store <4 x i64> %s.new, ptr %s.tensor, align 8
  store <4 x i64> %s.old, ptr %s.spare, align 8
  call void @unlock(ptr %s.mutex)
  br label %assign

unclaim:
  %n.claimed = phi i32 [ %a.held, %giving.up ], [ %n.assigned, %judge ], [ %n.assigned, %assign ]
  %outcome = phi i32 [ %a.why, %giving.up ], [ %result, %judge ], [ 0, %assign ]
  br label %free

free:
  %f = phi i32 [ 0, %unclaim ], [ %f.next, %free.one ]
  %f.more = icmp slt i32 %f, %n.claimed
  br i1 %f.more, label %free.one, label %done

free.one:
  %f.next = add i32 %f, 1
  %f.busy.at = getelementptr %assigned, ptr %assigns, i32 %f, i32 3
  %f.busy = load ptr, ptr %f.busy.at
  store atomic i32 0, ptr %f.busy release, align 4
  br label %free

done:
  ret i32 %outcome
}
"""


def call_text(pattern: int) -> str:
    """The LLVM IR of the function.

    Args:
        pattern: the byte that memory of new values is filled with before, where it is poisoned.
    """
    words = {
        "PREPARED": PREPARED,
        "CALL": CALL,
        "CLAIM": CLAIM,
        "READ": READ,
        "ASSIGNED": ASSIGNED,
        "REFUSED": REFUSED,
        "CHANGED": CHANGED,
        "BUSY": BUSY,
        "UNUSABLE": UNUSABLE,
        "PATTERN": pattern,
    }
    return expand(_TEXT, words)
