"""permute-lookups: lanes look up numbers of a short table in registers instead of memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, ClassVar

from polyblocks.affine.vectors.vector_ops import shuffle
from polyblocks.codegen.straight_line import is_read, is_straight_line, is_write
from polyblocks.codegen.walk import nested
from polyblocks.mlir import ir
from polyblocks.target import Issue
from polyblocks_cpu.lookups.byte_tables import (
    LANES,
    MOST_ENTRIES,
    PARTS,
    ByteTables,
    packed,
    packing_slots,
    slots,
)

#: Operation that reads a table -> the number of its table operand.
_READS = {"vector.gather": 0, "vector.load": 0, "vector.maskedload": 0, "memref.load": 0}


@dataclass(frozen=True)
class PermuteLookupsPass:
    """Keep tables of up to 256 numbers of 32 bits as bytes, and permute these.

    A gather takes its time for every lane: 64 pairs of neighbours in a curve of 257 numbers take 25
    ns on Zen 4, and 9 with permutations of bytes. They pay where a block looks up several
    registers of lanes in one table, as three colors are in one curve.

    Before::

        %a = vector.gather %table[%c0] [%i], %all, %zero : memref<257xf32>, vector<16xi32>, ...
        %b = vector.gather %table[%c0] [%j], %all, %zero : memref<257xf32>, vector<16xi32>, ...

    After::

        %bytes = memref.alloca() : memref<4x256xi8>   // in front of all loops: byte b of entry k
        %w = vpackusdw %i, %j
        %n = vpackuswb %w, ...
        %first = vpermi2b %n, %bytes[0, 0:128]  ...   // and so on for the other three bytes
        %a, %b = vpunpck %first, ...

    The table is an argument that nothing else points to, and that is only read; where its indices
    go is known from its size, since there is memory where they point.
    """

    name: ClassVar[str] = "permute-lookups"
    #: Iterations for which it pays to take a table apart.
    least_trips: int = 32

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite the module in place; returns whether there was such a table."""
        target = context.target
        if not target.properties.get("byte_permutes"):
            return False
        changed = False
        with module.context, ir.Location.unknown():
            for op in module.body.operations:
                if op.operation.name == "func.func" and len(op.regions[0].blocks):
                    changed |= self._function(op.operation, target.issue)
        return changed

    def _function(self, function: Any, issue: Issue) -> bool:
        blocks: dict[Any, None] = {}
        for op in nested(function):
            if op.name == "vector.gather":
                blocks.setdefault(op.block)
        tables: dict[Any, bool] = {}
        held: dict[Any, ByteTables] = {}
        changed = False
        for block in blocks:
            if _trips(block) < self.least_trips:
                continue
            for group in _groups(block, function, tables):
                group.join()
                if group.slots(issue) < group.gather_slots(issue):
                    group.write(function, held)
                    changed = True
        return changed


@dataclass
class _Group:
    """Gathers of one block from one table, at the same distances from some places.

    Attributes:
        table: a memref of one dimension.
        consts: distances in elements, ascending.
        roots: the places, each with its gathers by distance.
    """

    table: Any
    consts: tuple[int, ...]
    roots: dict[Any, dict[int, list[Any]]] = field(default_factory=dict)

    @property
    def entries(self) -> int:
        """How many places there are."""
        return int(self.table.type.shape[0]) - (self.consts[-1] - self.consts[0])

    @property
    def registers(self) -> int:
        """Registers of places."""
        return sum(root.type.shape[0] // LANES for root in self.roots)

    def slots(self, issue: Issue) -> float:
        """Issue slots of permutations."""
        rounds = -(-self.registers // PARTS)
        each = packing_slots(issue) + len(self.consts) * slots(self.entries, issue)
        return rounds * each

    def gather_slots(self, issue: Issue) -> float:
        """Issue slots of gathers; two of neighbours become one."""
        gathers = len(self.consts)
        if issue.pairs:
            consts = list(self.consts)
            while len(consts) > 1:
                step = 2 if consts[1] == consts[0] + 1 else 1
                gathers -= step - 1
                consts = consts[step:]
        return self.registers * gathers * LANES * issue.lane

    def join(self) -> None:
        """Keep those places that can be known where the first one is looked up."""
        first = self._first()
        ops = [op.operation for op in first.block.operations]
        position = {op: i for i, op in enumerate(ops)}
        for root in list(self.roots):
            if _needed(root, first, position) is None:
                del self.roots[root]

    def _first(self) -> Any:
        gathers = {op for each in self.roots.values() for ops in each.values() for op in ops}
        (first, *_) = gathers
        return next(op.operation for op in first.block.operations if op.operation in gathers)

    def write(self, function: Any, held: dict[Any, ByteTables]) -> None:
        """Look all up where the first one is looked up."""
        first = self._first()
        ops = [op.operation for op in first.block.operations]
        position = {op: i for i, op in enumerate(ops)}
        for root in self.roots:
            for op in sorted(_needed(root, first, position) or (), key=position.__getitem__):
                op.move_before(first)
        key = self.table, self.consts
        if key not in held:
            firsts = [c - self.consts[0] for c in self.consts]
            with ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]):
                held[key] = ByteTables.of(self.table, firsts, self.entries)
        tables = held[key]
        with first.location, ir.InsertionPoint(first):
            parts: list[Any] = []
            for root in self.roots:
                parts += _registers(root, self.consts[0])
            found: dict[int, list[Any]] = {c: [] for c in self.consts}
            for start in range(0, len(parts), PARTS):
                four = parts[start : start + PARTS]
                index = packed([*four, *[four[-1]] * (PARTS - len(four))])
                for number, const in enumerate(self.consts):
                    element = self.table.type.element_type
                    found[const] += tables.look_up(index, number, element)[: len(four)]
            at = 0
            for root, gathers in self.roots.items():
                count = root.type.shape[0] // LANES
                for const, same in gathers.items():
                    value = _joined(found[const][at : at + count])
                    for op in same:
                        op.results[0].replace_all_uses_with(value)
                at += count
        for gathers in self.roots.values():
            for same in gathers.values():
                for op in same:
                    op.erase()


