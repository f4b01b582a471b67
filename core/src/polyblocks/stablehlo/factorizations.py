"""Factorizations: StableHLO's own operations, and LAPACK's that frameworks call."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from polyblocks.algorithms.expand import call
from polyblocks.algorithms.factorizations.limits import (
    refused_decomposition,
    refused_reflections,
)
from polyblocks.errors import UnsupportedError
from polyblocks.mlir import ir
from polyblocks.stablehlo import code
from polyblocks.stablehlo.array import Array
from polyblocks.stablehlo.attributes import boolean
from polyblocks.stablehlo.contractions import contract
from polyblocks.stablehlo.element import F32, F64, I32, Element
from polyblocks.stablehlo.lowering import Lowering
from polyblocks.stablehlo.rules import rule

_LAPACK = re.compile(r"lapack_([sdcz])(\w+)_ffi")
#: Names of the parts of a matrix, of sides and so on, as LAPACK's functions take them.
_OPTIONS = {"uplo": "L", "side": "L", "trans_x": "N", "diag": "N", "mode": "V"}
#: Truth values among them: T or N.
_FLAGS = ("left", "transpose")
#: By function, the results that are vectors: nothing computes them where nothing uses them.
_VECTORS = {"gesdd": (2, 3), "syevd": (0,)}


@rule("stablehlo.cholesky")
def _cholesky(lowering: Lowering, op: Any, arguments: list[Array]) -> list[Array]:
    (a,) = arguments
    _check_element(a)
    lower = boolean(op, "lower")
    factor, info = _potrf(lowering, [a if lower else _transposed(lowering, a)])
    factor = _nan_where_it_fails(lowering, factor, info)
    return [factor if lower else _transposed(lowering, factor)]


def _nan_where_it_fails(lowering: Lowering, factor: Array, info: Array) -> Array:
    """A lower triangular factor, all NaN on and below the diagonal where ``info`` is not 0."""
    loops = list(range(factor.rank))

    def body(loaded: list[Any]) -> list[Any]:
        value, number = loaded
        fails = code.compare_int("ne", number, code.constant(I32, 0))
        row, column = (_loop(d) for d in loops[-2:])
        inside = code.compare_int("ule", column, row)
        nan = code.constant(factor.element, float("nan"))
        return [code.select(code.both(fails, inside), nan, value)]

    inputs = [lowering.operand(factor, loops), lowering.operand(info, loops[:-2])]
    (result,) = lowering.generic(factor.shape, inputs, [factor.element], body)
    return result


@rule("stablehlo.triangular_solve")
def _triangular_solve(lowering: Lowering, op: Any, arguments: list[Array]) -> list[Array]:
    a, b = arguments
    _check_element(a)
    turned = str(op.attributes["transpose_a"]) not in ("#stablehlo<transpose NO_TRANSPOSE>",)
    left, lower, unit = (boolean(op, n) for n in ("left_side", "lower", "unit_diagonal"))
    return [_solved(lowering, a, b, left=left, lower=lower, unit=unit, turned=turned)]


def lapack(lowering: Lowering, op: Any, target: str, arguments: list[Array]) -> list[Array] | None:
    """The results of a call of LAPACK; None for other calls.

    Raises:
        UnsupportedError: it is a call of a function, or for a type or size, that is not generated.
    """
    match = _LAPACK.fullmatch(target)
    if match is None:
        return None
    write = _FUNCTIONS.get(match[2])
    if write is None:
        raise UnsupportedError(f"the custom call {target} is code of a library")
    _check_element(arguments[0])
    given = ir.DictAttr(op.attributes["mhlo.backend_config"])
    options = {
        name: chr(ir.IntegerAttr(given[name]).value) if name in given else default
        for name, default in _OPTIONS.items()
    }
    options |= {n: "T" if ir.BoolAttr(given[n]).value else "N" for n in _FLAGS if n in given}
    kinds = [lowering.type_of(result) for result in op.results]
    if not all(a.numel for a in arguments):
        if match[2] == "ormqr":
            # No reflections change nothing.
            return [arguments[2]]
        return [Array(s, e, lowering.filled(s, e, 0)) for s, e in kinds]
    vectors = [op.results[i] for i in _VECTORS.get(match[2], ())]
    if vectors and not any(_is_used(v) for v in vectors):
        options["mode"] = "N"
    return write(lowering, arguments, kinds, options)


def _is_used(value: Any) -> bool:
    """Whether a program returns a value, or what is computed from it."""
    for use in value.uses:
        user = use.owner.operation
        if user.name == "func.return":
            calls = _calls(user.parent.operation)
            if calls is None or any(_is_used(call.results[use.operand_number]) for call in calls):
                return True
        elif not len(user.results) or len(user.regions) or any(map(_is_used, user.results)):
            return True
    return False


def _calls(function: Any) -> list[Any] | None:
    """The calls of a function; None if others can call it."""
    visibility = function.attributes.get("sym_visibility")
    if visibility is None or ir.StringAttr(visibility).value == "public":
        return None
    name = ir.StringAttr(function.attributes["sym_name"]).value
    calls: list[Any] = []

    def note(op: Any) -> Any:
        if op.name == "func.call" and ir.FlatSymbolRefAttr(op.attributes["callee"]).value == name:
            calls.append(op)
        return ir.WalkResult.ADVANCE

    function.parent.operation.walk(note)
    return calls


def called_algorithm(lowering: Lowering, op: Any, name: str, arguments: list[Array]) -> list[Array]:
    """The results of an algorithm that a program names."""
    return _called(lowering, name, arguments, [lowering.type_of(r) for r in op.results])


def _check_element(array: Array) -> None:
    if array.element not in (F32, F64):
        raise UnsupportedError(f"factorizations of {array.element.name} are not generated")


def _called(
    lowering: Lowering,
    name: str,
    arguments: Sequence[Array],
    kinds: Sequence[tuple[Sequence[int], Element]],
) -> list[Array]:
    """The results of an algorithm, of these shapes and types."""
    types = [element.tensor(shape) for shape, element in kinds]
    results = call(name, [lowering.tensor(a) for a in arguments], types)
    return [
        Array(tuple(shape), element, value)
        for (shape, element), value in zip(kinds, results, strict=True)
    ]


def _transposed(lowering: Lowering, a: Array) -> Array:
    loops = list(range(a.rank))
    loops[-2:] = reversed(loops[-2:])
    shape = [a.shape[d] for d in loops]
    operands = [lowering.operand(a, loops)]
    (result,) = lowering.generic(shape, operands, [a.element], lambda loaded: loaded)
    return result


def _potrf(lowering: Lowering, arguments: Sequence[Array]) -> list[Array]:
    (a,) = arguments
    if not a.numel:
        return [a, Array(a.shape[:-2], I32, lowering.filled(a.shape[:-2], I32, 0))]
    kinds = [(a.shape, a.element), (a.shape[:-2], I32)]
    return _called(lowering, "cholesky", arguments, kinds)


def _solved(
    lowering: Lowering,
    a: Array,
    b: Array,
    *,
    left: bool,
    lower: bool,
    unit: bool,
    turned: bool,
) -> Array:
    """The solution of a triangular system; ``turned`` says that it is of the transpose of ``a``."""
    if not b.numel:
        return b
    if not left:
        b, turned = _transposed(lowering, b), not turned
    if turned:
        a, lower = _transposed(lowering, a), not lower
    name = f"solve_{'lower' if lower else 'upper'}{'_unit' if unit else ''}"
    (x,) = _called(lowering, name, [a, b], [(b.shape, b.element)])
    return x if left else _transposed(lowering, x)


# LAPACK's functions


def _write_potrf(
    lowering: Lowering, arguments: list[Array], kinds: Any, options: dict[str, str]
) -> list[Array]:
    (a,) = arguments
    if options["uplo"] == "L":
        return _potrf(lowering, [a])
    factor, info = _potrf(lowering, [_transposed(lowering, a)])
    return [_transposed(lowering, factor), info]


def _write_trsm(
    lowering: Lowering, arguments: list[Array], kinds: Any, options: dict[str, str]
) -> list[Array]:
    a, b = arguments
    return [
        _solved(
            lowering,
            a,
            b,
            left=options["side"] == "L",
            lower=options["uplo"] == "L",
            unit=options["diag"] == "U",
            turned=options["trans_x"] != "N",
        )
    ]


def _write_getrf(
    lowering: Lowering, arguments: list[Array], kinds: Any, options: dict[str, str]
) -> list[Array]:
    return _called(lowering, "lu", arguments, kinds)


def _write_geqrf(
    lowering: Lowering, arguments: list[Array], kinds: Any, options: dict[str, str]
) -> list[Array]:
    _check(refused_reflections(arguments[0].shape))
    return _called(lowering, "householder", arguments, kinds)


def _write_orgqr(
    lowering: Lowering, arguments: list[Array], kinds: Any, options: dict[str, str]
) -> list[Array]:
    _check(refused_reflections(arguments[0].shape))
    return _called(lowering, "reflections", arguments, kinds)


def _write_ormqr(
    lowering: Lowering, arguments: list[Array], kinds: Any, options: dict[str, str]
) -> list[Array]:
    packed, _, other = arguments
    _check(refused_reflections(packed.shape))
    rows = packed.shape[-2]
    square = [*packed.shape[:-2], rows, rows]
    (q,) = _called(lowering, "reflections", arguments[:2], [(square, packed.element)])
    outer = range(packed.rank - 2)
    i, j, k = (len(outer) + n for n in range(3))
    row, column = (i, k) if options["left"] == "T" else (k, j)
    turned = [*outer, column, row] if options["transpose"] == "T" else [*outer, row, column]
    operands = [(q, turned), (other, [*outer, k, j])]
    if options["left"] != "T":
        operands = [(other, [*outer, i, k]), (q, turned)]
    loops = ["parallel"] * other.rank + ["reduction"]
    return [contract(lowering, loops, operands, other.shape, [*outer, i, j], other.element)]


def _write_syevd(
    lowering: Lowering, arguments: list[Array], kinds: Any, options: dict[str, str]
) -> list[Array]:
    (a,) = arguments
    _check(refused_decomposition(a.shape, vectors=options["mode"] != "N"))
    if options["uplo"] != "L":
        a = _transposed(lowering, a)
    (shape, element), values, (batch, integer) = kinds
    if options["mode"] == "N":
        (found,) = _called(lowering, "symmetric_values", [a], [values])
        return [a, found, _unfinished(lowering, a, batch, integer)]
    found, vectors = _called(lowering, "symmetric_eigen", [a], [values, (shape, element)])
    return [_transposed(lowering, vectors), found, _unfinished(lowering, a, batch, integer)]


def _write_gesdd(
    lowering: Lowering, arguments: list[Array], kinds: Any, options: dict[str, str]
) -> list[Array]:
    (a,) = arguments
    _check(refused_decomposition(a.shape, vectors=options["mode"] != "N"))
    _, values, (left, element), (right, _), (batch, integer) = kinds
    info = _unfinished(lowering, a, batch, integer)
    rows, columns = a.shape[-2:]
    wide = rows < columns
    least, longer = sorted((rows, columns))
    outer = [*a.shape[:-2]]
    source = a if wide else _transposed(lowering, a)
    if options["mode"] == "N":
        (lengths,) = _called(lowering, "singular_values", [source], [values])
        empty = [Array(tuple(s), element, lowering.filled(s, element, 0)) for s in (left, right)]
        return [a, lengths, *empty, info]
    width = longer if options["mode"] == "A" else least
    shapes = [values, ([*outer, least, least], element), ([*outer, width, longer], element)]
    lengths, u, v = _called(lowering, "singular_vectors", [source], shapes)
    u, v = (_transposed(lowering, u), v) if wide else (_transposed(lowering, v), u)
    return [a, lengths, u, v, info]


def _unfinished(lowering: Lowering, a: Array, batch: Sequence[int], integer: Element) -> Array:
    """For each matrix 0, or 1 if an element of it is no number: then LAPACK does not converge."""
    loops = list(range(a.rank))
    kinds = ["parallel"] * (a.rank - 2) + ["reduction"] * 2

    def body(loaded: list[Any]) -> list[Any]:
        x, found = loaded
        difference = code.emit("arith.subf", [x, x])
        bad = code.compare_float("uno", difference, difference)
        one = code.emit("arith.extui", [bad], integer.type)
        return [code.emit("arith.ori", [found, one])]

    outs = [(lowering.filled(batch, integer, 0), loops[:-2])]
    (tensor,) = lowering.loops(kinds, [lowering.operand(a, loops)], outs, body)
    return Array(tuple(batch), integer, tensor)


def _check(refusal: str | None) -> None:
    if refusal is not None:
        raise UnsupportedError(refusal)


def _loop(dim: int) -> Any:
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), dim)
    return code.emit("linalg.index", [], ir.IndexType.get(), dim=number)


_Write = Callable[[Lowering, list[Array], Any, dict[str, str]], list[Array]]
_FUNCTIONS: dict[str, _Write] = {
    "geqrf": _write_geqrf,
    "gesdd": _write_gesdd,
    "getrf": _write_getrf,
    "orgqr": _write_orgqr,
    "ormqr": _write_ormqr,
    "potrf": _write_potrf,
    "syevd": _write_syevd,
    "trsm": _write_trsm,
}
