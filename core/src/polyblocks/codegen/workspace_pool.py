"""Memory for workspaces, handed out to code that runs without Python: a pool, in LLVM IR.

The counterpart of :mod:`polyblocks.runtime.buffers` for programs that are called by others than
Python. A page that is fresh costs five times what writing to it does, so blocks are kept and used
again. There are few blocks at any time (one per program and thread that runs now), so they lie in a
short list behind a lock that is held for the length of one look at it, never during a system call.
"""

from __future__ import annotations

from polyblocks.codegen.ir_text import expand

#: ``ptr acquire(ptr pool, i64 bytes)``: a block of exactly ``bytes`` bytes, null if none fits;
#: ``void release(ptr pool, ptr block, i64 bytes)``. They need no relocations: each pool's state
#: has the addresses of the functions that they call.
ACQUIRE, RELEASE = "polyblocks_acquire", "polyblocks_release"
#: Functions of POSIX that it calls.
POSIX = ("mmap", "munmap", "madvise", "sched_yield")

#: How many idle blocks there can be.
SLOTS = 64
#: Size and alignment of a huge page where ordinary pages have 4 KiB.
HUGE_PAGE = 2 << 20

# The state:
#   i32  lock       1 while something holds it
#   i32  next       where to look for the next block to give up
#   i64  idle       bytes of all idle blocks together
#   i64  limit      bytes that may be idle
#   i32  flags      for mmap: private, anonymous
#   i32  advice     for madvise; negative: none
#   [ptr]  blocks   null where a slot is free
#   [i64]  sizes
#   ptr  mmap, munmap, madvise, sched_yield
_TEXT = """
%state = type { i32, i32, i64, i64, i32, i32, [SLOTS x ptr], [SLOTS x i64], ptr, ptr, ptr, ptr }

define internal void @lock(ptr %pool) #0 {
start:
  br label %try
try:
  %tried = cmpxchg ptr %pool, i32 0, i32 1 acquire monotonic
  %got = extractvalue { i32, i1 } %tried, 1
  br i1 %got, label %done, label %wait
wait:
  %sched_yield.at = getelementptr %state, ptr %pool, i32 0, i32 11
  %sched_yield = load ptr, ptr %sched_yield.at
  %ignored = call i32 %sched_yield()
  br label %try
done:
  ret void
}

define internal void @unlock(ptr %pool) #0 {
  store atomic i32 0, ptr %pool release, align 4
  ret void
}

define internal ptr @map(ptr %pool, i64 %size) #0 {
start:
  %flags.at = getelementptr %state, ptr %pool, i32 0, i32 4
  %flags = load i32, ptr %flags.at
  %huge = icmp uge i64 %size, HUGE
  %slack = select i1 %huge, i64 HUGE, i64 0
  %length = add i64 %size, %slack
  %mmap.at = getelementptr %state, ptr %pool, i32 0, i32 8
  %mmap = load ptr, ptr %mmap.at
  %raw = call ptr %mmap(ptr null, i64 %length, i32 3, i32 %flags, i32 -1, i64 0)
  %begin = ptrtoint ptr %raw to i64
  %failed = icmp eq i64 %begin, -1
  br i1 %failed, label %none, label %mapped
none:
  ret ptr null
mapped:
  br i1 %huge, label %align, label %small
small:
  ret ptr %raw
align:
  %up = add i64 %begin, HUGE_LESS_1
  %aligned = and i64 %up, -HUGE
  %block = inttoptr i64 %aligned to ptr
  %head = sub i64 %aligned, %begin
  %has.head = icmp ne i64 %head, 0
  br i1 %has.head, label %cut.head, label %look
cut.head:
  %munmap.head.at = getelementptr %state, ptr %pool, i32 0, i32 9
  %munmap.head = load ptr, ptr %munmap.head.at
  %ignored.head = call i32 %munmap.head(ptr %raw, i64 %head)
  br label %look
look:
  %end = add i64 %aligned, %size
  %behind = add i64 %begin, %length
  %tail = sub i64 %behind, %end
  %has.tail = icmp ne i64 %tail, 0
  br i1 %has.tail, label %cut.tail, label %advise
cut.tail:
  %end.at = inttoptr i64 %end to ptr
  %munmap.tail.at = getelementptr %state, ptr %pool, i32 0, i32 9
  %munmap.tail = load ptr, ptr %munmap.tail.at
  %ignored.tail = call i32 %munmap.tail(ptr %end.at, i64 %tail)
  br label %advise
advise:
  %advice.at = getelementptr %state, ptr %pool, i32 0, i32 5
  %advice = load i32, ptr %advice.at
  %wanted = icmp sge i32 %advice, 0
  br i1 %wanted, label %tell, label %done
tell:
  %madvise.at = getelementptr %state, ptr %pool, i32 0, i32 10
  %madvise = load ptr, ptr %madvise.at
  %ignored = call i32 %madvise(ptr %block, i64 %size, i32 %advice)
  br label %done
done:
  ret ptr %block
}

define ptr @ACQUIRE(ptr %pool, i64 %size) #0 {
start:
  call void @lock(ptr %pool)
  br label %slot
slot:
  %i = phi i32 [ 0, %start ], [ %i.next, %other ]
  %more = icmp ult i32 %i, SLOTS
  br i1 %more, label %check, label %fresh
check:
  %block.at = getelementptr %state, ptr %pool, i32 0, i32 6, i32 %i
  %block = load ptr, ptr %block.at
  %size.at = getelementptr %state, ptr %pool, i32 0, i32 7, i32 %i
  %its = load i64, ptr %size.at
  %full = icmp ne ptr %block, null
  %fits = icmp eq i64 %its, %size
  %good = and i1 %full, %fits
  br i1 %good, label %take, label %other
other:
  %i.next = add i32 %i, 1
  br label %slot
take:
  store ptr null, ptr %block.at
  %idle.at = getelementptr %state, ptr %pool, i32 0, i32 2
  %idle = load i64, ptr %idle.at
  %less = sub i64 %idle, %size
  store i64 %less, ptr %idle.at
  call void @unlock(ptr %pool)
  ret ptr %block
fresh:
  call void @unlock(ptr %pool)
  %new = call ptr @map(ptr %pool, i64 %size)
  ret ptr %new
}

define void @RELEASE(ptr %pool, ptr %block, i64 %size) #0 {
start:
  br label %again
again:
  call void @lock(ptr %pool)
  %idle.at = getelementptr %state, ptr %pool, i32 0, i32 2
  %idle = load i64, ptr %idle.at
  %sum = add i64 %idle, %size
  %limit.at = getelementptr %state, ptr %pool, i32 0, i32 3
  %limit = load i64, ptr %limit.at
  %room = icmp ule i64 %sum, %limit
  br i1 %room, label %slot, label %evict
slot:
  %i = phi i32 [ 0, %again ], [ %i.next, %other ]
  %more = icmp ult i32 %i, SLOTS
  br i1 %more, label %check, label %evict
check:
  %slot.at = getelementptr %state, ptr %pool, i32 0, i32 6, i32 %i
  %held = load ptr, ptr %slot.at
  %free = icmp eq ptr %held, null
  br i1 %free, label %put, label %other
other:
  %i.next = add i32 %i, 1
  br label %slot
put:
  store ptr %block, ptr %slot.at
  %size.at = getelementptr %state, ptr %pool, i32 0, i32 7, i32 %i
  store i64 %size, ptr %size.at
  store i64 %sum, ptr %idle.at
  call void @unlock(ptr %pool)
  ret void
evict:
  %next.at = getelementptr %state, ptr %pool, i32 0, i32 1
  %first = load i32, ptr %next.at
  br label %victim
victim:
  %k = phi i32 [ 0, %evict ], [ %k.next, %further ]
  %left = icmp ult i32 %k, SLOTS
  br i1 %left, label %inspect, label %drop
inspect:
  %sum.j = add i32 %first, %k
  %j = urem i32 %sum.j, SLOTS
  %old.at = getelementptr %state, ptr %pool, i32 0, i32 6, i32 %j
  %old = load ptr, ptr %old.at
  %there = icmp ne ptr %old, null
  br i1 %there, label %give.up, label %further
further:
  %k.next = add i32 %k, 1
  br label %victim
give.up:
  store ptr null, ptr %old.at
  %old.size.at = getelementptr %state, ptr %pool, i32 0, i32 7, i32 %j
  %old.size = load i64, ptr %old.size.at
  %rest = sub i64 %idle, %old.size
  store i64 %rest, ptr %idle.at
  %behind = add i32 %j, 1
  store i32 %behind, ptr %next.at
  call void @unlock(ptr %pool)
  %munmap.old.at = getelementptr %state, ptr %pool, i32 0, i32 9
  %munmap.old = load ptr, ptr %munmap.old.at
  %ignored.old = call i32 %munmap.old(ptr %old, i64 %old.size)
  br label %again
drop:
  call void @unlock(ptr %pool)
  %munmap.block.at = getelementptr %state, ptr %pool, i32 0, i32 9
  %munmap.block = load ptr, ptr %munmap.block.at
  %ignored = call i32 %munmap.block(ptr %block, i64 %size)
  ret void
}

attributes #0 = { nounwind "no-jump-tables"="true" "no-builtins" }
"""


def pool_text() -> str:
    """The LLVM IR of the pool."""
    words = {
        "ACQUIRE": ACQUIRE,
        "RELEASE": RELEASE,
        "SLOTS": SLOTS,
        "HUGE_LESS_1": HUGE_PAGE - 1,
        "HUGE": HUGE_PAGE,
    }
    return expand(_TEXT, words)
