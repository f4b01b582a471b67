"""The launch plan: what a compiled program does on a device, as data.

A plan is a list of kernel launches and nothing else: no copy, no allocation, no decision. So it
can be replayed, captured into a graph, and executed by a simulator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from polyblocks.errors import ArtifactError
from polyblocks.program import ArraySpec

#: Bytes to which buffers of a workspace are aligned.
ALIGNMENT = 256

#: What an operand of a launch may be in the manifest: ``{"argument": 0}``, ``{"workspace": 1024}``.
OPERANDS = ("argument", "workspace")

Extent = tuple[int, int, int]


@dataclass(frozen=True)
class Launch:
    """One kernel launch.

    Attributes:
        kernel: its name in the module.
        grid: blocks in x, y, z.
        block: threads of a block in x, y, z.
        shared_bytes: of dynamic shared memory.
        slots: for each operand of the kernel the slot of the argument block that holds it.
    """

    kernel: str
    grid: Extent
    block: Extent
    shared_bytes: int
    slots: tuple[int, ...]


@dataclass(frozen=True)
class LaunchPlan:
    """A program's launches, and the argument block that they share.

    The argument block is an array of 64-bit addresses: one per row, then one per offset into the
    workspace, then that of the status word if there is one.

    Attributes:
        name: the program's, for messages.
        launches: in order.
        rows: the manifest's rows of inputs and outputs; ``updates`` counts these rows.
        offsets: bytes into the workspace, one per slot behind the rows'.
        workspace_bytes: size of the workspace.
        has_status: whether kernels report failed run-time checks in a word.
        checks: what each failure means; the word is the index plus 1.
    """

    name: str
    launches: tuple[Launch, ...]
    rows: tuple[dict[str, Any], ...]
    offsets: tuple[int, ...]
    workspace_bytes: int
    has_status: bool
    checks: tuple[str, ...]

    @property
    def slot_count(self) -> int:
        """Addresses in the argument block."""
        return len(self.rows) + len(self.offsets) + self.has_status

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bytes that each row's array spans."""
        return tuple(spec_of(row).nbytes for row in self.rows)

    def failure(self, code: int) -> str:
        """What a status word other than 0 means."""
        known = 0 < code <= len(self.checks)
        return self.checks[code - 1] if known else f"the program returned status {code}"


def spec_of(row: Mapping[str, Any]) -> ArraySpec:
    """Shape, dtype and strides of a row."""
    return ArraySpec(tuple(row["shape"]), row["dtype"], tuple(row["strides"]))


def read_plan(manifest: Mapping[str, Any]) -> LaunchPlan:
    """Read the plan of a manifest, and check all of it.

    Args:
        manifest: of an artifact of kind ``program``, which
            :func:`polyblocks.artifact.check_manifest` accepts.

    Raises:
        ArtifactError: there is no plan, or it does not fit the arguments; says where.
    """
    arguments = manifest["arguments"]
    slots, rows, offsets = _Slots(arguments), [], []
    for row in arguments:
        if row["role"] in ("input", "output"):
            updates = row.get("updates")
            renamed = None if updates is None else slots.row_of(updates, row)
            rows.append({**row, "updates": renamed})
    launches = manifest.get("launches")
    _expect(isinstance(launches, list), "launches", "a list of kernel launches", launches)
    read = []
    size = max(manifest.get("workspace_bytes", 0), slots.workspace_bytes)
    for number, launch in enumerate(launches):  # type: ignore[arg-type]
        where = f"launches[{number}]"
        _expect(isinstance(launch, dict), where, "an object", launch)
        kernel = launch.get("kernel")
        _expect(isinstance(kernel, str) and kernel != "", f"{where}.kernel", "a name", kernel)
        shared = launch.get("shared_bytes", 0)
        _expect(_is_count(shared), f"{where}.shared_bytes", "a count of bytes", shared)
        operands = launch.get("arguments")
        _expect(isinstance(operands, list), f"{where}.arguments", "a list", operands)
        places = [
            slots.place(f"{where}.arguments[{k}]", operand, size)
            for k, operand in enumerate(operands)
        ]
        read.append(
            (
                kernel,
                _extent(launch, where, "grid"),
                _extent(launch, where, "block"),
                shared,
                places,
            )
        )
    offsets = sorted({place for *_, places in read for place in places if _is_count(place)})
    behind = {offset: len(rows) + k for k, offset in enumerate(offsets)}
    status = len(rows) + len(offsets)
    has_status = any(place is _STATUS for *_, places in read for place in places)

    def slot(place: Any) -> int:
        if place is _STATUS:
            return status
        return behind[place] if _is_count(place) else int(place[0])

    return LaunchPlan(
        name=manifest.get("name", "main"),
        launches=tuple(
            Launch(kernel, grid, block, shared, tuple(slot(place) for place in places))
            for kernel, grid, block, shared, places in read
        ),
        rows=tuple(rows),
        offsets=tuple(offsets),
        workspace_bytes=size,
        has_status=has_status,
        checks=tuple(manifest.get("checks", ())),
    )


_STATUS = object()


class _Slots:
    """Where the arguments of a manifest go."""

    def __init__(self, arguments: list[dict[str, Any]]) -> None:
        self.arguments = arguments
        self.rows: dict[int, int] = {}
        self.buffers: dict[int, int] = {}
        end = 0
        for index, row in enumerate(arguments):
            if row["role"] in ("input", "output"):
                self.rows[index] = len(self.rows)
            elif row["role"] == "workspace":
                self.buffers[index] = end
                end += -(-row["shape"][0] // ALIGNMENT) * ALIGNMENT
        self.workspace_bytes = end

    def row_of(self, index: int, row: dict[str, Any]) -> int:
        _expect(index in self.rows, f"'{row['name']}'.updates", "an input's index", index)
        return self.rows[index]

    def place(self, where: str, operand: Any, workspace_bytes: int) -> Any:
        """``(row,)``, an offset into the workspace, or the status."""
        what = f"one of {', '.join(f'{{{name!r}: n}}' for name in OPERANDS)}"
        ok = isinstance(operand, dict) and len(operand) == 1 and next(iter(operand)) in OPERANDS
        _expect(ok, where, what, operand)
        ((kind, value),) = operand.items()
        _expect(_is_count(value), where, what, operand)
        if kind == "workspace":
            below = f"an offset below workspace_bytes, {workspace_bytes}"
            _expect(value < max(workspace_bytes, 1), where, below, value)
            return value
        count = len(self.arguments)
        _expect(value < count, where, f"one of the program's {count} arguments", operand)
        role = self.arguments[value]["role"]
        if role == "status":
            return _STATUS
        return self.buffers[value] if role == "workspace" else (self.rows[value],)


def _extent(launch: dict[str, Any], where: str, key: str) -> Extent:
    value = launch.get(key)
    ok = isinstance(value, (list, tuple)) and len(value) == 3
    ok = ok and all(_is_count(n) and n > 0 for n in value)  # type: ignore[union-attr]
    _expect(ok, f"{where}.{key}", "three positive extents", value)
    x, y, z = value  # type: ignore[misc]
    return x, y, z


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _expect(ok: bool, where: str, what: str, value: Any) -> None:
    if not ok:
        raise ArtifactError(f"the artifact's manifest: {where} must be {what}, not {value!r:.80}")
