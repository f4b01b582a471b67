"""TargetDescription: typed, frozen facts about a chip.

It is the only thing that the mid-level may know of a target. Sizes are bytes, rates are per
second, times are seconds, widths are bits; a rate or a time that is not known is 0.

A program's predicted time follows from these numbers alone. Where one is missing that the
cost model needs, the passes say so and take their defaults, and no time is predicted; see
:func:`polyblocks.affine.cost.rates.unknown_rates`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

#: How the names of intrinsics begin that stand for matrix units; the unit's name follows.
DOT_PREFIX = "llvm.polyblocks.dot."


@dataclass(frozen=True)
class MemoryLevel:
    """One level of the memory hierarchy, from the fastest to the main memory.

    Attributes:
        name: e.g. ``L1``, ``L2``, ``main``.
        size: bytes; 0 for the main memory.
        bandwidth: bytes per second of one sharing group; 0 if unknown. A cache then counts as
            no faster than the level behind it; the main memory's is needed to predict a time.
        line: transfer granule in bytes.
        shared_by: how many hardware threads share one instance; on a GPU how many
            multiprocessors, since those are what its outermost level counts.
        associativity: ways; 0 if unknown.
        writes: bytes that are written to it while one byte is read from it; 0 where reading and
            writing share its bandwidth.
        gathered: how many times its bandwidth those get that read the same lines at about the same
            time, as the blocks of a product do: requests for one line are served together.
    """

    name: str
    size: int
    bandwidth: float = 0.0
    line: int = 64
    shared_by: int = 1
    associativity: int = 0
    writes: float = 0.0
    gathered: float = 1.0


@dataclass(frozen=True)
class ParallelLevel:
    """One level of parallelism, outermost first.

    A CPU has ``team`` and ``simd``. A GPU has ``grid`` (its size: the multiprocessors), ``block``
    (the blocks that one multiprocessor holds at once), ``warp`` (the warps of the largest block)
    and ``thread`` (the threads of a warp).

    Attributes:
        name: the value of the ``polyblocks.level`` attribute on an ``affine.parallel``.
        size: how many instances run at once in one instance of the level around it.
        overhead: seconds to start and join one region at this level; of ``grid``, to launch a
            kernel on an idle device.
        barrier: seconds in which the instances of a region wait for each other at a barrier, for a
            target that runs several parallel nests in one region; 0 where each is one.
    """

    name: str
    size: int
    overhead: float = 0.0
    barrier: float = 0.0


#: Bits of a word of operands of a unit of vectors or tiles, and of its sums.
WORD = 32
#: dtypes that matrix units multiply and add up in -> bits of a number of theirs, in registers.
UNIT_BITS: Mapping[str, int] = {
    **dict.fromkeys(("float8_e4m3", "float8_e5m2", "int8", "uint8"), 8),
    **dict.fromkeys(("float16", "bfloat16"), 16),
    **dict.fromkeys(("int32", "float32", "tfloat32"), 32),
    "float64": 64,
}
_REGISTER = re.compile(r"(?:vector<(\d+)x)?[a-z]+(\d+)>?")


@dataclass(frozen=True)
class Fragment:
    """Which elements of an operand of a matrix unit each lane of a warp has, and where.

    Of the first operand an element is a (row, step), of the second one a (column, step), of the
    accumulator a (row, column). A lane's element at a place of its own is the sum (XOR) of what the
    bits of the lane's number and those of the place's number that are one add; a bit that adds
    nothing replicates.

    Attributes:
        lanes: what each bit of the lane's number adds, the lowest one first.
        places: the same of the number of an element among those of a lane, in registers one after
            the other.
        register: type of a register: ``vector<2xf16>``, ``f32``, ``i32``.
    """

    lanes: tuple[tuple[int, int], ...]
    places: tuple[tuple[int, int], ...]
    register: str

    @property
    def elements(self) -> int:
        """Elements of a lane."""
        return 1 << len(self.places)

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows (or columns) and steps all lanes have together, from 0 on."""
        first = second = 0
        for of_first, of_second in (*self.lanes, *self.places):
            first, second = first | of_first, second | of_second
        return first + 1, second + 1

    @property
    def register_width(self) -> int:
        """Elements of a register's own type: 2 of ``vector<2xf16>``, 1 of ``i32``."""
        return self._register()[0]

    @property
    def register_bits(self) -> int:
        """Bits of a register.

        Raises:
            ValueError: ``register`` is the type of none.
        """
        width, bits = self._register()
        return width * bits

    def _register(self) -> tuple[int, int]:
        found = _REGISTER.fullmatch(self.register)
        if found is None:
            raise ValueError(f"'{self.register}' is no type of a register")
        return int(found[1] or 1), int(found[2])

    def at(self, place: int, lane: int = 0) -> tuple[int, int]:
        """The element that a lane has at a place."""
        first = second = 0
        for adds, number in ((self.lanes, lane), (self.places, place)):
            for bit, (of_first, of_second) in enumerate(adds):
                if number >> bit & 1:
                    first ^= of_first
                    second ^= of_second
        return first, second


