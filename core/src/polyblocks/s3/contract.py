"""The contract between S3 and a target's S4 as data: its version, operations and attributes.

The page ``docs/s3.md`` explains it and takes its tables from here; ``verify-s3`` holds modules to
it.
"""

from __future__ import annotations

from dataclasses import dataclass

from polyblocks.attributes import (
    ARGUMENT_ATTRIBUTE,
    ARGUMENTS_ATTRIBUTE,
    BARRIER,
    COMMIT,
    COPY,
    ESTIMATE_ATTRIBUTE,
    FREE_ROUNDING_ATTRIBUTE,
    GCD,
    KERNEL_ATTRIBUTE,
    KIND_ATTRIBUTE,
    LAYOUT_ATTRIBUTE,
    LEVEL_ATTRIBUTE,
    MULTIPLY,
    NAME_ATTRIBUTE,
    PADDING_ATTRIBUTE,
    REGION_ATTRIBUTE,
    RESUME_ATTRIBUTE,
    SCHEDULE_ATTRIBUTE,
    SOURCES_ATTRIBUTE,
    STEPS_ATTRIBUTE,
    TILE_ATTRIBUTE,
    VECTOR_ATTRIBUTE,
    WAIT,
)

#: Version of the contract. Raised when a lowering that reads the version before could reject a
#: module or compile it wrongly: a new operation, type or place of one, an attribute that has to be
#: obeyed, another meaning. Not when less is handed over than before.
S3_VERSION = 2
#: Version of the hook ``lower_program`` -> version of the contract that its module keeps. The
#: hook's version is raised with the contract's, so that a target for another one is not accepted.
LOWERED_BY: dict[int, int] = {1: 1, 2: 2}

#: Where an operation may stand.
MODULE, MAIN, NEST = "module", "main", "nest"


@dataclass(frozen=True)
class Operation:
    """One operation that may be there after S3.

    Attributes:
        places: of :data:`MODULE`, :data:`MAIN` and :data:`NEST`.
        note: what MLIR's own documentation leaves open, or why it is there; empty for nothing.
    """

    places: tuple[str, ...]
    note: str = ""


def _group(places: tuple[str, ...], names: str, note: str = "") -> dict[str, Operation]:
    return {name: Operation(places, note) for name in names.split()}


_ANYWHERE = (MAIN, NEST)

STRUCTURE = {
    "func.func": Operation((MODULE,), "one, `@main`, of one block"),
    "memref.global": Operation((MODULE,), "constant, with its elements"),
    "gpu.module": Operation((MODULE,), "kernels that replace nests, and their constants"),
    "gpu.launch_func": Operation((MAIN,), "of a kernel that replaces a nest"),
    "func.return": Operation((MAIN,), "returns nothing"),
}

LOOPS = {
    "affine.parallel": Operation((MAIN,), "one dimension from 0 to a constant in steps of 1"),
    "affine.for": Operation(
        _ANYWHERE, "a constant step; 1 where a bound is no constant; may carry values"
    ),
    "affine.yield": Operation(_ANYWHERE),
    "scf.for": Operation(_ANYWHERE, "a loop of the program, or the vectors of a loop of a nest"),
    "scf.if": Operation(_ANYWHERE),
    "scf.yield": Operation(_ANYWHERE),
    "scf.while": Operation((MAIN,)),
    "scf.condition": Operation((MAIN,)),
    "scf.index_switch": Operation((MAIN,)),
}

