"""A kernel whose blocks run one of several kernels each, by their number."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Any

from polyblocks import mlir
from polyblocks.affine.cost.estimate import combine
from polyblocks.affine.cost.rates import main_bandwidth, waiting_seconds
from polyblocks.affine.mlir.json_attributes import from_attribute, to_attribute
from polyblocks.attributes import (
    CLUSTER_ATTRIBUTE,
    ESTIMATE_ATTRIBUTE,
    ESTIMATES_ATTRIBUTE,
    MEMBER_ATTRIBUTE,
    NESTS_ATTRIBUTE,
    RESIDENT_ATTRIBUTE,
    SOURCES_ATTRIBUTE,
    UNIT_ATTRIBUTE,
)
from polyblocks.codegen.gpu.passes.assign_memory_spaces import WORKGROUP
from polyblocks.codegen.gpu.passes.place_shared_memory import (
    offsets_of,
    shared_alignment,
    workgroup_buffers,
)
from polyblocks.codegen.gpu.phases import (
    count_done,
    counters_type,
    take_number,
    ticket_type,
    wait_for,
)
from polyblocks.codegen.gpu.plan import name_of
from polyblocks.codegen.gpu.touched_bytes import READ_ONLY, TouchedBytes, touched_bytes
from polyblocks.codegen.memory import static_bytes
from polyblocks.codegen.walk import nested
from polyblocks.occupancy import occupancy
from polyblocks.target import TargetDescription

Json = dict[str, Any]


#: Attributes with an element for each launch.
_OF_CALLS = (ESTIMATE_ATTRIBUTE, ESTIMATES_ATTRIBUTE, NESTS_ATTRIBUTE)
#: Attributes that every kernel of ``emit-kernels`` has.
_EMITTED = ("arg_attrs", RESIDENT_ATTRIBUTE, SOURCES_ATTRIBUTE)
#: Intrinsics that a target's passes replace.
_OWN = "llvm.polyblocks."
#: Unsigned less than, of arith.cmpi.
_ULT = 6


@dataclass(frozen=True)
class Member:
    """A launch that becomes a part of another one.

    Attributes:
        kernel: the ``gpu.func``.
        row: of the launch plan.
        call: which of the kernel's launches it is, counted from 0.
        status: number of the program's argument that failed checks are reported in, if any are.
            Kernels may do so in any order.
        phase: of the blocks, which wait for those of the phase before.
    """

    kernel: Any
    row: Json
    call: int
    status: int | None = None
    phase: int = 0

    def reports(self, argument: Json) -> bool:
        """Whether an argument of the launch is the word for failed checks."""
        return self.status is not None and argument == {"argument": self.status}

    @cached_property
    def touched(self) -> list[TouchedBytes | None]:
        """The memory that it may touch, for each argument."""
        return touched_bytes(self.kernel, self.row, self.status)

    @property
    def blocks(self) -> int:
        """Blocks of the launch."""
        blocks: int = self.row["grid"][0]
        return blocks

    @property
    def threads(self) -> int:
        """Threads of a block."""
        threads: int = self.row["block"][0]
        return threads

    @property
    def nest(self) -> str:
        """Name of the nest that the launch is of."""
        attributes = self.kernel.attributes
        if NESTS_ATTRIBUTE not in attributes:
            return name_of(self.kernel)
        return str(attributes[NESTS_ATTRIBUTE][self.call].value)

    @property
    def estimate(self) -> Json | None:
        """Estimate of the launch."""
        attributes = self.kernel.attributes
        if ESTIMATES_ATTRIBUTE in attributes:
            found: Json = from_attribute(attributes[ESTIMATES_ATTRIBUTE][self.call])
            return found
        if ESTIMATE_ATTRIBUTE in attributes:
            found = from_attribute(attributes[ESTIMATE_ATTRIBUTE])
            return found
        return None


def can_be_joined(kernel: Any, row: Json) -> bool:
    """Whether a kernel may run in some of the blocks of a launch: its grid has one axis.

    Clusters begin at every other block, and only ``emit-kernels`` says what a kernel stores to.
    """
    if CLUSTER_ATTRIBUTE in kernel.attributes:
        return False
    if any(name not in kernel.attributes for name in _EMITTED):
        return False
    if row["grid"][1:] != [1, 1] or len(kernel.regions[0].blocks) != 1:
        return False
    return not any(op.name == "gpu.grid_dim" for op in nested(kernel))


def key_of(members: Sequence[Member]) -> tuple[Any, ...]:
    """Equal for members that are joined by the same kernel."""
    kernels = ((name_of(m.kernel), m.blocks, m.phase) for m in members)
    return (*kernels, *_places(members), *sorted(_changed(members)))


def phases_of(members: Sequence[Member]) -> int:
    """How many phases a launch has, and counters if these are several."""
    return 1 + max(m.phase for m in members)


def joined_row(members: Sequence[Member], name: str, counters: int) -> Json:
    """The launch of their kernel, which has that name; ``counters`` lie there in the workspace."""
    given = [argument for m in members for argument in m.row["arguments"]]
    arguments = dict(zip(_places(members), given, strict=True))
    row = {
        **members[0].row,
        "kernel": name,
        "grid": [sum(m.blocks for m in members), 1, 1],
        "block": [max(m.threads for m in members), 1, 1],
        "arguments": [arguments[n] for n in range(len(arguments))],
    }
    if phases_of(members) > 1:
        row["arguments"].append({"workspace": counters})
        row["waits"] = True
    return row


@dataclass(frozen=True)
class SharedBuffers:
    """Shared memory of blocks that run one of several kernels each: none needs that of two.

    Attributes:
        types: of the buffers.
        offsets: where in the only one, which is of bytes, those of each kernel begin; None if all
            kernels have the same.
    """

    types: list[Any]
    offsets: list[list[int]] | None = None

    @property
    def size(self) -> int:
        """Bytes of all."""
        return sum(static_bytes(type_) or 0 for type_ in self.types)


def shared_of(kernels: Sequence[Any]) -> SharedBuffers:
    """The shared memory of kernels together."""
    types = [[buffer.type for buffer in workgroup_buffers(kernel)] for kernel in kernels]
    most = max(types, key=len)
    if all(each == most[: len(each)] for each in types):
        return SharedBuffers(most)
    alignment = max(map(shared_alignment, kernels))
    placed = [offsets_of(each, alignment) for each in types]
    size = max(total for _, total in placed)
    space = mlir.ir.Attribute.parse(WORKGROUP)
    i8 = mlir.ir.IntegerType.get_signless(8)
    memory = mlir.ir.MemRefType.get([size], i8, memory_space=space)
    return SharedBuffers([memory], [offsets for offsets, _ in placed])


def estimate_of(members: Sequence[Member], target: TargetDescription) -> Json | None:
    """Estimate of members: that of each phase, and what it takes blocks to wait for others."""
    phases = phases_of(members)
    found = [_estimate_of([m for m in members if m.phase == n], target) for n in range(phases)]
    known = [each for each in found if each is not None]
    total = combine(known) if len(known) == phases else None
    waiting = waiting_seconds(target, phases)
    if total is not None and "predicted_seconds" in total and waiting:
        total |= {"predicted_seconds": total["predicted_seconds"] + waiting}
    return total


def _estimate_of(members: Sequence[Member], target: TargetDescription) -> Json | None:
    """Estimate of one phase: all work, and the longest one's time for each round of blocks.

    A round has as many blocks as the chip holds at once, as far as threads and shared memory tell.
    All share the main memory.
    """
    found = [e for e in (m.estimate for m in members) if e is not None]
    total = combine(found) if len(found) == len(members) else None
    if total is not None and "predicted_seconds" in total and len(members) > 1:
        chip = target.multiprocessor
        assert chip is not None
        nbytes = shared_of([m.kernel for m in members]).size
        held = occupancy(chip, 0, nbytes, max(m.threads for m in members)).blocks
        rounds = ceil(sum(m.blocks for m in members) / (held * max(target.shared_level.size, 1)))
        longest = max(found, key=lambda e: e["predicted_seconds"])
        rate = main_bandwidth(target, target.shared_level.size)
        moved = total["floor_bytes"] / rate if rate else 0.0
        seconds = max(rounds * longest["predicted_seconds"], moved)
        seconds = min(seconds, total["predicted_seconds"])
        total |= {"predicted_seconds": seconds, "bound": longest["bound"]}
    return total


def saves_a_launch(
    group: Sequence[Member], other: Member, together: Sequence[Member], target: TargetDescription
) -> bool:
    """Whether a launch that waits in a group takes less time than one of its own."""
    estimates = [estimate_of(each, target) for each in (group, [other], together)]
    times = [e["predicted_seconds"] for e in estimates if e and "predicted_seconds" in e]
    if len(times) < len(estimates):
        return False
    return bool(times[2] < times[0] + times[1] + target.shared_level.overhead)


def notes_of(calls: Sequence[Sequence[Member]], target: TargetDescription) -> dict[str, Any]:
    """Attributes of a kernel: which nests its launches are of, and what each of them costs."""
    ir = mlir.ir
    nests = [" and ".join(m.nest for m in members) for members in calls]
    notes = {NESTS_ATTRIBUTE: ir.ArrayAttr.get([ir.StringAttr.get(nest) for nest in nests])}
    costs = [estimate_of(members, target) for members in calls]
    if all(cost is not None for cost in costs):
        notes[ESTIMATES_ATTRIBUTE] = ir.ArrayAttr.get([to_attribute(cost) for cost in costs])
    return notes


def write_notes(kernel: Any, notes: dict[str, Any]) -> None:
    """Replace what a kernel says of its launches."""
    for name in _OF_CALLS:
        if name in kernel.attributes:
            del kernel.attributes[name]
    for name, value in notes.items():
        kernel.attributes[name] = value


def join(members: Sequence[Member], name: str) -> Any:
    """Write the kernel that does what the members do, before the first one; these stay."""
    ir = mlir.ir
    function = _function(members, name)
    block = function.regions[0].blocks[0]
    with ir.InsertionPoint(block):
        end = ir.Operation.create("gpu.return")
    with ir.InsertionPoint(end):
        values, counters, ticket = _values(members, list(block.arguments))
        if counters is not None:
            number = take_number(counters, ticket)
        else:
            axis = {"dimension": ir.Attribute.parse("#gpu<dim x>")}
            index = ir.IndexType.get()
            number = ir.Operation.create("gpu.block_id", results=[index], attributes=axis).result
    first = 0
    for position, (member, given) in enumerate(zip(members, values, strict=True)):
        copy = member.kernel.clone()
        _mark(copy, position)
        body = copy.regions[0].blocks[0]
        for value, new in zip(body.arguments, given, strict=True):
            value.replace_all_uses_with(new)
        with ir.InsertionPoint(end):
            own = number if not first else _arith("subi", number, _index(first))
            first += member.blocks
            then = end
            if member is not members[-1]:
                then, end = _branch(number, first)
        for op in [op for op in nested(copy) if op.name == "gpu.block_id"]:
            op.results[0].replace_all_uses_with(own)
            op.erase()
        if counters is not None:
            with ir.InsertionPoint(then):
                then = _in_phase(members, member.phase, counters)
        if member.threads < max(m.threads for m in members):
            with ir.InsertionPoint(then):
                then = _first_threads(member.threads)
        for op in list(body.operations)[:-1]:
            op.operation.move_before(then)
        copy.erase()
    return function


def _in_phase(members: Sequence[Member], phase: int, counters: Any) -> Any:
    """Where blocks of a phase do their work: behind those of the phase before."""
    if phase:
        before = sum(m.blocks for m in members if m.phase == phase - 1)
        wait_for(counters, phase - 1, before)
    # The work is written in front of this, so that the block is counted behind it.
    here = _index(0)
    if phase < phases_of(members) - 1:
        count_done(counters, phase)
    return here.owner.operation


def _changed(members: Sequence[Member]) -> set[int]:
    """Arguments of their kernel that are read in one phase and stored in another."""
    if phases_of(members) == 1:
        return set()
    places = iter(_places(members))
    touched = [(m.phase, t, next(places)) for m in members for t in m.touched]
    return {
        place
        for phase, one, place in touched
        for other_phase, other, _ in touched
        if phase != other_phase and one is not None and other is not None and one.conflicts(other)
    }


def _mark(kernel: Any, member: int) -> None:
    """Let calls of a target's own intrinsics say which member they are of."""
    ir = mlir.ir
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), member)
    for op in nested(kernel):
        if op.name == "llvm.call_intrinsic" and op.attributes["intrin"].value.startswith(_OWN):
            op.attributes[MEMBER_ATTRIBUTE] = number


