"""The launch plan: what a compiled program does on a device, as data.

A plan is a list of kernel launches and nothing else: no copy, no allocation, no decision. So it
can be replayed, captured into a graph, and executed by a simulator.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from polyblocks.errors import ArtifactError
from polyblocks.program import ArraySpec
from polyblocks.runtime.device.tensor_map import IM2COL, KINDS, TILED, TensorMap

#: Key of a manifest that is true if arrays of the host are an error.
ON_DEVICE = "on_gpu_tensors"

#: Bytes to which buffers of a workspace are aligned.
ALIGNMENT = 256

#: Kinds of operands of a launch in the manifest: ``{"argument": 0}`` (which may also have an
#: ``offset`` in bytes), ``{"workspace": 1024}``, ``{"value": 3, "dtype": "int64"}``, and
#: ``{"tensor_map": {...}}``, see :mod:`polyblocks.codegen.gpu.plan`.
OPERANDS = ("argument", "workspace", "value", "tensor_map")
#: Words of 64 bits of a tensor map; the first one is the array's address.
MAP_WORDS = 16

Extent = tuple[int, int, int]

#: dtype of a value -> its code in ``struct``.
_CODES = {
    "bool": "?", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i",
    "uint32": "I", "int64": "q", "uint64": "Q", "float16": "e", "float32": "f", "float64": "d",
}  # fmt: skip


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
class Slot:
    """A slot of the argument block.

    Attributes:
        kind: ``argument`` or ``workspace`` for an address, ``status``, ``value``; or ``map`` for a
            word of a tensor map that the driver makes.
        row: number of the row whose address it is, or of the tensor map; 0 for others.
        number: bytes behind the address, the value's bits, or the number of the word.
        of_map: the tensor map whose first word it is, counted from 1; 0 for none.
    """

    kind: str
    row: int = 0
    number: int = 0
    of_map: int = 0


@dataclass(frozen=True)
class LaunchPlan:
    """A program's launches, and the argument block that they share.

    The argument block is an array of 64-bit slots.

    Attributes:
        name: the program's, for messages.
        launches: in order.
        rows: the manifest's rows of inputs and outputs; ``updates`` counts these rows.
        numbers: which arguments of the manifest the rows are.
        slots: what the argument block holds; tensor maps come last, ``value`` before them.
        workspace_bytes: size of the workspace.
        checks: what the failures of run-time checks mean; the status word is the index plus 1.
        profile: names of what is timed, the program and each launch; empty if nothing is.
        tensor_maps: arrays whose boxes kernels copy.
    """

    name: str
    launches: tuple[Launch, ...]
    rows: tuple[dict[str, Any], ...]
    numbers: tuple[int, ...]
    slots: tuple[Slot, ...]
    workspace_bytes: int
    checks: tuple[str, ...]
    profile: tuple[dict[str, str], ...] = ()
    tensor_maps: tuple[TensorMap, ...] = ()

    def with_maps(self, encode: Callable[[TensorMap], Sequence[int]]) -> LaunchPlan:
        """The plan with the words of its tensor maps as values.

        Args:
            encode: gives the words of one; its first is not used.
        """
        words = [encode(each) for each in self.tensor_maps]
        slots = [
            Slot("value", 0, words[slot.row][slot.number]) if slot.kind == "map" else slot
            for slot in self.slots
        ]
        return dataclasses.replace(self, slots=tuple(slots), tensor_maps=())

    @property
    def has_status(self) -> bool:
        """Whether kernels report failed run-time checks in a word."""
        return any(slot.kind == "status" for slot in self.slots)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bytes that each row's array spans."""
        return tuple(spec_of(row).nbytes for row in self.rows)

    def failure(self, code: int) -> str:
        """The message for a status word other than 0."""
        known = 0 < code <= len(self.checks)
        return self.checks[code - 1] if known else f"the program returned status {code}"


