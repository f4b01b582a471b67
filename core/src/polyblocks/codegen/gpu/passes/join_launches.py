"""join-launches: launches that leave a chip idle run together, and wait for each other inside."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from polyblocks import mlir, signature
from polyblocks.attributes import (
    ARGUMENTS_ATTRIBUTE,
    SHARED_ALIGNMENT_ATTRIBUTE,
    UNIT_ATTRIBUTE,
)
from polyblocks.codegen.gpu.joined_kernel import (
    Member,
    can_be_joined,
    join,
    joined_row,
    key_of,
    notes_of,
    phases_of,
    saves_a_launch,
    shared_of,
    write_notes,
)
from polyblocks.codegen.gpu.passes.lower_checks import COLLECTIVE
from polyblocks.codegen.gpu.passes.place_shared_memory import (
    offsets_of,
    shared_alignment,
    workgroup_buffers,
)
from polyblocks.codegen.gpu.phases import (
    clearing_kernel,
    clearing_row,
    is_worth_waiting,
    rounded,
    ticket_type,
)
from polyblocks.codegen.gpu.plan import kernels, name_of, read_launches, write_launches
from polyblocks.codegen.memory import extent_of, static_bytes
from polyblocks.codegen.walk import nested
from polyblocks.occupancy import JOINED_REACH, MOST_JOINED, MOST_PHASES

Json = dict[str, Any]

#: Of the counters in the workspace, in bytes.
_ALIGNMENT = 64
#: Loads into registers.
_LOADS = {"memref.load", "vector.load", "vector.maskedload"}
#: Operations of all threads of a block, or of a warp, and that of how many there are.
_TOGETHER = COLLECTIVE | {"gpu.block_dim"}


@dataclass(frozen=True)
class JoinLaunchesPass:
    """Launch nests as one kernel, of whose blocks each has its share.

    Taken are those whose blocks are too few to occupy the chip, such as the projections of queries,
    keys and values of a short sequence, or what stores the keys and values of a token: none stores
    to what another one touches, and blocks have as many threads and the same shared memory. Those
    that no matrix unit computes may have more of it than others, and more threads than others that
    do not wait for each other. A block's number says whose block it is.

    Before::

        launches = [{kernel = "q", grid = [96, 1, 1], ...}, {kernel = "k", grid = [48, 1, 1], ...}]

    After::

        launches = [{kernel = "q_and_k", grid = [144, 1, 1], ...}]

        gpu.func @q_and_k(...) kernel {
          %b = gpu.block_id x
          %k = arith.subi %b, %c96
          %is_q = arith.cmpi ult, %b, %c96
          scf.if %is_q { ... of @q ... } else { ... of @k, with %k as the block's number ... } }

    Where that takes less than a launch, blocks may also wait for others, see
    :mod:`polyblocks.codegen.gpu.phases`: a product for the norm before it, which waits for another
    product. All have as many threads, unless those of the smaller blocks do not wait for each
    other, and their shared memory is the same bytes. Kernels that copy in bulk, which no fence
    orders, do not wait. The first launch clears what the others count blocks with.

    Attributes:
        reach: launches that lie between two of them, at most.
        most: of them together, that do not wait for each other.
        phases: of blocks that wait for those of the phase before, at most.
    """

    name: ClassVar[str] = "join-launches"
    reach: int = JOINED_REACH
    most: int = MOST_JOINED
    phases: int = MOST_PHASES

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite the plan and the kernels in place; returns whether launches were joined."""
        target = context.target
        if context.options.polyblocks_disable_affine_fusion or target.multiprocessor is None:
            return False
        with module.context, mlir.ir.Location.unknown():
            known = {name_of(kernel): kernel for kernel in kernels(module)}
            rows = _rows(read_launches(module), known, _status(module))
            groups: list[list[Member]] = []
            waiting = is_worth_waiting(target) and _has_workspace(module)
            while rows:
                # Counters are cleared by a launch before.
                found = self._group(rows, target, self.phases if groups and waiting else 1)
                groups.append(_members(rows, found))
                rows = [row for n, row in enumerate(rows) if n not in found]
            if all(len(group) == 1 for group in groups):
                return False
            counters = self._count(module, groups, known, target)
            write_launches(module, self._joined(groups, known, counters, context))
        return True

    def _count(
        self, module: Any, groups: list[list[Member]], known: dict[str, Any], target: Any
    ) -> list[int]:
        """Where in the workspace the counters of each group are; the first one clears them."""
        counts = [phases_of(group) for group in groups]
        counts = [count if count > 1 else 0 for count in counts]
        if not any(counts):
            return counts
        begin = _more_workspace(module, 4 * rounded(sum(counts)))
        first = groups[0][0]
        count = rounded(sum(counts))
        kernel = clearing_kernel("clear_counters", count, first.kernel, first.estimate)
        known[name_of(kernel)] = kernel
        clearing = Member(kernel, clearing_row(name_of(kernel), begin), 0)
        places = [begin + 4 * sum(counts[:n]) for n in range(len(counts))]
        beside = [_Launch(m) for m in (*groups[0], clearing)]
        if (
            _are_alike(beside)
            and _fit(beside, target)
            and all(can_be_joined(m.kernel, m.row) for m in groups[0])
        ):
            groups[0].append(clearing)
        else:
            groups.insert(0, [clearing])
            places.insert(0, begin)
        return places

    def _joined(
        self,
        groups: list[list[Member]],
        known: dict[str, Any],
        counters: list[int],
        context: Any,
    ) -> list[Json]:
        """The launches of all groups, of kernels that are written."""
        made: dict[tuple[Any, ...], str] = {}
        calls: dict[str, list[list[Member]]] = {}
        out = []
        for members, place in zip(groups, counters, strict=True):
            name = name_of(members[0].kernel)
            row = members[0].row
            if len(members) > 1:
                key = key_of(members)
                if key not in made:
                    made[key] = f"{name}_joined_{len(made) + 1}"
                    known[made[key]] = join(members, made[key])
                name = made[key]
                row = joined_row(members, name, place)
                with_ = [m.nest for m in members[1:]]
                phases = {"phases": [m.phase for m in members]} if phases_of(members) > 1 else {}
                context.decide(self.name, members[0].nest, "joined", with_=with_, **phases)
            calls.setdefault(name, []).append(members)
            out.append(row)
        notes = {name: notes_of(found, context.target) for name, found in calls.items()}
        for name, found in notes.items():
            write_notes(known[name], found)
        for name in known.keys() - calls.keys():
            known[name].erase()
        return out

    def _group(self, rows: list[_Launch], target: Any, phases: int) -> dict[int, int]:
        """Positions of the launches that run together with the first, and their phases.

        A group ends where its first two kernels come again, so that the layers of a model are
        launches of one kernel.
        """
        group = {0: 0}
        if not rows[0].is_short(target):
            return group
        between = 0
        for position, row in enumerate(rows[1:], 1):
            if between > self.reach:
                break
            phase = None
            if row.is_short(target) and _fit([*(rows[n] for n in group), row], target):
                phase = self._phase(position, rows, group, phases)
            together = _members(rows, group | {position: phase or 0})
            if phase is not None and phases_of(together) > 1 and not _has_room(together, target):
                phase = None
            if phase is not None and phase > 0:
                if _come_again(rows, position):
                    break
                if not saves_a_launch(_members(rows, group), row.member, together, target):
                    phase = None
            if phase is None:
                between += 1
            else:
                group[position] = phase
        return group

    def _phase(
        self, position: int, rows: list[_Launch], group: dict[int, int], phases: int
    ) -> int | None:
        """The first phase of a group in which a launch may run, if there is any."""
        row = rows[position]
        before = [n for n in range(position) if row.conflicts(rows[n])]
        if any(n not in group for n in before):
            return None
        first = 1 + max((group[n] for n in before), default=-1)
        if any(rows[n].copies_in_bulk for n in (*group, position)):
            phases = 1
        if any(row.streams_from(rows[n]) for n in before):
            return None
        for phase in range(first, phases):
            beside = [rows[n] for n, other in group.items() if other == phase]
            if len(beside) < self.most and _are_alike([*beside, row]):
                return phase
        return None


def _come_again(rows: list[_Launch], position: int) -> bool:
    """Whether the first two of the kernels are the next two from a position on, too."""
    found = rows[position : position + 2]
    return len(found) == 2 and all(a.kernel == b.kernel for a, b in zip(found, rows, strict=False))


def _members(rows: list[_Launch], group: dict[int, int]) -> list[Member]:
    """Those of a group, by their phases."""
    found = (replace(rows[n].member, phase=phase) for n, phase in group.items())
    return sorted(found, key=lambda member: member.phase)


class _Launch:
    """A launch, and the memory that it touches."""

    def __init__(self, member: Member) -> None:
        self.member, self.row, self.kernel = member, member.row, member.kernel
        row, kernel = self.row, self.kernel
        types = tuple(str(buffer.type) for buffer in workgroup_buffers(kernel))
        #: Kernels that run together have the same.
        self.shape = (tuple(row["block"]), types, shared_alignment(kernel))

    @cached_property
    def is_plain(self) -> bool:
        """Whether no matrix unit says what its blocks are."""
        return UNIT_ATTRIBUTE not in self.kernel.attributes

    @cached_property
    def copies_in_bulk(self) -> bool:
        """Whether units of a multiprocessor copy by themselves, which no fence orders."""
        return SHARED_ALIGNMENT_ATTRIBUTE in self.kernel.attributes

    @cached_property
    def waits(self) -> bool:
        """Whether threads wait for others of their block, or ask how many there are."""
        return any(op.name in _TOGETHER for op in nested(self.kernel))

    @cached_property
    def streamed(self) -> set[int]:
        """Arguments from which threads load in loops in which they wait for each other."""
        arguments = {a: n for n, a in enumerate(self.kernel.regions[0].blocks[0].arguments)}
        found = set()
        for loop in nested(self.kernel):
            if loop.name == "scf.for" and any(op.name == "gpu.barrier" for op in nested(loop)):
                loads = [op for op in nested(loop) if op.name in _LOADS]
                roots = [extent_of(op.operands[0]).root for op in loads]
                found |= {arguments[r] for r in roots if r in arguments}
        return found

    def streams_from(self, other: _Launch) -> bool:
        """Whether tiles for a unit come through registers from what another launch stores.

        Loads of memory that may change stay behind what threads wait for, and the loop's products
        wait for them.
        """
        if self.is_plain:
            return False
        touched = enumerate(self.member.touched)
        mine = [each for n, each in touched if each is not None and n in self.streamed]
        theirs = [each for each in other.member.touched if each is not None]
        return any(one.conflicts(two) for one in mine for two in theirs)

    def is_short(self, target: Any) -> bool:
        """Whether there is no second block for every multiprocessor."""
        return self.member.blocks < 2 * target.shared_level.size and self._can_be_joined

    @cached_property
    def _can_be_joined(self) -> bool:
        # Launches are asked for several times, and the answer takes a walk over the kernel.
        return can_be_joined(self.kernel, self.row)

    def conflicts(self, other: _Launch) -> bool:
        """Whether one of them stores to what the other one touches."""
        return any(
            one is not None and two is not None and one.conflicts(two)
            for one in self.member.touched
            for two in other.member.touched
        )


def _are_alike(launches: list[_Launch]) -> bool:
    """Whether blocks of these may be beside each other in one phase."""
    same = all(launch.shape == launches[0].shape for launch in launches)
    return same or all(launch.is_plain for launch in launches)


def _fit(launches: list[_Launch], target: Any) -> bool:
    """Whether blocks of these may be of one kernel, and a chip holds all of each launch at once."""
    first = launches[0]
    if all(launch.shape == first.shape for launch in launches):
        return True
    if any(launch.copies_in_bulk for launch in launches):
        return False
    threads = max(launch.member.threads for launch in launches)
    if any(launch.waits and launch.member.threads < threads for launch in launches):
        return False
    buffers = [buffer for launch in launches for buffer in workgroup_buffers(launch.kernel)]
    if any(static_bytes(buffer.type) is None for buffer in buffers):
        return False
    size, chip = shared_of([launch.kernel for launch in launches]).size, target.multiprocessor
    blocks = max(launch.member.blocks for launch in launches)
    held = -(-blocks // max(target.shared_level.size, 1))
    return size <= chip.shared_per_block_optin and held * size <= chip.shared


def _has_room(members: list[Member], target: Any) -> bool:
    """Whether a block can have the shared memory of any of these, and its number behind it."""
    kernels_, chip = [m.kernel for m in members], target.multiprocessor
    alignment = max(map(shared_alignment, kernels_))
    _, size = offsets_of([*shared_of(kernels_).types, ticket_type()], alignment)
    return bool(size <= max(chip.shared_per_block, chip.shared_per_block_optin))


def _has_workspace(module: Any) -> bool:
    if ARGUMENTS_ATTRIBUTE not in module.operation.attributes:
        return False
    return any(row["role"] == "workspace" for row in signature.rows(module))


def _more_workspace(module: Any, nbytes: int) -> int:
    """Where in the workspace ``nbytes`` lie that nothing else uses."""
    rows = signature.rows(module)
    row = next(row for row in rows if row["role"] == "workspace")
    begin: int = -(-row["shape"][0] // _ALIGNMENT) * _ALIGNMENT
    row["shape"] = [begin + nbytes]
    signature.keep_rows(module, rows)
    return begin


def _status(module: Any) -> int | None:
    """Number of the program's argument that is the status word."""
    if ARGUMENTS_ATTRIBUTE not in module.operation.attributes:
        return None
    roles = [row["role"] for row in signature.rows(module)]
    return roles.index("status") if "status" in roles else None


def _rows(launches: list[Json], known: dict[str, Any], status: int | None) -> list[_Launch]:
    """The launches with their kernels."""
    counts: dict[str, int] = {}
    found = []
    for row in launches:
        call = counts.get(row["kernel"], 0)
        counts[row["kernel"]] = call + 1
        found.append(_Launch(Member(known[row["kernel"]], row, call, status)))
    return found