MEMORY = {
    "memref.get_global": Operation((MAIN,)),
    "memref.view": Operation((MAIN,), "of the workspace, at a constant offset"),
    **_group(
        (MAIN,),
        "memref.cast memref.collapse_shape memref.expand_shape memref.reinterpret_cast "
        "memref.subview",
        "a view; it may begin at an offset that is known at run time only",
    ),
    "builtin.unrealized_conversion_cast": Operation(
        (MAIN,),
        "a view of neighbouring narrow numbers as words of 32 bits, aligned as the numbers; for "
        "targets with matrix units that take words",
    ),
    "memref.extract_strided_metadata": Operation((MAIN,), "for the offset of a view of a view"),
    "memref.alloca": Operation((NEST,), "lives in one iteration of the loop around it"),
    "memref.extract_aligned_pointer_as_index": Operation(
        _ANYWHERE, "to ask at run time how memory is aligned"
    ),
    "affine.apply": Operation(_ANYWHERE),
    "affine.load": Operation(_ANYWHERE),
    "affine.store": Operation(_ANYWHERE),
    "memref.load": Operation(_ANYWHERE, "in bounds: a check stands before it where that is open"),
    "memref.store": Operation(_ANYWHERE, "as `memref.load`"),
    "memref.copy": Operation((MAIN,), "between memrefs that do not overlap"),
    "memref.prefetch": Operation(_ANYWHERE, "a hint; the element may lie outside of the memref"),
    "cf.assert": Operation(_ANYWHERE, "see Checks"),
}

COPIES = {
    COPY: Operation(
        (NEST,), "a box of elements, from one memory space to another; see Copies and waits"
    ),
    COMMIT: Operation((NEST,), "the asynchronous copies since the last one are a group"),
    WAIT: Operation((NEST,), "until at most `pending` groups of copies are on their way"),
    BARRIER: Operation((NEST,), "the threads of a `block` wait for each other"),
}

VECTORS = {
    "vector.load": Operation(_ANYWHERE, "aligned as an element, unless `alignment` says more"),
    "vector.store": Operation(_ANYWHERE, "as `vector.load`; may be `nontemporal`, a hint"),
    "vector.maskedload": Operation(_ANYWHERE, "lanes that are masked out touch no memory"),
    "vector.maskedstore": Operation(_ANYWHERE, "as `vector.maskedload`"),
    "vector.gather": Operation(_ANYWHERE, "along the last dimension, from its begin; as loads"),
    "vector.broadcast": Operation(_ANYWHERE, "of a scalar"),
    "vector.shuffle": Operation(_ANYWHERE),
    "llvm.call_intrinsic": Operation(
        _ANYWHERE,
        "`llvm.polyblocks.dot.NAME`: the matrix unit NAME of the target's description, on each "
        "lane; see Matrix units. Or the function `rounding` of a unit of the description, or its "
        "`compress`",
    ),
    "vector.bitcast": Operation(
        _ANYWHERE, "of a mask of lanes, as a number; for targets with a `compress`"
    ),
    MULTIPLY: Operation(
        (NEST,), "a product of tiles by the unit of the target's description; see Matrix units"
    ),
    "vector.extract": Operation(_ANYWHERE, "at a constant position"),
    "vector.insert": Operation(_ANYWHERE, "at a constant position"),
}

_DIVISION = "a divisor of zero fails the check `ZeroDivisionError`"
_SIGNED_DIVISION = f"{_DIVISION}; the lowest number by -1 wraps around"
_SHIFT = "0 for a count of the width or more, of `shrsi` the sign"
_TO_INTEGER = (
    "rounds towards zero; NaN and values that do not fit become the number with only the highest "
    "bit set. To fewer than 32 bits: the lower bits of the signed 32-bit result"
)