@dataclass(frozen=True)
class MatrixUnit:
    """One matrix-multiply primitive: ``m x n x k``, operand and accumulator types.

    Its class says whether it works on vectors (:class:`VectorDot`), on tiles (:class:`TileUnit`)
    or on shared memory (:class:`GroupUnit`); a unit of this class is called by the lanes of a warp
    together.

    Attributes:
        name: the name by which the target's lowering knows it.
        shape: (m, n, k) of one call.
        operands: dtype of both operands, e.g. ``float16``; of the first one, if ``second`` is
            another.
        accumulator: dtype of the accumulator.
        flops: peak operations per second of the whole chip with it.
        second: dtype of the second operand; empty if it is that of the first.
        in_flight: calls that one core must have begun before the first is done, to start one after
            the other: latency times units; 0 if unknown.
        fragments: of a unit that the lanes of a warp call together: of the first operand, of the
            second one, and of the accumulator. None otherwise, or where it is not described.
        intrinsic: LLVM's function of such a unit. It takes the registers of the three fragments one
            after the other, and returns the accumulator's: a struct if there are several.
        immediates: (position, value) of operands of type ``i1`` that the function takes besides,
            such as whether numbers have a sign; in order.
        rounding: of a unit whose operands are ``tfloat32`` LLVM's function that makes one of a
            float32: it returns the bits (``i32``).
        second_first: whether the function takes the second operand's registers before the first's.

    Raises:
        ValueError: a shape or dtype that a unit of this class does not have.
    """

    name: str
    shape: tuple[int, int, int]
    operands: str
    accumulator: str
    flops: float = 0.0
    second: str = ""
    in_flight: int = 0
    fragments: tuple[Fragment, Fragment, Fragment] | None = None
    intrinsic: str = ""
    immediates: tuple[tuple[int, bool], ...] = ()
    rounding: str = ""
    second_first: bool = False

    def __post_init__(self) -> None:
        for dtype in (*self.both, self.accumulator):
            if dtype not in UNIT_BITS:
                raise self._refusal(f"a dtype, one of {', '.join(UNIT_BITS)}", dtype)
        if len(self.shape) != 3 or min(self.shape) < 1:
            raise self._refusal(
                "rows, columns and steps for 'shape', 1 of each at least", self.shape
            )
        sides = ((0, 2), (1, 2), (0, 1))
        for fragment, dims in zip(self.fragments or (), sides, strict=False):
            covered = fragment.shape
            if covered != (wanted := tuple(self.shape[d] for d in dims)):
                raise self._refusal(f"fragments of the shape's {wanted} elements", covered)

    def _refusal(self, expected: str, got: object) -> ValueError:
        """The error that says why there is no such unit."""
        return ValueError(f"matrix unit '{self.name}': expected {expected}, got {got!r}")

    def _check_words(self) -> None:
        """Check that words of 32 bits have several numbers, as many of both operands."""
        bits = {UNIT_BITS[dtype] for dtype in self.both}
        if len(bits) > 1 or max(bits) >= WORD:
            raise self._refusal("operands of fewer than 32 bits, as many of both", self.both)
        if self.accumulator not in ("int32", "float32"):
            raise self._refusal("int32 or float32 for 'accumulator'", self.accumulator)

    @property
    def warps(self) -> int:
        """Warps that call it together."""
        return 1

    @property
    def sums(self) -> Fragment | None:
        """The accumulator's elements in registers; None if it is not described."""
        return self.fragments[2] if self.fragments else None

    @property
    def first(self) -> Fragment | None:
        """The first operand's elements in registers; None if they are not, or not described."""
        return self.fragments[0] if self.fragments else None

    @property
    def in_a_word(self) -> int:
        """Numbers that a word of its operands has."""
        return WORD // UNIT_BITS[self.operands]

    @property
    def both(self) -> tuple[str, str]:
        """The dtypes of the first and of the second operand."""
        return self.operands, self.second or self.operands


