"""schedule-vectors: long straight-line arithmetic in an order that keeps a core busy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from math import prod
from typing import Any, ClassVar

from polyblocks.codegen.list_schedule import Instruction, list_schedule, peak_live_registers
from polyblocks.codegen.merge_rare_branches import is_rare_branch
from polyblocks.codegen.straight_line import is_read, is_straight_line, is_write
from polyblocks.codegen.walk import nested

#: Bodies of fewer vector operations fit what a core looks ahead, in any order.
MIN_OPERATIONS = 24
#: Cycles until a result is there, about: arithmetic on floats, unless said otherwise.
LATENCY = 4.0
_LATENCIES = {
    "arith.divf": 14.0,
    "math.sqrt": 18.0,
    "vector.load": 7.0,
    "vector.maskedload": 7.0,
    "llvm.call_intrinsic": 6.0,
    **dict.fromkeys(
        (
            *("arith.andi", "arith.ori", "arith.xori", "arith.shli", "arith.shrui", "arith.shrsi"),
            *("arith.addi", "arith.subi", "arith.select", "math.absf"),
            *("arith.cmpf", "arith.cmpi", "arith.minsi", "arith.maxsi", "arith.minui"),
            *("math.copysign", "arith.maxui"),
        ),
        1.5,
    ),
}
#: Part of an instruction, or none of its own.
_FREE = frozenset({"arith.bitcast", "arith.constant", "vector.shuffle", "arith.negf"})
#: Operations of the widest vectors that begin in a cycle, and cycles that each is begun for.
_UNITS, _WORK = 4, 2.0
#: Latency of quotients and roots, relative to other operations.
_LONG = {"arith.divf": 3.0, "math.sqrt": 4.0}


@dataclass(frozen=True)
class ScheduleVectorsPass:
    """Order the bodies of loops of long vector arithmetic by when their operations could start.

    A frontend's order is one function after the other, each a chain in which everything waits for
    what is before it. A core finds work for its units in the next hundred instructions at most,
    which are less than two iterations of such a loop: it idles. In the order of a list schedule
    the chains run side by side. LLVM's own scheduling, which has few registers in mind before
    all, keeps about the order that it finds.

    Bodies whose results would not fit the registers in that order stay as they are, as do those
    with anything but arithmetic, loads and stores in them, and the rare branch at the end that
    `merge-rare-branches` leaves: what stands before it is ordered.

    Before::

        %a1 = f1(%x)  %a2 = f2(%a1)  %a3 = f3(%a2)  %b1 = g1(%x)  %b2 = g2(%b1)  %b3 = g3(%b2)

    After::

        %a1 = f1(%x)  %b1 = g1(%x)  %a2 = f2(%a1)  %b2 = g2(%b1)  %a3 = f3(%a2)  %b3 = g3(%b2)
    """

    name: ClassVar[str] = "schedule-vectors"

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite the module in place; returns whether there was anything to do."""
        target = context.target
        if not target.vector_bits:
            return False
        changed = False
        for op in nested(module.operation):
            if op.name == "scf.for" and not len(op.results):
                changed |= _schedule(op.regions[0].blocks[0], target)
        return changed


def _schedule(block: Any, target: Any) -> bool:
    """Order one loop's body, up to the branch at its end; whether it was fit for that."""
    if len(block.operations) < MIN_OPERATIONS:
        return False
    everything = [op.operation for op in block.operations]
    ops = list(takewhile(is_straight_line, everything))
    rest = everything[len(ops) :]
    if len(ops) < MIN_OPERATIONS or not all(map(_may_follow, rest)):
        return False
    known: dict[Any, int] = {}
    sizes = [_registers(op, target.vector_bits, known) for op in ops]
    arithmetic = sum(s > 0 and op.name not in _FREE for s, op in zip(sizes, ops, strict=True))
    if arithmetic < MIN_OPERATIONS:
        return False
    instructions = _instructions(ops, sizes)
    order = list_schedule(instructions, _UNITS)
    if peak_live_registers(instructions, order, [*sizes, 0]) > target.vector_registers:
        return False
    for i in order:
        if i < len(ops):
            ops[i].move_before(rest[0])
    return True


def _may_follow(op: Any) -> bool:
    return is_straight_line(op) or is_rare_branch(op) or op.name == "scf.yield"


def _registers(op: Any, vector_bits: int, known: dict[Any, int]) -> int:
    """Vector registers of an op's result, by its type; constants are read from memory."""
    results = op.results
    if not len(results) or op.name == "arith.constant":
        return 0
    type_ = results[0].type
    found = known.get(type_)
    if found is None:
        found = known[type_] = -(-_bits(type_) // vector_bits)
    return found


def _bits(type_: Any) -> int:
    """Bits of a vector; 0 of anything else."""
    from polyblocks.mlir import ir

    if not isinstance(type_, ir.VectorType):
        return 0
    element = type_.element_type
    return prod(type_.shape) * getattr(element, "width", 64)


def _instructions(ops: Sequence[Any], sizes: Sequence[int]) -> list[Instruction]:
    """The ops, and behind all of them one that needs what others use of their results."""
    makers: dict[Any, int] = {}
    uses = [0] * len(ops)
    block: list[Instruction] = []
    reads: list[int] = []
    write: int | None = None
    for i, op in enumerate(ops):
        name = op.name
        needs = set()
        for operand in op.operands:
            maker = makers.get(operand)
            if maker is not None:
                needs.add(maker)
                uses[maker] += 1
        makers.update(dict.fromkeys(op.results, i))
        read, written = is_read(op), is_write(op)
        if written:
            needs.update(reads)
        if (read or written) and write is not None:
            needs.add(write)
        if read:
            reads.append(i)
        if written:
            reads, write = [], i
        work = 0.0
        latency = 0.0 if name in _FREE else _LATENCIES.get(name, LATENCY)
        if name not in _FREE and not read and not written:
            work = _WORK * sizes[i] * _LONG.get(name, 1.0)
            latency += max(0.0, work - _WORK) / _UNITS
        block.append(Instruction(tuple(sorted(needs)), latency, work))
    for result, i in makers.items():
        uses[i] -= sum(1 for _ in result.uses)
    block.append(Instruction(tuple(i for i, count in enumerate(uses) if count), 0.0, 0.0))
    return block
