"""The signature of ``@main`` as attributes, so that a dumped module carries everything.

Each argument (after S2: also each output) has a dictionary attribute ``polyblocks.arg``; before S2
each result has one called ``polyblocks.result``. Keys: ``role``, ``name``, ``dtype``, ``shape``,
``strides`` (elements), ``constant``, ``updates`` (-1: none).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyblocks.attributes import (
    ARGUMENT_ATTRIBUTE,
    ARGUMENTS_ATTRIBUTE,
    NAME_ATTRIBUTE,
    RESULT_ATTRIBUTE,
)
from polyblocks.errors import UnsupportedError
from polyblocks.program import DTYPES, Argument, ArraySpec, Program, Result


def main_of(module: Any) -> Any:
    """The function ``@main``.

    Raises:
        ValueError: the module has none.
    """
    for op in module.body.operations:
        if op.operation.name == "func.func" and op.operation.attributes["sym_name"].value == "main":
            return op
    raise ValueError("the module has no function @main")


def entry(
    role: str, name: str, spec: ArraySpec, constant: bool = False, updates: int | None = None
) -> dict[str, Any]:
    """One row of the signature as plain JSON values; also a row of an artifact's manifest."""
    return {
        "role": role,
        "name": name,
        "dtype": spec.dtype,
        "shape": list(spec.shape),
        "strides": list(spec.strides),
        "constant": constant,
        "updates": updates,
    }


def to_attribute(row: dict[str, Any]) -> Any:
    """A row as an MLIR dictionary attribute (needs a current context)."""
    from polyblocks.mlir import ir

    i64 = ir.IntegerType.get_signless(64)
    updates = -1 if row["updates"] is None else row["updates"]
    return ir.DictAttr.get(
        {
            "role": ir.StringAttr.get(row["role"]),
            "name": ir.StringAttr.get(row["name"]),
            "dtype": ir.StringAttr.get(row["dtype"]),
            "shape": ir.DenseI64ArrayAttr.get(row["shape"]),
            "strides": ir.DenseI64ArrayAttr.get(row["strides"]),
            "constant": ir.BoolAttr.get(row["constant"]),
            "updates": ir.IntegerAttr.get(i64, updates),
        }
    )


def from_attribute(attribute: Any) -> dict[str, Any]:
    """The inverse of :func:`to_attribute`."""
    from polyblocks.mlir import ir

    a = ir.DictAttr(attribute)
    updates = ir.IntegerAttr(a["updates"]).value
    return {
        "role": ir.StringAttr(a["role"]).value,
        "name": ir.StringAttr(a["name"]).value,
        "dtype": ir.StringAttr(a["dtype"]).value,
        "shape": list(ir.DenseI64ArrayAttr(a["shape"])),
        "strides": list(ir.DenseI64ArrayAttr(a["strides"])),
        "constant": ir.BoolAttr(a["constant"]).value,
        "updates": None if updates < 0 else updates,
    }


def spec_of(row: dict[str, Any]) -> ArraySpec:
    """The ArraySpec of a row."""
    return ArraySpec(tuple(row["shape"]), row["dtype"], tuple(row["strides"]))


def is_in(data: bytes) -> bool:
    """Whether the text or bytecode of a module carries a signature."""
    return ARGUMENT_ATTRIBUTE.encode() in data or RESULT_ATTRIBUTE.encode() in data


def check(program: Program) -> None:
    """Hold the types of ``@main`` against the arrays that the frontend describes.

    Raises:
        UnsupportedError: an argument or a result is of another shape or element type, so that
            generated code would read or write past the end of an array, or bytes of another type.
    """
    kind = main_of(program.module).type
    described: list[tuple[str, Any, Sequence[Argument | Result]]] = [
        ("argument", kind.inputs, program.arguments),
        ("result", kind.results, program.results),
    ]
    for what, types, rows in described:
        if len(types) != len(rows):
            raise UnsupportedError(
                f"@main of {program.name!r} has {len(types)} {what}s, expected {len(rows)}"
            )
        for type_, row in zip(types, rows, strict=True):
            extents = "".join(f"{extent}x" for extent in row.spec.shape)
            expected = f"tensor<{extents}{row.spec.mlir_type}>"
            if str(type_) != expected:
                raise UnsupportedError(
                    f"the importer made {what} {row.name!r} of {program.name!r} a {type_}, "
                    f"expected {expected}"
                )


def attach(program: Program) -> None:
    """Write the Program's signature onto its ``@main``.

    Raises:
        UnsupportedError: the signature is not that of ``@main``, see :func:`check`.
    """
    from polyblocks.mlir import ir

    with program.module.context:
        check(program)
        function = main_of(program.module)
        arguments = [entry("input", a.name, a.spec, a.constant) for a in program.arguments]
        results = [entry("output", r.name, r.spec, False, r.updates) for r in program.results]
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(
            [ir.DictAttr.get({ARGUMENT_ATTRIBUTE: to_attribute(row)}) for row in arguments]
        )
        function.attributes["res_attrs"] = ir.ArrayAttr.get(
            [ir.DictAttr.get({RESULT_ATTRIBUTE: to_attribute(row)}) for row in results]
        )
        module = program.module.operation.attributes
        module[NAME_ATTRIBUTE] = ir.StringAttr.get(program.name)