@dataclass(frozen=True)
class VectorDot(MatrixUnit):
    """A unit of vectors: its shape is (1, lanes, products of a lane).

    Each lane adds ``k`` products to an accumulator of 32 bits. The ``k`` factors of a lane are
    neighbours in a word of 32 bits, in the order of memory. Sums of integers wrap around.

    Contractions on a target with vectors use it as ``llvm.call_intrinsic
    "llvm.polyblocks.dot.NAME"(accumulator, first, second)``, on vectors of any length; see
    :mod:`polyblocks.affine.contraction.products.units`.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_words()
        if (self.shape[0], self.shape[2]) != (1, self.in_a_word):
            expected = f"1 row and the {self.in_a_word} steps of a word for 'shape'"
            raise self._refusal(expected, self.shape)


@dataclass(frozen=True)
class TileUnit(MatrixUnit):
    """A unit with registers for whole tiles.

    It multiplies ``m`` rows of ``k`` numbers, in words of 32 bits as those of a :class:`VectorDot`,
    by ``n`` columns of words of ``k`` numbers in all. Sums of integers wrap around.

    Contractions on a target with vectors use it as ``polyblocks.multiply``, whose instructions the
    target brings; see :mod:`polyblocks.codegen.units.lower_units`.

    Attributes:
        registers: tiles that one core holds, of operands and accumulators.
    """

    registers: int = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_words()
        if self.shape[2] % self.in_a_word:
            expected = f"steps in words of {self.in_a_word} for 'shape'"
            raise self._refusal(expected, self.shape)
        if self.registers < 3:
            raise self._refusal("3 'registers' at least, of two operands and sums", self.registers)


@dataclass(frozen=True)
class GroupUnit(MatrixUnit):
    """A unit that several warps call together, with operands in shared memory.

    It goes on while the threads do. The tiles of operands have rows of ``line`` bytes, in which
    pieces of 16 bytes are swizzled by the row's number modulo the pieces of a line. A row (or
    column) of an operand has the steps of one line; or a step has a line of columns (or rows), and
    *panels* of such lines lie behind each other.

    Attributes:
        group: warps that call it.
        accumulator_fragment: the accumulator's elements in registers; lanes are those of the group.
        line: bytes of a row of a tile in shared memory; tiles begin at multiples of ``8 * line``.
        by_columns: whether an operand may lie in panels.
        visible: LLVM's function after which the unit sees what a thread put into shared memory.
        begin: that before calls, after which the unit sees registers.
        close: that behind calls: those since the one before are a group.
        wait: a function of a number of groups (``i32``) and the accumulator's registers. It
            returns these when at most that many groups, those closed last, are not done.

        operand_fragment: elements of a first operand that is in registers; lanes are those of the
            group. None where it has to be in shared memory.
        with_registers: the function of the unit with such an operand, whose registers may be
            written again when its products are done. It takes the address of the second operand,
            whether that is in panels (``i1``), and the bytes from one panel to the next (``i32``);
            the first operand's registers; and the accumulator's.

    The function of the unit itself, ``intrinsic``, takes the addresses of both operands; for each
    of them whether it is in panels (``i1``), and the bytes from one panel to the next (``i32``);
    and the accumulator's registers. Functions that LLVM does not have are the target's to lower.
    """

    group: int = field(kw_only=True)
    accumulator_fragment: Fragment | None = field(default=None, kw_only=True)
    line: int = field(default=128, kw_only=True)
    by_columns: bool = field(default=False, kw_only=True)
    visible: str = field(default="", kw_only=True)
    begin: str = field(default="", kw_only=True)
    close: str = field(default="", kw_only=True)
    wait: str = field(default="", kw_only=True)
    operand_fragment: Fragment | None = field(default=None, kw_only=True)
    with_registers: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.group < 1:
            raise self._refusal("1 warp at least for 'group'", self.group)
        m, n, k = self.shape
        pairs = (self.accumulator_fragment, (m, n)), (self.operand_fragment, (m, k))
        for fragment, shape in pairs:
            if fragment is not None and fragment.shape != shape:
                expected = f"a fragment of the shape's {shape} elements"
                raise self._refusal(expected, fragment.shape)

    @property
    def warps(self) -> int:
        return self.group

    @property
    def sums(self) -> Fragment | None:
        return self.accumulator_fragment

    @property
    def first(self) -> Fragment | None:
        return self.operand_fragment


@dataclass(frozen=True)
class Latencies:
    """Seconds that a thread of a multiprocessor waits while others run, too; 0 if unknown.

    All of them are needed to predict the time of a kernel.

    Attributes:
        memory: from a load of the main memory to its value, with the memory in use by others.
        load_step: of an iteration of a loop whose loads come from the main memory or its caches,
            with those of other warps and other iterations in flight at the same time.
        shared_load: of a load from shared memory, several of them in flight.
        exchange: of a step in which the threads of a block read what others of them have just
            stored in shared memory: stores, barriers, and the loads that wait behind these.
        barrier: of a barrier to which all warps of a block come at about the same time.
        warp_reduce: of combining one value of each thread of a warp, as a chain of shuffles.
        issue: of the instructions of a short iteration that loads nothing.
    """

    memory: float = 0.0
    load_step: float = 0.0
    shared_load: float = 0.0
    exchange: float = 0.0
    barrier: float = 0.0
    warp_reduce: float = 0.0
    issue: float = 0.0

    @property
    def known(self) -> bool:
        """Whether none is missing."""
        return all(vars(self).values())


@dataclass(frozen=True)
class TileLoads:
    """How a warp reads tiles of shared memory, row by row or column by column.

    A tile is eight rows of 16 bytes, each aligned to these, and there are four at once: lane
    ``8 q + i`` gives the address of row ``i`` of tile ``q``. Of each tile a lane gets a register
    (``i32``): of its row, the four bytes at a place; or of its column of elements of 16 bits, two
    neighbouring rows.

    Attributes:
        by_rows, by_columns: LLVM's functions: take the address, and return a struct of four
            registers.
        lanes: (column, first of the two rows) that each bit of the lane's number adds, where tiles
            are read by columns; where they are read by rows, the row and the first of two columns
            of 16 bits.
    """

    by_rows: str
    by_columns: str
    lanes: tuple[tuple[int, int], ...]

    def at(self, lane: int) -> tuple[int, int]:
        """The column, and the first of the rows, that a lane gets by columns."""
        return Fragment(self.lanes, (), "i32").at(0, lane)


@dataclass(frozen=True)
class AsynchronousCopies:
    """How data goes from memory to shared memory past the registers, while the thread goes on.

    A thread starts copies of its own, closes the group of those that it has started, and waits
    until all but the latest n groups have arrived. By functions of LLVM:

    Attributes:
        bytes: of a copy, and the alignment of both addresses.
        start: takes the address in shared memory, that in memory, and how many bytes (``i32``) are
            read; the rest arrives as zeros.
        close: takes nothing.
        wait: takes how many groups (a constant ``i32``) may be on their way.
    """

    bytes: int
    start: str
    close: str
    wait: str


@dataclass(frozen=True)
class WindowCopies:
    """Bulk copies of pixels of images, which are those that windows are at one by one.

    An array has channels, from one to some dimensions of pixels, and images. A copy is of some
    channels of pixels one after the other: along the innermost dimension of pixels first, from its
    lower *corner* in steps up to its upper one, then along the next dimension, then of the next
    image. *Offsets*, which move all pixels of a copy, are those of an element of the window.
    Elements outside of the array arrive as zeros.

    Attributes:
        start: LLVM's function that starts a copy: takes the addresses in shared memory, of the
            barrier and of the array; of the first pixel the channel, the place along each
            dimension of pixels without offsets, and the image (``i32``); the offsets (``i32``);
            and as constants (``i64``): bytes of an element, the number of dimensions, bytes in
            front of the first element, extents, strides in bytes but for the innermost one's,
            channels and pixels that are copied, and of each dimension of pixels the lower corner;
            the upper one, counted from the last pixel; and the step.
        share: as ``start``, for all blocks of the kernel's cluster, see :class:`BulkCopies`.
        pixels: of a copy, at most.
        channels: of a copy, at most.
        step: along a dimension, at most.
        corners: by the number of dimensions of pixels: the least and the largest corner.
        offsets: likewise the largest offset.
    """

    start: str
    share: str
    pixels: int
    channels: int
    step: int
    corners: tuple[tuple[int, int], ...]
    offsets: tuple[int, ...]


@dataclass(frozen=True)
class BulkCopies:
    """Boxes of arrays that one thread copies to shared memory, while the others go on.

    Elements outside of the array arrive as zeros. Pieces of 16 bytes of a box's rows, which are
    lines of ``line`` bytes, are swizzled as :class:`GroupUnit` reads them. A copy counts its bytes
    at a *barrier*, 8 bytes of shared memory. A phase of a barrier ends when as many threads have
    arrived as it was made for, and all bytes that they expect are there.

    Attributes:
        line: bytes of a row of a box.
        rows: of a box along each other dimension, at most.
        dimensions: of an array, at most.
        alignment: bytes that divide the address of an array and its strides.
        start: LLVM's function that starts a copy: takes the addresses in shared memory, of the
            barrier and of the array; for each dimension the first element (``i32``), the innermost
            one first; and of the array, as constants (``i64``): bytes of an element, the number of
            dimensions, the extents of these, their strides in bytes but for the innermost one's,
            and the extents of the box.
        prepare: takes the address of a barrier, and how many arrive at it (``i32``).
        visible: what a thread calls when it has prepared barriers.
        expect: takes the address of a barrier, and bytes (``i32``): the thread expects these, and
            arrives.
        arrive: takes the address of a barrier.
        is_over: whether the phase of a barrier has ended that has a parity (``i32``): takes both,
            and returns ``i1``, maybe after a while.
        uniform: returns a number (``i32``) that is the same in all threads of a warp.
        elect: whether a thread is the one of its warp that is chosen (``i1``).
        release, take: how a group of warps, all of whose threads call it, gives registers away, or
            takes them: functions of the registers that a thread has then (a constant ``i32``).
        least: registers that a thread keeps at least.
        most: registers that it has at most.
        store: as ``start``, of a box in shared memory that is copied to an array; takes no barrier.
            Elements outside of the array are not stored, in pieces of ``alignment`` bytes.
        close: the boxes that a thread has begun to store since the call before are a group.
        stored: waits until at most a number of groups of a thread (a constant ``i32``) have not
            been read from shared memory.
        share: as ``start``, for all blocks of the kernel's cluster: each gets the box at the same
            place, and counts its bytes at its own barrier there.
        arrive_at: as ``arrive``, at the barrier of a block of the cluster; takes its number there
            (``i32``), too.
        meet: functions that all threads of a cluster's blocks call one after the other to wait for
            each other.
        cluster: blocks of a cluster, at most. They follow each other in the grid.
        windows: copies of pixels that windows are at; None if there are none.
    """

    line: int
    rows: int
    dimensions: int
    alignment: int
    start: str
    prepare: str
    visible: str
    expect: str
    arrive: str
    is_over: str
    uniform: str
    elect: str
    release: str
    take: str
    least: int
    most: int
    store: str
    close: str
    stored: str
    share: str = ""
    arrive_at: str = ""
    meet: tuple[str, ...] = ()
    cluster: int = 1
    windows: WindowCopies | None = None

    def describes(self, extents: Sequence[int], strides: Sequence[int]) -> bool:
        """Whether the chip's description of an array has room for it, and strides are aligned.

        Args:
            extents: elements along each dimension.
            strides: bytes between neighbours along each but the innermost one.
        """
        aligned = all(bytes_ % self.alignment == 0 for bytes_ in strides)
        return aligned and max(extents) < 1 << 32 and max(strides, default=0) < 1 << 40


@dataclass(frozen=True)
class BoundedLoads:
    """Loads from a buffer that find zeros where their place is beyond its end, without a branch.

    By functions of LLVM:

    Attributes:
        describe: makes a description of a buffer (a pointer into address space ``space``); takes
            its address, a stride (``i16``) of 0, its bytes (``i64``), and ``flags`` (``i32``).
        space: of descriptions.
        flags: what else descriptions say.
        load: takes a description, an offset in bytes (``i32``, unsigned, which decides), another
            one that is the same for all threads, and 0 (``i32``).
        bytes: of an access, at most.
    """

    describe: str
    space: int
    flags: int
    load: str
    bytes: int


@dataclass(frozen=True)
class Issue:
    """Instructions that one core issues in the time of a multiply-add of a whole register.

    Such a time is a slot. Without numbers of a chip, all kinds of instructions share the units of
    multiply-adds, and what takes long is as of vectors of 256 bits on most cores with two of these
    (5 cycles for a division, 6 for a root; uops.info).

    Attributes:
        vectors: vector instructions of any kind that it starts in a slot.
        sums_apart: whether additions, conversions and roundings have units of their own.
        shuffles: permutations of lanes that it starts in a slot.
        instructions: of all kinds, scalar ones and accesses among them, in a slot.
        quotient: slots from one division of a register to the next.
        root: the same of a square root.
        inverse_root: of a quotient by a square root, where terms may be rearranged.
        lane: slots for each lane that is loaded from a place of its own.
        pairs: whether gathers of two neighbours of 32 bits become one of 64, which takes as long.
        narrow: the part of a slot that an instruction of the narrowest vectors takes, and one of
            scalars in their registers.
        forwarding: slots from a store to a load of the same element.
    """

    vectors: float = 1.0
    sums_apart: bool = False
    shuffles: float = 1.0
    instructions: float = 2.0
    quotient: float = 10.0
    root: float = 12.0
    inverse_root: float = 22.0
    lane: float = 2.0
    pairs: bool = False
    narrow: float = 1.0
    forwarding: float = 8.0


@dataclass(frozen=True)
class Multiprocessor:
    """Limits of one multiprocessor of a GPU, and their allocation granularity.

    :mod:`polyblocks.occupancy` says how many blocks fit.

    Attributes:
        warp: threads of a warp.
        threads: threads that are resident at once.
        blocks: blocks that are resident at once.
        single_warp_blocks: the same for blocks of one warp, which may need no barrier of those
            that a multiprocessor has.
        threads_per_block: threads of the largest block.
        block_limits: threads of a block along x, y and z, at most.
        grid_limits: blocks of a grid along x, y and z, at most.
        partitions: parts with registers of their own; a warp lives in one of them.
        registers: 32-bit registers of all partitions together.
        registers_per_thread: what one thread can have at most.
        register_granularity: the registers of a thread are rounded up to a multiple of this.
        shared: bytes of shared memory.
        shared_per_block: bytes that a block gets without asking.
        shared_per_block_optin: bytes that a block gets at most, where the launch asks for it.
        shared_granularity: the bytes of a block are rounded up to a multiple of this.
        shared_reserved: bytes that the system takes for every block, on top of what it asks for
            and of ``shared_per_block_optin``.
        banks: banks of the shared memory.
        bank_bytes: what one bank delivers per cycle.
        shared_units: memories of as many banks that the shared memory is made of.
        access_bits: the widest load or store of one thread.
        sector: bytes of the smallest transaction with the memory behind, and their alignment.
        tile_loads: None where there are none.
        asynchronous_copies: None where data goes to shared memory through registers alone.
        bulk_copies: None where there are none.
        scheduling_fence: LLVM's function across which its code generator moves no instruction;
            takes which ones it may move all the same (a constant ``i32``: 0). Empty where what
            makes machine code overlaps accesses and matrix instructions by itself.
        bounded_loads: None where there are none.
        one_pipe: whether its vector units execute matrix instructions, and nothing beside them.
        power_of_two: LLVM's function of a power of two of a float32, to a few units in its last
            place, that is an instruction; numbers too small to be normal may be 0. Empty for none.
        latencies: what its threads wait for, in seconds.
        loads_in_flight: independent loads that a thread waits for together; 1 if unknown.
        busy_threads: resident threads that keep its units and its share of the memory busy; 0 if
            unknown, then as many as it holds.
        busy_warps: the same in warps, whose threads have many independent operations each.
        buffer_registers: registers of a thread that elements of buffers may take, at most: more
            would leave a multiprocessor too few threads.
        cache: bytes of a cache of its own in which data stay that it reads again and again while
            others stream through; 0 if it is missing or not known.
        count: multiprocessors of the chip; 0 if unknown.
    """

    warp: int
    threads: int
    blocks: int
    single_warp_blocks: int
    threads_per_block: int
    block_limits: tuple[int, int, int]
    grid_limits: tuple[int, int, int]
    partitions: int
    registers: int
    registers_per_thread: int
    register_granularity: int
    shared: int
    shared_per_block: int
    shared_per_block_optin: int
    shared_granularity: int
    shared_reserved: int = 0
    banks: int = 32
    bank_bytes: int = 4
    shared_units: int = 1
    access_bits: int = 128
    sector: int = 32
    asynchronous_copies: AsynchronousCopies | None = None
    bulk_copies: BulkCopies | None = None
    bounded_loads: BoundedLoads | None = None
    tile_loads: TileLoads | None = None
    scheduling_fence: str = ""
    one_pipe: bool = False
    power_of_two: str = ""
    latencies: Latencies = Latencies()
    loads_in_flight: int = 1
    busy_threads: int = 0
    busy_warps: int = 0
    buffer_registers: int = 48
    cache: int = 0
    count: int = 0

    @property
    def warps(self) -> int:
        """Warps that are resident at once."""
        return self.threads // self.warp


@dataclass(frozen=True)
class TargetDescription:
    """Facts about one chip, as far as the mid-level needs them.

    Attributes:
        name: the target's entry-point name (``cpu``, …).
        arch: the architecture that code is generated for, never ``native`` (that is resolved).
        parallel: levels of parallelism, outermost first.
        memory: levels of memory, fastest first, main memory last. A GPU's are ``registers``,
            ``shared`` (both of one multiprocessor), ``L2``, further caches, ``main``.
        vector_bits: width of one vector register; 0 for a target without SIMD registers.
        vector_registers: number of vector registers.
        masked_vectors: whether loads and stores of any element type work under a mask of lanes.
        gathers: whether the lanes of a vector may be loaded from a place each.
        compress: LLVM's function that moves the lanes of a mask to the front, in their order; it
            takes a vector, the mask, and a vector that has the lanes behind these. Empty where it
            takes about as long as to do so one by one; used with ``masked_vectors`` only.
        multiply_adds_in_flight: multiply-adds of one vector that one core must have begun before
            the first is done, to start one after the other: latency times units; 0 if unknown.
        loads_per_multiply_add: load instructions that one core starts in the time in which it
            starts a multiply-add of one vector; 0 if unknown.
        issue: what a core starts beside multiply-adds.
        flops: peak operations per second by dtype, all units together, without matrix units.
            That of ``float32`` is needed to predict a time.
        matrix_units: matrix primitives, best first.
        multiprocessor: of a GPU; None for a target without ``grid`` and ``block``.
        options: of :data:`polyblocks.options.TARGET_OPTIONS` the values besides the default that
            the target honours, ``{"use_graph": (True,)}``. The core refuses all others.
        properties: further facts that only the target's own lowering reads; JSON values.

    Raises:
        ValueError: a matrix unit is of a class that such a target does not use.
    """

    name: str
    arch: str
    parallel: tuple[ParallelLevel, ...]
    memory: tuple[MemoryLevel, ...]
    vector_bits: int = 0
    vector_registers: int = 0
    masked_vectors: bool = False
    gathers: bool = False
    compress: str = ""
    multiply_adds_in_flight: int = 0
    loads_per_multiply_add: float = 0.0
    issue: Issue = Issue()
    flops: Mapping[str, float] = field(default_factory=dict)
    matrix_units: tuple[MatrixUnit, ...] = ()
    multiprocessor: Multiprocessor | None = None
    options: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    properties: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        of_vectors = self.multiprocessor is None
        for unit in self.matrix_units:
            if isinstance(unit, (VectorDot, TileUnit)) != of_vectors:
                expected = "VectorDot or TileUnit" if of_vectors else "MatrixUnit"
                what = "without" if of_vectors else "with"
                raise ValueError(
                    f"target '{self.name}': matrix unit '{unit.name}' is a {type(unit).__name__}; "
                    f"expected {expected}, as the target is described {what} a multiprocessor"
                )

    def parallel_level(self, name: str) -> ParallelLevel | None:
        """The parallel level called ``name``, or None."""
        return next((level for level in self.parallel if level.name == name), None)

    def memory_level(self, name: str) -> MemoryLevel | None:
        """The memory level called ``name``, or None."""
        return next((level for level in self.memory if level.name == name), None)

    @property
    def line(self) -> int:
        """Bytes that the main memory moves at once; 64 if it is not described."""
        return self.memory[-1].line if self.memory else 64

    @property
    def shared_level(self) -> ParallelLevel:
        """The level over which the outer iterations of a nest are shared out: the outermost."""
        return self.parallel_level("team") or self.parallel[0]

    @property
    def lanes(self) -> int:
        """Elements of 32 bits in one vector register; 1 without vectors."""
        return max(self.vector_bits // 32, 1)

    @property
    def launches_nests(self) -> bool:
        """Whether every nest is a kernel by itself: started alone, by as many threads as it has."""
        return self.multiprocessor is not None

    @property
    def shares_inner_loops(self) -> bool:
        """Whether threads share all loops of a nest that are parallel, not the outer one alone."""
        return self.multiprocessor is not None

    @property
    def has_shared_memory(self) -> bool:
        """Whether threads stage tiles in a memory of their own, which is small and has no lines."""
        return self.multiprocessor is not None

    @property
    def updates_atomically(self) -> bool:
        """Whether threads add to elements of memory by atomic operations, any at any time."""
        return self.multiprocessor is not None

    @property
    def extends_floats_freely(self) -> bool:
        """Whether to extend a float that was loaded costs nothing, as it does of integers."""
        return self.multiprocessor is not None

    @property
    def code_holds_constants(self) -> bool:
        """Whether arrays of constants are part of the code; large ones are better loaded."""
        return self.multiprocessor is not None

    @property
    def has_register_tiles(self) -> bool:
        """Whether a thread computes contractions in tiles of its vector registers."""
        return self.vector_bits > 0 and self.multiprocessor is None

    @property
    def tiles_contractions(self) -> bool:
        """Whether contractions are computed in tiles, of vectors or of blocks of threads."""
        return self.vector_bits > 0 or self.multiprocessor is not None

    def to_json(self) -> str:
        """Canonical JSON, equal for equal descriptions."""
        data = dataclasses.asdict(self)
        for unit, row in zip(self.matrix_units, data["matrix_units"], strict=True):
            row["kind"] = type(unit).__name__
        return json.dumps(data, sort_keys=True, default=list)

    def fingerprint(self) -> bytes:
        """SHA-256 of the canonical JSON; part of the cache key."""
        return hashlib.sha256(self.to_json().encode()).digest()
