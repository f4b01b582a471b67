"""The arguments of a program, and what is checked of the arrays that are passed for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from polyblocks.errors import ArtifactError, InputError
from polyblocks.program import DTYPES, ArraySpec
from polyblocks.runtime.arrays import HOST, ArrayInterface, Device

#: Key of a manifest with names of the arrays that are passed, in order, as far as they are known.
NAMES = "call_names"

#: Key of a manifest with the names of weights, a list for each: one array may have several. They
#: are the last of the arrays that are passed.
WEIGHT_NAMES = "weight_names"


@dataclass(frozen=True)
class Slot:
    """One argument of the entry.

    Attributes:
        index: its number in the manifest.
        role: ``input``, ``output``, ``workspace``, ``kept`` or ``status``.
        name: for messages.
        spec: of inputs and outputs.
        workspace: bytes of a workspace.
        updates: number of the argument whose memory it is, if it is not its own.
        alignment: bytes that the address must be a multiple of.
    """

    index: int
    role: str
    name: str
    spec: ArraySpec | None
    workspace: int
    updates: int | None
    alignment: int = 1


def slot_of(index: int, row: dict[str, Any]) -> Slot:
    """A row of a manifest's arguments."""
    role = row["role"]
    spec = None
    if role in ("input", "output"):
        spec = ArraySpec(tuple(row["shape"]), row["dtype"], tuple(row["strides"]))
    workspace = row["shape"][0] if role == "workspace" else 0
    name = row.get("name", role)
    natural = _alignment(spec.dtype) if spec is not None else 1
    alignment = max(row.get("alignment", 1), natural)
    return Slot(index, role, name, spec, workspace, row.get("updates"), alignment)


@dataclass(frozen=True)
class Signature:
    """How a program is called.

    Attributes:
        slots: all arguments of the program.
        inputs: what the caller passes, in order.
        stored: inputs that come with the artifact -> their contents.
        fresh: outputs that are made for each call; also results without elements, which are no
            arguments of the program and have the index -1.
        written: numbers of the inputs that the program updates.
        sources: for each slot ``("input", k)``, ``("stored", k)``, ``("fresh", k)``, or
            ``("workspace", k)``, ``("kept", k)`` and ``("status", k)``; k counts within that kind.
        results: for each result of a call ``("fresh", k)``, or ``("input", k)`` for an array that
            is passed.
        weights: of :meth:`with_weights`: inputs that are bound once and not passed. They follow
            the others in ``written``, ``sources`` and ``results``, which count on.
    """

    slots: tuple[Slot, ...]
    inputs: tuple[Slot, ...]
    stored: tuple[tuple[Slot, bytes], ...]
    fresh: tuple[Slot, ...]
    written: tuple[int, ...]
    sources: tuple[tuple[str, int], ...]
    results: tuple[tuple[str, int], ...]
    weights: tuple[Slot, ...] = ()

    def with_weights(self, count: int) -> Signature:
        """The signature of the program whose last ``count`` inputs are bound."""
        passed = len(self.inputs) - count
        return replace(self, inputs=self.inputs[:passed], weights=self.inputs[passed:])

    def returned(self, fresh: Sequence[Any], passed: Sequence[Any]) -> Any:
        """A call's result: one array, a tuple of several, or None.

        Args:
            fresh: the arrays of :attr:`fresh`.
            passed: those of :attr:`inputs` and :attr:`weights`.
        """
        found = [fresh[k] if kind == "fresh" else passed[k] for kind, k in self.results]
        if len(found) == 1:
            return found[0]
        return tuple(found) if found else None

    @property
    def text(self) -> str:
        """Names of the parameters."""
        return ", ".join(slot.name for slot in self.inputs)


def signature_of(manifest: Mapping[str, Any], blobs: Mapping[str, bytes]) -> Signature:
    """The signature of a program.

    Args:
        manifest: its ``arguments``; ``call`` has the numbers of those that are passed, in order,
            by default all inputs, and ``call_names`` the names of the first ones;
            ``stored`` of an argument names the blob with its contents;
            ``results`` has the numbers of those that are returned (outputs with memory of their
            own, and inputs that are passed), in order, or ``dtype`` and ``shape`` of an array
            without elements; by default all such outputs.
        blobs: of the artifact.

    Raises:
        ArtifactError: ``call``, ``stored`` or ``results`` do not fit.
    """
    rows = manifest["arguments"]
    slots = tuple(slot_of(index, row) for index, row in enumerate(rows))
    kept = {k: row["stored"] for k, row in enumerate(rows) if row.get("stored") is not None}
    ours = [k for k, slot in enumerate(slots) if slot.role == "input" and k not in kept]
    order = manifest.get("call", ours)
    if not isinstance(order, list) or sorted(order) != ours:
        raise ArtifactError(f"the artifact's manifest: call must order {ours}, not {order!r:.80}")
    # The user's names of them, where known.
    named = dict(zip(order, manifest.get(NAMES, ()), strict=False))
    slots = tuple(
        replace(slot, name=named[slot.index]) if slot.index in named else slot for slot in slots
    )
    stored = []
    for k, blob in kept.items():
        spec = slots[k].spec
        if spec is None or len(blobs.get(blob, b"")) != spec.nbytes:
            raise ArtifactError(f"the artifact has no contents of argument {k} in blob '{blob}'")
        stored.append((slots[k], blobs[blob]))
    fresh = [slot for slot in slots if slot.role == "output" and slot.updates is None]
    updated = {slot.updates for slot in slots if slot.updates is not None}
    place: dict[int, tuple[str, int]] = {}
    for kind, indices in (
        ("input", order),
        ("stored", list(kept)),
        ("fresh", [slot.index for slot in fresh]),
        ("workspace", [slot.index for slot in slots if slot.role == "workspace"]),
        ("kept", [slot.index for slot in slots if slot.role == "kept"]),
        ("status", [slot.index for slot in slots if slot.role == "status"]),
    ):
        place |= {index: (kind, number) for number, index in enumerate(indices)}
    sources = tuple(
        place[slot.index if slot.role != "output" or slot.updates is None else slot.updates]
        for slot in slots
    )
    written = tuple(number for number, index in enumerate(order) if index in updated)
    inputs = tuple(slots[index] for index in order)
    results = []
    for result in manifest.get("results", [slot.index for slot in fresh]):
        if isinstance(result, dict):
            spec = ArraySpec.contiguous(tuple(result["shape"]), result["dtype"])
            results.append(("fresh", len(fresh)))
            fresh.append(Slot(-1, "output", "empty", spec, 0, None))
            continue
        kind, number = place.get(result, ("", 0))
        if kind not in ("input", "fresh"):
            raise ArtifactError(
                f"the artifact's manifest: results must name outputs and inputs, not {result!r}"
            )
        results.append((kind, number))
    return Signature(slots, inputs, tuple(stored), tuple(fresh), written, sources, tuple(results))


