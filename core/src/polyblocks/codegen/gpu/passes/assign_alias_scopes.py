"""assign-alias-scopes: accesses to different arrays that a kernel writes do not overlap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks import mlir
from polyblocks.codegen.gpu.plan import kernels
from polyblocks.codegen.walk import nested

#: Operations that keep an address in the array of their first operand.
_ADDRESSES = ("llvm.getelementptr", "llvm.addrspacecast", "llvm.bitcast")
#: Accesses, and which of their operands is the address.
_ACCESSES = {"llvm.load": 0, "llvm.store": 1}


@dataclass(frozen=True)
class AssignAliasScopesPass:
    """Loads and stores say which of a kernel's written arguments they are in, and are not in.

    No two arguments overlap, and LLVM is to know it: without, it joins no stores of neighbours
    when stores to another array stand in between. Arguments that are only read say it themselves,
    with ``llvm.noalias``. Written ones cannot: that also says that no other thread changes them.
    A scope belongs to an access, so that whatever waits for other threads may change everything.

    Before::

        llvm.store %u, %x : f32, !llvm.ptr<1>
        llvm.store %v, %y : f32, !llvm.ptr<1>

    After::

        llvm.store %u, %x {alias_scopes = [#x], noalias_scopes = [#y]} : f32, !llvm.ptr<1>
        llvm.store %v, %y {alias_scopes = [#y], noalias_scopes = [#x]} : f32, !llvm.ptr<1>
    """

    name: ClassVar[str] = "assign-alias-scopes"

    def run(self, module: Any, context: Any) -> bool:
        """Annotate the kernels in place; returns whether one writes several arguments."""
        del context
        found = False
        with module.context:
            for kernel in kernels(module):
                written = _written(kernel)
                if len(written) < 2:
                    continue
                found = True
                scopes = _scopes(len(written))
                number = {argument: i for i, argument in enumerate(written)}
                for op in nested(kernel):
                    if op.name in _ACCESSES:
                        own = number.get(_root(op.operands[_ACCESSES[op.name]]))
                        if own is not None:
                            _assign(op, scopes, own)
        return found


def _written(kernel: Any) -> list[Any]:
    """The pointers among a kernel's arguments that are not ``noalias`` themselves."""
    if "arg_attrs" not in kernel.attributes or not kernel.regions[0].blocks:
        return []
    attributes = kernel.attributes["arg_attrs"]
    arguments = kernel.regions[0].blocks[0].arguments
    return [
        argument
        for argument, given in zip(arguments, attributes, strict=True)
        if str(argument.type) == "!llvm.ptr<1>" and "llvm.noalias" not in given
    ]


def _scopes(count: int) -> list[Any]:
    """New scopes in a new domain."""
    domain = "#llvm.alias_scope_domain<id = distinct[0]<>>"
    # Of one text, so that all are of the same domain.
    text = ", ".join(
        f"#llvm.alias_scope<id = distinct[{i + 1}]<>, domain = {domain}>" for i in range(count)
    )
    return list(mlir.ir.ArrayAttr(mlir.ir.Attribute.parse(f"[{text}]")))


def _assign(op: Any, scopes: list[Any], own: int) -> None:
    array = mlir.ir.ArrayAttr.get
    op.attributes["alias_scopes"] = array([scopes[own]])
    op.attributes["noalias_scopes"] = array([s for i, s in enumerate(scopes) if i != own])


def _root(address: Any) -> Any:
    """The argument or allocation that an address is in, as far as it is known."""
    while not isinstance(address.owner, mlir.ir.Block):
        op = address.owner.operation
        if op.name not in _ADDRESSES:
            break
        address = op.operands[0]
    return address