def _groups(block: Any, function: Any, tables: dict[Any, bool]) -> list[_Group]:
    """All groups of a block whose tables are short enough."""
    roots: dict[tuple[Any, Any], dict[int, list[Any]]] = {}
    for op in block.operations:
        op = op.operation
        if op.name != "vector.gather" or not _whole(op):
            continue
        table, index = op.operands[0], op.operands[2]
        if table not in tables:
            tables[table] = _is_table(table, function)
        if tables[table]:
            root, const = _base_and_offset(index)
            roots.setdefault((table, root), {}).setdefault(const, []).append(op)
    groups: dict[tuple[Any, tuple[int, ...]], _Group] = {}
    for (table, root), gathers in roots.items():
        key = table, tuple(sorted(gathers))
        groups.setdefault(key, _Group(*key)).roots[root] = gathers
    return [g for g in groups.values() if 0 < g.entries <= MOST_ENTRIES]


def _whole(op: Any) -> bool:
    """Whether a gather is of whole registers of 32 bits, from the first element of a list on."""
    if len(op.operands[0].type.shape) != 1:
        return False
    _, first, index, mask, _ = op.operands
    type_ = op.results[0].type
    if len(type_.shape) != 1 or type_.shape[0] % LANES or type_.scalable:
        return False
    if str(type_.element_type) not in ("f32", "i32"):
        return False
    if str(index.type.element_type) not in ("i32", "i64", "index"):
        return False
    return _number(first) == 0 and _number(mask) in (1, -1)


def _is_table(table: Any, function: Any) -> bool:
    """Whether it is an argument that no one writes, of numbers of 32 bits."""
    if not isinstance(table.owner, ir.Block) or table.owner != function.regions[0].blocks[0]:
        return False
    type_ = table.type
    if not isinstance(type_, ir.MemRefType) or len(type_.shape) != 1 or not type_.has_static_shape:
        return False
    if type_.layout != ir.AffineMapAttr.get(ir.AffineMap.get_identity(1)):
        return False
    attributes = function.attributes
    if "arg_attrs" not in attributes:
        return False
    if "llvm.noalias" not in attributes["arg_attrs"][table.arg_number]:
        return False
    return all(_READS.get(use.owner.name) == use.operand_number for use in table.uses)


def _base_and_offset(index: Any) -> tuple[Any, int]:
    """A place and a distance from it that make an index; it does not wrap around."""
    const = 0
    while not isinstance(index.owner, ir.Block) and index.owner.name == "arith.addi":
        left, right = index.owner.operands
        number = _number(right)
        if number is None:
            left, number = right, _number(left)
        if number is None:
            break
        index, const = left, const + number
    return index, const


def _number(value: Any) -> int | None:
    """An integer, or that in all lanes of a vector, that is known."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    attribute = owner.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr):
        if not attribute.is_splat:
            return None
        attribute = attribute.get_splat_value()
    if isinstance(attribute, (ir.IntegerAttr, ir.BoolAttr)):
        return int(attribute.value)
    return None


def _needed(value: Any, before: Any, position: dict[Any, int]) -> list[Any] | None:
    """Ops to hoist so that a value is known before an op; None if one cannot move."""
    found: dict[Any, None] = {}
    waiting = [value]
    while waiting:
        owner = waiting.pop().owner
        if isinstance(owner, ir.Block):
            continue
        op = owner.operation
        if position.get(op, -1) < position[before] or op in found:
            continue
        if is_read(op) or is_write(op) or not is_straight_line(op):
            return None
        found[op] = None
        waiting += op.operands
    return list(found)


def _registers(root: Any, const: int) -> list[Any]:
    """Places as registers of i32, ``const`` added."""
    i32 = ir.IntegerType.get_signless(32)
    (lanes,) = root.type.shape
    type_ = ir.VectorType.get([lanes], i32)
    if root.type != type_:
        name = "arith.index_cast" if str(root.type.element_type) == "index" else "arith.trunci"
        root = ir.Operation.create(name, results=[type_], operands=[root]).result
    if const:
        splat = ir.DenseElementsAttr.get_splat(type_, ir.IntegerAttr.get(i32, const))
        add = ir.Operation.create(
            "arith.constant", results=[type_], attributes={"value": splat}
        ).result
        root = ir.Operation.create("arith.addi", results=[type_], operands=[root, add]).result
    if lanes == LANES:
        return [root]
    return [shuffle(root, root, list(range(k, k + LANES))) for k in range(0, lanes, LANES)]


def _joined(parts: Sequence[Any]) -> Any:
    """Registers side by side."""
    value, *rest = parts
    for part in rest:
        wide, more = value.type.shape[0], part.type.shape[0]
        if wide != more:
            # Both sides of a shuffle have one type.
            part = shuffle(part, part, [min(k, more - 1) for k in range(wide)])
        value = shuffle(value, part, list(range(wide + more)))
    return value


def _trips(block: Any) -> int:
    """Iterations of the loops around a block, as far as they are known."""
    trips = []
    op = block.owner
    while op is not None and op.name != "func.func":
        if op.name == "scf.for":
            low, high, step = (_number(v) for v in list(op.operands)[:3])
            if low is not None and high is not None and step:
                trips.append(max(0, -(-(high - low) // step)))
        op = op.parent
    return prod(trips) if trips else 0
