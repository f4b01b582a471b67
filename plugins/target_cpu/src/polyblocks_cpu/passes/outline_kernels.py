"""outline-kernels: every kernel of ``@main`` becomes a function of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks import signature
from polyblocks.affine.cost.estimate import scaled
from polyblocks.affine.mlir.regions import LOOPS
from polyblocks.attributes import (
    ESTIMATE_ATTRIBUTE,
    KERNEL_ATTRIBUTE,
    KIND_ATTRIBUTE,
    LEVEL_ATTRIBUTE,
    NESTS_ATTRIBUTE,
    REGION_ATTRIBUTE,
    SOURCES_ATTRIBUTE,
    VECTOR_ATTRIBUTE,
)
from polyblocks.codegen.memory import (
    STORES,
    VIEWS,
    WITHOUT_MEMORY,
    extent_of,
    static_bytes,
    written_operands,
)
from polyblocks.codegen.walk import nested
from polyblocks_cpu.team.kernels import TEAM_CALL, TRIPS

#: Attributes that move from a loop to its kernel.
_MOVED = (KIND_ATTRIBUTE, SOURCES_ATTRIBUTE, ESTIMATE_ATTRIBUTE, VECTOR_ATTRIBUTE)
#: The kind of a kernel that is a loop of the program.
LOOP = "loop"

#: Cheap ops without operands, repeated in a kernel instead of being passed to it.
_REPEATED = frozenset({"arith.constant", "complex.constant", "memref.get_global"})


@dataclass(frozen=True)
class OutlineKernelsPass:
    """Move kernels into functions, so that LLVM knows that their pointers do not overlap.

    A pointer that an OpenMP region captures is loaded from a structure and loses ``noalias``; a
    function's argument keeps it. Kernels also show up by name in profilers.

    Before::

        affine.parallel (%i) = (0) to (64) { ... %x ... } {polyblocks.kernel = "neg",
                                                           polyblocks.level = "team"}

    After::

        func.call @neg(%c0, %c64, %x, %y) {polyblocks.team}

        func.func private @neg(%begin: index, %end: index, %x: memref<64xf32> {llvm.noalias}, ...) {
          affine.for %i = %begin to %end { ... %x ... }
          return
        }

    A serial ``affine.for`` that names a kernel is moved as it is, without a range, and so is a loop
    of the program with all that is in it, if no part of it is shared among threads: its nests are
    no functions of their own, since a call for each of them would take longer than small nests.
    The function returns the values that such a loop carries. A memref keeps ``llvm.noalias``
    unless the kernel writes memory that another of its memrefs may overlap.
    """

    name: ClassVar[str] = "outline-kernels"

    def run(self, module: Any, context: Any) -> None:
        """Rewrite ``@main`` and append the kernels to the module."""
        from polyblocks.affine.mlir.json_attributes import to_attribute
        from polyblocks.mlir import ir

        del context
        with module.context, ir.Location.unknown():
            main = signature.main_of(module)
            taken = {op.attributes["sym_name"].value for op in _symbols(module)}
            around: list[Any] = [main.operation]
            kernels = list(_kernels(main.operation, around))
            uses = _uses_by_kernel(main.operation, kernels, around)
            for op, outside in zip(kernels, uses, strict=True):
                if ESTIMATE_ATTRIBUTE in op.attributes:
                    # Of one run of the program, in which a loop around it may call it often.
                    op.attributes[ESTIMATE_ATTRIBUTE] = to_attribute(_repeated_estimate(op))
                _outline(module, op, _unique(op.attributes, taken), outside)
            left = [(inner.name, inner) for inner in nested(main.operation)]
            _hoist_allocas(left, main.body.blocks[0])


def _is_kernel(op: Any) -> bool:
    if op.name == "affine.parallel":
        return LEVEL_ATTRIBUTE in op.attributes and op.attributes[LEVEL_ATTRIBUTE].value == "team"
    if REGION_ATTRIBUTE in op.attributes:
        return op.name in LOOPS and not any(
            LEVEL_ATTRIBUTE in inner.attributes for inner in nested(op)
        )
    return op.name == "affine.for" and KERNEL_ATTRIBUTE in op.attributes


def _kernels(op: Any, around: list[Any]) -> Iterator[Any]:
    """Kernels inside ``op``, also below guards and serial loops, but none inside another.

    All other operations are added to ``around``.
    """
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                if _is_kernel(inner.operation):
                    yield inner.operation
                else:
                    around.append(inner.operation)
                    yield from _kernels(inner.operation, around)


def _uses_by_kernel(
    main: Any, kernels: list[Any], around: list[Any]
) -> list[list[tuple[Any, int]]]:
    """For each kernel the operands in it that are defined outside of it: op and position.

    They are found from their definitions: there are few, and looking at all operands takes long.
    """
    # While nothing changes: attributes and operands are part of an operation's hash.
    found: dict[Any, list[tuple[Any, int]]] = {op: [] for op in kernels}
    homes: dict[Any, Any] = {op: op for op in kernels}

    def home(op: Any) -> Any:
        if op not in homes:
            homes[op] = None if op == main else home(op.parent.operation)
        return homes[op]

    for op in (*around, *kernels):
        values = list(op.results)
        if op not in found:
            blocks = (block for region in op.regions for block in region.blocks)
            values += [argument for block in blocks for argument in block.arguments]
        for value in values:
            for use in value.uses:
                user = use.owner.operation
                kernel = home(user)
                if kernel is not None:
                    found[kernel].append((user, use.operand_number))
    return list(found.values())


def _symbols(module: Any) -> Iterator[Any]:
    return (op.operation for op in module.body.operations if "sym_name" in op.operation.attributes)


def _unique(attributes: Any, taken: set[str]) -> str:
    requested = next(
        (attributes[k].value for k in (KERNEL_ATTRIBUTE, REGION_ATTRIBUTE) if k in attributes), ""
    )
    base = re.sub(r"[^A-Za-z0-9_.]", "_", requested) or "kernel"
    if base[0].isdigit():
        base = f"k{base}"
    name, number = base, 0
    while name in taken or name == "polyblocks_main":
        number += 1
        name = f"{base}_{number}"
    taken.add(name)
    return name


def _outline(module: Any, op: Any, name: str, outside: list[tuple[Any, int]]) -> None:
    from polyblocks import mlir

    ir = mlir.ir
    func = mlir.dialect("func")
    inside = [(inner.name, inner) for inner in nested(op)]
    order = {inner: i for i, (_, inner) in enumerate(inside)}
    outside.sort(key=lambda use: (order[use[0]], use[1]))
    # Results of other kernels have become those of calls.
    uses = [(user, place, user.operands[place]) for user, place in outside]
    captured, repeated, written = _captures(uses)
    parallel = op.name == "affine.parallel"
    index = ir.IndexType.get()
    types = ([index, index] if parallel else []) + [v.type for v in captured]
    results = [r.type for r in op.results]
    with ir.InsertionPoint(module.body):
        kernel = func.FuncOp(name, ir.FunctionType.get(types, results), visibility="private")
    block = kernel.add_entry_block()
    _annotate(kernel, captured, written, 2 if parallel else 0)

    operands = list(captured)
    begin, end = _range(op) if parallel else (0, 1)
    i64 = ir.IntegerType.get_signless(64)
    kernel.operation.attributes[TRIPS] = ir.IntegerAttr.get(i64, end - begin)
    if REGION_ATTRIBUTE in op.attributes:
        _gather(op, kernel.operation)
    for key in _MOVED:
        if key in op.attributes:
            kernel.operation.attributes[key] = op.attributes[key]
            del op.attributes[key]
    if KERNEL_ATTRIBUTE in op.attributes:
        kernel.operation.attributes[NESTS_ATTRIBUTE] = ir.ArrayAttr.get(
            [op.attributes[KERNEL_ATTRIBUTE]]
        )
        del op.attributes[KERNEL_ATTRIBUTE]
    if parallel:
        with ir.InsertionPoint(op):
            operands = [_index_constant(begin), _index_constant(end), *operands]
    with ir.InsertionPoint(op):
        call = func.CallOp(results, name, operands)
    for result, value in zip(op.results, call.results, strict=True):
        result.replace_all_uses_with(value)
    if parallel:
        call.operation.attributes[TEAM_CALL] = ir.UnitAttr.get()

    inner = list(block.arguments)[2 if parallel else 0 :]
    mapping = dict(zip(captured, inner, strict=True))
    with ir.InsertionPoint(block):
        for value in repeated:
            copy = value.owner.operation.clone()
            for position, operand in enumerate(copy.operands):
                if operand in mapping:
                    copy.operands[position] = mapping[operand]
            mapping[value] = copy.results[0]
        ret = func.ReturnOp([])
    if results:
        # Only now that it has no other users.
        op.move_before(ret.operation)
        ret.operation.erase()
        with ir.InsertionPoint(block):
            ret = func.ReturnOp(list(op.results))
    for user, position, value in uses:
        user.operands[position] = mapping[value]
    streams = any("nontemporal" in inner.attributes for name, inner in inside if name in STORES)
    if parallel:
        _range_loop(ret, op, block.arguments[0], block.arguments[1])
    else:
        op.move_before(ret.operation)
    _hoist_allocas(inside, block)
    if streams:
        # Such stores are not ordered with those by which threads tell that they are done.
        ir.Operation.create(
            "llvm.fence",
            attributes={"ordering": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 7)},
            ip=ir.InsertionPoint(ret),
        )
    if parallel:
        op.erase()


def _gather(loop: Any, kernel: Any) -> None:
    """Tell the kernel of a loop what nests it has; those are no kernels any more."""
    from polyblocks.affine.cost.estimate import combine
    from polyblocks.affine.mlir.json_attributes import to_attribute
    from polyblocks.mlir import ir

    names = [loop.attributes[REGION_ATTRIBUTE]]
    sources: dict[Any, None] = {}
    widths: set[int] = set()
    estimates: list[Any] = []
    for op in nested(loop):
        if KERNEL_ATTRIBUTE not in op.attributes:
            continue
        names.append(op.attributes[KERNEL_ATTRIBUTE])
        sources.update(dict.fromkeys(op.attributes.get(SOURCES_ATTRIBUTE, ())))
        widths.update(op.attributes.get(VECTOR_ATTRIBUTE, ()))
        if ESTIMATE_ATTRIBUTE in op.attributes:
            estimates.append(_repeated_estimate(op))
        for key in (KERNEL_ATTRIBUTE, *_MOVED):
            if key in op.attributes:
                del op.attributes[key]
    attributes = kernel.attributes
    attributes[NESTS_ATTRIBUTE] = ir.ArrayAttr.get(names)
    attributes[KIND_ATTRIBUTE] = ir.StringAttr.get(LOOP)
    attributes[SOURCES_ATTRIBUTE] = ir.ArrayAttr.get(list(sources))
    if widths:
        attributes[VECTOR_ATTRIBUTE] = ir.DenseI64ArrayAttr.get(sorted(widths))
    total = combine(estimates)
    if total is not None:
        attributes[ESTIMATE_ATTRIBUTE] = to_attribute(total)


def _repeated_estimate(nest: Any) -> dict[str, Any]:
    """A nest's estimate over all iterations of the loops around it; once if unknown."""
    from polyblocks.affine.mlir.json_attributes import from_attribute

    times = 1
    op = nest
    while op.name != "func.func":
        op = op.parent.operation
        if op.name == "affine.for" and REGION_ATTRIBUTE in op.attributes:
            times *= int(op.attributes["upperBoundMap"].value.results[0].value)
    estimate: dict[str, Any] = from_attribute(nest.attributes[ESTIMATE_ATTRIBUTE])
    return estimate if times == 1 else scaled(estimate, times)


