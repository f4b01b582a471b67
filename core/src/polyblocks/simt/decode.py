"""Turns a kernel in the LLVM dialect into segments of closures; calls are inlined."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from polyblocks.errors import UnsupportedError
from polyblocks.simt.address_space import DYNAMIC_BASE, private_window, shared_window
from polyblocks.simt.closures import (
    End,
    branch,
    conditional,
    effect,
    holding,
    merging,
    plain,
    several,
    switch,
    unreachable,
)
from polyblocks.simt.constants import constant_value
from polyblocks.simt.control_flow import serving_order
from polyblocks.simt.location import describe, short_text
from polyblocks.simt.modules import Globals
from polyblocks.simt.operations import LLVM
from polyblocks.simt.program import Kernel, Segment, Site, Step
from polyblocks.simt.semantics import CLUSTER, Instruction, Operation, Semantics, counts_of
from polyblocks.simt.speculation import needed_where, where_needed
from polyblocks.simt.types import (
    Float,
    Int,
    Layout,
    Pointer,
    read_type,
    scalar_of,
    zero,
)

_TERMINATORS = {
    "llvm.br",
    "llvm.cond_br",
    "llvm.switch",
    "llvm.return",
    "llvm.unreachable",
}
#: Intrinsics whose ops in the llvm dialect keep operands as attributes.
_WITH_ATTRIBUTES = {
    "is.fpclass", "vector.extract", "vector.insert", "masked.load", "masked.store",
    "masked.gather", "masked.scatter",
}  # fmt: skip
#: A type in the name of an overloaded intrinsic.
_TYPE = re.compile(r"(?:v\d+)?(?:i\d+|f\d+|bf16|p\d+)")
#: Ops whose results are the same in all lanes and known before the kernel runs.
_CONSTANTS = {"llvm.mlir.undef", "llvm.mlir.poison", "llvm.mlir.zero"}


@dataclass
class _Item:
    """An op with the registers of its operands and results.

    Attributes:
        needed: of a load, the register of the condition on which its value is used.
    """

    op: Any
    ins: list[int]
    outs: list[int]
    needed: tuple[int, bool] | None = None


@dataclass
class _Piece:
    """A segment before its closures exist."""

    items: list[_Item] = field(default_factory=list)
    successors: list[int] = field(default_factory=list)
    last: Any = None
    #: Makes the closure of the end once the order of the pieces is known.
    end: End | None = None


class Decoder:
    """Decodes the kernels of one module.

    Args:
        functions: by symbol: every ``llvm.func`` of the module.
        placed: its globals.
        semantics: the target's ops.
        layout: sizes of types.
    """

    def __init__(
        self,
        functions: dict[str, Any],
        placed: Globals,
        semantics: Semantics,
        layout: Layout,
    ) -> None:
        self.functions, self.placed = functions, placed
        self.semantics, self.layout = semantics, layout

    def kernel(self, name: str) -> Kernel:
        """Decode one kernel.

        Raises:
            UnsupportedError: an op, type or intrinsic that the simulator does not know.
        """
        return _KernelDecoder(self, self.functions[name], name).decode()

    def operation(self, instruction: Instruction) -> Operation:
        """The meaning of an op.

        Raises:
            UnsupportedError: none is registered.
        """
        name, known = instruction.name, self.semantics
        found: Operation | None
        if name == "llvm.call_intrinsic":
            name = intrinsic_name(instruction.op)
            found = self.intrinsic(name)
        elif name == "llvm.call":
            name = instruction.text("callee")
            found = known.functions.get(name.lstrip("@"))
        else:
            found = known.operations.get(name) or LLVM.get(name)
        if found is None:
            raise UnsupportedError(
                f"the simulator knows no meaning of {name}: register it in the target's "
                f"simt semantics ({short_text(instruction.op)})",
                location=describe(instruction.op.location) or None,
            )
        return found

    def intrinsic(self, name: str) -> Operation | None:
        """The meaning of an intrinsic; types at the end of its name need not be in the table."""
        while name:
            found = self.semantics.intrinsics.get(name)
            if found is None and name[5:] not in _WITH_ATTRIBUTES:
                found = LLVM.get(f"llvm.intr.{name[5:]}")
            if found is not None:
                return found
            name, _, suffix = name.rpartition(".")
            if _TYPE.fullmatch(suffix) is None:
                return None
        return None

    def waits(self, op: Any) -> bool:
        """Whether all threads of a block meet at an op."""
        known = self._operation(op)
        return known is not None and known.barrier

    def gathers(self, op: Any) -> int:
        """Subgroups that go on together from an op on; 0 if each goes on."""
        known = self._operation(op)
        return 0 if known is None else known.gathers

    def _operation(self, op: Any) -> Operation | None:
        if op.name == "llvm.call_intrinsic":
            return self.intrinsic(intrinsic_name(op))
        return self.semantics.operations.get(op.name)


def intrinsic_name(op: Any) -> str:
    """The name of the intrinsic that an ``llvm.call_intrinsic`` calls."""
    return str(op.attributes["intrin"].value)


class _KernelDecoder:
    def __init__(self, shared: Decoder, function: Any, name: str) -> None:
        self._shared, self._function, self._name = shared, function, name
        self._layout, self._functions = shared.layout, shared.functions
        self._pieces: list[_Piece] = []
        self._registers: list[Any] = []
        self._defined_in: dict[int, int] = {}
        self._leaves_piece: set[int] = set()
        self._sites: list[Site] = []
        self._granule = 8
        self._calls: list[str] = []
        self._windows = shared_window(), private_window()
        self._shared_addresses: dict[str, int] = {}
        self._has_dynamic = False

    def decode(self) -> Kernel:
        block = self._function.regions[0].blocks[0]
        arguments = [self._new(-1) for _ in block.arguments]
        types = [read_type(a.type) for a in block.arguments]
        entry = self._expand(self._function, arguments, None, [])
        order = serving_order([p.successors for p in self._pieces], entry)
        number = {piece: position for position, piece in enumerate(order)}
        segments = [self._segment(self._pieces[piece], number) for piece in order]
        window, private = self._windows
        fixed = sum(region.size for region in window.regions)
        dynamic = None
        if self._has_dynamic:
            dynamic = window.add("dynamic shared memory", 0, DYNAMIC_BASE)
        return Kernel(
            self._name, segments, self._registers, arguments, types, self._sites, self._granule,
            window, private, fixed, dynamic,
        )  # fmt: skip

    # Pieces and registers.
    def _new(self, piece: int, value: Any = None) -> int:
        self._registers.append(value)
        register = len(self._registers) - 1
        self._defined_in[register] = piece
        return register

    def _use(self, register: int, piece: int) -> int:
        if self._defined_in[register] != piece:
            self._leaves_piece.add(register)
        return register

    def _expand(
        self, function: Any, arguments: list[int], back: int | None, results: list[int]
    ) -> int:
        """Pieces of a function's body; returns the number of its first piece.

        Args:
            arguments: registers of its arguments.
            back: the piece to go on at after a return; None ends the thread.
            results: registers that a return writes.
        """
        blocks = list(function.regions[0].blocks)
        starts: dict[Any, int] = {}
        registers: dict[Any, int] = dict(zip(blocks[0].arguments, arguments, strict=True))
        for block in blocks:
            self._pieces.append(_Piece())
            starts[block] = len(self._pieces) - 1
        for block in blocks[1:]:
            for argument in block.arguments:
                # Written by branches from elsewhere, so always merged.
                registers[argument] = self._new(-1)
                self._leaves_piece.add(registers[argument])
        for block in blocks:
            self._block(block, starts, registers, back, results)
        return starts[blocks[0]]

    def _block(
        self,
        block: Any,
        starts: dict[Any, int],
        registers: dict[Any, int],
        back: int | None,
        results: list[int],
    ) -> None:
        at = starts[block]

        def read(value: Any) -> int:
            if value not in registers:
                # Dominance puts the definition in a block that is listed later.
                registers[value] = self._new(-1)
            return self._use(registers[value], at)

        def write(value: Any) -> int:
            if value in registers:
                self._leaves_piece.add(registers[value])
            else:
                registers[value] = self._new(at)
            return registers[value]

        for view in block.operations:
            op = view.operation
            name = op.name
            if self._constant(op, name, registers):
                continue
            if name in _TERMINATORS:
                ins = [read(v) for v in op.operands]
                self._terminate(self._pieces[at], op, ins, starts, registers, back, results)
                return
            callee = self._callee(op, name)
            ins = [read(v) for v in op.operands]
            if callee is not None:
                self._pieces.append(_Piece())
                following = len(self._pieces) - 1
                outs = [self._merged(value, registers) for value in op.results]
                self._call(callee, op, at, ins, following, outs)
                at = following
                continue
            item = _Item(op, ins, [write(v) for v in op.results])
            if name == "llvm.load" and (needed := needed_where(op)) is not None:
                item.needed = read(needed[0]), needed[1]
            self._pieces[at].items.append(item)
            gathers = self._shared.gathers(op)
            if gathers or self._shared.waits(op):
                self._pieces.append(_Piece())
                following = len(self._pieces) - 1
                self._pieces[at].successors = [following]
                self._pieces[at].last = op
                self._pieces[at].end = self._barrier(self._site(op), following, gathers)
                at = following

    def _merged(self, value: Any, registers: dict[Any, int]) -> int:
        registers.setdefault(value, self._new(-1))
        self._leaves_piece.add(registers[value])
        return registers[value]

    def _site(self, op: Any) -> int:
        self._sites.append(Site(op, op.name))
        return len(self._sites) - 1

    # Constants.
    def _constant(self, op: Any, name: str, registers: dict[Any, int]) -> bool:
        """Give a constant its value; False if the op is none."""
        if name == "llvm.mlir.constant":
            type_ = read_type(op.results[0].type)
            value = constant_value(op.attributes["value"], type_)
        elif name in _CONSTANTS:
            value = zero(read_type(op.results[0].type))
        elif name == "llvm.mlir.addressof":
            value = np.array([self._address(op.attributes["global_name"].value)], np.int64)
        elif name == "llvm.alloca":
            value = self._alloca(op)
        else:
            return False
        result = op.results[0]
        if result in registers:
            self._registers[registers[result]] = value
        else:
            registers[result] = self._new(-2, value)
        return True

    def _address(self, symbol: str) -> int:
        placed = self._shared.placed
        if symbol not in placed.shared:
            # The address of a function; there is no memory behind it.
            return placed.addresses.get(symbol, 0)
        size = placed.shared[symbol]
        if size == 0:
            self._has_dynamic = True
            return DYNAMIC_BASE
        if symbol not in self._shared_addresses:
            region = self._windows[0].add(f"shared array @{symbol}", size)
            self._shared_addresses[symbol] = region.base
        return self._shared_addresses[symbol]

    def _alloca(self, op: Any) -> Any:
        size = getattr(op.operands[0].owner, "operation", op.operands[0].owner)
        count = None
        if getattr(size, "name", "") == "llvm.mlir.constant":
            count = int(size.attributes["value"].value)
        if count is None:
            raise UnsupportedError(
                f"the simulator places private arrays of constant size only ({short_text(op)})",
                location=describe(op.location) or None,
            )
        element = read_type(op.attributes["elem_type"].value)
        private = self._windows[1]
        name = f"private array {len(private.regions)} of {self._name}"
        region = private.add(name, count * self._layout.stride(element))
        return np.array([region.base], np.int64)

    # Ends of pieces.
    def _terminate(
        self,
        piece: _Piece,
        op: Any,
        ins: list[int],
        starts: dict[Any, int],
        registers: dict[Any, int],
        back: int | None,
        results: list[int],
    ) -> None:
        piece.last = op
        if op.name == "llvm.return":
            if back is None:
                piece.end = lambda number: lambda m, r: m.leave()
            else:
                piece.successors = [back]
                piece.end = branch(list(zip(ins, results, strict=True)), back)
            return
        if op.name == "llvm.unreachable":
            piece.end = unreachable(self._site(op))
            return
        targets = [starts[block] for block in op.successors]
        arguments = [
            [self._argument(a, registers) for a in block.arguments] for block in op.successors
        ]
        piece.successors = targets
        if op.name == "llvm.br":
            piece.end = branch(list(zip(ins, arguments[0], strict=True)), targets[0])
            return
        if op.name == "llvm.cond_br":
            parts = _split(ins, [1, *map(len, arguments)])
            moves = [
                list(zip(p, a, strict=True)) for p, a in zip(parts[1:], arguments, strict=True)
            ]
            piece.end = conditional(ins[0], moves, targets)
            return
        parts = _split(ins, [1, *map(len, arguments)])
        moves = [list(zip(p, a, strict=True)) for p, a in zip(parts[1:], arguments, strict=True)]
        cases: list[int] = []
        if "case_values" in op.attributes:
            cases = [int(v) for v in np.array(op.attributes["case_values"]).reshape(-1)]
        piece.end = switch(ins[0], cases, moves, targets)

    def _argument(self, value: Any, registers: dict[Any, int]) -> int:
        register = registers[value]
        self._leaves_piece.add(register)
        return register

    def _barrier(self, site: int, following: int, gathers: int) -> End:
        def end(number: dict[int, int]) -> Step:
            resume = number[following]
            if gathers == CLUSTER:
                return lambda m, r: m.meet(site, resume)
            if gathers:
                return lambda m, r: m.gather(gathers, resume)
            return lambda m, r: m.wait(site, resume)

        return end

    # Calls.
    def _callee(self, op: Any, name: str) -> str | None:
        if name != "llvm.call" or "callee" not in op.attributes:
            return None
        symbol = op.attributes["callee"].value
        function = self._functions.get(symbol)
        if function is None or not len(function.regions[0].blocks):
            return None
        if symbol in self._calls or symbol == self._name:
            raise UnsupportedError(f"the simulator inlines calls, and @{symbol} calls itself")
        return str(symbol)

    def _call(
        self, symbol: str, op: Any, at: int, ins: list[int], following: int, outs: list[int]
    ) -> None:
        function = self._functions[symbol]
        arguments = [self._new(-1) for _ in function.regions[0].blocks[0].arguments]
        self._leaves_piece.update(arguments)
        self._calls.append(symbol)
        entry = self._expand(function, arguments, following, outs)
        self._calls.pop()
        self._pieces[at].successors = [entry]
        self._pieces[at].last = op
        self._pieces[at].end = branch(list(zip(ins, arguments, strict=True)), entry)

    # Closures.
    def _segment(self, piece: _Piece, number: dict[int, int]) -> Segment:
        assert piece.end is not None
        segment = Segment(end=piece.end(number))
        first = piece.items[0].op if piece.items else piece.last
        segment.site = self._site(first)
        if len(piece.successors) > 1:
            segment.counts["control"] = 1
        for item in piece.items:
            instruction = Instruction(item.op, self._layout)
            operation = self._shared.operation(instruction)
            run = operation.decode(instruction)
            self._note_granule(instruction)
            for kind, count in counts_of(operation, instruction).items():
                segment.counts[kind] = segment.counts.get(kind, 0) + count
            step = self._step(item, run)
            held = [] if operation.held is None else item.ins[operation.held]
            segment.steps.append(holding(step, held) if held else step)
        return segment

    def _note_granule(self, instruction: Instruction) -> None:
        if not any(isinstance(scalar_of(t), Pointer) for t in instruction.operands):
            return
        for type_ in (*instruction.operands, *instruction.results):
            for _, leaf in self._layout.leaves(type_):
                if isinstance(scalar_of(leaf), (Float, Int)):
                    self._granule = min(self._granule, self._layout.size(scalar_of(leaf)))
        if "mem" in instruction.name:
            self._granule = 1
        elif not instruction.name.startswith("llvm."):
            self._granule = min(self._granule, 4)

    def _step(self, item: _Item, run: Callable[..., Any]) -> Step:
        site = self._site(item.op)
        ins, outs = item.ins, item.outs
        merged = any(out in self._leaves_piece for out in outs)
        if not outs:
            return effect(run, ins, site)
        if len(outs) > 1:
            return several(run, ins, outs, site)
        step = merging(run, ins, outs[0], site) if merged else plain(run, ins, outs[0], site)
        return step if item.needed is None else where_needed(step, *item.needed)


def _split(values: list[int], sizes: list[int]) -> list[list[int]]:
    parts, start = [], 0
    for size in sizes:
        parts.append(values[start : start + size])
        start += size
    return parts
