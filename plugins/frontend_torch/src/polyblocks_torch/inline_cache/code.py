"""The inline cache of a decorated function in LLVM IR: compares a call with earlier ones.

All that it looks at is in its table; it needs no relocation. A call that is like none of the
entries goes to ``slow``.
"""

from __future__ import annotations

from polyblocks.codegen.ir_text import expand
from polyblocks.codegen.native_call import SELF_OFFSET

#: A function of Python's protocol ``METH_FASTCALL | METH_KEYWORDS``; the word of ``self`` at
#: :data:`SELF_OFFSET` is the address of the table.
CALL = "polyblocks_cached_call"
#: ``i32 (ptr table, ptr entry, ptr arguments, i64 count)``: whether a call is like an entry.
MATCHES = "polyblocks_matches"

#: Fields of the table, 8 bytes each.
TABLE: tuple[str, ...] = (
    "slow",  # PyObject*, is called with the same arguments
    "entries",  # of ENTRY
    "entry_count",
    "true",  # PyObject*
    "PyObject_Vectorcall",
    "PyDict_GetItem",
    "PyErr_Clear",
    "Py_IncRef",
    "Py_DecRef",
    "tls_get_addr",  # of the C library
    "keys",  # what it finds this thread's c10::impl::raw_local_dispatch_key_set with
    "get_modes",  # at::impl::PythonTorchFunctionTLS::stack_len()
    "requires_grad",  # c10::TensorImpl::requires_grad() const
    "version",  # offset of the version in a dict, which each change makes another one; 0: unknown
)
#: Fields of an entry.
ENTRY: tuple[str, ...] = (
    "count",  # arguments of the call
    "arguments",  # ARGUMENT of each
    "distinct",  # whether all that are tensors are different objects
    "facts",  # of FACT
    "fact_count",
    "included",  # dispatch keys of the thread
    "excluded",
    "settings",  # of SETTING
    "setting_count",
    "state",  # PyObject*, is called without arguments: True if they are as they were; null: not
    "argument",  # the number of the argument that is the result; else the target is called
    "target",  # PyObject*
    "function",  # of the protocol of CALL, whose self is the target; null: any object of Python
    "picks",  # int64 of each of the target's arguments: its number in the call; null: all of them
    "pick_count",
    "unwraps",  # whether the target returns a tuple whose single element is the result
)
#: An argument: a tensor with words that are as expected, or a certain object.
ARGUMENT: tuple[str, ...] = (
    "object",  # PyObject*; null: a tensor
    "type",  # PyTypeObject*
    "words",  # of WORD: of the tensor's implementation
    "word_count",
    "requires_grad",
)
#: Eight bytes at an offset.
WORD: tuple[str, ...] = ("offset", "expected")
#: A further condition: a dict has, or has not, this value for a key. Without a key: the word at the
#: address ``of`` is this.
FACT: tuple[str, ...] = ("of", "key", "value", "differs", "version")
#: A setting of PyTorch: a function of three words, and bits of its result.
SETTING: tuple[str, ...] = ("function", "first", "second", "third", "mask", "expected")

#: Bytes from the beginning of a Python object to the pointer to its tensor.
_HEAD = 16
#: ``argument`` where a target is called.
NO_ARGUMENT = -1

