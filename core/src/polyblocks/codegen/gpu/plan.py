"""The launch plan: which kernels run, on which grids, with which arguments. Data only.

While a module is lowered the plan is an attribute of it, so that dumps carry it; in the artifact's
manifest it is ``launches``, a list in the order of the stream::

    {"kernel": "softmax", "grid": [4096, 1, 1], "block": [256, 1, 1], "shared_bytes": 0,
     "arguments": [{"argument": 0}, {"workspace": 1024}, {"value": 3, "dtype": "int64"}]}

An argument of a kernel is one of

* ``argument``: the address of the program's argument of that number (a row of the manifest's
  ``arguments``, whatever its role), plus ``offset`` bytes if there is such a key;
* ``workspace``: the workspace's address plus so many bytes;
* ``value``: a number, passed by value as ``dtype``.

``shared_bytes`` is the shared memory that the launch has to ask for, on top of what the kernel
declares itself; it is 0 unless that would be more than a kernel may declare.

The program's argument of role ``status`` is a word (int32) that is 0 when the program starts. If it
is not 0 afterwards, it is the number, counted from 1, of the failed check in the manifest's
``checks``, the largest of all that failed.
"""

from __future__ import annotations

from typing import Any

#: Module attribute with the launches.
LAUNCHES = "polyblocks.launches"
#: Module attribute with the messages of the run-time checks; status k > 0 is message k - 1.
CHECKS = "polyblocks.checks"
#: Module attribute: alignment in bytes, by number of the program's argument, that kernels rely on.
ALIGNMENTS = "polyblocks.alignments"
#: Attribute of a kernel: blocks that a multiprocessor is to hold at once, as the mapping assumes.
RESIDENT = "polyblocks.resident"


def write_launches(module: Any, launches: list[dict[str, Any]]) -> None:
    """Attach the plan to the module."""
    with module.context:
        module.operation.attributes[LAUNCHES] = to_attribute(launches)


def read_launches(module: Any) -> list[dict[str, Any]]:
    """The plan of a module.

    Raises:
        ValueError: it has none.
    """
    attributes = module.operation.attributes
    if LAUNCHES not in attributes:
        raise ValueError("the module has no launch plan; extract-launches makes it")
    found: list[dict[str, Any]] = from_attribute(attributes[LAUNCHES])
    return found


def read(module: Any, name: str, default: Any) -> Any:
    """A module attribute as JSON values."""
    attributes = module.operation.attributes
    return from_attribute(attributes[name]) if name in attributes else default


def write(module: Any, name: str, value: Any) -> None:
    """JSON values as a module attribute."""
    with module.context:
        module.operation.attributes[name] = to_attribute(value)


def to_attribute(value: Any) -> Any:
    """JSON values (no null) as an MLIR attribute; needs a current context.

    Raises:
        TypeError: a value of another kind.
    """
    from polyblocks.mlir import ir

    if isinstance(value, bool):
        return ir.BoolAttr.get(value)
    if isinstance(value, int):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
    if isinstance(value, float):
        return ir.FloatAttr.get(ir.F64Type.get(), value)
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    if isinstance(value, list):
        return ir.ArrayAttr.get([to_attribute(v) for v in value])
    if isinstance(value, dict):
        return ir.DictAttr.get({key: to_attribute(v) for key, v in value.items()})
    raise TypeError(f"{type(value).__name__} is no JSON value of a plan")


def from_attribute(attribute: Any) -> Any:
    """The inverse of :func:`to_attribute`."""
    from polyblocks.mlir import ir

    if isinstance(attribute, ir.BoolAttr | ir.IntegerAttr | ir.FloatAttr | ir.StringAttr):
        return attribute.value
    if isinstance(attribute, ir.ArrayAttr):
        return [from_attribute(a) for a in attribute]
    return {a.name: from_attribute(a.attr) for a in attribute}


def kernels(module: Any) -> list[Any]:
    """The kernels of the module's ``gpu.module``: ``gpu.func``, later ``llvm.func`` ops.

    Raises:
        ValueError: there is more than one ``gpu.module``.
    """
    holder = kernel_module(module)
    if holder is None:
        return []
    found = [op.operation for op in holder.regions[0].blocks[0].operations]
    return [
        op
        for op in found
        if op.name == "gpu.func" or (op.name == "llvm.func" and "gpu.kernel" in op.attributes)
    ]


def kernel_module(module: Any) -> Any:
    """The one ``gpu.module``, None for a program without kernels.

    Raises:
        ValueError: there are several.
    """
    found = [op.operation for op in module.body.operations if op.operation.name == "gpu.module"]
    if len(found) > 1:
        raise ValueError(f"kernels are in one gpu.module; this module has {len(found)}")
    return found[0] if found else None


def name_of(kernel: Any) -> str:
    """A kernel's name."""
    return str(kernel.attributes["sym_name"].value)
