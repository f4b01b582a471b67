"""lower-bulk-copies: arrays of bulk copies become tensor maps, parameters of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks import mlir
from polyblocks.attributes import CLUSTER_ATTRIBUTE
from polyblocks.codegen.gpu.plan import kernels, name_of, read_launches, write_launches
from polyblocks.codegen.walk import nested
from polyblocks.errors import PassError
from polyblocks.runtime.device.tensor_map import IM2COL
from polyblocks_nvgpu.bulk.copies import (
    ARRIVE_AT,
    ARRIVE_ELSEWHERE,
    ELECT,
    PLACE_OF,
    RELEASE,
    SHARE,
    SHARE_WINDOWS,
    START,
    STORE,
    TENSOR_COPY,
    TENSOR_PIXELS,
    TENSOR_STORE,
    UNIFORM,
    WINDOWS,
)

#: Operations between a parameter and its use as an address.
_CASTS = ("llvm.inttoptr", "llvm.ptrtoint", "llvm.addrspacecast")
_MAP = "{llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64, nvvm.grid_constant}"
_SHUFFLE = "llvm.nvvm.shfl.sync.idx.i32"
_ELECT = "llvm.nvvm.elect.sync"
#: Address space of the shared memory of a cluster of blocks.
_CLUSTER = 7


@dataclass(frozen=True)
class LowerBulkCopiesPass:
    """Copies of boxes take tensor maps, which launches make of the arrays' addresses.

    Before::

        llvm.func @k(%x: !llvm.ptr<1>) {
          llvm.call_intrinsic "llvm.polyblocks.bulk.start"(%to, %barrier, %x, %i, %j,
            %c2, %c2, %c0, %c512, %c256, %c1024, %c64, %c128)

    After::

        llvm.func @k(%x: !llvm.ptr<1>, %map: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>, ...}) {
          llvm.call_intrinsic "llvm.nvvm.cp.async.bulk.tensor.g2s.tile.2d"(
            %to, %barrier, %map, %i, %j, ...)

    and its launches have one more argument, ``{"tensor_map": {"argument": 0, ...}}``. A kernel with
    clusters says so in an attribute that the assembler knows, and launches say it, too.
    """

    name: ClassVar[str] = "lower-bulk-copies"

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite the kernels and the plan in place; returns whether there were such copies."""
        del context
        launches = read_launches(module)
        found = False
        with module.context:
            for kernel in kernels(module):
                rows = [row for row in launches if row["kernel"] == name_of(kernel)]
                found |= _Kernel(kernel, rows).lower()
        if found:
            write_launches(module, launches)
        return found


class _Kernel:
    """One kernel, and its launches."""

    def __init__(self, kernel: Any, launches: list[dict[str, Any]]) -> None:
        self.kernel, self.launches = kernel, launches
        self.block = kernel.regions[0].blocks[0]
        self._maps: dict[tuple[int, ...], Any] = {}
        attributes = kernel.attributes
        #: Blocks of a cluster.
        self.cluster = (
            int(attributes[CLUSTER_ATTRIBUTE].value) if CLUSTER_ATTRIBUTE in attributes else 1
        )

    def lower(self) -> bool:
        ir = mlir.ir
        found = False
        if self.cluster > 1:
            sizes = ir.DenseI32ArrayAttr.get([self.cluster, 1, 1])
            self.kernel.attributes["nvvm.cluster_dim"] = sizes
            for row in self.launches:
                row["cluster"] = self.cluster
        for op in list(nested(self.kernel)):
            if op.name != "llvm.call_intrinsic":
                continue
            lower = {
                START: self._start,
                SHARE: self._start,
                WINDOWS: self._start_windows,
                SHARE_WINDOWS: self._start_windows,
                ARRIVE_AT: self._arrive_at,
                STORE: self._store,
                UNIFORM: self._uniform,
                ELECT: self._elect,
            }.get(op.attributes["intrin"].value)
            if op.attributes["intrin"].value == RELEASE:
                # The assembler has to know with how many registers a block begins.
                i32 = ir.IntegerType.get_signless(32)
                self.kernel.attributes["nvvm.minctasm"] = ir.IntegerAttr.get(i32, 1)
            if lower is not None:
                found = True
                with op.location, ir.InsertionPoint(op):
                    lower(op)
                op.erase()
        return found

    def _start(self, op: Any) -> None:
        rank, map_, places = self._described(op, 2)
        shares = op.attributes["intrin"].value == SHARE
        self._copy(op, TENSOR_COPY.format(rank), [map_, *places], shares)

    def _start_windows(self, op: Any) -> None:
        base, *rest = list(op.operands)[2:]
        # For each dimension a coordinate, an extent, and a stride but for the first; of those
        # between channels and images an offset, two corners and a step; and five numbers.
        rank = (len(rest) + 4) // 7
        offsets = [_op("llvm.trunc", _integer(16), each) for each in rest[rank : 2 * rank - 2]]
        map_ = self._map_of(base, [_number(v) for v in rest[2 * rank - 2 :]], op, windows=True)
        shares = op.attributes["intrin"].value == SHARE_WINDOWS
        given = [map_, *rest[:rank], *offsets]
        self._copy(op, TENSOR_PIXELS.format(rank), given, shares)

    def _copy(self, op: Any, name: str, given: list[Any], shares: bool) -> None:
        """A copy to shared memory, by a map, places, and maybe offsets."""
        to, barrier, *_ = op.operands
        blocks = (1 << self.cluster) - 1 if shares else 0
        operands = [
            _op("llvm.inttoptr", _pointer(_CLUSTER), _op("llvm.ptrtoint", _integer(64), to)),
            *(barrier, *given),
            # The blocks that get it, how it is cached, and whether there are the two.
            *(_constant(blocks, 16), _constant(0, 64), _constant(int(shares), 1), _constant(0, 1)),
            _constant(0, 32),
        ]
        _call(name, [], operands)

    def _arrive_at(self, op: Any) -> None:
        place = _call(PLACE_OF, [_pointer(_CLUSTER)], list(op.operands))
        _call(ARRIVE_ELSEWHERE, [], [place, _constant(1, 32)])

    def _store(self, op: Any) -> None:
        rank, map_, places = self._described(op, 1)
        operands = [op.operands[0], map_, *places, _constant(0, 64), _constant(0, 1)]
        _call(TENSOR_STORE.format(rank), [], operands)

    def _described(self, op: Any, first: int) -> tuple[int, Any, list[Any]]:
        """The dimensions of a call's array, its map, and where the box begins.

        Args:
            op: the call.
            first: the number of the operand that is the array's address.
        """
        base, *rest = list(op.operands)[first:]
        # For each dimension a coordinate, an extent, a stride but for the first, and that of a box.
        rank = (len(rest) - 2) // 4
        return rank, self._map_of(base, [_number(v) for v in rest[rank:]], op), rest[:rank]

    def _uniform(self, op: Any) -> None:
        members, first, all_ = _constant(-1, 32), _constant(0, 32), _constant(31, 32)
        result = _call(_SHUFFLE, [_integer(32)], [members, op.operands[0], first, all_])
        op.results[0].replace_all_uses_with(result)

    def _elect(self, op: Any) -> None:
        ir = mlir.ir
        pair = _call(_ELECT, [ir.Type.parse("!llvm.struct<(i32, i1)>")], [_constant(-1, 32)])
        position = {"position": ir.DenseI64ArrayAttr.get([1])}
        chosen = ir.Operation.create(
            "llvm.extractvalue", results=[_integer(1)], operands=[pair], attributes=position
        )
        op.results[0].replace_all_uses_with(chosen.results[0])

    def _map_of(self, base: Any, given: list[int], op: Any, windows: bool = False) -> Any:
        """The map of an array, which is one of several where kernels share their code."""
        numbers = sorted(self._parameters(base, op, set()))
        maps = [self._map(number, given, windows) for number in numbers]
        found = maps[0]
        for number, map_ in zip(numbers[1:], maps[1:], strict=True):
            # Arrays at one address have one map.
            addresses = (
                _op("llvm.ptrtoint", _integer(64), value)
                for value in (base, self.block.arguments[number])
            )
            is_it = mlir.ir.Operation.create(
                "llvm.icmp",
                results=[_integer(1)],
                operands=list(addresses),
                attributes={"predicate": mlir.ir.IntegerAttr.get(_integer(64), 0)},
            )
            found = _op("llvm.select", _pointer(0), is_it.results[0], map_, found)
        return found

    def _parameters(self, value: Any, op: Any, seen: set[Any]) -> set[int]:
        """The numbers of the parameters that an address may be."""
        if value in seen:
            return set()
        seen.add(value)
        owner = value.owner
        if not isinstance(owner, mlir.ir.Block):
            if owner.operation.name in _CASTS:
                return self._parameters(owner.operation.operands[0], op, seen)
            if owner.operation.name == "llvm.select":
                given = list(owner.operation.operands)[1:]
                return set().union(*(self._parameters(each, op, seen) for each in given))
        elif owner == self.block:
            return {int(mlir.ir.BlockArgument(value).arg_number)}
        else:
            given = list(self._incoming(owner, int(mlir.ir.BlockArgument(value).arg_number)))
            return set().union(*(self._parameters(each, op, seen) for each in given))
        what = f"expected an array that is a parameter, got {value}: {op}"
        raise PassError("lower-bulk-copies", "S4", what)

    def _incoming(self, block: Any, number: int) -> Iterator[Any]:
        """The values that branches hand to an argument of a block."""
        for other in self.kernel.regions[0].blocks:
            end = list(other.operations)[-1].operation
            if not len(end.successors):
                continue
            sizes = [0, len(end.operands)]
            if "operandSegmentSizes" in end.attributes:
                sizes = list(mlir.ir.DenseI32ArrayAttr(end.attributes["operandSegmentSizes"]))
            first = sizes[0]
            for successor, size in zip(end.successors, sizes[1:], strict=True):
                if successor == block:
                    yield end.operands[first + number]
                first += size

    def _map(self, parameter: int, given: list[int], windows: bool) -> Any:
        """The parameter that is the map of an array."""
        key = (parameter, *given)
        if key not in self._maps:
            self._maps[key] = self._add_parameter()
            size, rank, offset, *rest = given
            described = {
                "element_bytes": size,
                "extents": rest[:rank],
                "strides": rest[rank : 2 * rank - 1],
                "box": rest[2 * rank - 1 :],
            }
            if windows:
                channels, pixels, *corners = rest[2 * rank - 1 :]
                described |= {
                    "kind": IM2COL,
                    "box": [channels, pixels],
                    "lower": corners[::3],
                    "upper": corners[1::3],
                    "steps": corners[2::3],
                }
            for row in self.launches:
                of = dict(row["arguments"][parameter])
                key_ = "argument" if "argument" in of else "workspace"
                place = {key_: of[key_], "offset": of.get("offset", 0) + offset}
                row["arguments"].append({"tensor_map": {**place, **described}})
        return self._maps[key]

    def _add_parameter(self) -> Any:
        ir = mlir.ir
        inputs = [str(argument.type) for argument in self.block.arguments]
        type_ = f"!llvm.func<void ({', '.join([*inputs, '!llvm.ptr'])})>"
        self.kernel.attributes["function_type"] = ir.TypeAttr.get(ir.Type.parse(type_))
        known = (
            list(ir.ArrayAttr(self.kernel.attributes["arg_attrs"]))
            if "arg_attrs" in self.kernel.attributes
            else [ir.DictAttr.get({}) for _ in inputs]
        )
        known.append(ir.Attribute.parse(_MAP))
        self.kernel.attributes["arg_attrs"] = ir.ArrayAttr.get(known)
        return self.block.add_argument(_pointer(0), ir.Location.unknown())


def _op(name: str, type_: Any, *operands: Any) -> Any:
    return mlir.ir.Operation.create(name, results=[type_], operands=list(operands)).results[0]


def _call(name: str, results: list[Any], operands: list[Any]) -> Any:
    ir = mlir.ir
    made = ir.Operation.create(
        "llvm.call_intrinsic",
        results=results,
        operands=operands,
        attributes={
            "intrin": ir.StringAttr.get(name),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        },
    )
    return made.results[0] if results else None


def _constant(value: int, bits: int) -> Any:
    ir = mlir.ir
    attributes = {"value": ir.IntegerAttr.get(_integer(bits), value)}
    return ir.Operation.create(
        "llvm.mlir.constant", results=[_integer(bits)], attributes=attributes
    ).results[0]


def _integer(bits: int) -> Any:
    return mlir.ir.IntegerType.get_signless(bits)


def _pointer(space: int) -> Any:
    return mlir.ir.Type.parse(f"!llvm.ptr<{space}>" if space else "!llvm.ptr")


def _number(value: Any) -> int:
    """A constant operand."""
    return int(value.owner.attributes["value"].value)