def infer(module: Any) -> bool:
    """Give ``@main`` of a plain module a signature from its types, dense row-major.

    Used for modules that come from a file and not from a frontend: linalg on tensors, or loops
    over memrefs. A memref that is only written is an output, one that is read and written is an
    input that is updated in place.

    Returns:
        Whether it works on memrefs, so that there is nothing to bufferize.

    Raises:
        ValueError: a type is not a ranked static tensor or a dense static memref of a known
            element type, or memrefs are returned.
    """
    from polyblocks.mlir import ir

    by_type = {mlir_type: name for name, (mlir_type, _) in reversed(DTYPES.items())}
    by_type["i8"] = "int8"

    def row(role: str, name: str, type_: Any, updates: int | None = None) -> Any:
        shaped = next(
            (c for c in (ir.RankedTensorType, ir.MemRefType) if isinstance(type_, c)), None
        )
        if (
            shaped is None
            or not type_.has_static_shape
            or str(type_.element_type) not in by_type
            or (shaped is ir.MemRefType and not type_.layout == _identity(type_))
        ):
            raise ValueError(f"@main takes and returns static tensors, not {type_}")
        spec = ArraySpec.contiguous(tuple(type_.shape), by_type[str(type_.element_type)])
        return to_attribute(entry(role, name, spec, updates=updates))

    with module.context:
        function = main_of(module)
        inputs, outputs = function.type.inputs, function.type.results
        memrefs = [isinstance(t, ir.MemRefType) for t in inputs]
        if any(memrefs) and (len(outputs) or not all(memrefs)):
            raise ValueError("@main takes either tensors, or memrefs and returns nothing")
        arguments = []
        for i, (type_, argument) in enumerate(
            zip(inputs, function.body.blocks[0].arguments, strict=True)
        ):
            read, written = _use_of(argument) if any(memrefs) else (True, False)
            role = "output" if written and not read else "input"
            updates = i if read and written else None
            arguments.append(
                ir.DictAttr.get({ARGUMENT_ATTRIBUTE: row(role, f"arg{i}", type_, updates)})
            )
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(arguments)
        function.attributes["res_attrs"] = ir.ArrayAttr.get(
            [
                ir.DictAttr.get({RESULT_ATTRIBUTE: row("output", f"out{i}", t)})
                for i, t in enumerate(outputs)
            ]
        )
        if any(memrefs):
            del function.attributes["res_attrs"]
        return any(memrefs)


def _identity(type_: Any) -> Any:
    from polyblocks.mlir import ir

    return ir.AffineMapAttr.get(ir.AffineMap.get_identity(len(type_.shape)))


def _use_of(memref: Any) -> tuple[bool, bool]:
    """Whether a memref is read, and whether it is written; what is not understood does both."""
    read = written = False
    for use in memref.uses:
        name = use.owner.operation.name
        if name in ("affine.load", "memref.load"):
            read = True
        elif name in ("affine.store", "memref.store") and use.operand_number == 1:
            written = True
        elif name == "memref.copy":
            read, written = read or use.operand_number == 0, written or use.operand_number == 1
        else:
            read = written = True
    return read, written


def rows(module: Any, results: bool = False) -> list[dict[str, Any]]:
    """The signature's rows of the arguments (or of the results, before S2).

    Raises:
        ValueError: the module has no ``@main`` and :func:`keep` was not called while it had.
    """
    from polyblocks.mlir import ir

    attribute, key = (
        ("res_attrs", RESULT_ATTRIBUTE) if results else ("arg_attrs", ARGUMENT_ATTRIBUTE)
    )
    with module.context:
        kept = module.operation.attributes
        try:
            attributes = main_of(module).attributes
            found = list(ir.ArrayAttr(attributes[attribute])) if attribute in attributes else []
            return [from_attribute(ir.DictAttr(a)[key]) for a in found]
        except (ValueError, KeyError):
            # A target's lowering is under way; it takes the arguments apart.
            if ARGUMENTS_ATTRIBUTE not in kept or results:
                raise
            return [from_attribute(row) for row in ir.ArrayAttr(kept[ARGUMENTS_ATTRIBUTE])]


def keep(module: Any) -> None:
    """Copy the arguments' rows to the module, for dumps in which ``@main`` is lowered already."""
    keep_rows(module, rows(module))


def keep_rows(module: Any, rows_: list[dict[str, Any]]) -> None:
    """Keep these rows as those of the arguments, in a module whose ``@main`` is lowered already."""
    from polyblocks.mlir import ir

    with module.context:
        found = ir.ArrayAttr.get([to_attribute(row) for row in rows_])
        module.operation.attributes[ARGUMENTS_ATTRIBUTE] = found


def set_rows(module: Any, rows_: list[dict[str, Any]]) -> None:
    """Replace the rows of the arguments; one per argument of ``@main``."""
    from polyblocks.mlir import ir

    with module.context:
        main_of(module).attributes["arg_attrs"] = ir.ArrayAttr.get(
            [ir.DictAttr.get({ARGUMENT_ATTRIBUTE: to_attribute(row)}) for row in rows_]
        )
