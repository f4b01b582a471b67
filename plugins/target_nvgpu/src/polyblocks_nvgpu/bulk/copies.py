"""``cp.async.bulk.tensor`` of 9.0: boxes of arrays that one thread copies, and ``mbarrier``.

Source: PTX ISA, "Data Movement and Conversion Instructions: Bulk copy", "Tensor copy", and
"Parallel Synchronization and Communication Instructions: mbarrier"; ``setmaxnreg``.

The array is a *tensor map*, a parameter of the kernel that the loader fills in with the driver's
``cuTensorMapEncodeTiled``, or ``cuTensorMapEncodeIm2col`` for pixels of windows. Limits of the
latter: CUDA Driver API, "Tensor Map Object Management"; PTX ISA, "im2col mode".
"""

from __future__ import annotations

from polyblocks.target import BulkCopies, WindowCopies

#: The functions that the core calls and :mod:`polyblocks_nvgpu.passes.lower_bulk_copies` lowers.
START = "llvm.polyblocks.bulk.start"
STORE = "llvm.polyblocks.bulk.store"
SHARE = "llvm.polyblocks.bulk.share"
WINDOWS = "llvm.polyblocks.bulk.windows"
SHARE_WINDOWS = "llvm.polyblocks.bulk.share_windows"
ARRIVE_AT = "llvm.polyblocks.bulk.arrive_at"
UNIFORM = "llvm.polyblocks.bulk.uniform"
ELECT = "llvm.polyblocks.bulk.elect"
#: LLVM's functions, by the number of dimensions: to shared memory, of pixels, and from there.
TENSOR_COPY = "llvm.nvvm.cp.async.bulk.tensor.g2s.tile.{}d"
TENSOR_PIXELS = "llvm.nvvm.cp.async.bulk.tensor.g2s.im2col.{}d"
TENSOR_STORE = "llvm.nvvm.cp.async.bulk.tensor.s2g.tile.{}d"
#: The address of a place in another block of the cluster, and how a thread arrives there. Without
#: the cluster's scope it has no fence, whose loss was a quarter on an H200; blocks read only what
#: copies have brought.
PLACE_OF = "llvm.nvvm.mapa.shared.cluster"
ARRIVE_ELSEWHERE = "llvm.nvvm.mbarrier.arrive.scope.cta.space.cluster"
#: All threads of a cluster arrive, and wait.
MEET = ("llvm.nvvm.barrier.cluster.arrive", "llvm.nvvm.barrier.cluster.wait")
#: How registers are given away and taken.
RELEASE = "llvm.nvvm.setmaxnreg.dec.sync.aligned.u32"
TAKE = "llvm.nvvm.setmaxnreg.inc.sync.aligned.u32"

BULK_COPIES = BulkCopies(
    line=128,
    rows=256,
    dimensions=5,
    alignment=16,
    start=START,
    prepare="llvm.nvvm.mbarrier.init.shared",
    visible="llvm.nvvm.fence.mbarrier_init.release.cluster",
    expect="llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta",
    arrive="llvm.nvvm.mbarrier.arrive.shared",
    is_over="llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta",
    uniform=UNIFORM,
    elect=ELECT,
    release=RELEASE,
    take=TAKE,
    least=24,
    most=240,
    store=STORE,
    close="llvm.nvvm.cp.async.bulk.commit.group",
    stored="llvm.nvvm.cp.async.bulk.wait.group.read",
    share=SHARE,
    arrive_at=ARRIVE_AT,
    meet=MEET,
    # The most that every chip can run.
    cluster=8,
    windows=WindowCopies(
        start=WINDOWS,
        share=SHARE_WINDOWS,
        pixels=1024,
        channels=256,
        step=8,
        corners=((-(1 << 15), (1 << 15) - 1), (-(1 << 7), (1 << 7) - 1), (-(1 << 4), (1 << 4) - 1)),
        offsets=((1 << 16) - 1, (1 << 8) - 1, (1 << 5) - 1),
    ),
)
