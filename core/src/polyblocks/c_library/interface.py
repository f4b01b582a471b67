"""How a program is called in C: names, types and sizes of its arrays, the same for every chip."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from polyblocks.artifact import Artifact
from polyblocks.errors import InputError
from polyblocks.program import ArraySpec
from polyblocks.runtime.slots import WEIGHT_NAMES, Slot, signature_of, text_of

#: dtype -> C's type of an element, and a comment on it.
TYPES: dict[str, tuple[str, str]] = {
    "float64": ("double", ""),
    "float32": ("float", ""),
    "float16": ("uint16_t", "the bits of IEEE binary16"),
    "bfloat16": ("uint16_t", "the upper 16 bits of a float"),
    "int64": ("int64_t", ""),
    "int32": ("int32_t", ""),
    "int16": ("int16_t", ""),
    "int8": ("int8_t", ""),
    "uint64": ("uint64_t", ""),
    "uint32": ("uint32_t", ""),
    "uint16": ("uint16_t", ""),
    "uint8": ("uint8_t", ""),
    "bool": ("uint8_t", "0 or 1"),
    "complex64": ("float", "real and imaginary part, one after the other"),
    "complex128": ("double", "real and imaginary part, one after the other"),
}

#: Of C and C++, and names of types and macros that headers of the C library bring.
_KEYWORDS = frozenset(
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t "
    "char8_t class compl concept const const_cast consteval constexpr constinit continue co_await "
    "co_return co_yield decltype default delete do double dynamic_cast else enum explicit export "
    "extern false float for friend goto if inline int int16_t int32_t int64_t int8_t intptr_t "
    "linux long main mutable namespace new noexcept not not_eq nullptr operator or or_eq private "
    "protected ptrdiff_t public register reinterpret_cast requires restrict return short signed "
    "size_t sizeof static static_assert static_cast struct switch template this thread_local throw "
    "true try typedef typeid typename uint16_t uint32_t uint64_t uint8_t uintptr_t union unix "
    "unsigned using virtual void volatile wchar_t while xor xor_eq".split()
)

#: Names of parameters that are no arrays.
_PARAMETERS = ("stream",)


@dataclass(frozen=True)
class Array:
    """One array that a caller passes.

    Attributes:
        name: of the parameter in C.
        spec: how it lies in memory.
        is_input, is_output: whether the program reads and writes it.
        alignment: bytes that its address must be a multiple of.
    """

    name: str
    spec: ArraySpec
    is_input: bool
    is_output: bool
    alignment: int

    @property
    def type(self) -> str:
        """C's type of an element."""
        return TYPES[self.spec.dtype][0]

    @property
    def count(self) -> int:
        """Elements of C's type in the memory that it spans."""
        return self.spec.span * (2 if self.spec.dtype.startswith("complex") else 1)

    @property
    def text(self) -> str:
        """``float32[2, 3]``."""
        return text_of(self.spec)


@dataclass(frozen=True)
class Interface:
    """The parameters of a program, and for each of its architectures where they go.

    Attributes:
        name: of the function, and what all names begin with.
        arrays: the parameters, inputs first.
        results: what the function returns in its framework: names of parameters, or what is said
            of a result without elements.
        weight_names: of the last inputs, which can be bound: their names in the framework, ``""``
            for those without one.
    """

    name: str
    arrays: tuple[Array, ...]
    results: tuple[str, ...]
    weight_names: tuple[str, ...] = ()

    @property
    def weights(self) -> range:
        """Numbers of the arrays that are weights."""
        inputs = sum(array.is_input for array in self.arrays)
        return range(inputs - len(self.weight_names), inputs)

    @property
    def upper(self) -> str:
        """Prefix of the names of macros."""
        return self.name.upper()


def interface_of(name: str, artifact: Artifact) -> Interface:
    """The interface of an artifact for one architecture.

    Raises:
        InputError: there is nothing to compute.
    """
    signature = signature_of(artifact.manifest, artifact.blobs)
    wanted = [slot.name for slot in signature.inputs]
    outputs = _outputs(signature.fresh, signature.results)
    many = len(outputs) > 1
    wanted += [f"result{k}" if many else "result" for k in range(len(outputs))]
    names = identifiers(wanted)
    arrays = [
        Array(names[k], _spec(slot), True, k in signature.written, slot.alignment)
        for k, slot in enumerate(signature.inputs)
    ]
    arrays += [
        Array(names[len(arrays) + k], _spec(signature.fresh[f]), False, True,
              signature.fresh[f].alignment)
        for k, f in enumerate(outputs)
    ]  # fmt: skip
    if not any(array.is_output for array in arrays):
        raise InputError(f"{name} writes no array, so that there is nothing to call in C")
    results = []
    for kind, k in signature.results:
        if kind == "fresh" and k not in outputs:
            results.append(f"an empty {text_of(_spec(signature.fresh[k]))}")
        else:
            place = k if kind == "input" else len(signature.inputs) + outputs.index(k)
            results.append(arrays[place].name)
    weights = [names[0] if names else "" for names in artifact.manifest.get(WEIGHT_NAMES, ())]
    return Interface(name, tuple(arrays), tuple(results), tuple(weights))


def places(artifact: Artifact) -> list[tuple[str, int]]:
    """For each argument of the entry what it is: ``("array", k)`` is parameter k of the interface.

    Else as in :attr:`polyblocks.runtime.slots.Signature.sources`.
    """
    signature = signature_of(artifact.manifest, artifact.blobs)
    outputs = _outputs(signature.fresh, signature.results)
    found = []
    for kind, k in signature.sources:
        if kind == "input":
            found.append(("array", k))
        elif kind == "fresh":
            found.append(("array", len(signature.inputs) + outputs.index(k)))
        else:
            found.append((kind, k))
    return found


def _outputs(fresh: Sequence[Slot], results: Sequence[tuple[str, int]]) -> list[int]:
    """Numbers of the fresh results that are passed: in the order of what is returned."""
    returned = dict.fromkeys(k for kind, k in results if kind == "fresh")
    order = [*returned, *(k for k in range(len(fresh)) if k not in returned)]
    return [k for k in order if fresh[k].index >= 0]


def _spec(slot: Slot) -> ArraySpec:
    assert slot.spec is not None
    return slot.spec


def identifier(name: str) -> str:
    """A name as C takes it."""
    found = re.sub(r"\W", "_", name, flags=re.ASCII).strip("_") or "program"
    if found[0].isdigit():
        return f"_{found}"
    return f"{found}_" if found in _KEYWORDS else found


def identifiers(names: Iterable[str]) -> list[str]:
    """Names of arrays as C takes them, each once, whatever the case; so are those of the counts."""
    found: list[str] = []
    taken = {name.upper() for name in _PARAMETERS}
    for name in map(identifier, names):
        number, unique = 1, name
        while not taken.isdisjoint(both := {unique.upper(), f"{unique}_COUNT".upper()}):
            number, unique = number + 1, f"{name}_{number + 1}"
        taken |= both
        found.append(unique)
    return found
