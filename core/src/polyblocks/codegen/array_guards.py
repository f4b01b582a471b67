"""Guards of arrays in LLVM IR: whether arrays are still as when they were last looked at.

A snapshot holds the words that describe each array, see
:class:`polyblocks.codegen.array_layout.ArrayLayout`; a guard compares them, which takes no
call of the framework. Arrays whose shared words are equal stand together, so that these are in
memory once:

- a group: ``{count, rank, shared words…, words of that rank…}``, :func:`group_words` words;
- the row of an array, one behind the other in the order of the groups:
  ``{Python object, pointers…, own words…}``, :func:`row_words` words.
"""

from __future__ import annotations

from collections.abc import Sequence

from polyblocks.codegen.array_layout import ArrayLayout, Word

#: ``i32 (ptr groups, i64 count, ptr rows)``: whether all words are as in the snapshot.
GUARD = "polyblocks_guard"
#: ``i32 (ptr unmoved, ptr state, ptr object, ptr row, ptr address, i64 rank, ptr words)``: stores
#: :meth:`ArrayLayout.words` of an array that lies as ``unmoved`` (of
#: :mod:`polyblocks.codegen.native_call`) is asked about one array, with Python's lock held in
#: between. ``object`` and ``address`` are where these are. 0 if it does not lie so.
SNAPSHOT = "polyblocks_snapshot"


def group_words(layout: ArrayLayout) -> int:
    """How many words a group has."""
    return 2 + len(layout.shared) + max(map(len, layout.of_rank))


def row_words(layout: ArrayLayout) -> int:
    """How many words the row of an array has."""
    return 1 + len(layout.pointers) + len(layout.own)


def guard_text(layout: ArrayLayout) -> str:
    """The LLVM IR of :data:`GUARD` and :data:`SNAPSHOT`."""
    ranks = range(len(layout.of_rank))
    loops = "".join(_loop(layout, rank) for rank in ranks)
    copies = "".join(_copy(layout, rank) for rank in ranks)
    return f"""
{loops}
define i32 @{GUARD}(ptr %groups, i64 %count, ptr %rows) #0 {{
start:
  br label %each
each:
  %i = phi i64 [ 0, %start ], [ %i.next, %next ]
  %group = phi ptr [ %groups, %start ], [ %group.next, %next ]
  %row = phi ptr [ %rows, %start ], [ %row.next, %next ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %look, label %yes
look:
  %rank.at = getelementptr i64, ptr %group, i64 1
  %rank = load i64, ptr %rank.at
  switch i64 %rank, label %no [{_cases(layout)} ]
{"".join(_call(rank) for rank in ranks)}
next:
  %row.next = phi ptr {", ".join(f"[ %end{rank}, %rank{rank} ]" for rank in ranks)}
  %group.next = getelementptr i64, ptr %group, i64 {group_words(layout)}
  %i.next = add i64 %i, 1
  br label %each
yes:
  ret i32 1
no:
  ret i32 0
}}

define i32 @{SNAPSHOT}(ptr %unmoved, ptr %state, ptr %object, ptr %row, ptr %address, i64 %rank,
                       ptr %words) #0 {{
start:
  %array = load ptr, ptr %object
  %lies = call i32 %unmoved(ptr %state, ptr %object, ptr %row, ptr %address, i64 1)
  %good = icmp ne i32 %lies, 0
  br i1 %good, label %copy, label %no
copy:
  switch i64 %rank, label %no [{_cases(layout)} ]
{copies}
no:
  ret i32 0
}}

attributes #0 = {{ nounwind "no-jump-tables"="true" "no-builtins" }}
"""


def _cases(layout: ArrayLayout) -> str:
    return "".join(f" i64 {rank}, label %rank{rank}" for rank in range(len(layout.of_rank)))


def _call(rank: int) -> str:
    return f"""rank{rank}:
  %end{rank} = call ptr @guard{rank}(ptr %group, ptr %row)
  %bad{rank} = icmp eq ptr %end{rank}, null
  br i1 %bad{rank}, label %no, label %next
"""


