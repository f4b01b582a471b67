"""verify-s3: a module that S3 hands over keeps the contract."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from polyblocks.affine.mlir.views import VIEWS
from polyblocks.attributes import BARRIER, COMMIT, COPY, MULTIPLY, REGION_ATTRIBUTE, WAIT
from polyblocks.mlir import ir
from polyblocks.s3 import arguments, attributes, copies, types
from polyblocks.s3.contract import DIVISIONS, MAIN, MODULE, NEST, OPERATIONS
from polyblocks.s3.violation import violation
from polyblocks.target import DOT_PREFIX, MatrixUnit, TargetDescription, TileUnit, VectorDot

#: Position of the memref that is stored to.
_STORES = {
    "affine.store": 1,
    "memref.copy": 1,
    "memref.store": 1,
    "vector.maskedstore": 0,
    "vector.store": 1,
    COPY: 1,
    MULTIPLY: 2,
}
INTRINSIC = "llvm.call_intrinsic"
#: dtype of sums of units of vectors and of tiles -> its type.
_SUMS = {"int32": "i32", "float32": "f32"}
_MASKED = ("vector.maskedload", "vector.maskedstore")


@dataclass(frozen=True)
class VerifyS3Pass:
    """Hold the module to the contract of ``docs/s3.md``; change nothing.

    Before and after::

        func.func @main(%x: memref<8xf32> {polyblocks.arg = {...}}, ...) {
          affine.for %i = 0 to 8 { ... } {polyblocks.kernel = "neg", ...} }

    The driver puts it behind all passes of S3 if ``POLYBLOCKS_VERIFY`` is set, also behind those
    of targets and extensions.
    """

    name: ClassVar[str] = "verify-s3"

    def run(self, module: Any, context: Any) -> bool:
        """Look at every operation.

        Raises:
            ValueError: names the first operation that breaks a rule, its location, and the rule.
        """
        with module.context:
            verify(module, context.target)
        return False


def verify(module: Any, target: TargetDescription) -> None:
    """Check a module after S3.

    Args:
        module: an MLIR module.
        target: the chip that it is for: its levels of parallelism and its vectors.

    Raises:
        ValueError: see :meth:`VerifyS3Pass.run`.
    """
    attributes.check_module(module.operation)
    mains = []
    for op in module.body.operations:
        op = op.operation
        _check_place(op, MODULE)
        if op.name == "func.func":
            mains.append(op)
        elif op.name == "memref.global":
            _check_global(op)
    if [op.attributes["sym_name"].value for op in mains] != ["main"]:
        raise violation(module.operation, "a module has one function, which is called @main")
    (main,) = mains
    if len(main.regions[0].blocks) != 1 or len(main.attributes["function_type"].value.results):
        raise violation(main, "@main has one block and returns nothing")
    arguments.check(module, main)
    block = main.regions[0].blocks[0]
    _Walk(target, arguments.read_only(main)).block(block, MAIN)


def _check_place(op: Any, place: str) -> None:
    known = OPERATIONS.get(op.name)
    if known is None:
        raise violation(op, "this operation is not handed over")
    if place not in known.places:
        allowed = " or ".join(_PLACES[p] for p in known.places)
        raise violation(op, f"it stands {_PLACES[place]}; it is allowed {allowed}")


_PLACES = {
    MODULE: "at the top of the module",
    MAIN: "in @main outside of nests",
    NEST: "inside of a nest",
}


def _check_global(op: Any) -> None:
    given = op.attributes
    if "constant" not in given or not isinstance(
        given.get("initial_value", None), ir.DenseElementsAttr | ir.DenseResourceElementsAttr
    ):
        raise violation(op, "a global is constant and has its elements")


@dataclass
class _Walk:
    """One walk over the operations of ``@main``."""

    target: TargetDescription
    read_only: set[Any]
    types: types.Types = field(init=False)
    #: Whether a group of copies was formed in the nest so far.
    grouped: bool = False

    def __post_init__(self) -> None:
        self.types = types.Types(self.target)

    def block(self, block: Any, place: str) -> None:
        """Check the operations of a block."""
        for argument in block.arguments:
            self.types.check(block.owner.operation, argument.type)
        for op in block.operations:
            self.operation(op.operation, place)

    def operation(self, op: Any, place: str) -> None:
        """Check one operation and what is in it."""
        name = op.name
        _check_place(op, place)
        if place == MAIN:
            self.grouped = False
        vector = False
        for value in op.results:
            vector |= self.types.check(op, value.type)
        if len(op.attributes):
            attributes.check(op, place, self.target)
        if vector:
            _check_vector(op)
        if name in _STORES and _owner_of(op.operands[_STORES[name]]) in self.read_only:
            raise violation(op, "it stores to an input that the program does not update")
        if name == "vector.gather" and not self.target.gathers:
            raise violation(op, f"the target '{self.target.name}' has no gathers")
        if name in _MASKED:
            self.mask(op)
        elif name == MULTIPLY:
            self.multiply(op)
        elif name == INTRINSIC:
            self.dot(op)
        elif name == "memref.alloca":
            _check_alloca(op)
        elif name == COPY:
            copies.check(op)
        elif name == COMMIT:
            self.grouped = True
        elif name == WAIT:
            copies.check_wait(op, self.grouped or copies.is_of_places(op))
        elif name == BARRIER:
            copies.check_barrier(op)
        regions = op.regions
        if not len(regions):
            return
        inner = NEST
        if REGION_ATTRIBUTE in op.attributes:
            inner = MAIN
        elif name in ("scf.while", "scf.index_switch"):
            raise violation(op, f"it is a loop or branch of the program: it has {REGION_ATTRIBUTE}")
        if name == "affine.parallel":
            _check_parallel(op)
        elif name == "affine.for":
            _check_for(op)
        for region in regions:
            for block in region.blocks:
                self.block(block, inner)

    def mask(self, op: Any) -> None:
        """Check the mask of a load or store."""
        if not self.target.masked_vectors and not _is_constant(op.operands[len(op.operands) - 2]):
            raise violation(
                op, f"masks are constants for the target '{self.target.name}', which has none"
            )

    def unit(self, op: Any, name: str, kind: type[MatrixUnit], what: str) -> MatrixUnit:
        """The unit of the target that an operation is of."""
        units = {unit.name: unit for unit in self.target.matrix_units if isinstance(unit, kind)}
        if name not in units:
            known = ", ".join(units) or "none"
            raise violation(
                op, f"it is of a unit of {what} of the target '{self.target.name}': {known}"
            )
        return units[name]

    def dot(self, op: Any) -> None:
        """Check a call of a unit of vectors; other functions take what LLVM says."""
        name = str(op.attributes["intrin"].value)
        if not name.startswith(DOT_PREFIX):
            return
        unit = self.unit(op, name.removeprefix(DOT_PREFIX), VectorDot, "vectors")
        sums = _SUMS[unit.accumulator]
        given = [_element_and_shape(value.type) for value in (*op.operands, *op.results)]
        shape = given[0][1]
        if given != [(element, shape) for element in (sums, "i32", "i32", sums)]:
            raise violation(
                op,
                f"it takes {sums} and two words of i32, and returns {sums}: scalars, or vectors of "
                "one length",
            )

    def multiply(self, op: Any) -> None:
        """Check a product of tiles."""
        unit = self.unit(op, op.attributes["unit"].value, TileUnit, "tiles")
        shape = list(op.attributes["shape"])
        if len(shape) != 3 or min(shape) < 1:
            raise violation(op, "its shape is rows, columns and steps, 1 of each at least")
        operands = list(op.operands)
        elements = [str(ir.MemRefType(v.type).element_type) for v in operands[:3]]
        if elements != ["i32", "i32", _SUMS[unit.accumulator]]:
            raise violation(
                op, f"'a' and 'b' are words of i32, 'accumulator' {_SUMS[unit.accumulator]}"
            )
        for name, memref in zip(("a", "b", "accumulator"), operands[:3], strict=True):
            amap = op.attributes[name].value
            takes = amap.n_dims, amap.n_symbols, len(amap.results)
            if takes != (len(operands) - 3, 2, len(ir.MemRefType(memref.type).shape)):
                raise violation(
                    op,
                    f"the map of '{name}' takes the indices, and two symbols for the place in the "
                    "tile, to a place in its memref",
                )


def _element_and_shape(type_: Any) -> tuple[str, list[int]]:
    """The element type, and the shape of a vector; none of a scalar."""
    if not isinstance(type_, ir.VectorType):
        return str(type_), []
    return str(type_.element_type), list(type_.shape)


def _check_vector(op: Any) -> None:
    if op.name in DIVISIONS and _smallest_element(op.operands[1]) < 2:
        raise violation(op, "vectors of integers are divided by constants above 1 only")


def _check_alloca(op: Any) -> None:
    type_ = ir.MemRefType(op.results[0].type)
    if len(op.operands) or not type_.layout == _identity(type_):
        raise violation(op, "a local buffer is dense and has a static shape")


def _check_parallel(op: Any) -> None:
    steps = [ir.IntegerAttr(a).value for a in ir.ArrayAttr(op.attributes["steps"])]
    low = _constant_bounds(op.attributes["lowerBoundsMap"].value)
    high = _constant_bounds(op.attributes["upperBoundsMap"].value)
    if steps != [1] or low != [0] or high is None or len(op.results):
        raise violation(
            op,
            "a parallel loop has one dimension, from 0 to a constant in steps of 1, and no results",
        )


def _check_for(op: Any) -> None:
    step = ir.IntegerAttr(op.attributes["step"]).value
    bounds = [op.attributes[f"{side}BoundMap"].value for side in ("lower", "upper")]
    constant = [_constant_bounds(amap) for amap in bounds]
    if step != 1 and any(bound is None or len(bound) != 1 for bound in constant):
        raise violation(op, "a loop whose bounds are no constants has step 1")
    if REGION_ATTRIBUTE in op.attributes and (step != 1 or constant[0] != [0] or not constant[1]):
        raise violation(op, "a loop of the program runs from 0 to a constant in steps of 1")


def _constant_bounds(amap: Any) -> list[int] | None:
    results = list(amap.results)
    if not all(isinstance(r, ir.AffineConstantExpr) for r in results):
        return None
    return [int(r.value) for r in results]


def _smallest_element(divisor: Any) -> int:
    """The smallest element of a constant of one value; 0 for anything else."""
    if isinstance(divisor.owner, ir.Block):
        return 0
    op = divisor.owner.operation
    if op.name == "vector.broadcast":
        return _smallest_element(op.operands[0])
    if not _is_constant(divisor):
        return 0
    value = op.attributes["value"]
    if isinstance(value, ir.DenseIntElementsAttr):
        return int(value.get_splat_value().value) if value.is_splat else 0
    return int(ir.IntegerAttr(value).value)


def _owner_of(memref: Any) -> Any:
    """The memref that a view, or a view of a view, is of."""
    while not isinstance(memref.owner, ir.Block) and memref.owner.operation.name in VIEWS:
        memref = memref.owner.operation.operands[0]
    return memref


def _is_constant(value: Any) -> bool:
    owner = value.owner
    return not isinstance(owner, ir.Block) and owner.operation.name == "arith.constant"


def _identity(type_: Any) -> Any:
    return ir.AffineMapAttr.get(ir.AffineMap.get_identity(len(type_.shape)))
