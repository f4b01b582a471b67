"""join-launches: launches that do not need each other, and leave a chip idle, run together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from polyblocks import mlir, signature
from polyblocks.attributes import (
    ARGUMENTS_ATTRIBUTE,
    SHARED_ALIGNMENT_ATTRIBUTE,
    UNIT_ATTRIBUTE,
)
from polyblocks.codegen.gpu.joined_kernel import (
    READ_ONLY,
    Member,
    can_be_joined,
    join,
    joined_row,
    key_of,
    notes_of,
    shared_of,
    write_notes,
)
from polyblocks.codegen.gpu.passes.lower_checks import COLLECTIVE
from polyblocks.codegen.gpu.passes.place_shared_memory import shared_alignment, workgroup_buffers
from polyblocks.codegen.gpu.plan import kernels, name_of, read_launches, write_launches
from polyblocks.codegen.memory import static_bytes
from polyblocks.codegen.walk import nested
from polyblocks.occupancy import JOINED_REACH, MOST_JOINED

Json = dict[str, Any]

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

    Attributes:
        reach: launches that lie between two of them, at most.
        most: of them together.
    """

    name: ClassVar[str] = "join-launches"
    reach: int = JOINED_REACH
    most: int = MOST_JOINED

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite the plan and the kernels in place; returns whether launches were joined."""
        target = context.target
        if context.options.polyblocks_disable_affine_fusion or target.multiprocessor is None:
            return False
        with module.context, mlir.ir.Location.unknown():
            known = {name_of(kernel): kernel for kernel in kernels(module)}
            rows = _rows(read_launches(module), known, _status(module))
            groups = []
            while rows:
                found = self._group(rows, target)
                groups.append([rows[n].member for n in found])
                rows = [row for n, row in enumerate(rows) if n not in found]
            if all(len(group) == 1 for group in groups):
                return False
            write_launches(module, self._joined(groups, known, context))
        return True

    def _joined(
        self, groups: list[list[Member]], known: dict[str, Any], context: Any
    ) -> list[Json]:
        """The launches of all groups, of kernels that are written."""
        made: dict[tuple[Any, ...], str] = {}
        calls: dict[str, list[list[Member]]] = {}
        out = []
        for members in groups:
            name = name_of(members[0].kernel)
            row = members[0].row
            if len(members) > 1:
                key = key_of(members)
                if key not in made:
                    made[key] = f"{name}_joined_{len(made) + 1}"
                    known[made[key]] = join(members, made[key])
                name = made[key]
                row = joined_row(members, name)
                with_ = [m.nest for m in members[1:]]
                context.decide(self.name, members[0].nest, "joined", with_=with_)
            calls.setdefault(name, []).append(members)
            out.append(row)
        notes = {name: notes_of(found, context.target) for name, found in calls.items()}
        for name, found in notes.items():
            write_notes(known[name], found)
        for name in known.keys() - calls.keys():
            known[name].erase()
        return out

    def _group(self, rows: list[_Launch], target: Any) -> list[int]:
        """Positions of the launches that run together with the first."""
        first, group = rows[0], [0]
        if not first.is_short(target):
            return group
        between = 0
        for position, row in enumerate(rows[1:], 1):
            if between > self.reach or len(group) == self.most:
                break
            if (
                _fit([*(rows[n] for n in group), row], target)
                and row.is_short(target)
                and not any(row.conflicts(other) for other in rows[:position])
            ):
                group.append(position)
            else:
                between += 1
        return group


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
        """Whether its blocks may have other ones beside them: no matrix unit says what they are."""
        attributes = self.kernel.attributes
        return UNIT_ATTRIBUTE not in attributes and SHARED_ALIGNMENT_ATTRIBUTE not in attributes

    @cached_property
    def waits(self) -> bool:
        """Whether threads wait for others of their block, or ask how many there are."""
        return any(op.name in _TOGETHER for op in nested(self.kernel))

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
            (one.stores or two.stores) and one.overlaps(two)
            for one in self._accesses()
            for two in other._accesses()
        )

    def _accesses(self) -> Iterator[_Bytes]:
        function = self.kernel.attributes["function_type"].value
        attributes: Any = [{}] * len(function.inputs)
        if "arg_attrs" in self.kernel.attributes:
            attributes = self.kernel.attributes["arg_attrs"]
        for row, type_, given in zip(
            self.row["arguments"], function.inputs, attributes, strict=True
        ):
            stores = READ_ONLY not in given
            if self.member.reports(row):
                continue
            if "argument" in row:
                yield _Bytes(row["argument"], row.get("offset", 0), static_bytes(type_), stores)
            elif "workspace" in row:
                yield _Bytes(-1, row["workspace"], static_bytes(type_), stores)


def _fit(launches: list[_Launch], target: Any) -> bool:
    """Whether blocks of these may be of one kernel, one for each multiprocessor twice at a time."""
    first = launches[0]
    if all(launch.shape == first.shape for launch in launches):
        return True
    if not all(launch.is_plain for launch in launches):
        return False
    threads = max(launch.member.threads for launch in launches)
    if any(launch.waits and launch.member.threads < threads for launch in launches):
        return False
    types, _ = shared_of([launch.kernel for launch in launches])
    sizes = [static_bytes(type_) for type_ in types]
    if None in sizes:
        return False
    total, chip = sum(filter(None, sizes)), target.multiprocessor
    return total <= chip.shared_per_block and 2 * total <= chip.shared


@dataclass(frozen=True)
class _Bytes:
    """Bytes that a launch touches: of an argument, or of the workspace, number -1."""

    argument: int
    first: int
    size: int | None
    stores: bool

    def overlaps(self, other: _Bytes) -> bool:
        if self.argument != other.argument:
            return False
        if self.size is None or other.size is None:
            return True
        return self.first < other.first + other.size and other.first < self.first + self.size


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