def _captures(uses: list[tuple[Any, int, Any]]) -> tuple[list[Any], list[Any], set[Any]]:
    """The values from outside that a kernel uses.

    Args:
        uses: all uses of such values, in the order of its operations: op, position, value.

    Returns:
        Values to pass, values to repeat, and those of the passed that it may write.
    """
    from polyblocks.mlir import ir

    passed: dict[Any, None] = {}
    repeated: dict[Any, None] = {}

    def take(value: Any) -> None:
        if value in repeated or value in passed:
            return
        owner = value.owner
        if isinstance(owner, ir.Block):
            passed[value] = None
        elif owner.operation.name in _REPEATED:
            repeated[value] = None
        elif _begins_anywhere(value):
            # A bare pointer cannot say where it begins: the view is made in the kernel.
            for operand in owner.operation.operands:
                take(operand)
            repeated[value] = None
        else:
            passed[value] = None

    for _, _, value in uses:
        take(value)
    users = dict.fromkeys(user for user, _, _ in uses)
    writes = [extent_of(value) for value in _targets(users)]
    extents = {v: extent_of(v) for v in passed if isinstance(v.type, ir.MemRefType)}
    written = {v for v, extent in extents.items() if any(map(extent.overlaps, writes))}
    return list(passed), list(repeated), written


