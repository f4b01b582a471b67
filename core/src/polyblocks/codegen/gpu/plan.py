"""The launch plan: which kernels run, on which grids, with which arguments. Data only.

While a module is lowered the plan is an attribute of it, so that dumps carry it; in the artifact's
manifest it is ``launches``, a list in the order of the stream::

    {"kernel": "softmax", "grid": [4096, 1, 1], "block": [256, 1, 1], "shared_bytes": 0,
     "arguments": [{"argument": 0}, {"workspace": 1024}, {"value": 3, "dtype": "int64"}]}

An argument of a kernel is one of

* ``argument``: the address of the program's argument of that number (a row of the manifest's
  ``arguments``, whatever its role), plus ``offset`` bytes if there is such a key;
* ``workspace``: an offset in bytes from the workspace's address;
* ``value``: a number, passed by value as ``dtype``;
* ``tensor_map``: an array whose boxes the kernel copies, passed by value in 128 bytes as the
  vendor's driver describes it: ``{"argument": 0, "offset": 0, "element_bytes": 2, "extents": [512,
  256], "strides": [1024], "box": [64, 128]}``. The innermost dimension comes first; strides, of the
  others, are in bytes. The box's rows have 128 bytes, in which pieces of 16 bytes are swizzled.
  With ``"kind": "im2col"`` the kernel copies pixels that windows are at: ``box`` is then channels
  and pixels, and ``lower``, ``upper`` and ``steps`` are of the dimensions between the first and the
  last one, see :class:`polyblocks.runtime.device.tensor_map.TensorMap`.

``cluster``, if it is there, is how many blocks that follow each other run at the same time and
reach each other's shared memory; the machine code says it, too, so that launches ask for nothing.

``waits``, if it is there, says that blocks wait for others of the launch: all of them are to run.

``shared_bytes`` is the shared memory that the launch has to ask for, on top of what the kernel
declares itself; it is 0 unless that would be more than a kernel may declare.

The program's argument of role ``status`` is a word (int32) that is 0 when the program starts. If it
is not 0 afterwards, it is the number, counted from 1, of the failed check in the manifest's
``checks``, the largest of all that failed.
"""

from __future__ import annotations

from typing import Any

from polyblocks.affine.mlir.json_attributes import read_json, write_json
from polyblocks.attributes import LAUNCHES_ATTRIBUTE


def write_launches(module: Any, launches: list[dict[str, Any]]) -> None:
    """Attach the plan to the module."""
    write_json(module, LAUNCHES_ATTRIBUTE, launches)


def read_launches(module: Any) -> list[dict[str, Any]]:
    """The plan of a module.

    Raises:
        ValueError: it has none.
    """
    found: list[dict[str, Any]] | None = read_json(module, LAUNCHES_ATTRIBUTE, None)
    if found is None:
        raise ValueError("the module has no launch plan; extract-launches makes it")
    return found


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
