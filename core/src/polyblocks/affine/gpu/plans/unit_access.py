"""Products that matrix units of warps compute, and how these find their operands in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from polyblocks.affine.access import address, stride_along
from polyblocks.affine.analysis.contractions import Contraction, Operand
from polyblocks.affine.analysis.facts import facts_of
from polyblocks.affine.contraction.products.factors import Factors, factors_of
from polyblocks.affine.contraction.products.product import Product
from polyblocks.affine.element import ARRAY_DTYPES
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.gpu.plans.fragments import ACCESS_BYTES, Steps, steps_given
from polyblocks.affine.gpu.plans.sizes import extent
from polyblocks.affine.model import Buffer, Nest
from polyblocks.target import GroupUnit, MatrixUnit

#: How elements of an operand follow each other in memory, the best way last.
_PREFERRED = ("", "step", "outer", "steps")


@dataclass(frozen=True, eq=False)
class UnitAccess:
    """How the warps of a unit find the operands of a product.

    Attributes:
        product: of two operands, rows before columns, its steps in the order in which most can be
            loaded at once.
        unit: that computes it.
        lane_steps: how the steps of a call are given out to the lanes.
        along: along what each operand's elements follow each other in memory, a piece at a time:
            ``steps``, ``outer`` (its rows or columns); or ``step``: steps follow each other, but
            no piece of them can be loaded at once; or nothing.
        linear: whether the address of each operand's elements is that of the first step and the
            number of the step.
        aligned: whether each operand's pieces are at multiples of their size, if its buffer is.
        window: steps of a window, all but those of the outermost loop, which places in memory
            follow evenly; 1 if that is not so.
        conditions: dimensions that the conditions of each operand's load are about.
    """

    product: Product
    unit: MatrixUnit
    lane_steps: Steps
    along: tuple[str, str]
    linear: tuple[bool, bool]
    aligned: tuple[bool, bool]
    window: int
    conditions: tuple[int, int]


def unit_accesses(
    contraction: Contraction, units: Sequence[MatrixUnit], *, passed: bool = False
) -> list[UnitAccess]:
    """How those units that can compute a contraction do, see :func:`factors_of`.

    Args:
        contraction: of two operands.
        units: to try.
        passed: whether the operand of rows is in registers already.
    """
    factors = factors_of(contraction)
    if factors is None:
        return []
    able = [unit for unit in units if factors.computed_by(unit)]
    size = ARRAY_DTYPES[factors.dtypes[0]].nbytes if able else 0
    given = [(unit, steps) for unit in able if (steps := steps_given(unit, size)) is not None]
    found = [_access(contraction, factors, ACCESS_BYTES // size, *each) for each in given]
    return [each for each in found if _reaches(each, size, int(passed))]


def _reaches(access: UnitAccess, size: int, first: int) -> bool:
    """Whether a unit can read the operands: one of shared memory what is copied there as it is.

    Args:
        access: of the unit.
        size: bytes of an element.
        first: 1 if only the operand of columns is in memory.
    """
    unit = access.unit
    if not isinstance(unit, GroupUnit):
        return True
    ways = ("steps", "outer") if unit.by_columns and size == 2 else ("steps",)
    copied = not any(o.on_the_way for o in access.product.operands[first:])
    return copied and all(access.aligned[first:]) and all(w in ways for w in access.along[first:])


def _access(
    contraction: Contraction, factors: Factors, piece: int, unit: MatrixUnit, lane_steps: Steps
) -> UnitAccess:
    """The access of a unit, the steps in the order in which most can be loaded at once."""
    rows, columns = pair = (factors.rows, factors.columns)

    def ways(order: list[Var]) -> tuple[str, str]:
        return _along(contraction, rows, order, piece), _along(contraction, columns, order, piece)

    order = max(_orders(contraction), key=lambda o: sum(_PREFERRED.index(way) for way in ways(o)))
    along = ways(order)
    aligned = [
        _is_aligned(contraction, o, order, way, piece) for o, way in zip(pair, along, strict=True)
    ]
    linear = [_runs_on(o, order) == len(order) for o in pair]
    product = Product(
        contraction=contraction,
        batch=contraction.batch,
        rows=contraction.rows,
        columns=contraction.columns,
        steps=order,
        operands=[rows, columns],
        unit=unit,
    )
    return UnitAccess(
        *(product, unit, lane_steps, along),
        linear=(linear[0], linear[1]),
        aligned=(aligned[0], aligned[1]),
        window=_window(pair, along, order),
        conditions=(_conditions(rows), _conditions(columns)),
    )


def unit_access(nest: Nest, units: Sequence[MatrixUnit]) -> UnitAccess | None:
    """How the first of some units that can compute a nest does; None if none can."""
    return next(iter(nest_accesses(nest, units)), None)


def nest_accesses(nest: Nest, units: Sequence[MatrixUnit]) -> list[UnitAccess]:
    """How units compute a nest: all of shared memory that can, and the first of the others."""
    contraction = facts_of(nest).contraction
    if contraction is None or not contraction.reduction.loops:
        return []
    if not any(unit.sums for unit in units):
        return []
    found = unit_accesses(contraction, units)
    of_lanes = [each for each in found if not isinstance(each.unit, GroupUnit)]
    return [*(each for each in found if isinstance(each.unit, GroupUnit)), *of_lanes[:1]]


def _conditions(operand: Operand) -> int:
    return len({frozenset(e.variables()) for e in operand.load.where})


def _orders(contraction: Contraction) -> Iterator[list[Var]]:
    """Orders of the loops over steps: as they are, and with each of them as the innermost one."""
    steps = contraction.reduction.order
    order = [v for v in steps if v.extent > 1] or steps
    yield order
    for var in order[:-1]:
        yield [*(v for v in order if v is not var), var]


def _runs_on(operand: Operand, order: list[Var], piece: int = 0) -> int:
    """Of how many of the innermost loops the steps follow each other in memory.

    With a ``piece``, conditions may be about the last loop where they hold for whole
    pieces.
    """
    load, run, step = operand.load, 0, 1
    fixed = {
        v
        for e in load.where
        for v in e.variables()
        if not piece or v is not order[-1] or not _holds_by_pieces(e, v, piece)
    }
    for var in reversed(order):
        if var in fixed or stride_along(load.buffer, load.index, var) != step:
            break
        run, step = run + 1, step * var.extent
    return run


def _holds_by_pieces(condition: Expr, var: Var, piece: int) -> bool:
    """Whether an expression is negative for all steps of a piece or for none."""
    begins = all(factor % piece == 0 for atom, factor in condition.terms if atom is not var)
    ends = condition.coefficient(var) == -1 and (condition.const + 1) % piece == 0
    return begins and ends and var.extent % piece == 0


def _window(pair: tuple[Operand, Operand], along: tuple[str, str], order: list[Var]) -> int:
    apart = [o for o, way in zip(pair, along, strict=True) if not way]
    for operand in apart:
        fixed = {v for e in operand.load.where for v in e.variables()}
        place = address(operand.load.buffer, operand.load.index)
        if order[0] in fixed or place.coefficient(order[0]) is None:
            return 1
    return extent(order[1:]) if apart else 1


def _along(contraction: Contraction, operand: Operand, order: list[Var], piece: int) -> str:
    run = _runs_on(operand, order, piece)
    if run and extent(order[-run:]) % piece == 0:
        return "steps"
    load = operand.load
    side = (contraction.rows if operand.of_rows else contraction.columns)[-1]
    fixed = any(side in set(e.variables()) for e in load.where)
    if not fixed and side.extent % piece == 0 and stride_along(load.buffer, load.index, side) == 1:
        return "outer"
    # Each of a thread's many rows would be a place of its own.
    apart = load.where or len(contraction.rows if operand.of_rows else contraction.columns) > 1
    return "step" if run and not apart else ""


def _is_aligned(
    contraction: Contraction, operand: Operand, order: list[Var], way: str, piece: int
) -> bool:
    load = operand.load
    if not way or begins_inside(load.buffer):
        return False
    side = contraction.rows if operand.of_rows else contraction.columns
    along = order[-_runs_on(operand, order, piece) :] if way == "steps" else side[-1:]
    at = address(load.buffer, load.index)
    others = [factor for atom, factor in at.terms if atom not in along]
    return at.const % piece == 0 and all(factor % piece == 0 for factor in others)


def begins_inside(buffer: Buffer) -> bool:
    """Whether a buffer, or what it is of, may not begin where its memory begins."""
    types = (b.memref_type for b in (buffer, buffer.base))
    return any(t is not None and t.get_strides_and_offset()[1] != 0 for t in types)