def _targets(users: Iterable[Any]) -> dict[Any, None]:
    """Memrefs that some operations may write, or operations on views that these make."""
    targets: dict[Any, None] = {}
    waiting = list(users)
    while waiting:
        op = waiting.pop()
        name = op.name
        if name in VIEWS:
            waiting += [use.owner.operation for result in op.results for use in result.uses]
        if not name.startswith(WITHOUT_MEMORY):
            targets.update(dict.fromkeys(written_operands(op)))
    return targets


def _begins_anywhere(value: Any) -> bool:
    """Whether a memref is a view whose offset is known at run time only."""
    from polyblocks.mlir import ir

    if not isinstance(value.type, ir.MemRefType) or value.owner.operation.name not in VIEWS:
        return False
    offset = value.type.get_strides_and_offset()[1]
    return bool(offset == ir.ShapedType.get_dynamic_stride_or_offset())


def _annotate(kernel: Any, captured: list[Any], written: set[Any], skip: int) -> None:
    """Argument attributes: noalias, readonly, and how many bytes may be read speculatively."""
    from polyblocks.mlir import ir

    unit = ir.UnitAttr.get()
    i64 = ir.IntegerType.get_signless(64)
    memrefs = [v for v in captured if isinstance(v.type, ir.MemRefType)]
    extents = {v: extent_of(v) for v in memrefs}

    def alone(value: Any) -> bool:
        rest = (v for v in memrefs if v != value and extents[v].overlaps(extents[value]))
        return all(v not in written and value not in written for v in rest)

    attributes = [ir.DictAttr.get({}) for _ in range(skip)]
    for value in captured:
        entries: dict[str, Any] = {}
        if value in extents:
            if alone(value):
                entries["llvm.noalias"] = unit
            if value not in written:
                entries["llvm.readonly"] = unit
            size = static_bytes(value.type)
            if size:
                entries["llvm.dereferenceable"] = ir.IntegerAttr.get(i64, size)
        attributes.append(ir.DictAttr.get(entries))
    kernel.operation.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)