def without_own(manifest: Mapping[str, Any], plan: LaunchPlan) -> dict[str, Any]:
    """The manifest as callers see it: its arguments are the rows of the plan alone."""
    made = {**manifest, "arguments": list(plan.rows)}
    call = manifest.get("call")
    if isinstance(call, list) and set(call) <= set(plan.numbers):
        made["call"] = [plan.numbers.index(number) for number in call]
    return made


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
    arguments = _Arguments(manifest["arguments"], manifest.get("workspace_bytes", 0))
    launches = manifest.get("launches")
    _expect(isinstance(launches, list), "launches", "a list of kernel launches", launches)
    read = []
    for number, launch in enumerate(launches):  # type: ignore[arg-type]
        where = f"launches[{number}]"
        _expect(isinstance(launch, dict), where, "an object", launch)
        kernel = launch.get("kernel")
        _expect(isinstance(kernel, str) and kernel != "", f"{where}.kernel", "a name", kernel)
        shared = launch.get("shared_bytes", 0)
        _expect(_is_count(shared), f"{where}.shared_bytes", "a count of bytes", shared)
        given = launch.get("arguments")
        _expect(isinstance(given, list), f"{where}.arguments", "a list", given)
        operands = [
            arguments.operand(f"{where}.arguments[{k}]", operand) for k, operand in enumerate(given)
        ]
        grid, block = _extent(launch, where, "grid"), _extent(launch, where, "block")
        cluster = launch.get("cluster", 1)
        whole = _is_count(cluster) and cluster > 0 and grid[0] % cluster == 0
        _expect(whole, f"{where}.cluster", f"a number that divides {grid[0]} blocks", cluster)
        read.append((kernel, grid, block, shared, operands))
    found = {operand for *_, operands in read for operand in operands}
    maps = arguments.maps
    slots = sorted(found, key=lambda o: (o.of_map, o.kind == "value", o.kind, o.row, o.number))
    slots = [
        word
        for slot in slots
        for word in (
            slot,
            *(Slot("map", slot.of_map - 1, k) for k in range(1, MAP_WORDS) if slot.of_map),
        )
    ]
    place = {operand: slot for slot, operand in enumerate(slots)}
    return LaunchPlan(
        name=manifest.get("name", "main"),
        launches=tuple(
            Launch(kernel, grid, block, shared, tuple(place[operand] for operand in operands))
            for kernel, grid, block, shared, operands in read
        ),
        rows=tuple(arguments.rows),
        numbers=tuple(arguments.numbers),
        slots=tuple(slots),
        workspace_bytes=arguments.workspace_bytes,
        checks=tuple(manifest.get("checks", ())),
        profile=_profile(manifest.get("profile", []), len(read)),
        tensor_maps=tuple(maps),
    )


def _profile(names: Any, launches: int) -> tuple[dict[str, str], ...]:
    ok = isinstance(names, list) and len(names) in (0, launches + 1)
    _expect(ok, "profile", "a row for the program and one for each launch", names)
    return tuple(names)


