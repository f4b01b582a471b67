"""The standard pipeline: one list for all frontends and all targets, read from top to bottom."""

from __future__ import annotations

from polyblocks.options import CompileOptions
from polyblocks.passes.affine.bind_arguments import BindArgumentsPass
from polyblocks.passes.affine.bind_loops import BindLoopsPass
from polyblocks.passes.affine.bufferize_scans import BufferizeScansPass
from polyblocks.passes.affine.cascade_sums import CascadeSumsPass
from polyblocks.passes.affine.classify_nests import ClassifyNestsPass
from polyblocks.passes.affine.estimate_nests import EstimateNestsPass
from polyblocks.passes.affine.flatten_nests import FlattenNestsPass
from polyblocks.passes.affine.fold_views import FoldViewsPass
from polyblocks.passes.affine.form_reductions import FormReductionsPass
from polyblocks.passes.affine.form_regions import FormRegionsPass
from polyblocks.passes.affine.form_scans import FormScansPass
from polyblocks.passes.affine.forward_copies import ForwardCopiesPass
from polyblocks.passes.affine.fuse_slices import FuseElementsPass, FuseSlicesPass
from polyblocks.passes.affine.fuse_tiles import FuseTilesPass
from polyblocks.passes.affine.guard_indices import GuardIndicesPass
from polyblocks.passes.affine.hoist_buffers import HoistBuffersPass
from polyblocks.passes.affine.hoist_invariants import HoistInvariantsPass
from polyblocks.passes.affine.jam_reductions import JamReductionsPass
from polyblocks.passes.affine.lower_scatters import LowerScattersPass
from polyblocks.passes.affine.map_blocks import MapBlocksPass
from polyblocks.passes.affine.map_parallelism import MapParallelismPass
from polyblocks.passes.affine.merge_loops import MergeLoopsPass
from polyblocks.passes.affine.multiply_reciprocals import MultiplyReciprocalsPass
from polyblocks.passes.affine.narrow_indices import NarrowIndicesPass
from polyblocks.passes.affine.normalize_nests import NormalizeNestsPass
from polyblocks.passes.affine.order_loops import OrderLoopsPass
from polyblocks.passes.affine.plan_memory import PlanMemoryPass
from polyblocks.passes.affine.raise_indices import RaiseIndicesPass
from polyblocks.passes.affine.schedule_scatters import ScheduleScattersPass
from polyblocks.passes.affine.separate_versions import SeparateVersionsPass
from polyblocks.passes.affine.split_fills import SplitFillsPass
from polyblocks.passes.affine.split_reductions import SplitReductionsPass
from polyblocks.passes.affine.split_scans import SplitScansPass
from polyblocks.passes.affine.tile_transposes import TileTransposesPass
from polyblocks.passes.affine.unroll_reductions import UnrollReductionsPass
from polyblocks.passes.affine.vectorize_nests import VectorizeNestsPass
from polyblocks.passes.affine.widen_accumulators import WidenAccumulatorsPass
from polyblocks.passes.tensor.carry_scalars import CarryScalarsPass
from polyblocks.passes.tensor.fill_empties import FillEmptiesPass
from polyblocks.passes.tensor.fold_insertions import FoldInsertionsPass
from polyblocks.passes.tensor.form_counted_loops import FormCountedLoopsPass
from polyblocks.passes.tensor.select_elements import SelectElementsPass
from polyblocks.passes.tensor.separate_empties import SeparateEmptiesPass
from polyblocks.passes.tensor.set_fastmath import SetFastmathPass
from polyblocks.pipeline import Pipeline, UpstreamPass
from polyblocks.target import TargetDescription


def standard_pipeline(target: TargetDescription, options: CompileOptions) -> Pipeline:
    """The passes of S1 to S3 for one compilation; targets and extensions may change the list."""
    del options
    return Pipeline(
        {
            "S1": [
                UpstreamPass("generalize-tensors", "linalg-generalize-named-ops"),
                UpstreamPass("simplify-tensors", "canonicalize,cse"),
                FoldInsertionsPass(),
                FillEmptiesPass(),
                CarryScalarsPass(),
                FormCountedLoopsPass(),
                SetFastmathPass(),
            ],
            "S2": [
                BindArgumentsPass(),
                # After the last `canonicalize` on tensors, which folds branches to choices.
                SelectElementsPass(),
                BindLoopsPass(),
                # After the last `cse`, which would merge them again.
                SeparateEmptiesPass(),
                UpstreamPass("eliminate-empties", "eliminate-empty-tensors"),
                BufferizeScansPass(),
                UpstreamPass("bufferize", "one-shot-bufferize{bufferize-function-boundaries}"),
                # While the only loops are the program's own.
                FormRegionsPass(),
                LowerScattersPass(),
                UpstreamPass(
                    "linalg-to-affine",
                    "func.func(tm-tensor-to-loops,convert-linalg-to-affine-loops)",
                ),
                HoistBuffersPass(),
                FoldViewsPass(),
                GuardIndicesPass(),
            ],
            "S3": [
                NormalizeNestsPass(),
                RaiseIndicesPass(),
                FormReductionsPass(),
                FormScansPass(),
                SeparateVersionsPass(),
                ForwardCopiesPass(),
                # When all parts of an array are written to their place.
                SplitFillsPass(),
                # Before reductions are unrolled, while they can still be told from other code.
                WidenAccumulatorsPass(),
                UnrollReductionsPass(),
                ClassifyNestsPass(),
                FuseSlicesPass(),
                FuseTilesPass(),
                FuseElementsPass(),
                # Before loops are ordered and cut: long loops are better to cut.
                FlattenNestsPass(),
                SplitReductionsPass(),
                SplitScansPass(),
                NarrowIndicesPass(),
                OrderLoopsPass(),
                JamReductionsPass(),
                CascadeSumsPass(),
                ScheduleScattersPass(),
                HoistInvariantsPass(),
                MergeLoopsPass(),
                TileTransposesPass(),
                MultiplyReciprocalsPass(),
                MapParallelismPass(),
                EstimateNestsPass(),
                # Last of those that change nests: vector code is not read again.
                VectorizeNestsPass(),
                # The only ones that a target without grids of blocks has no use for.
                *([] if target.multiprocessor is None else [MapBlocksPass()]),
                PlanMemoryPass(),
            ],
        }
    )
