"""Names of the discardable attributes that the compiler writes on MLIR operations, and of its own.

Every name is written here and nowhere else. A plugin's own attributes carry the plugin's name.
"""

from __future__ import annotations

# The program.

#: Module: the function's name.
NAME_ATTRIBUTE = "polyblocks.name"
#: Module: the last stage, or ``stage:pass``, that a dumped module went through.
RESUME_ATTRIBUTE = "polyblocks.done"
#: An argument of ``@main``: its row of the signature, see :mod:`polyblocks.signature`.
ARGUMENT_ATTRIBUTE = "polyblocks.arg"
#: A result of ``@main`` before S2: its row of the signature.
RESULT_ATTRIBUTE = "polyblocks.result"
#: Module: the rows that the arguments had at the end of S3.
ARGUMENTS_ATTRIBUTE = "polyblocks.arguments"
#: Module: messages of the run-time checks; status k > 0 stands for message k - 1.
CHECKS_ATTRIBUTE = "polyblocks.checks"

# Nests, and the kernels that they become.

#: A loop or branch around whole nests: its name, see ``form-regions``.
REGION_ATTRIBUTE = "polyblocks.region"
#: Name of the branch with what depends on constant arguments alone, see ``form-preparation``.
PREPARATION = "preparation"
#: An ``affine.parallel``: the parallel level of the target that runs it.
LEVEL_ATTRIBUTE = "polyblocks.level"
#: A loop: sub-nests follow each other in its body, which passes treat as if each stood alone.
TILE_ATTRIBUTE = "polyblocks.tile"
#: A loop around the rows of a register tile: how many of its iterations are lanes at a time.
LANES_ATTRIBUTE = "polyblocks.lanes"
#: A GPU's kernel: the name of the matrix unit that it uses.
UNIT_ATTRIBUTE = "polyblocks.unit"
#: A kernel: blocks of its clusters, if there are any.
CLUSTER_ATTRIBUTE = "polyblocks.cluster"
#: A nest: its name.
KERNEL_ATTRIBUTE = "polyblocks.kernel"
#: A nest or kernel: what it is, see ``classify-nests``.
KIND_ATTRIBUTE = "polyblocks.kind"
#: A nest or kernel: the framework's operations in it.
SOURCES_ATTRIBUTE = "polyblocks.sources"
#: A nest or kernel: what it costs, :meth:`polyblocks.affine.cost.estimate.Estimate.to_json`.
ESTIMATE_ATTRIBUTE = "polyblocks.estimate"
#: A nest or kernel: lanes of its vectors, ascending; absent if it has none.
VECTOR_ATTRIBUTE = "polyblocks.vector"
#: A kernel: names of the nests that it was made of, one for each call of it, in order.
NESTS_ATTRIBUTE = "polyblocks.nests"
#: A kernel: what its calls cost, one estimate for each, in order.
ESTIMATES_ATTRIBUTE = "polyblocks.estimates"

# The meaning of zeros and conversions in the program; frontends say it, see docs/dumps.md.

#: A product: zeros that its operation put around or between elements meet nothing (S1 to S3).
ABSENT_ATTRIBUTE = "polyblocks.absent"
#: A product: the zeros that its operation put around and between the elements of the array that the
#: first factor is loaded from, :mod:`polyblocks.affine.padding.padded` (S1 to ``mark-padding``).
PADDED_ATTRIBUTE = "polyblocks.padded"
#: A load: number of the padding whose zeros, and no others, are its own operation's. A store of
#: zeros: the numbers of all paddings that it stores (``mark-padding`` to the end of S3).
PADDING_ATTRIBUTE = "polyblocks.padding"
#: A conversion between floats that the program does not ask for: what it rounds to need not be
#: rounded where it is extended again by another one (S1 to ``lower-half-types``).
FREE_ROUNDING_ATTRIBUTE = "polyblocks.free_rounding"

# Code generation.

#: An ``scf.if`` that serves arguments that are hardly ever there.
RARE_ATTRIBUTE = "polyblocks.rare"
#: A loop of a kernel that stays one, see ``keep-loops``: LLVM's, which its branches keep.
LOOP_ATTRIBUTE = "llvm.loop_annotation"
#: Of calls of a target's own intrinsics: which of the kernels that run together they are of. Equal
#: code of two of them may become one otherwise, and their sizes arguments, where constants are due.
MEMBER_ATTRIBUTE = "polyblocks.member"
#: A call that ``hide-intrinsics`` made.
HIDDEN_ATTRIBUTE = "polyblocks.hidden"
#: A nest: how it runs, see :mod:`polyblocks.affine.plan.keys`.
SCHEDULE_ATTRIBUTE = "polyblocks.schedule"
#: A GPU's kernel: blocks that a multiprocessor is to hold at once, as the mapping assumes.
RESIDENT_ATTRIBUTE = "polyblocks.resident"
#: A GPU's kernel: what its shared memory is to begin at a multiple of, in bytes.
SHARED_ALIGNMENT_ATTRIBUTE = "polyblocks.shared_alignment"
#: Module: the launch plan, see :mod:`polyblocks.codegen.gpu.plan`.
LAUNCHES_ATTRIBUTE = "polyblocks.launches"
#: Module: alignment in bytes, by number of the program's argument, that kernels rely on.
ALIGNMENTS_ATTRIBUTE = "polyblocks.alignments"

#: A loop of a nest: the matrix unit that the warps of a block take its steps with.
STEPS_ATTRIBUTE = "polyblocks.unit_steps"
#: A local buffer: which of its elements change places, see :mod:`polyblocks.affine.swizzles`.
LAYOUT_ATTRIBUTE = "polyblocks.layout"

# The operations of our own dialect.

#: ``"polyblocks.gcd"(x, y)``: greatest common divisor of two unsigned integers; gcd(0, y) is y.
GCD = "polyblocks.gcd"
#: ``"polyblocks.multiply"(a, b, accumulator, indices...)``: a matrix unit's product of two tiles.
MULTIPLY = "polyblocks.multiply"
#: ``"polyblocks.copy"(source, destination, indices...)``: a box of elements.
COPY = "polyblocks.copy"
#: ``"polyblocks.commit"()``: the asynchronous copies so far are a group.
COMMIT = "polyblocks.commit"
#: ``"polyblocks.wait"()``: for such groups.
WAIT = "polyblocks.wait"
#: ``"polyblocks.barrier"()``: threads wait for each other.
BARRIER = "polyblocks.barrier"