def _places(members: Sequence[Member]) -> list[int]:
    """For all arguments of all members, in order, which argument of their kernel it is.

    An array that several of them only read, and the word for failed checks, is handed over once.
    """
    found: dict[Any, int] = {}
    places: list[int] = []
    for member, m in enumerate(members):
        types = m.kernel.attributes["function_type"].value.inputs
        given = m.kernel.attributes["arg_attrs"]
        for row, type_, attributes in zip(m.row["arguments"], types, given, strict=True):
            key: Any = (member, len(places))
            if READ_ONLY in attributes or m.reports(row):
                key = (str(sorted(row.items())), str(type_))
            places.append(found.setdefault(key, len(found)))
    return places


def _values(members: Sequence[Member], inside: list[Any]) -> tuple[list[list[Any]], Any, Any]:
    """For each member the arguments of their kernel's block that it has in place of its own.

    Then the counters, and the shared buffer of the block's number; None of one phase.
    """
    places = iter(_places(members))
    shared = shared_of([m.kernel for m in members])
    count = 1 + max(_places(members))
    counters = ticket = None
    if phases_of(members) > 1:
        counters = inside.pop(count)
        ticket = inside.pop(count + len(shared.types))
    buffers = inside[count : count + len(shared.types)]
    private = iter(inside[count + len(buffers) :])
    found = []
    for number, member in enumerate(members):
        own = [buffer.type for buffer in workgroup_buffers(member.kernel)]
        values = [inside[next(places)] for _ in member.row["arguments"]]
        if shared.offsets is None:
            values += buffers[: len(own)]
        else:
            given = zip(own, shared.offsets[number], strict=True)
            values += [_view(type_, buffers[0], offset) for type_, offset in given]
        others = len(member.kernel.regions[0].blocks[0].arguments) - len(values)
        found.append([*values, *itertools.islice(private, others)])
    return found, counters, ticket