def _loop(layout: ArrayLayout, rank: int) -> str:
    """A function that looks at the arrays of a group; returns the end of their rows, or null."""
    lines: list[str] = []
    shared = (*layout.shared, *layout.of_rank[rank])
    # A pointer is not followed before it is known to be what it was.
    for number, word in enumerate((*layout.pointers, *layout.own), start=1):
        lines.append(f"""  %at{number} = getelementptr i8, ptr %part{word.part}, i64 {word.offset}
  %is{number} = load i64, ptr %at{number}
  %row{number} = getelementptr i64, ptr %row, i64 {number}
  %should{number} = load i64, ptr %row{number}
  %same{number} = icmp eq i64 %is{number}, %should{number}
  br i1 %same{number}, label %block{number}, label %no
block{number}:
""")
        if number <= len(layout.pointers):
            lines.append(f"  %part{number} = inttoptr i64 %should{number} to ptr\n")
    expected = "".join(
        f"  %group{k} = getelementptr i64, ptr %group, i64 {k + 2}\n"
        f"  %expected{k} = load i64, ptr %group{k}\n"
        for k in range(len(shared))
    )
    differences: dict[str, list[str]] = {"i64": [], "<2 x i64>": []}
    for first, second in _pairs(shared):
        word, kind, wanted = shared[first], "i64", f"%expected{first}"
        if second is not None:
            kind, wanted = "<2 x i64>", f"%both{first}"
            half = f"insertelement {kind} poison, i64 %expected{first}, i64 0"
            both = f"insertelement {kind} %half{first}, i64 %expected{second}, i64 1"
            expected += f"  %half{first} = {half}\n  {wanted} = {both}\n"
        lines.append(f"""  %from{first} = getelementptr i8, ptr %part{word.part}, i64 {word.offset}
  %found{first} = load {kind}, ptr %from{first}, align 8
  %differs{first} = xor {kind} %found{first}, {wanted}
""")
        differences[kind].append(f"%differs{first}")
    totals = {kind: _either(lines, kind, found) for kind, found in differences.items()}
    lines.append(f"""  %low = extractelement <2 x i64> {totals["<2 x i64>"]}, i64 0
  %high = extractelement <2 x i64> {totals["<2 x i64>"]}, i64 1
  %halves = or i64 %low, %high
  %different = or i64 %halves, {totals["i64"]}
""")
    compared = row_words(layout) - 1
    end = f"block{compared}" if compared else "look"
    return f"""
define internal ptr @guard{rank}(ptr %group, ptr %rows) #0 {{
start:
  %count = load i64, ptr %group
{expected}  br label %each
each:
  %i = phi i64 [ 0, %start ], [ %i.next, %{end} ]
  %row = phi ptr [ %rows, %start ], [ %row.next, %{end} ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %look, label %yes
look:
  %part0 = load ptr, ptr %row
{"".join(lines)}  %same = icmp eq i64 %different, 0
  %i.next = add i64 %i, 1
  %row.next = getelementptr i64, ptr %row, i64 {row_words(layout)}
  br i1 %same, label %each, label %no
yes:
  ret ptr %row
no:
  ret ptr null
}}
"""


def _either(lines: list[str], kind: str, values: Sequence[str]) -> str:
    """Write what has all bits of these values; returns its name."""
    total = "zeroinitializer" if kind.startswith("<") else "0"
    for value in values:
        name = f"%with.{value[1:]}"
        lines.append(f"  {name} = or {kind} {total}, {value}\n")
        total = name
    return total


def _pairs(words: Sequence[Word]) -> list[tuple[int, int | None]]:
    """Numbers of words that lie behind each other, in pairs, and of the others."""
    left = {word: number for number, word in enumerate(words)}
    found: list[tuple[int, int | None]] = []
    for word in sorted(left):
        if word in left:
            first = left.pop(word)
            found.append((first, left.pop(Word(word.part, word.offset + 8), None)))
    return found


def _copy(layout: ArrayLayout, rank: int) -> str:
    lines = [f"rank{rank}:\n"]
    for number, word in enumerate(layout.words(rank)):
        part = "%array" if word.part == 0 else f"%part{rank}.{word.part}"
        name = f"{rank}.{number}"
        lines.append(f"""  %from{name} = getelementptr i8, ptr {part}, i64 {word.offset}
  %word{name} = load i64, ptr %from{name}
  %to{name} = getelementptr i64, ptr %words, i64 {number}
  store i64 %word{name}, ptr %to{name}
""")
        if number < len(layout.pointers):
            lines.append(f"  %part{rank}.{number + 1} = inttoptr i64 %word{name} to ptr\n")
    return "".join([*lines, "  ret i32 1\n"])
