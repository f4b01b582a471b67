"""Stages S4 and S5 of the target `toy`: structured loops, then Python source."""

from __future__ import annotations

from typing import Any

from polyblocks import signature
from polyblocks.artifact import Artifact
from polyblocks.errors import UnsupportedError
from polyblocks.mlir import ir
from polyblocks.options import CompileOptions
from polyblocks.pipeline import PassContext, UpstreamPass, run_stage
from polyblocks.target import TargetDescription

ENTRY = "toy_main"

BINARY = {
    "arith.addf": "{} + {}",
    "arith.subf": "{} - {}",
    "arith.mulf": "{} * {}",
    "arith.divf": "{} / {}",
    "arith.addi": "{} + {}",
    "arith.subi": "{} - {}",
    "arith.muli": "{} * {}",
    "arith.andi": "{} & {}",
    "arith.ori": "{} | {}",
    "arith.maximumf": "np.maximum({}, {})",
    "arith.minimumf": "np.minimum({}, {})",
    "arith.maxnumf": "np.fmax({}, {})",
    "arith.minnumf": "np.fmin({}, {})",
    "math.exp": "np.exp({})",
    "math.tanh": "np.tanh({})",
    "math.sqrt": "np.sqrt({})",
    "math.absf": "np.abs({})",
    "arith.negf": "-{}",
    "arith.select": "({1} if {0} else {2})",
}
#: Numbers of arith.cmpf's predicates; the unordered ones hold for NaN too.
FLOAT_COMPARISONS = {
    1: "{0} == {1}",
    2: "{0} > {1}",
    3: "{0} >= {1}",
    4: "{0} < {1}",
    5: "{0} <= {1}",
    6: "({0} < {1} or {0} > {1})",
    8: "not ({0} < {1} or {0} > {1})",
    9: "not ({0} <= {1})",
    10: "not ({0} < {1})",
    11: "not ({0} >= {1})",
    12: "not ({0} > {1})",
    13: "{0} != {1}",
}
CASTS = ("arith.extf", "arith.truncf", "arith.sitofp", "arith.index_cast", "arith.fptosi")
NUMPY = {"f32": "float32", "f64": "float64", "f16": "float16", "i64": "int64", "i32": "int32"}


def lower(module: Any) -> Artifact:
    """Lower a module after S3 to an artifact whose only blob is Python source."""
    rows = signature.rows(module)
    context = PassContext.create(TargetDescription("toy", "v1", (), ()), CompileOptions())
    passes = [UpstreamPass("toy-lower-affine", "func.func(lower-affine,canonicalize,cse)")]
    run_stage("S4", passes, module, context)
    source = Emitter().function(signature.main_of(module))
    manifest = {"entry": ENTRY, "arguments": rows, "kernels": [{"name": ENTRY}]}
    return Artifact(manifest, {"code.py": source.encode()})


