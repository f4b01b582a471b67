"""The main loop of a kernel: the innermost one that multiplies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.gpu_static.instructions import Code, Instruction, Kind, products

#: A block says that it is done, for which others wait.
_DONE = ("RED.E.ADD.STRONG.GPU",)
#: It takes a number, or asks for how many others that holds.
_WAITS = ("ATOMG.",)
#: Where the code begins of warps that start copies.
_OF_COPIES = ("USETMAXREG.DEALLOC", "ELECT")


@dataclass(frozen=True)
class Parts:
    """A kernel around its main loop.

    Attributes:
        before, loop, after: instructions; a kernel without a loop is all ``loop``.
        is_loop: whether there is one.
        boxes: copies of boxes for an iteration, which warps of their own start.
        stored: copies of boxes of results, of a group of warps.
        shared_boxes: of ``boxes`` those that all blocks of a cluster get.
    """

    before: tuple[Instruction, ...]
    loop: tuple[Instruction, ...]
    after: tuple[Instruction, ...]
    is_loop: bool
    boxes: int = 0
    stored: int = 0
    shared_boxes: int = 0

    @property
    def multiplier(self) -> Kind:
        """What multiplies in the loop."""
        return multiplier(self.loop)


def multiplier(instructions: Sequence[Instruction]) -> Kind:
    """Matrix units if there are any, else multiply-adds."""
    return Kind.MATRIX if products(instructions, Kind.MATRIX) else Kind.FLOAT


def loops(code: Code) -> list[tuple[int, int]]:
    """First and last instruction of each loop: those around branches that go back.

    Branches to the same place end the same loop.
    """
    last: dict[int, int] = {}
    instructions = code.instructions
    if _boxes(instructions):
        # Behind the last end there are waits that take longer, which go back to where they were.
        ends = [n for n, i in enumerate(instructions) if i.name == "EXIT"]
        instructions = instructions[: max(ends, default=len(instructions))]
    for number, instruction in enumerate(instructions):
        begin = code.labels.get(instruction.target)
        if begin is not None and begin <= number:
            last[begin] = number
    return list(last.items())


def split(code: Code) -> Parts:
    """A kernel's main loop and what is around it.

    It is the loop that does most multiply-adds, by matrix units if there are any, of those in which
    no other loop does any; the first of equal ones.
    """
    every = loops(code)
    kind = multiplier(code.instructions)
    weighed = [(products(code.instructions[b : e + 1], kind), b, e) for b, e in every]
    weighed = [(most, b, e) for most, b, e in weighed if most]
    weighed = [
        (most, b, e)
        for most, b, e in weighed
        if not any((b, e) != (c, f) and b <= c and f <= e for _, c, f in weighed)
    ]
    most, begin, end = max(weighed, key=lambda one: (one[0], -one[1]), default=(0, 0, 0))
    if not most:
        return Parts((), code.instructions, (), False)
    i = code.instructions
    # Warps that start copies have code of their own, behind that of the others.
    first = next((n for n in range(end + 1, len(i)) if _boxes(i[n : n + 1])), end)
    begins = [n for n in range(end + 1, first) if i[n].name.startswith(_OF_COPIES)]
    role = max(begins, default=len(i))
    copying = [(b, e) for b, e in every if b >= role and _boxes(i[b : e + 1])]
    # Around them may be a loop over tiles.
    inner = [
        (b, e)
        for b, e in copying
        if not any((b, e) != (c, f) and b <= c and f <= e for c, f in copying)
    ]
    boxes, shared = (
        max((_boxes(i[b : e + 1], *part) for b, e in inner), default=0)
        for part in ((), ("UTMALDG", "MULTICAST"))
    )
    after = i[end + 1 : role]
    stored = _boxes(after, "UTMASTG")
    return Parts(i[:begin], _usual(code, begin, end), after, True, boxes, stored, shared)


def phases(code: Code) -> list[Code]:
    """The code of each kernel of a launch whose blocks wait for each other, in their order.

    What takes a number or waits for others, up to the barrier behind it, is left out. So is what
    counts a block that is done, from the barrier before it on: both are a part of what is waited.
    """
    given = code.instructions
    ends = [n + 1 for n, i in enumerate(given) if i.name.startswith(_DONE)]
    found = []
    for begin, end in zip([0, *ends], [*ends, len(given)], strict=True):
        waits = [n for n in range(begin, end) if given[n].name.startswith(_WAITS)]
        if end in ends:
            last = (n for n in range(end - 1, begin, -1) if given[n].kind is Kind.BARRIER)
            end = next(last, end)
        barriers = (n + 1 for n in range(begin, end) if given[n].kind is Kind.BARRIER)
        begin = next((n for n in barriers if waits and n > waits[-1]), begin)
        labels = {name: n - begin for name, n in code.labels.items() if begin <= n < end}
        found.append(Code(code.name, code.instructions[begin:end], labels))
    return found


def _boxes(instructions: Sequence[Instruction], name: str = "UTMALDG", part: str = "") -> int:
    return sum(i.name.startswith(name) and part in i.name for i in instructions)


def _usual(code: Code, begin: int, end: int) -> tuple[Instruction, ...]:
    """The instructions of most iterations of a loop.

    Of both ways behind a branch that goes on, the shorter one, unless the longer one multiplies or
    touches memory: that one is of the few iterations at the border of a mask.
    """
    i = code.instructions
    left: set[int] = set()
    for number in range(begin, end):
        target = code.labels.get(i[number].target)
        if target is None or not number < target <= end or number in left:
            continue
        ways = [range(number + 1, target), range(target, target)]
        # What ends the way without a jump goes past the other one.
        behind = code.labels.get(i[target - 1].target)
        if target - 1 > number and behind is not None and target < behind <= end:
            ways[1] = range(target, behind)
        longer = max(ways, key=len)
        kinds = {i[n].kind for n in longer}
        if kinds.isdisjoint({Kind.MATRIX, Kind.LOAD, Kind.STORE, Kind.COPY, Kind.BARRIER}):
            left.update(longer)
    return tuple(i[n] for n in range(begin, end + 1) if n not in left)
