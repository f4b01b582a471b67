"""Machine instructions as the model sees them, whatever chip they are of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum


class Kind(Enum):
    """What executes an instruction; the values are the names in tables of results."""

    MATRIX = "matrix"
    #: Multiply-adds and what shares their pipe.
    FLOAT = "float"
    INTEGER = "integer"
    #: One operation for all lanes: the uniform or scalar unit.
    SCALAR = "scalar"
    #: Few lanes: reciprocals, conversions.
    SPECIAL = "special"
    SHARED = "shared"
    LOAD = "load"
    STORE = "store"
    #: Past the registers, to shared memory.
    COPY = "copy"
    BARRIER = "barrier"
    #: Waits, branches, hints: an issue slot and nothing else.
    CONTROL = "control"


#: What a vector unit of a partition executes.
VECTOR = (Kind.FLOAT, Kind.INTEGER, Kind.SPECIAL)


@dataclass(frozen=True)
class Wait:
    """Until at most so many results of a counter are outstanding."""

    counter: str
    at_most: int = 0


@dataclass(frozen=True)
class Instruction:
    """One instruction of a warp.

    Attributes:
        name: the operation with all its suffixes.
        kind: what executes it.
        bytes: of memory that a warp reads or writes.
        products: multiply-adds of a warp.
        shape: of a matrix instruction: rows, columns and steps.
        operands, accumulator: dtypes of a matrix instruction, as in descriptions of targets.
        addend, sums: the first register of what a matrix instruction or multiply-add adds to, and
            of where it puts the sums.
        stall: cycles until the warp's next instruction, as the assembler says.
        waits: for results of earlier ones.
        signals: the counters to which its result is announced.
        frees: the counter to which it is announced that its operands have been read.
        closes: whether its result is that all copies before it are done.
        reads, writes: registers, where the hardware looks after them.
        target: the label that a branch goes to.
        active: whether any lane takes part; if not, it takes an issue slot.
        asynchronous: of a matrix instruction that several warps call together, and that reads
            shared memory: the warp goes on. ``products``, ``bytes`` and ``shape`` are its share.
    """

    name: str
    kind: Kind
    bytes: int = 0
    products: int = 0
    shape: tuple[int, int, int] | None = None
    operands: str = ""
    accumulator: str = ""
    addend: str = ""
    sums: str = ""
    stall: int = 1
    waits: tuple[Wait, ...] = ()
    signals: tuple[str, ...] = ()
    frees: str = ""
    closes: bool = False
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    target: str = ""
    active: bool = True
    asynchronous: bool = False


@dataclass(frozen=True)
class Code:
    """The instructions of a kernel.

    Attributes:
        name: of the kernel.
        instructions: in the order of their addresses.
        labels: label -> number of the instruction behind it.
    """

    name: str
    instructions: tuple[Instruction, ...]
    labels: dict[str, int] = field(default_factory=dict)


def count(instructions: Iterable[Instruction], *kinds: Kind) -> int:
    """Instructions of these kinds."""
    return sum(i.kind in kinds for i in instructions)


def products(instructions: Sequence[Instruction], kind: Kind) -> int:
    """Multiply-adds of a warp that instructions of a kind do."""
    return sum(i.products for i in instructions if i.kind is kind)