ARITH = {
    "arith.constant": Operation(_ANYWHERE),
    **_group(
        _ANYWHERE, "arith.addi arith.subi arith.muli", "wraps around, unless `overflowFlags` say so"
    ),
    **_group(_ANYWHERE, "arith.divui arith.ceildivui arith.remui", _DIVISION),
    **_group(_ANYWHERE, "arith.divsi arith.remsi", f"rounds towards zero; {_SIGNED_DIVISION}"),
    **_group(_ANYWHERE, "arith.floordivsi arith.ceildivsi", _SIGNED_DIVISION),
    **_group(_ANYWHERE, "arith.andi arith.ori arith.xori"),
    **_group(_ANYWHERE, "arith.shli arith.shrsi arith.shrui", _SHIFT),
    **_group(_ANYWHERE, "arith.minsi arith.maxsi arith.minui arith.maxui arith.cmpi"),
    **_group(_ANYWHERE, "arith.addf arith.subf arith.mulf arith.divf arith.negf"),
    "arith.remf": Operation(_ANYWHERE, "C's `fmod`, exact"),
    **_group(
        _ANYWHERE, "arith.minimumf arith.maximumf", "NaN if an operand is; -0 is less than +0"
    ),
    **_group(_ANYWHERE, "arith.minnumf arith.maxnumf", "the number if the other operand is NaN"),
    "arith.cmpf": Operation(_ANYWHERE),
    "arith.select": Operation(_ANYWHERE),
    **_group(_ANYWHERE, "arith.extsi arith.extui arith.trunci arith.bitcast"),
    **_group(_ANYWHERE, "arith.index_cast arith.index_castui", "`index` is 64 bits wide"),
    **_group(_ANYWHERE, "arith.extf arith.truncf", "to nearest even; f64 and halves by way of f32"),
    **_group(_ANYWHERE, "arith.sitofp arith.uitofp", "to nearest even"),
    **_group(_ANYWHERE, "arith.fptosi arith.fptoui", _TO_INTEGER),
}

MATH = {
    **_group(
        _ANYWHERE,
        "math.absf math.ceil math.copysign math.floor math.round math.roundeven math.sqrt "
        "math.trunc",
        "exact, or correctly rounded",
    ),
    "math.fma": Operation(_ANYWHERE, "rounds once"),
    **_group(
        _ANYWHERE,
        "math.acos math.acosh math.asin math.asinh math.atan math.atan2 math.atanh math.cbrt "
        "math.cos math.cosh math.erf math.erfc math.exp math.exp2 math.expm1 math.fpowi math.log "
        "math.log10 math.log1p math.log2 math.powf math.rsqrt math.sin math.sincos math.sinh "
        "math.tan math.tanh",
        "see [Numerics](numerics.md); `expand_math` makes arithmetic of it",
    ),
    **_group(
        _ANYWHERE,
        "math.clampf math.ipowi math.isfinite math.isinf math.isnan math.isnormal",
        "`expand_math` makes arithmetic of it",
    ),
    "math.absi": Operation(_ANYWHERE, "of the lowest number: itself"),
    **_group(_ANYWHERE, "math.ctlz math.cttz", "of zero: the width"),
    "math.ctpop": Operation(_ANYWHERE),
    GCD: Operation(
        _ANYWHERE,
        "greatest common divisor of integers without signs, the other one of zero; `expand_math` "
        "makes a loop of it",
    ),
}

COMPLEX = _group(
    _ANYWHERE,
    "complex.abs complex.add complex.angle complex.atan2 complex.conj complex.constant complex.cos "
    "complex.create complex.div complex.eq complex.exp complex.expm1 complex.im complex.log "
    "complex.log1p complex.mul complex.neg complex.neq complex.pow complex.powi complex.re "
    "complex.rsqrt complex.sign complex.sin complex.sqrt complex.sub complex.tan complex.tanh",
    "of scalars; `convert-complex-to-standard` makes arithmetic of it",
)

#: Title of the table -> its operations.
GROUPS: dict[str, dict[str, Operation]] = {
    "Structure": STRUCTURE,
    "Loops and branches": LOOPS,
    "Memory and checks": MEMORY,
    "Copies and waits": COPIES,
    "Vectors": VECTORS,
    "Scalars: arith": ARITH,
    "Scalars: math": MATH,
    "Scalars: complex": COMPLEX,
}
OPERATIONS: dict[str, Operation] = {k: v for group in GROUPS.values() for k, v in group.items()}

#: Integer divisions: on vectors by constants above 1 only.
DIVISIONS = frozenset(
    f"arith.{name}" for name in "ceildivsi ceildivui divsi divui floordivsi remsi remui".split()
)
#: Element types of memrefs, and types of scalars beside ``index``.
ELEMENTS = ("i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64")
COMPLEX_ELEMENTS = ("complex<f32>", "complex<f64>")
#: Flags allowed in ``fastmath``.
FASTMATH = ("reassoc", "contract", "nsz")