def check(
    interface: ArrayInterface, slot: Slot, array: Any, written: bool, device: Device = HOST
) -> None:
    """Check one array.

    Args:
        interface: of the array's framework.
        slot: what it is passed for.
        array: what was passed.
        written: whether the program updates it.
        device: where it must be.

    Raises:
        InputError: says what is expected, what came, and what to do.
    """
    expected = slot.spec
    assert expected is not None
    if not interface.is_array(array):
        raise InputError(f"expected an array {text_of(expected)}, got {type(array).__name__}")
    got = interface.describe(array)
    place = interface.device(array)
    if place != device:
        where = "the host" if device == HOST else f"device {tuple(device)}"
        raise InputError(
            f"expected an array on {where}, got one on {_text_of_place(place)}; copy it to {where}"
        )
    if got.dtype != expected.dtype:
        raise InputError(f"expected {text_of(expected)}, got {text_of(got)}; convert it")
    if got.shape != expected.shape:
        raise InputError(
            f"expected {text_of(expected)}, got {text_of(got)}; a program takes the shape that it "
            "was compiled for"
        )
    if not same_layout(got, expected):
        layout = "contiguous" if expected.is_contiguous else f"strides {list(expected.strides)}"
        raise InputError(
            f"expected {layout} elements, got strides {list(got.strides)}; copy it to that layout"
        )
    if interface.pointer(array) % slot.alignment and got.numel:
        natural = slot.alignment == _alignment(expected.dtype)
        what = "its elements" if natural else f"{slot.alignment} bytes"
        raise InputError(f"its address is not aligned to {what}; copy it")
    if written and not interface.is_writable(array):
        raise InputError("it is updated in place, but cannot be written; pass a copy")


def check_all(
    function: str,
    signature: Signature,
    interface: ArrayInterface,
    arrays: Sequence[Any],
    device: Device = HOST,
) -> None:
    """Check all arrays that are passed to a program, but not whether some overlap.

    Args:
        function: the program's name.
        signature: of it.
        interface: of the arrays' framework.
        arrays: what was passed.
        device: where they must be.

    Raises:
        InputError: there are too few or too many, or one does not fit; names it.
    """
    inputs = signature.inputs
    if len(arrays) != len(inputs):
        what = "array" if len(inputs) == 1 else "arrays"
        raise InputError(
            f"{function}({signature.text}) takes {len(inputs)} {what}, got {len(arrays)}"
        )
    for k, (slot, array) in enumerate(zip(inputs, arrays, strict=True)):
        try:
            check(interface, slot, array, k in signature.written, device)
        except InputError as error:
            raise InputError(f"argument {k + 1} ('{slot.name}') of {function}: {error}") from None


def check_overlaps(
    function: str, inputs: Sequence[Slot], addresses: Sequence[int], written: Sequence[int]
) -> None:
    """Check that what is updated is passed once.

    Raises:
        InputError: two arrays share memory, and the program updates one.
    """
    # The generated code takes for granted that what it writes is not also read by another name.
    for k in written:
        begin, end = _range(inputs[k], addresses[k])
        for other, slot in enumerate(inputs):
            if other != k:
                first, last = _range(slot, addresses[other])
                if first < end and begin < last:
                    raise InputError(
                        f"{function}: '{inputs[k].name}' is updated in place and shares memory "
                        f"with '{slot.name}'; pass a copy of one"
                    )


def _range(slot: Slot, address: int) -> tuple[int, int]:
    return address, address + (slot.spec.nbytes if slot.spec is not None else 0)


def same_layout(got: ArraySpec, expected: ArraySpec) -> bool:
    """Whether two arrays of one shape lie alike; strides of extents below 2 are never used."""
    return got.numel == 0 or all(
        extent == 1 or a == b
        for extent, a, b in zip(got.shape, got.strides, expected.strides, strict=True)
    )


def _alignment(dtype: str) -> int:
    size = DTYPES[dtype][1]
    return size // 2 if dtype.startswith("complex") else size


def _text_of_place(place: Device) -> str:
    return "the host" if place == HOST else f"device {tuple(place)}"


def text_of(spec: ArraySpec) -> str:
    """``float32[2, 3]``."""
    return f"{spec.dtype}[{', '.join(map(str, spec.shape))}]"