class Emitter:
    """Prints one function. Scalars are numpy's, so that each has its type's precision."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[Any, str] = {}
        self.depth = 1

    def function(self, op: Any) -> str:
        """The whole function as source text."""
        block = op.regions[0].blocks[0]
        names = ", ".join(self.name(a) for a in block.arguments)
        self.lines = [f"def {ENTRY}({names}):", "    pass"]
        self.block(block, [])
        return "\n".join(self.lines) + "\n"

    def name(self, value: Any) -> str:
        """The Python variable of an SSA value."""
        return self.names.setdefault(value, f"v{len(self.names)}")

    def say(self, line: str) -> None:
        """Add one line at the current depth."""
        self.lines.append("    " * self.depth + line)

    def block(self, block: Any, targets: list[str]) -> None:
        """Print a block; its terminator's operands go to the variables `targets`."""
        for op in block.operations:
            operands = [self.name(v) for v in op.operands]
            if op.operation.name in ("scf.yield", "scf.reduce", "func.return"):
                if targets:
                    self.say(f"{', '.join(targets)} = {', '.join(operands)}")
            else:
                self.op(op.operation, operands)

    def op(self, op: Any, operands: list[str]) -> None:
        """Print one operation."""
        results = [self.name(v) for v in op.results]
        if op.name == "scf.for":
            self.loop(op, operands, results)
        elif op.name == "scf.parallel":
            self.parallel(op, operands)
        elif op.name == "memref.load":
            self.say(f"{results[0]} = {operands[0]}[{', '.join(operands[1:]) or '()'}]")
        elif op.name == "memref.store":
            self.say(f"{operands[1]}[{', '.join(operands[2:]) or '()'}] = {operands[0]}")
        elif op.name in ("memref.alloc", "memref.alloca") and not operands:
            type_ = ir.MemRefType(op.results[0].type)
            dtype = self.dtype(op, type_.element_type)
            self.say(f"{results[0]} = np.empty({tuple(type_.shape)}, np.{dtype})")
        elif op.name == "memref.reinterpret_cast":
            self.say(f"{results[0]} = view({operands[0]}, {self.layout(op)})")
        elif op.name == "memref.dealloc":
            pass
        else:
            self.say(f"{results[0] if results else '_'} = {self.expression(op, operands)}")

    def layout(self, op: Any) -> str:
        """Offset, shape and strides (elements) of a memref that a cast makes."""
        names = ("static_offsets", "static_sizes", "static_strides")
        offsets, shape, strides = (list(ir.DenseI64ArrayAttr(op.attributes[n])) for n in names)
        if len(op.operands) > 1:
            raise UnsupportedError(f"the target 'toy' has no dynamic {op.name}")
        return f"{offsets[0]}, {shape}, {strides}"

    def expression(self, op: Any, operands: list[str]) -> str:
        """The Python expression of a scalar operation."""
        if op.name in BINARY:
            return BINARY[op.name].format(*operands)
        if op.name == "arith.constant":
            return self.constant(op)
        if op.name == "arith.cmpf":
            number = ir.IntegerAttr(op.attributes["predicate"]).value
            if number in FLOAT_COMPARISONS:
                return FLOAT_COMPARISONS[number].format(*operands)
        if op.name in CASTS:
            type_ = op.results[0].type
            return f"{self.cast(op, type_)}({operands[0]})"
        raise UnsupportedError(f"the target 'toy' does not know the operation {op.name}")

    def constant(self, op: Any) -> str:
        """A literal."""
        type_ = op.results[0].type
        value = op.attributes["value"]
        if str(type_) in ("f32", "f64", "f16"):
            return f"{self.cast(op, type_)}('{ir.FloatAttr(value).value!r}')"
        if str(type_) == "i1":
            return str(bool(ir.BoolAttr(value).value))
        return f"{self.cast(op, type_)}({ir.IntegerAttr(value).value})"

    def cast(self, op: Any, type_: Any) -> str:
        """The constructor of a type's scalars; those of `index` are Python's own."""
        return "int" if str(type_) == "index" else f"np.{self.dtype(op, type_)}"

    def dtype(self, op: Any, type_: Any) -> str:
        """numpy's name of an element type."""
        if str(type_) not in NUMPY:
            raise UnsupportedError(f"the target 'toy' has no type {type_}")
        return NUMPY[str(type_)]

    def loop(self, op: Any, operands: list[str], results: list[str]) -> None:
        """`scf.for` with its carried values."""
        block = op.regions[0].blocks[0]
        induction, *carried = [self.name(a) for a in block.arguments]
        low, high, step, *initial = operands
        for name, value in zip(carried, initial, strict=True):
            self.say(f"{name} = {value}")
        self.say(f"for {induction} in range({low}, {high}, {step}):")
        self.nested(block, carried)
        for name, value in zip(results, carried, strict=True):
            self.say(f"{name} = {value}")

    def parallel(self, op: Any, operands: list[str]) -> None:
        """`scf.parallel` without reductions, one loop per dimension."""
        block = op.regions[0].blocks[0]
        rank = len(block.arguments)
        if len(operands) != 3 * rank:
            raise UnsupportedError("the target 'toy' has no parallel reductions")
        depth = self.depth
        for i, argument in enumerate(block.arguments):
            low, high, step = operands[i], operands[rank + i], operands[2 * rank + i]
            self.say(f"for {self.name(argument)} in range({low}, {high}, {step}):")
            self.depth += 1
        self.depth -= 1
        self.nested(block, [])
        self.depth = depth

    def nested(self, block: Any, targets: list[str]) -> None:
        """A block one level deeper."""
        self.depth += 1
        self.say("pass")
        self.block(block, targets)
        self.depth -= 1