@dataclass(frozen=True)
class Attribute:
    """One attribute of ours that may be there after S3.

    Attributes:
        owner: what carries it: ``module``, ``argument`` (of ``@main``), ``nest``, ``loop``,
            ``parallel``, ``region``, ``access``, ``buffer`` or ``conversion``.
        type: ``string``, ``strings``, ``integers``, ``unit``, ``dictionary`` or ``dictionaries``.
        meaning: for a target.
    """

    owner: str
    type: str
    meaning: str


ATTRIBUTES: dict[str, Attribute] = {
    NAME_ATTRIBUTE: Attribute("module", "string", "what the user calls the program"),
    ARGUMENTS_ATTRIBUTE: Attribute(
        "module",
        "dictionaries",
        f"the arguments' `{ARGUMENT_ATTRIBUTE}`, kept for dumps of later stages",
    ),
    RESUME_ATTRIBUTE: Attribute(
        "module", "string", "in dumps: the stage or pass that the module came through"
    ),
    ARGUMENT_ATTRIBUTE: Attribute("argument", "dictionary", "see Arguments"),
    KERNEL_ATTRIBUTE: Attribute(
        "nest", "string", "readable name; the loops of one nest have the same"
    ),
    KIND_ATTRIBUTE: Attribute(
        "nest",
        "string",
        "`pointwise`, `stencil`, `copy`, `reduction`, `contraction`, `scan`, `gather` or `scatter`",
    ),
    SOURCES_ATTRIBUTE: Attribute("nest", "strings", "`op file:line` of the framework's ops"),
    ESTIMATE_ATTRIBUTE: Attribute("nest", "dictionary", "what the cost model says, for the report"),
    VECTOR_ATTRIBUTE: Attribute(
        "nest", "integers", "lanes of the vectors in it, ascending; absent for none"
    ),
    SCHEDULE_ATTRIBUTE: Attribute(
        "nest", "dictionary", "how a grid of blocks runs it, to be obeyed"
    ),
    LEVEL_ATTRIBUTE: Attribute(
        "parallel", "string", "name of the level of parallelism that runs the iterations"
    ),
    TILE_ATTRIBUTE: Attribute(
        "loop", "unit", "nests follow each other in its body, a tile's; may be ignored"
    ),
    STEPS_ATTRIBUTE: Attribute(
        "loop", "string", "the matrix unit that takes its steps, of all elements of a warp at once"
    ),
    LAYOUT_ATTRIBUTE: Attribute(
        "buffer",
        "dictionaries",
        "elements that change places: dimension `into` is flipped by `masks`, one for each bit of "
        "dimension `of`, the lowest first",
    ),
    FREE_ROUNDING_ATTRIBUTE: Attribute(
        "conversion",
        "unit",
        "the program does not ask for it: a number that is rounded and extended again by two such "
        "conversions may be either. `lower-half-types` reads it",
    ),
    PADDING_ATTRIBUTE: Attribute(
        "access",
        "integers",
        "numbers of paddings: of a load, the one of the convolution that it is of; of a store of "
        "zeros, those that the zero is part of. May be ignored",
    ),
    REGION_ATTRIBUTE: Attribute(
        "region", "string", "name of a loop or branch of the program around whole nests"
    ),
}

#: Operations allowed around whole nests.
REGIONS = ("affine.for", "scf.for", "scf.while", "scf.if", "scf.index_switch")
#: Kinds of nests.
KINDS = ("pointwise", "stencil", "copy", "reduction", "contraction", "scan", "gather", "scatter")
#: Attributes that stand on a nest together, or not at all.
NAMED_NEST = (KERNEL_ATTRIBUTE, KIND_ATTRIBUTE, SOURCES_ATTRIBUTE)
#: Keys of an argument's dictionary.
ARGUMENT_KEYS = ("role", "name", "dtype", "shape", "strides", "constant", "updates")
#: Bytes to which the workspace, and every buffer in it, is aligned.
WORKSPACE_ALIGNMENT = 64