_TEXT = """
define internal i1 @is_like(ptr %table, ptr %expected, ptr %argument) #0 {
start:
  LOAD ARGUMENT.object ptr %expected -> %object
  %is.tensor = icmp eq ptr %object, null
  br i1 %is.tensor, label %as.tensor, label %same
same:
  %identical = icmp eq ptr %object, %argument
  ret i1 %identical
as.tensor:
  %type.at = getelementptr i8, ptr %argument, i64 8
  %type = load ptr, ptr %type.at
  LOAD ARGUMENT.type ptr %expected -> %expected.type
  %same.type = icmp eq ptr %type, %expected.type
  br i1 %same.type, label %look, label %no
look:
  %tensor.at = getelementptr i8, ptr %argument, i64 HEAD
  %tensor = load ptr, ptr %tensor.at
  LOAD ARGUMENT.words ptr %expected -> %words
  LOAD ARGUMENT.word_count i64 %expected -> %count
  br label %each
each:
  %i = phi i64 [ 0, %look ], [ %i.next, %compare ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %compare, label %gradient
compare:
  %word = getelementptr { i64, i64 }, ptr %words, i64 %i
  %offset = load i64, ptr %word
  %wanted.at = getelementptr i64, ptr %word, i64 1
  %wanted = load i64, ptr %wanted.at
  %found.at = getelementptr i8, ptr %tensor, i64 %offset
  %found = load i64, ptr %found.at
  %equal = icmp eq i64 %found, %wanted
  %i.next = add i64 %i, 1
  br i1 %equal, label %each, label %no
gradient:
  LOAD TABLE.requires_grad ptr %table -> %ask
  LOAD ARGUMENT.requires_grad i64 %expected -> %expected.gradient
  %answer = call i8 %ask(ptr %tensor)
  %bit = and i8 %answer, 1
  %wide = zext i8 %bit to i64
  %as.before = icmp eq i64 %wide, %expected.gradient
  ret i1 %as.before
no:
  ret i1 false
}

; Whether no object is given for two tensors.
define internal i1 @distinct(ptr %rows, ptr %arguments, i64 %count) #0 {
start:
  br label %outer
outer:
  %i = phi i64 [ 0, %start ], [ %i.next, %outer.next ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %first, label %yes
first:
  %row = getelementptr %argument, ptr %rows, i64 %i
  %fixed = load ptr, ptr %row
  %is.tensor = icmp eq ptr %fixed, null
  %a.at = getelementptr ptr, ptr %arguments, i64 %i
  %a = load ptr, ptr %a.at
  br i1 %is.tensor, label %inner, label %outer.next
inner:
  %j = phi i64 [ 0, %first ], [ %j.next, %look ]
  %earlier = icmp ult i64 %j, %i
  br i1 %earlier, label %look, label %outer.next
look:
  %b.at = getelementptr ptr, ptr %arguments, i64 %j
  %b = load ptr, ptr %b.at
  %same = icmp eq ptr %a, %b
  %j.next = add i64 %j, 1
  br i1 %same, label %no, label %inner
outer.next:
  %i.next = add i64 %i, 1
  br label %outer
yes:
  ret i1 true
no:
  ret i1 false
}

define internal i1 @holds(ptr %table, ptr %fact) #0 {
start:
  LOAD FACT.of ptr %fact -> %of
  LOAD FACT.key ptr %fact -> %key
  LOAD FACT.value ptr %fact -> %value
  LOAD FACT.differs i64 %fact -> %differs
  LOAD FACT.version i64 %fact -> %version
  %is.word = icmp eq ptr %key, null
  br i1 %is.word, label %word, label %item
word:
  %there = load ptr, ptr %of
  br label %compare
item:
  LOAD TABLE.version i64 %table -> %place
  %unversioned = icmp eq i64 %place, 0
  br i1 %unversioned, label %ask, label %versioned
versioned:
  %now.at = getelementptr i8, ptr %of, i64 %place
  %now = load i64, ptr %now.at
  %unchanged = icmp eq i64 %now, %version
  br i1 %unchanged, label %yes, label %ask
ask:
  %seen = phi i64 [ 0, %item ], [ %now, %versioned ]
  LOAD TABLE.PyDict_GetItem ptr %table -> %get
  %got = call ptr %get(ptr %of, ptr %key)
  br label %compare
compare:
  %found = phi ptr [ %there, %word ], [ %got, %ask ]
  %read = phi i64 [ 0, %word ], [ %seen, %ask ]
  %same = icmp eq ptr %found, %value
  %other = icmp ne i64 %differs, 0
  %good = xor i1 %same, %other
  br i1 %good, label %keep, label %no
keep:
  store i64 %read, ptr %version.at
  br label %yes
yes:
  ret i1 true
no:
  ret i1 false
}

define internal i1 @is_set(ptr %setting) #0 {
  LOAD SETTING.function ptr %setting -> %function
  LOAD SETTING.first i64 %setting -> %first
  LOAD SETTING.second i64 %setting -> %second
  LOAD SETTING.third i64 %setting -> %third
  LOAD SETTING.mask i64 %setting -> %mask
  LOAD SETTING.expected i64 %setting -> %expected
  %answer = call i64 %function(i64 %first, i64 %second, i64 %third)
  %bits = and i64 %answer, %mask
  %same = icmp eq i64 %bits, %expected
  ret i1 %same
}

define internal i32 @matches(ptr %table, ptr %entry, ptr %arguments, i64 %count) #0 {
start:
  LOAD ENTRY.count i64 %entry -> %expected.count
  %all = icmp eq i64 %count, %expected.count
  br i1 %all, label %begin, label %no
begin:
  LOAD ENTRY.arguments ptr %entry -> %rows
  br label %each
each:
  %i = phi i64 [ 0, %begin ], [ %i.next, %look ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %look, label %alike
look:
  %row = getelementptr %argument, ptr %rows, i64 %i
  %argument.at = getelementptr ptr, ptr %arguments, i64 %i
  %argument = load ptr, ptr %argument.at
  %i.next = add i64 %i, 1
  %like = call i1 @is_like(ptr %table, ptr %row, ptr %argument)
  br i1 %like, label %each, label %no
alike:
  LOAD ENTRY.distinct i64 %entry -> %must.differ
  %may.repeat = icmp eq i64 %must.differ, 0
  br i1 %may.repeat, label %thread, label %ask.distinct
ask.distinct:
  %different = call i1 @distinct(ptr %rows, ptr %arguments, i64 %count)
  br i1 %different, label %thread, label %no
thread:
  LOAD TABLE.tls_get_addr ptr %table -> %locate
  LOAD TABLE.keys ptr %table -> %keys
  LOAD TABLE.get_modes ptr %table -> %get.modes
  LOAD ENTRY.included i64 %entry -> %included
  LOAD ENTRY.excluded i64 %entry -> %excluded
  %keys.here = call ptr %locate(ptr %keys)
  %keys.in = load i64, ptr %keys.here
  %keys.out.at = getelementptr i64, ptr %keys.here, i64 1
  %keys.out = load i64, ptr %keys.out.at
  %same.in = icmp eq i64 %keys.in, %included
  %same.out = icmp eq i64 %keys.out, %excluded
  %same.keys = and i1 %same.in, %same.out
  %modes = call i64 %get.modes()
  %no.modes = icmp eq i64 %modes, 0
  %usual = and i1 %same.keys, %no.modes
  br i1 %usual, label %check, label %no
check:
  LOAD ENTRY.facts ptr %entry -> %facts
  LOAD ENTRY.fact_count i64 %entry -> %fact.count
  br label %fact
fact:
  %f = phi i64 [ 0, %check ], [ %f.next, %one.fact ]
  %more.facts = icmp ult i64 %f, %fact.count
  br i1 %more.facts, label %one.fact, label %set
one.fact:
  %this.fact = getelementptr %fact, ptr %facts, i64 %f
  %f.next = add i64 %f, 1
  %true.fact = call i1 @holds(ptr %table, ptr %this.fact)
  br i1 %true.fact, label %fact, label %no
set:
  LOAD ENTRY.settings ptr %entry -> %settings
  LOAD ENTRY.setting_count i64 %entry -> %setting.count
  br label %setting
setting:
  %s = phi i64 [ 0, %set ], [ %s.next, %one.setting ]
  %more.settings = icmp ult i64 %s, %setting.count
  br i1 %more.settings, label %one.setting, label %rest
one.setting:
  %this.setting = getelementptr %setting, ptr %settings, i64 %s
  %s.next = add i64 %s, 1
  %is.set = call i1 @is_set(ptr %this.setting)
  br i1 %is.set, label %setting, label %no
rest:
  LOAD ENTRY.state ptr %entry -> %state
  %all.known = icmp eq ptr %state, null
  br i1 %all.known, label %yes, label %global
global:
  LOAD TABLE.PyObject_Vectorcall ptr %table -> %vectorcall
  LOAD TABLE.Py_DecRef ptr %table -> %decrement
  LOAD TABLE.true ptr %table -> %true
  %answer = call ptr %vectorcall(ptr %state, ptr null, i64 0, ptr null)
  %raised = icmp eq ptr %answer, null
  br i1 %raised, label %error, label %judge
error:
  LOAD TABLE.PyErr_Clear ptr %table -> %clear
  call void %clear()
  br label %no
judge:
  call void %decrement(ptr %answer)
  %as.it.was = icmp eq ptr %answer, %true
  br i1 %as.it.was, label %yes, label %no
yes:
  ret i32 1
no:
  ret i32 0
}

define i32 @MATCHES_NAME(ptr %table, ptr %entry, ptr %arguments, i64 %count) #0 {
  %like = call i32 @matches(ptr %table, ptr %entry, ptr %arguments, i64 %count)
  ret i32 %like
}

define ptr @CALL_NAME(ptr %self, ptr %arguments, i64 %count, ptr %names) #0 {
start:
  %table.at = getelementptr i8, ptr %self, i64 SELF_OFFSET
  %table = load ptr, ptr %table.at
  LOAD TABLE.entries ptr %table -> %entries
  LOAD TABLE.entry_count i64 %table -> %known
  LOAD TABLE.PyObject_Vectorcall ptr %table -> %vectorcall
  LOAD TABLE.Py_IncRef ptr %table -> %increment
  LOAD TABLE.Py_DecRef ptr %table -> %decrement
  %unnamed = icmp eq ptr %names, null
  br i1 %unnamed, label %each, label %slow
each:
  %i = phi i64 [ 0, %start ], [ %i.next, %try ]
  %more = icmp ult i64 %i, %known
  br i1 %more, label %try, label %slow
try:
  %entry = getelementptr %entry, ptr %entries, i64 %i
  %i.next = add i64 %i, 1
  %like = call i32 @matches(ptr %table, ptr %entry, ptr %arguments, i64 %count)
  %matches = icmp ne i32 %like, 0
  br i1 %matches, label %enter, label %each
enter:
  LOAD ENTRY.argument i64 %entry -> %number
  %computes = icmp eq i64 %number, NO_ARGUMENT
  br i1 %computes, label %prepare, label %give.back
give.back:
  %given.at = getelementptr ptr, ptr %arguments, i64 %number
  %given = load ptr, ptr %given.at
  call void %increment(ptr %given)
  ret ptr %given

; The entries may be others when the target returns, on this thread or another one.
prepare:
  LOAD ENTRY.target ptr %entry -> %target
  LOAD ENTRY.function ptr %entry -> %function
  LOAD ENTRY.picks ptr %entry -> %picks
  LOAD ENTRY.pick_count i64 %entry -> %pick.count
  LOAD ENTRY.unwraps i64 %entry -> %unwraps
  call void %increment(ptr %target)
  %as.they.are = icmp eq ptr %picks, null
  br i1 %as.they.are, label %run, label %pick
pick:
  %picked = alloca ptr, i64 %pick.count
  br label %pick.each
pick.each:
  %p = phi i64 [ 0, %pick ], [ %p.next, %pick.one ]
  %more.picks = icmp ult i64 %p, %pick.count
  br i1 %more.picks, label %pick.one, label %run
pick.one:
  %place.at = getelementptr i64, ptr %picks, i64 %p
  %place = load i64, ptr %place.at
  %from = getelementptr ptr, ptr %arguments, i64 %place
  %one = load ptr, ptr %from
  %to = getelementptr ptr, ptr %picked, i64 %p
  store ptr %one, ptr %to
  %p.next = add i64 %p, 1
  br label %pick.each
run:
  %passed = phi ptr [ %arguments, %prepare ], [ %picked, %pick.each ]
  %passed.count = phi i64 [ %count, %prepare ], [ %pick.count, %pick.each ]
  %is.python = icmp eq ptr %function, null
  br i1 %is.python, label %python, label %machine
python:
  %from.python = call ptr %vectorcall(ptr %target, ptr %passed, i64 %passed.count, ptr null)
  br label %returned
machine:
  %from.machine = call ptr %function(ptr %target, ptr %passed, i64 %passed.count, ptr null)
  br label %returned
returned:
  %answer = phi ptr [ %from.python, %python ], [ %from.machine, %machine ]
  call void %decrement(ptr %target)
  %failed = icmp eq ptr %answer, null
  %whole = icmp eq i64 %unwraps, 0
  %done = or i1 %failed, %whole
  br i1 %done, label %deliver, label %unwrap
unwrap:
  %element.at = getelementptr i8, ptr %answer, i64 TUPLE_HEAD
  %element = load ptr, ptr %element.at
  call void %increment(ptr %element)
  call void %decrement(ptr %answer)
  ret ptr %element
deliver:
  ret ptr %answer
slow:
  LOAD TABLE.slow ptr %table -> %fallback
  %slow.answer = call ptr %vectorcall(ptr %fallback, ptr %arguments, i64 %count, ptr %names)
  ret ptr %slow.answer
}

attributes #0 = { nounwind "no-jump-tables"="true" "no-builtins" "probe-stack"="inline-asm" }
"""

_WORDS: dict[str, object] = {
    "CALL_NAME": CALL,
    "MATCHES_NAME": MATCHES,
    "SELF_OFFSET": SELF_OFFSET,
    "HEAD": _HEAD,
    "TUPLE_HEAD": tuple.__basicsize__,
    "NO_ARGUMENT": NO_ARGUMENT,
}


def cache_text() -> str:
    """The LLVM IR of :data:`CALL` and :data:`MATCHES`."""
    structs = {
        "TABLE": TABLE,
        "ENTRY": ENTRY,
        "ARGUMENT": ARGUMENT,
        "FACT": FACT,
        "SETTING": SETTING,
    }
    types = "".join(
        f"%{name.lower()} = type {{ {', '.join(['i64'] * len(fields))} }}\n"
        for name, fields in structs.items()
    )
    return types + expand(_TEXT, _WORDS, structs)