class _Arguments:
    """Rows and buffers made of a manifest's arguments."""

    def __init__(self, arguments: list[dict[str, Any]], workspace_bytes: int) -> None:
        self._arguments = arguments
        self._row: dict[int, int] = {}
        self._buffer: dict[int, int] = {}
        end = 0
        for index, row in enumerate(arguments):
            if row["role"] in ("input", "output"):
                self._row[index] = len(self._row)
            elif row["role"] == "workspace":
                self._buffer[index] = end
                end += -(-row["shape"][0] // ALIGNMENT) * ALIGNMENT
        self.workspace_bytes = max(workspace_bytes, end)
        self.numbers = list(self._row)
        self.maps: list[TensorMap] = []
        self.rows = [self._renamed(arguments[index]) for index in self._row]

    def _renamed(self, row: dict[str, Any]) -> dict[str, Any]:
        updates = row.get("updates")
        if updates is not None:
            _expect(updates in self._row, f"'{row['name']}'.updates", "an input's index", updates)
            updates = self._row[updates]
        return {**row, "updates": updates}

    def operand(self, where: str, given: Any) -> Slot:
        known = isinstance(given, dict) and sum(kind in given for kind in OPERANDS) == 1
        what = f"an object with one of {', '.join(OPERANDS)}"
        _expect(known, where, what, given)
        if "tensor_map" in given:
            return self._map(f"{where}.tensor_map", given["tensor_map"])
        if "value" in given:
            bits = _bits(given["value"], given.get("dtype"))
            _expect(bits is not None, where, "a number with the dtype that it has", given)
            return Slot("value", 0, bits or 0)
        kind = "argument" if "argument" in given else "workspace"
        number, offset = given[kind], given.get("offset", 0)
        _expect(_is_count(number) and _is_count(offset), where, "counted from 0", given)
        if kind == "workspace":
            return self._in_workspace(where, number + offset)
        count = len(self._arguments)
        _expect(number < count, where, f"one of the program's {count} arguments", given)
        role = self._arguments[number]["role"]
        if role == "status":
            return Slot("status")
        if role == "workspace":
            return self._in_workspace(where, self._buffer[number] + offset)
        return Slot("argument", self._row[number], offset)

    def _map(self, where: str, given: Any) -> Slot:
        """The first word of a tensor map."""
        _expect(isinstance(given, dict), where, "an object", given)
        known = [key for key in ("argument", "workspace") if key in given]
        _expect(len(known) == 1, where, "an array in an argument or in the workspace", given)
        _check_map(where, given)
        place = self.operand(where, {key: given[key] for key in (*known, "offset") if key in given})
        made = TensorMap.read(given, place)
        if made not in self.maps:
            self.maps.append(made)
        return dataclasses.replace(place, of_map=1 + self.maps.index(made))

    def _in_workspace(self, where: str, offset: int) -> Slot:
        below = f"an offset below workspace_bytes, {self.workspace_bytes}"
        _expect(offset < max(self.workspace_bytes, 1), where, below, offset)
        return Slot("workspace", 0, offset)


def _check_map(where: str, given: Mapping[str, Any]) -> None:
    """Check what a plan says of an array that kernels copy parts of."""
    kind = given.get("kind", TILED)
    _expect(kind in KINDS, f"{where}.kind", " or ".join(KINDS), kind)
    numbers = ("extents", "strides", "box", *(["steps"] if kind == IM2COL else []))
    for key in numbers:
        value = given.get(key)
        ok = isinstance(value, (list, tuple)) and all(_is_count(n) and n for n in value)
        _expect(ok, f"{where}.{key}", "positive numbers", value)
    rank, of_box = len(given["extents"]), len(given["box"])
    if kind == IM2COL:
        _expect(rank > 2 and of_box == 2, where, "three extents, a box of two", given)
        for key in ("lower", "upper", "steps"):
            value = given.get(key)
            ok = isinstance(value, (list, tuple)) and len(value) == rank - 2
            ok = ok and all(type(n) is int for n in value or ())
            _expect(ok, f"{where}.{key}", "a number for each dimension of pixels", value)
    ok = rank > 0 and of_box in (rank, 2 * (kind == IM2COL)) and len(given["strides"]) == rank - 1
    _expect(ok, where, "as many extents, one stride less, and as many extents of a box", given)
    size = given.get("element_bytes")
    _expect(size in (1, 2, 4), f"{where}.element_bytes", "1, 2 or 4", size)


def _bits(value: Any, dtype: Any) -> int | None:
    """A number as the 64 bits of a slot, in which it comes first; None for what is none."""
    code = _CODES.get(dtype)
    if code is None or not isinstance(value, (int, float)):
        return None
    try:
        data = struct.pack(f"={code}", value)
    except struct.error:
        return None
    return int(struct.unpack("=Q", data.ljust(8, b"\0"))[0])


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