def _range(op: Any) -> tuple[int, int]:
    """Constant bounds of a one-dimensional ``affine.parallel`` of step 1.

    Raises:
        ValueError: it is of another form; the mid-level's map-parallelism makes only this one.
    """
    from polyblocks.mlir import ir

    lower = op.attributes["lowerBoundsMap"].value
    upper = op.attributes["upperBoundsMap"].value
    steps = [int(a.value) for a in map(ir.IntegerAttr, ir.ArrayAttr(op.attributes["steps"]))]
    bounds = []
    for bound in (lower, upper):
        results = list(bound.results)
        if len(results) != 1 or not isinstance(results[0], ir.AffineConstantExpr):
            raise ValueError("a team-level affine.parallel has one dimension and constant bounds")
        bounds.append(int(results[0].value))
    if steps != [1] or len(op.results) != 0:
        raise ValueError("a team-level affine.parallel has step 1 and no reductions")
    return bounds[0], bounds[1]


def _index_constant(value: int) -> Any:
    from polyblocks import mlir

    return mlir.dialect("arith").ConstantOp(mlir.ir.IndexType.get(), value).result


def _range_loop(before: Any, parallel: Any, begin: Any, end: Any) -> None:
    """``affine.for %i = %begin to %end`` with the body of the parallel op moved into it."""
    from polyblocks import mlir

    ir = mlir.ir
    affine = mlir.dialect("affine")
    with ir.InsertionPoint(before):
        symbol = ir.AffineMap.get(0, 1, [ir.AffineSymbolExpr.get(0)])
        loop = affine.AffineForOp(
            symbol, symbol, 1, lower_bound_operands=[begin], upper_bound_operands=[end]
        )
    body = loop.body
    with ir.InsertionPoint(body):
        terminator = affine.AffineYieldOp([])
    old = parallel.regions[0].blocks[0]
    old.arguments[0].replace_all_uses_with(loop.induction_variable)
    for op in list(old.operations)[:-1]:
        op.operation.move_before(terminator.operation)


def _hoist_allocas(ops: Iterable[tuple[str, Any]], entry: Any) -> None:
    """Static stack buffers go to the function's entry: in a loop each turn would take new stack."""
    found = [op for name, op in ops if name == "memref.alloca" and not len(op.operands)]
    first = entry.operations[0].operation
    for alloca in found:
        alloca.move_before(first)