def _view(type_: Any, memory: Any, offset: int) -> Any:
    return mlir.dialect("memref").ViewOp(type_, memory, _index(offset), []).result


def _function(members: Sequence[Member], name: str) -> Any:
    """Their kernel without its body."""
    ir = mlir.ir
    types: list[Any] = []
    given: list[Any] = []
    private: list[Any] = []
    shared = shared_of([m.kernel for m in members]).types
    for member in members:
        inputs = member.kernel.attributes["function_type"].value.inputs
        types += inputs
        given += member.kernel.attributes["arg_attrs"]
        arguments = list(member.kernel.regions[0].blocks[0].arguments)
        own = len(workgroup_buffers(member.kernel))
        private += [value.type for value in arguments[len(inputs) + own :]]
    # Of those that are handed over once all are the same.
    order = dict(zip(_places(members), zip(types, given, strict=True), strict=True))
    arguments = [order[n] for n in range(len(order))]
    # Stores of other blocks are seen by loads of memory that may change alone.
    for place in _changed(members):
        arguments[place] = arguments[place][0], ir.DictAttr.get({})
    if phases_of(members) > 1:
        arguments.append((counters_type(phases_of(members)), ir.DictAttr.get({})))
        shared = [*shared, ticket_type()]
    inputs = [type_ for type_, _ in arguments]
    first = members[0].kernel.attributes
    sources = dict.fromkeys(s for m in members for s in m.kernel.attributes[SOURCES_ATTRIBUTE])
    resident = min(int(m.kernel.attributes[RESIDENT_ATTRIBUTE].value) for m in members)
    units = [m.kernel.attributes for m in members if UNIT_ATTRIBUTE in m.kernel.attributes]
    attributes = {n: first[n] for n in first if n not in _OF_CALLS} | {
        "sym_name": ir.StringAttr.get(name),
        "function_type": ir.TypeAttr.get(ir.FunctionType.get(inputs, [])),
        "known_grid_size": ir.DenseI32ArrayAttr.get([sum(m.blocks for m in members), 1, 1]),
        "known_block_size": ir.DenseI32ArrayAttr.get([max(m.threads for m in members), 1, 1]),
        "workgroup_attributions": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), len(shared)),
        "arg_attrs": ir.ArrayAttr.get([attributes for _, attributes in arguments]),
        RESIDENT_ATTRIBUTE: ir.IntegerAttr.get(ir.IntegerType.get_signless(32), resident),
        SOURCES_ATTRIBUTE: ir.ArrayAttr.get(list(sources)),
    }
    if units:
        attributes[UNIT_ATTRIBUTE] = units[0][UNIT_ATTRIBUTE]
    with ir.InsertionPoint(members[0].kernel):
        function = ir.Operation.create("gpu.func", attributes=attributes, regions=1)
    inside = [*inputs, *shared, *private]
    function.regions[0].blocks.append(*inside, arg_locs=[ir.Location.unknown()] * len(inside))
    return function


