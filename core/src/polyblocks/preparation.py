"""A program's preparation as a program of its own, whose results are kept between calls.

The branch ``preparation`` of ``@main`` (see ``form-preparation``) leaves what it computes in the
argument of role ``kept``. :func:`split` takes it out, so that two modules are lowered: the program,
which finds its kept memory filled, and its preparation, which fills it. In an artifact the second
one is a manifest in the first one's, with blobs whose names begin with :data:`PREFIX`.
"""

from __future__ import annotations

from typing import Any

from polyblocks import signature
from polyblocks.artifact import PREPARATION, Artifact
from polyblocks.attributes import ARGUMENTS_ATTRIBUTE, REGION_ATTRIBUTE
from polyblocks.attributes import PREPARATION as BRANCH

#: Prefix of the names of its blobs.
PREFIX = "preparation-"
#: Operations outside of nests that go if nothing uses their results.
_PURE = ("arith.constant", "memref.get_global", "memref.view", "memref.reinterpret_cast")


def split(module: Any) -> Any | None:
    """Take the preparation out of a module after S3.

    Args:
        module: changed in place: it loses the branch.

    Returns:
        The module of the preparation, whose ``@main`` has the same arguments; None if
        it is missing or empty. See :func:`sources`.
    """
    from polyblocks.mlir import ir

    if ARGUMENTS_ATTRIBUTE in module.operation.attributes:
        # A target's lowering goes on where a dump of it was made: nothing is left to take out.
        return None
    branch = _branch(module)
    if branch is None:
        return None
    other = None
    if len(branch.regions[0].blocks[0].operations) > 1:
        other = ir.Module.parse(module.operation.get_asm(binary=False), module.context)
    with module.context:
        branch.erase()
        _drop_unused(module)
        if other is not None:
            _keep_branch_only(other)
            _drop_unused(other)
    return other


def _branch(module: Any) -> Any | None:
    for op in signature.main_of(module).body.blocks[0].operations:
        attributes = op.operation.attributes
        if REGION_ATTRIBUTE in attributes and attributes[REGION_ATTRIBUTE].value == BRANCH:
            return op.operation
    return None


def _keep_branch_only(module: Any) -> None:
    """Let the branch's operations be the program."""
    branch = _branch(module)
    assert branch is not None
    block = branch.block
    operations = [op.operation for op in block.operations]
    terminator = operations[-1]
    for op in reversed(operations[operations.index(branch) + 1 : -1]):
        op.erase()
    inner = [op.operation for op in branch.regions[0].blocks[0].operations]
    for op in inner[:-1]:
        op.move_before(terminator)
    branch.erase()


def unread(module: Any) -> list[int]:
    """The numbers of the arguments of ``@main`` that nothing uses."""
    arguments = signature.main_of(module).body.blocks[0].arguments
    return [n for n, a in enumerate(arguments) if not any(True for _ in a.uses)]


def _drop_unused(module: Any) -> None:
    block = signature.main_of(module).body.blocks[0]
    for op in reversed([op.operation for op in block.operations]):
        if op.name in _PURE and not any(True for result in op.results for _ in result.uses):
            op.erase()
    used = set()

    def visit(op: Any) -> Any:
        from polyblocks.mlir import ir

        if op.name == "memref.get_global":
            used.add(op.attributes["name"].value)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for op in list(module.body.operations):
        symbol = op.operation.attributes
        if op.operation.name == "memref.global" and symbol["sym_name"].value not in used:
            op.operation.erase()


def sources(module: Any) -> list[int | None]:
    """Drop the arguments of a preparation that it does not use.

    Returns:
        For each of the others its number in the whole program; None for its own workspace.
    """
    from polyblocks.mlir import ir

    function = signature.main_of(module)
    block = function.body.blocks[0]
    rows = signature.rows(module)
    used = [any(True for _ in argument.uses) for argument in block.arguments]
    for number in reversed(range(len(used))):
        if not used[number]:
            block.erase_argument(number)
    found = [number for number, is_used in enumerate(used) if is_used]
    with module.context:
        function.attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get([a.type for a in block.arguments], [])
        )
    signature.set_rows(module, [rows[number] for number in found])
    return [None if rows[number]["role"] == "workspace" else number for number in found]


def join(artifact: Artifact, preparation: Artifact) -> None:
    """Put the artifact of a preparation into that of its program."""
    artifact.manifest[PREPARATION] = preparation.manifest
    artifact.blobs.update({PREFIX + name: data for name, data in preparation.blobs.items()})


def part(artifact: Artifact) -> Artifact | None:
    """The preparation in an artifact as an artifact of its own, or None."""
    found = artifact.manifest.get(PREPARATION)
    if found is None:
        return None
    blobs = {
        name.removeprefix(PREFIX): data
        for name, data in artifact.blobs.items()
        if name.startswith(PREFIX)
    }
    manifest = {**artifact.manifest, **found}
    del manifest[PREPARATION]
    return Artifact(manifest, blobs)
