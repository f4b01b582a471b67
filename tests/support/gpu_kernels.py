"""Modules in form K (``gpu.func`` kernels and their launches), written by hand."""

from __future__ import annotations

#: numpy's name -> MLIR's; uint16 holds the bits of bf16, which numpy does not know.


def program(
    body: str,
    arguments: dict[str, str],
    *,
    workgroup: str = "",
    grid: int = 4,
    block: int = 128,
    name: str = "kernel",
    before: str = "",
    attributes: str = "",
) -> str:
    """A program of one launch of one kernel.

    Args:
        body: the kernel's ops, without the terminator.
        arguments: name -> memref type; of the program and of the kernel.
        workgroup: ``%s : memref<...>`` of the shared buffers.
        grid: blocks.
        block: threads of a block.
        name: of the kernel.
        before: what stands at the module's top level.
        attributes: further ones of the kernel.
    """
    formal = ", ".join(f"%{n}: {t}" for n, t in arguments.items())
    actual = ", ".join(f"%{n} : {t}" for n, t in arguments.items())
    shared = f"workgroup({workgroup})" if workgroup else ""
    more = f", {attributes}" if attributes else ""
    return f"""
module attributes {{gpu.container_module}} {{
  {before}
  gpu.module @kernels {{
    gpu.func @{name}({formal}) {shared} kernel
        attributes {{known_block_size = array<i32: {block}, 1, 1>{more}}} {{
      {body}
      gpu.return
    }}
  }}
  func.func @main({formal}) {{
    %one = arith.constant 1 : index
    %grid = arith.constant {grid} : index
    %block = arith.constant {block} : index
    gpu.launch_func @kernels::@{name} blocks in (%grid, %one, %one)
        threads in (%block, %one, %one) args({actual})
    return
  }}
}}
"""


def elementwise(body: str, inputs: list[str], outputs: list[str], count: int = 1001) -> str:
    """One thread per element; ``body`` makes ``%r0`` … of ``%a0`` … ; types are MLIR's."""
    block = 128
    arguments = {f"i{k}": f"memref<{count}x{t}>" for k, t in enumerate(inputs)}
    arguments |= {f"o{k}": f"memref<{count}x{t}>" for k, t in enumerate(outputs)}
    loads = "\n".join(
        f"%a{k} = memref.load %i{k}[%i] : memref<{count}x{t}>" for k, t in enumerate(inputs)
    )
    stores = "\n".join(
        f"memref.store %r{k}, %o{k}[%i] : memref<{count}x{t}>" for k, t in enumerate(outputs)
    )
    text = f"""
      %t = gpu.thread_id x
      %g = gpu.block_id x
      %n = gpu.block_dim x
      %first = arith.muli %g, %n : index
      %i = arith.addi %first, %t : index
      %count = arith.constant {count} : index
      %inside = arith.cmpi ult, %i, %count : index
      scf.if %inside {{
        {loads}
        {body}
        {stores}
      }}
    """
    return program(text, arguments, grid=-(-count // block), block=block, name="elementwise")
