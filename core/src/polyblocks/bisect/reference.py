"""The reference lowering: a module of any stage, to LLVM IR, by upstream passes only.

Of this project's own code only what says what a module means takes part: `define-arithmetic`, and
what a greatest common divisor is. Nothing is optimized, so that what the module says is what runs.
Elementary functions come from C's mathematical library. Loads and stores are checked against the
extents of their memref, and the loops of a parallel nest can be run backwards: a result that
depends on their order is wrong.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from polyblocks import signature
from polyblocks.attributes import GCD
from polyblocks.bisect.box_copies import expand_box_copies
from polyblocks.bisect.intrinsics import to_intrinsics, widen_fma
from polyblocks.bisect.scalar_accesses import scalarize
from polyblocks.codegen.greatest_divisors import gcd
from polyblocks.codegen.rewrite import expand_ops

#: Called with the index of its message when a check fails; does not return.
CHECK_FAILED = "polyblocks_check_failed"
#: A variable (int32): parallel loops run from their last iteration to the first if it is not 0.
BACKWARDS = "polyblocks_backwards"
#: The entry of modules in the LLVM dialect; the others have a C interface with descriptors.
MAIN = "main"
MAIN_WITH_DESCRIPTORS = "_mlir_ciface_main"

_BUFFERIZE = (
    "one-shot-bufferize{bufferize-function-boundaries "
    "function-boundary-type-conversion=identity-layout-map allow-return-allocs-from-loops},"
    "buffer-results-to-out-params{hoist-static-allocs modify-public-functions}"
)
_TO_LOOPS = (
    "func.func(tm-tensor-to-loops,convert-linalg-to-loops),"
    "affine-expand-index-ops,lower-affine,"
    # All of these are there for vectors; they do nothing to scalars.
    "func.func(lower-vector-multi-reduction,convert-vector-to-scf{full-unroll})"
)
#: Few chips compute with bfloat16; LLVM would call functions that no library here has.
_IN_FLOAT32 = (
    "math-extend-to-supported-types{extra-types=f16},"
    "arith-emulate-unsupported-floats{source-types=bf16 target-type=f32}"
)
_CHECK = "generate-runtime-verification"
_TO_LLVM = (
    "expand-strided-metadata,lower-affine,convert-scf-to-cf,"
    "convert-complex-to-libm,convert-complex-to-standard,"
    "math-expand-ops{ops=rsqrt},convert-math-to-funcs,convert-math-to-libm,"
    "arith-expand{include-bf16},convert-vector-to-llvm,"
    "finalize-memref-to-llvm,convert-func-to-llvm,convert-openmp-to-llvm,"
    "convert-to-llvm{filter-dialects=complex,math,arith,index,cf,ub,vector},"
    "reconcile-unrealized-casts"
)

_TRANSLATED = ("llvm.", "omp.", "builtin.module")


class NotRunnableError(Exception):
    """The reference lowering does not know something in the module."""


@dataclass(frozen=True)
class Slot:
    """One argument of the entry.

    Attributes:
        row: its row of the signature.
        shape: extents in memory.
        strides: in elements.
    """

    row: dict[str, Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass
class Lowered:
    """A module as LLVM IR, and how its ``@main`` is called.

    Attributes:
        text: LLVM IR.
        slots: the arguments that are memory, in order.
        descriptors: arguments are pointers to memref descriptors, not to the memory.
        threads: the last argument is the number of threads (int32).
        returns_status: the result is an int32, 0 if all checks held.
        messages: of the checks, by what :data:`CHECK_FAILED` is called with.
    """

    text: str
    slots: list[Slot]
    descriptors: bool
    threads: bool
    returns_status: bool
    messages: list[str] = field(default_factory=list)

    @property
    def entry(self) -> str:
        """Symbol to call."""
        return MAIN_WITH_DESCRIPTORS if self.descriptors else MAIN


def lower(data: bytes) -> Lowered:
    """Lower a module of any stage.

    Args:
        data: text or bytecode of a module whose ``@main`` carries a signature (else it gets one,
            see :func:`polyblocks.signature.infer`).

    Raises:
        NotRunnableError: upstream passes cannot lower it; the message is theirs.
        ValueError: not valid MLIR, or no ``@main``.
    """
    from polyblocks import mlir

    module = mlir.parse(data)
    if not signature.is_in(data):
        signature.infer(module)
    lowered = _lower_llvm(module) or _lower_func(module)
    _check_lowered(module)
    lowered.text = mlir.translate_to_llvmir(module)
    return lowered


def _check_lowered(module: Any) -> None:
    """The translation to LLVM IR crashes on what it does not know."""
    from polyblocks.mlir import ir

    left: list[str] = []

    def visit(op: Any) -> Any:
        if not op.name.startswith(_TRANSLATED):
            left.append(op.name)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    if left:
        raise NotRunnableError(f"'{left[0]}' is not lowered")


def _run(module: Any, textual: str) -> None:
    from polyblocks import mlir

    try:
        mlir.run_textual(module, textual)
    except ValueError as error:
        raise NotRunnableError(_first_line(error)) from None


def _lower_llvm(module: Any) -> Lowered | None:
    """A module whose ``@main`` is in the LLVM dialect already; None for another one."""
    from polyblocks.mlir import ir

    for op in module.body.operations:
        attributes = op.operation.attributes
        if op.operation.name != "llvm.func" or attributes["sym_name"].value != "main":
            continue
        types = [str(a.type) for a in op.operation.regions[0].blocks[0].arguments]
        rows = [row for row in signature.rows(module) if row["role"] != "status"]
        pointers = types.count("!llvm.ptr")
        if pointers != len(rows) or types[pointers:] not in ([], ["i32"]):
            raise NotRunnableError(f"@main takes {', '.join(types)}")
        status = str(ir.TypeAttr(attributes["function_type"]).value).startswith("!llvm.func<i32 ")
        slots = [Slot(row, tuple(row["shape"]), tuple(row["strides"])) for row in rows]
        return Lowered("", slots, False, len(types) > pointers, status)
    return None


def _lower_func(module: Any) -> Lowered:
    from polyblocks.codegen.define_arithmetic import DefineArithmeticPass
    from polyblocks.mlir import ir

    main = signature.main_of(module)
    rows = signature.rows(module)
    with module.context:
        results = ir.FunctionType(main.type).results
        if results and isinstance(results[0], ir.RankedTensorType):
            rows = rows + signature.rows(module, results=True)
    if "tensor<" in str(module):
        _bufferize(module)
    messages: list[str] = []
    with module.context, ir.Location.unknown():
        main = signature.main_of(module)
        lowered = _interface(main, rows, messages)
        main.attributes["llvm.emit_c_interface"] = ir.UnitAttr.get()
        _copies_to_loops(module)
        expand_box_copies(partial(_operations, module))
        _run(module, _TO_LOOPS)
        scalarize(partial(_operations, module))
        widen_fma(partial(_operations, module))
        _run(module, _IN_FLOAT32)
        expand_ops(module, {GCD: gcd})
        to_intrinsics(partial(_operations, module))
        # Modules mean more by conversions and shifts than LLVM does.
        DefineArithmeticPass().run(module, None)
        # On the loops, where every access is a plain load or store.
        _run(module, _CHECK)
        _name_checks(module, messages)
        _make_reversible(module)
    _run(module, _TO_LLVM)
    return lowered


def _interface(main: Any, rows: list[dict[str, Any]], messages: list[str]) -> Lowered:
    from polyblocks.mlir import ir

    types = ir.FunctionType(main.type)
    inputs, results = list(types.inputs), list(types.results)
    threads = bool(inputs) and str(inputs[-1]) == "i32"
    memory = inputs[:-1] if threads else inputs
    if len(memory) < len(rows):
        # The status is the result now, no argument.
        rows = [row for row in rows if row["role"] != "status"]
    if len(memory) != len(rows) or not all(isinstance(t, ir.MemRefType) for t in memory):
        raise NotRunnableError(f"@main is {main.type}")
    if [str(t) for t in results] not in ([], ["i32"]):
        raise NotRunnableError(f"@main returns {', '.join(map(str, results))}")
    slots = []
    for row, type_ in zip(rows, memory, strict=True):
        strides, _ = type_.get_strides_and_offset()
        slots.append(Slot(row, tuple(type_.shape), tuple(strides)))
    return Lowered("", slots, True, threads, bool(results), messages)


def _bufferize(module: Any) -> None:
    """To memrefs; results become arguments, dense and in order behind the others."""
    from polyblocks.mlir import ir

    before = {hash(op): op for op in _operations(module, "bufferization.to_tensor")}
    _run(module, "func.func(tm-tensor-bufferize)")
    with module.context:
        # Every scan's or sort's result is memory of its own, which one-shot analysis must know.
        for op in _operations(module, "bufferization.to_tensor"):
            if hash(op) not in before and "restrict" not in op.attributes:
                op.attributes["restrict"] = ir.UnitAttr.get()
                op.attributes["writable"] = ir.UnitAttr.get()
    _run(module, _BUFFERIZE)


def _copies_to_loops(module: Any) -> None:
    """``memref.copy`` -> ``linalg``: for strided memory it would become a library call."""
    from polyblocks import mlir

    ir = mlir.ir
    for op in _operations(module, "memref.copy"):
        source, target = op.operands
        rank = ir.MemRefType(source.type).rank
        identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(rank))
        iterator = ir.Attribute.parse("#linalg.iterator_type<parallel>")
        with ir.InsertionPoint(op):
            generic = ir.Operation.create(
                "linalg.generic",
                operands=[source, target],
                attributes={
                    "indexing_maps": ir.ArrayAttr.get([identity, identity]),
                    "iterator_types": ir.ArrayAttr.get([iterator] * rank),
                    "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1]),
                },
                regions=1,
            )
        element = ir.MemRefType(source.type).element_type
        block = generic.regions[0].blocks.append(element, element)
        with ir.InsertionPoint(block):
            ir.Operation.create("linalg.yield", operands=[block.arguments[0]])
        op.erase()


def _name_checks(module: Any, messages: list[str]) -> None:
    """``cf.assert`` -> a call that says which check failed, and does not return."""
    from polyblocks import mlir

    ir = mlir.ir
    func, scf, arith = mlir.dialect("func"), mlir.dialect("scf"), mlir.dialect("arith")
    i32 = ir.IntegerType.get_signless(32)
    known: dict[str, int] = {}
    for op in _operations(module, "cf.assert"):
        message = _message(ir.StringAttr(op.attributes["msg"]).value)
        code = known.setdefault(message, len(known))
        with ir.InsertionPoint(op):
            branch = scf.IfOp(op.operands[0], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            scf.YieldOp([])
        with ir.InsertionPoint(branch.else_block):
            func.CallOp([], CHECK_FAILED, [arith.ConstantOp(i32, code).result])
            scf.YieldOp([])
        op.erase()
    messages.extend(known)
    with ir.InsertionPoint.at_block_begin(module.body):
        func.FuncOp(CHECK_FAILED, ir.FunctionType.get([i32], []), visibility="private")


_VERIFICATION = re.compile(
    r"ERROR: Runtime op verification failed\s*(?P<op>.*?)\s*\^ (?P<what>.*?)\s*Location: .*", re.S
)


def _message(text: str) -> str:
    """The messages of upstream's checks are four lines; here one."""
    match = _VERIFICATION.fullmatch(text.strip())
    return f"{match['what']}: {match['op']}" if match else text


