"""verify-s3's rules on the arguments of ``@main``."""

from __future__ import annotations

from typing import Any

from polyblocks import signature
from polyblocks.artifact import ROLES
from polyblocks.attributes import ARGUMENT_ATTRIBUTE
from polyblocks.mlir import ir
from polyblocks.program import DTYPES
from polyblocks.s3.contract import ARGUMENT_KEYS, WORKSPACE_ALIGNMENT
from polyblocks.s3.violation import violation

#: Types of the parts of complex numbers.
_SPLIT = {"complex64": "f32", "complex128": "f64"}


def check(module: Any, main: Any) -> None:
    """The types of the arguments and what their ``polyblocks.arg`` say.

    Raises:
        ValueError: names the argument by its number, and the rule.
    """
    arguments = list(main.regions[0].blocks[0].arguments)
    none = ir.ArrayAttr.get([ir.DictAttr.get({})] * len(arguments))
    for number, attribute in enumerate(main.attributes.get("arg_attrs", none)):
        row = ir.DictAttr(attribute)
        if ARGUMENT_ATTRIBUTE not in row:
            raise violation(main, f"argument {number} has no {ARGUMENT_ATTRIBUTE}")
        keys = sorted(entry.name for entry in ir.DictAttr(row[ARGUMENT_ATTRIBUTE]))
        if keys != sorted(ARGUMENT_KEYS):
            raise violation(
                main,
                f"{ARGUMENT_ATTRIBUTE} of argument {number} has the keys {', '.join(keys)}; "
                f"they are {', '.join(sorted(ARGUMENT_KEYS))}",
            )
    rows = signature.rows(module)
    if len(rows) != len(arguments):
        raise violation(main, f"{len(arguments)} arguments, {len(rows)} {ARGUMENT_ATTRIBUTE}")
    for number, (argument, row) in enumerate(zip(arguments, rows, strict=True)):
        problem = _problem(argument.type, row, number)
        if problem:
            raise violation(main, f"argument {number} ('{row['name']}'): {problem}")
    order = [row["role"] for row in rows]
    if order != sorted(order, key=ROLES.index) or max(map(order.count, ROLES[2:])) > 1:
        raise violation(
            main,
            "arguments come in the order inputs, outputs, workspace, kept, status, with one of the "
            f"last three at most, not {', '.join(order)}",
        )


def read_only(main: Any) -> set[Any]:
    """The arguments that nothing may be stored to: inputs that update nothing."""
    rows = (
        ir.DictAttr(ir.DictAttr(a)[ARGUMENT_ATTRIBUTE])
        for a in main.attributes.get("arg_attrs", ())
    )
    return {
        argument
        for argument, row in zip(main.regions[0].blocks[0].arguments, rows, strict=True)
        if row["role"].value == "input" and ir.IntegerAttr(row["updates"]).value < 0
    }


def _problem(type_: Any, row: dict[str, Any], number: int) -> str:
    """The problem with one argument, or an empty string."""
    if row["role"] not in ROLES:
        return f"its role is one of {', '.join(ROLES)}, not {row['role']}"
    if not isinstance(type_, ir.MemRefType) or not type_.has_static_shape:
        return f"it is a memref of static shape, not {type_}"
    strides, offset = type_.get_strides_and_offset()
    if offset != 0:
        return f"it begins at its pointer, not as {type_}"
    if row["updates"] not in ((None, number) if row["role"] == "input" else (None,)):
        return "what an input updates is itself, and others update nothing"
    if row["role"] == "status":
        return "" if str(type_.element_type) == "i32" else f"a status is an i32, not {type_}"
    if row["role"] in ("workspace", "kept"):
        return _workspace_problem(type_)
    shape = list(type_.shape)
    if row["dtype"] in _SPLIT and str(type_.element_type) == _SPLIT[row["dtype"]]:
        if shape[-1:] != [2] or strides[-1] != 1 or any(step % 2 for step in strides[:-1]):
            return f"parts of complex numbers lie side by side, not as {type_}"
        shape, strides = shape[:-1], [step // 2 for step in strides[:-1]]
    elif row["dtype"] not in DTYPES or DTYPES[row["dtype"]][0] != str(type_.element_type):
        return f"its dtype {row['dtype']} is no name of {type_.element_type}"
    if 0 in row["shape"]:
        # Nothing is read through it; its type may be that of one element.
        return ""
    if row["shape"] != shape:
        return f"its shape is {row['shape']}, and its type {type_}"
    same = (
        extent == 1 or said == step
        for extent, said, step in zip(row["shape"], row["strides"], strides, strict=True)
    )
    return "" if all(same) else f"its strides are {row['strides']}, and its type {type_}"


def _workspace_problem(type_: Any) -> str:
    if type_.rank != 1 or str(type_.element_type) != "i8" or type_.shape[0] % WORKSPACE_ALIGNMENT:
        return f"a workspace is a memref of a multiple of {WORKSPACE_ALIGNMENT} i8, not {type_}"
    return ""