def _branch(number: Any, end: int) -> tuple[Any, Any]:
    """The ends of what blocks of smaller numbers do, and of what others do."""
    ir = mlir.ir
    condition = mlir.dialect("arith").CmpIOp(_ULT, number, _index(end)).result
    branch = ir.Operation.create("scf.if", operands=[condition], regions=2)
    ends = []
    for region in branch.regions:
        region.blocks.append()
        with ir.InsertionPoint(region.blocks[0]):
            ends.append(ir.Operation.create("scf.yield"))
    return ends[0], ends[1]


def _first_threads(count: int) -> Any:
    """The end of what the first threads of a block do."""
    ir = mlir.ir
    axis = {"dimension": ir.Attribute.parse("#gpu<dim x>")}
    number = ir.Operation.create("gpu.thread_id", results=[ir.IndexType.get()], attributes=axis)
    condition = mlir.dialect("arith").CmpIOp(_ULT, number.result, _index(count)).result
    branch = ir.Operation.create("scf.if", operands=[condition], regions=2)
    branch.regions[0].blocks.append()
    with ir.InsertionPoint(branch.regions[0].blocks[0]):
        return ir.Operation.create("scf.yield")


def _arith(name: str, *operands: Any) -> Any:
    return mlir.ir.Operation.create(
        f"arith.{name}", results=[operands[0].type], operands=list(operands)
    ).result


def _index(value: int) -> Any:
    return mlir.dialect("arith").ConstantOp(mlir.ir.IndexType.get(), value).result
