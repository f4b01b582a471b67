"""join-launches: contractions that do not need each other, and leave a chip idle, run together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from polyblocks import mlir
from polyblocks.attributes import KIND_ATTRIBUTE
from polyblocks.codegen.gpu.joined_kernel import (
    READ_ONLY,
    Member,
    can_be_joined,
    join,
    joined_row,
    key_of,
    notes_of,
    write_notes,
)
from polyblocks.codegen.gpu.passes.place_shared_memory import shared_alignment, workgroup_buffers
from polyblocks.codegen.gpu.plan import kernels, name_of, read_launches, write_launches
from polyblocks.codegen.memory import static_bytes
from polyblocks.occupancy import JOINED_REACH, MOST_JOINED

Json = dict[str, Any]


@dataclass(frozen=True)
class JoinLaunchesPass:
    """Launch contractions as one kernel, of whose blocks each has its share.

    Taken are those whose blocks are too few to occupy the chip, such as the projections of queries,
    keys and values of a short sequence: none stores to what another one touches, and blocks have as
    many threads and the same shared memory. A block's number says whose block it is.

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
            rows = _rows(read_launches(module), known)
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
                row.shape == first.shape
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

    def is_short(self, target: Any) -> bool:
        """Whether it is a contraction that has no second block for every multiprocessor."""
        attributes = self.kernel.attributes
        return (
            KIND_ATTRIBUTE in attributes
            and attributes[KIND_ATTRIBUTE].value == "contraction"
            and self.member.blocks < 2 * target.shared_level.size
            and self._can_be_joined
        )

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
        attributes = self.kernel.attributes["arg_attrs"]
        for row, type_, given in zip(
            self.row["arguments"], function.inputs, attributes, strict=True
        ):
            stores = READ_ONLY not in given
            if "argument" in row:
                yield _Bytes(row["argument"], row.get("offset", 0), static_bytes(type_), stores)
            elif "workspace" in row:
                yield _Bytes(-1, row["workspace"], static_bytes(type_), stores)


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


def _rows(launches: list[Json], known: dict[str, Any]) -> list[_Launch]:
    """The launches with their kernels."""
    counts: dict[str, int] = {}
    found = []
    for row in launches:
        call = counts.get(row["kernel"], 0)
        counts[row["kernel"]] = call + 1
        found.append(_Launch(Member(known[row["kernel"]], row, call)))
    return found