def _make_reversible(module: Any) -> None:
    """Parallel loops read from a variable in which direction they run."""
    from polyblocks import mlir

    ir = mlir.ir
    arith, memref = mlir.dialect("arith"), mlir.dialect("memref")
    i32 = ir.IntegerType.get_signless(32)
    type_ = ir.MemRefType.get([], i32)
    with ir.InsertionPoint.at_block_begin(module.body):
        memref.GlobalOp(BACKWARDS, ir.TypeAttr.get(type_), initial_value=_zero(i32))
    for op in _operations(module, "scf.parallel"):
        body = op.regions[0].blocks[0]
        loops = len(body.arguments)
        lower, upper, step = (list(op.operands)[k * loops : (k + 1) * loops] for k in range(3))
        with ir.InsertionPoint(op):
            flag = memref.LoadOp(memref.GetGlobalOp(type_, BACKWARDS).result, []).result
            zero = arith.ConstantOp(i32, 0).result
            backwards = arith.CmpIOp(arith.CmpIPredicate.ne, flag, zero).result
            one = arith.ConstantOp(ir.IndexType.get(), 1).result
        for k, variable in enumerate(body.arguments):
            with ir.InsertionPoint(op):
                # lower + upper - 1 - (upper - 1 - lower) % step
                last = arith.SubIOp(upper[k], one).result
                rest = arith.RemSIOp(arith.SubIOp(last, lower[k]).result, step[k]).result
                both = arith.AddIOp(arith.SubIOp(last, rest).result, lower[k]).result
            with ir.InsertionPoint.at_block_begin(body):
                mirrored = arith.SubIOp(both, variable)
                chosen = arith.SelectOp(backwards, mirrored.result, variable)
            variable.replace_all_uses_except(chosen.result, [mirrored.operation, chosen.operation])


def _zero(i32: Any) -> Any:
    from polyblocks.mlir import ir

    return ir.DenseElementsAttr.get_splat(
        ir.RankedTensorType.get([], i32), ir.IntegerAttr.get(i32, 0)
    )


def _operations(module: Any, name: str) -> list[Any]:
    from polyblocks.mlir import ir

    found: list[Any] = []

    def visit(op: Any) -> Any:
        if op.name == name:
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith("error:")] or lines
    return telling[0] if telling else type(error).__name__
