"""The standard pipeline: one list for all frontends and all targets, read from top to bottom."""

from __future__ import annotations

from typing import Any

from polyblocks.options import CompileOptions
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass
from polyblocks.passes.bufferize.bind_arguments import BindArgumentsPass
from polyblocks.passes.bufferize.bind_loops import BindLoopsPass
from polyblocks.passes.bufferize.bufferize_scans import BufferizeScansPass
from polyblocks.passes.bufferize.fold_views import FoldViewsPass
from polyblocks.passes.bufferize.form_preparation import FormPreparationPass
from polyblocks.passes.bufferize.form_regions import FormRegionsPass
from polyblocks.passes.bufferize.guard_indices import GuardIndicesPass
from polyblocks.passes.bufferize.hoist_buffers import HoistBuffersPass
from polyblocks.passes.bufferize.lower_scatters import LowerScattersPass
from polyblocks.passes.bufferize.lower_sorts import LowerSortsPass
from polyblocks.passes.bufferize.select_elements import SelectElementsPass
from polyblocks.passes.bufferize.separate_empties import SeparateEmptiesPass
from polyblocks.passes.bufferize.split_complex import SplitComplexPass
from polyblocks.passes.bufferize.split_updates import SplitUpdatesPass
from polyblocks.passes.contraction.chain_products import ChainProductsPass
from polyblocks.passes.contraction.expand_packing import ExpandPackingPass
from polyblocks.passes.contraction.plan_contractions import PlanContractionsPass
from polyblocks.passes.contraction.split_contractions import SplitContractionsPass
from polyblocks.passes.contraction.tile_contractions import TileContractionsPass
from polyblocks.passes.fuse.absorb_loops import AbsorbLoopsPass
from polyblocks.passes.fuse.absorb_margins import AbsorbMarginsPass
from polyblocks.passes.fuse.fuse_sibling_loops import FuseSiblingLoopsPass
from polyblocks.passes.fuse.fuse_slices import FuseSlicesPass
from polyblocks.passes.fuse.fuse_tiles import FuseTilesPass
from polyblocks.passes.fuse.hoist_factors import HoistFactorsPass
from polyblocks.passes.fuse.inline_producers import InlineProducersPass
from polyblocks.passes.fuse.inline_stacks import InlineStacksPass
from polyblocks.passes.fuse.join_nests import JoinNestsPass
from polyblocks.passes.fuse.merge_margins import MergeMarginsPass
from polyblocks.passes.fuse.merge_reductions import MergeReductionsPass
from polyblocks.passes.fuse.roll_nests import RollNestsPass
from polyblocks.passes.fuse.roll_sums import RollSumsPass
from polyblocks.passes.fuse.split_columns import SplitColumnsPass
from polyblocks.passes.layout.choose_layouts import ChooseLayoutsPass
from polyblocks.passes.layout.copy_columns import CopyColumnsPass
from polyblocks.passes.layout.delinearize_loops import DelinearizeLoopsPass
from polyblocks.passes.layout.fold_ranges import FoldRangesPass
from polyblocks.passes.layout.gather_rows import GatherRowsPass
from polyblocks.passes.layout.interchange_loops import InterchangeLoopsPass
from polyblocks.passes.layout.interleave_lookups import InterleaveLookupsPass
from polyblocks.passes.layout.pack_arguments import PackArgumentsPass
from polyblocks.passes.layout.prepare_arguments import PrepareArgumentsPass
from polyblocks.passes.layout.raise_comparisons import RaiseComparisonsPass
from polyblocks.passes.layout.raise_tables import RaiseTablesPass
from polyblocks.passes.layout.share_indices import ShareIndicesPass
from polyblocks.passes.layout.split_ranges import SplitRangesPass
from polyblocks.passes.layout.split_stacks import SplitStacksPass
from polyblocks.passes.layout.split_steps import SplitStepsPass
from polyblocks.passes.layout.straighten_copies import StraightenCopiesPass
from polyblocks.passes.map.choose_kernels import ChooseKernelsPass
from polyblocks.passes.map.cut_masks import CutMasksPass
from polyblocks.passes.map.emit_kernels import EmitKernelsPass
from polyblocks.passes.map.estimate_nests import EstimateNestsPass
from polyblocks.passes.map.jam_windows import JamWindowsPass
from polyblocks.passes.map.map_parallelism import MapParallelismPass
from polyblocks.passes.map.plan_memory import PlanMemoryPass
from polyblocks.passes.map.promote_accumulators import PromoteAccumulatorsPass
from polyblocks.passes.map.split_masks import SplitMasksPass
from polyblocks.passes.map.stage_operands import StageOperandsPass
from polyblocks.passes.map.tile_scans import TileScansPass
from polyblocks.passes.map.update_in_place import UpdateInPlacePass
from polyblocks.passes.map.vectorize_nests import VectorizeNestsPass
from polyblocks.passes.normalize.classify_nests import ClassifyNestsPass
from polyblocks.passes.normalize.distribute_loops import DistributeLoopsPass
from polyblocks.passes.normalize.eliminate_overwritten_stores import EliminateOverwrittenStoresPass
from polyblocks.passes.normalize.form_reductions import FormReductionsPass
from polyblocks.passes.normalize.form_scans import FormScansPass
from polyblocks.passes.normalize.forward_copies import ForwardCopiesPass
from polyblocks.passes.normalize.join_copies import JoinCopiesPass
from polyblocks.passes.normalize.narrow_accumulators import NarrowAccumulatorsPass
from polyblocks.passes.normalize.normalize_nests import NormalizeNestsPass
from polyblocks.passes.normalize.raise_indices import RaiseIndicesPass
from polyblocks.passes.normalize.rename_buffers import RenameBuffersPass
from polyblocks.passes.normalize.set_precision import SetPrecisionPass
from polyblocks.passes.normalize.unroll_reductions import UnrollReductionsPass
from polyblocks.passes.normalize.update_arguments import UpdateArgumentsPass
from polyblocks.passes.normalize.widen_accumulators import WidenAccumulatorsPass
from polyblocks.passes.padding.lower_minima import LowerMinimaPass
from polyblocks.passes.padding.mark_padding import MarkPaddingPass
from polyblocks.passes.padding.mask_absent import MaskAbsentPass
from polyblocks.passes.padding.split_margins import SplitMarginsPass
from polyblocks.passes.padding.split_phases import SplitPhasesPass
from polyblocks.passes.rules import RulePass
from polyblocks.passes.schedule.block_summation import BlockSummationPass
from polyblocks.passes.schedule.flatten_nests import FlattenNestsPass
from polyblocks.passes.schedule.hoist_invariants import HoistInvariantsPass
from polyblocks.passes.schedule.interleave_batches import InterleaveBatchesPass
from polyblocks.passes.schedule.jam_reductions import JamReductionsPass
from polyblocks.passes.schedule.jam_stencils import JamStencilsPass
from polyblocks.passes.schedule.multiply_reciprocals import MultiplyReciprocalsPass
from polyblocks.passes.schedule.narrow_indices import NarrowIndicesPass
from polyblocks.passes.schedule.narrow_values import NarrowValuesPass
from polyblocks.passes.schedule.order_loops import OrderLoopsPass
from polyblocks.passes.schedule.schedule_scatters import ScheduleScattersPass
from polyblocks.passes.schedule.select_layers import SelectLayersPass
from polyblocks.passes.schedule.split_reductions import SplitReductionsPass
from polyblocks.passes.schedule.split_scans import SplitScansPass
from polyblocks.passes.schedule.tile_transposes import TileTransposesPass
from polyblocks.passes.schedule.unroll_short_loops import UnrollShortLoopsPass
from polyblocks.passes.tensor.carry_scalars import CarryScalarsPass
from polyblocks.passes.tensor.check_sizes import CheckSizesPass
from polyblocks.passes.tensor.fill_empties import FillEmptiesPass
from polyblocks.passes.tensor.fold_constants import FoldConstantsPass
from polyblocks.passes.tensor.fold_insertions import FoldInsertionsPass
from polyblocks.passes.tensor.form_counted_loops import FormCountedLoopsPass
from polyblocks.passes.tensor.plan_sorts import PlanSortsPass
from polyblocks.passes.tensor.raise_masks import RaiseMasksPass
from polyblocks.passes.tensor.set_fastmath import SetFastmathPass
from polyblocks.passes.tensor.unroll_steps import UnrollStepsPass
from polyblocks.pipeline import Pipeline, UpstreamPass
from polyblocks.target import TargetDescription


def only(condition: bool, *passes: Any) -> tuple[Any, ...]:
    """The passes, if the condition holds."""
    return passes if condition else ()


def rules(name: str, purpose: str, *members: NestPass) -> tuple[RulePass, ...]:
    """A pass of rules, if there are any."""
    return (RulePass(name, purpose, members),) if members else ()


def standard_pipeline(target: TargetDescription, options: CompileOptions) -> Pipeline:
    """The passes of S1 to S3 for one compilation; targets and extensions may change the list.

    Passes that are not for all targets are for those with a team of threads, with a grid of blocks
    of threads, or with vector registers.
    """
    del options
    blocks, vectors = target.launches_nests, target.vector_bits > 0
    team = not blocks
    # Programs that keep something are handed over in two parts, which a target must know of.
    keeps = team and "freeze_weights" in target.options
    return Pipeline(
        {
            "S1": [
                UpstreamPass("generalize-tensors", "linalg-generalize-named-ops"),
                UpstreamPass("simplify-tensors", "canonicalize,cse"),
                CheckSizesPass(),
                PlanSortsPass(),
                FoldConstantsPass(),
                RaiseMasksPass(),
                FoldInsertionsPass(),
                FillEmptiesPass(),
                CarryScalarsPass(),
                FormCountedLoopsPass(),
                UnrollStepsPass(),
                SetFastmathPass(),
            ],
            "S2": [
                BindArgumentsPass(),
                # After the last `canonicalize` on tensors, which folds branches to choices.
                SelectElementsPass(),
                BindLoopsPass(),
                SeparateEmptiesPass(),
                SplitUpdatesPass(),
                UpstreamPass(
                    "eliminate-empties",
                    "eliminate-empty-tensors",
                    needs=frozenset({facts.OWN_EMPTIES}),
                ),
                BufferizeScansPass(),
                UpstreamPass(
                    "bufferize",
                    "one-shot-bufferize{bufferize-function-boundaries}",
                    needs=frozenset({facts.TENSORS, facts.BOUND_ARGUMENTS}),
                    establishes=frozenset({facts.BUFFERS, facts.PROGRAM_LOOPS}),
                    breaks=frozenset({facts.TENSORS, facts.OWN_EMPTIES}),
                ),
                FormRegionsPass(),
                LowerScattersPass(),
                LowerSortsPass(),
                UpstreamPass(
                    "linalg-to-affine",
                    "func.func(tm-tensor-to-loops,convert-linalg-to-affine-loops)",
                    needs=frozenset({facts.BUFFERS}),
                    establishes=frozenset({facts.AFFINE_LOOPS, facts.PLAIN_LOOPS}),
                    breaks=frozenset({facts.PROGRAM_LOOPS}),
                ),
                HoistBuffersPass(),
                GuardIndicesPass(),
                FoldViewsPass(),
                *only(vectors and team, SplitComplexPass()),
                *only(keeps, FormPreparationPass()),
            ],
            "S3": [
                NormalizeNestsPass(),
                RaiseIndicesPass(),
                # When checks that cannot fail are gone.
                DistributeLoopsPass(),
                FormReductionsPass(),
                FormScansPass(),
                RenameBuffersPass(),
                # Before anything else is done to what a convolution reads.
                MarkPaddingPass(),
                SplitPhasesPass(),
                # When nests write one version of an array each, and before copies are looked for.
                FoldRangesPass(),
                ForwardCopiesPass(),
                # When a copy is one nest, and before it is cut where parts of it are overwritten.
                UpdateArgumentsPass(),
                # When all parts of an array are written to their place.
                EliminateOverwrittenStoresPass(),
                WidenAccumulatorsPass(),
                SetPrecisionPass(),
                UnrollReductionsPass(),
                # When places of steps are known, and before margins are parts of others.
                MaskAbsentPass(),
                *only(blocks or vectors, RaiseTablesPass(), JoinCopiesPass()),
                # When places are known, and before arrays of them are fused.
                *only(blocks or vectors, RaiseComparisonsPass()),
                # When comparisons are affine, and before masks of minus infinity are fused.
                *only(blocks or vectors, LowerMinimaPass()),
                # When windows that a step reads are straight-line code, and before anything is
                # fused: then steps are no longer alike.
                RollSumsPass(),
                *rules(
                    "lay-out-arrays",
                    "arrays get the parts and the order of elements in which nests access them.",
                    *only(
                        team,
                        # Before parts of what makes and reads a sum are arrays of their own.
                        SplitMarginsPass(),
                        SplitStacksPass(),
                        StraightenCopiesPass(),
                        ChooseLayoutsPass(),
                        InterchangeLoopsPass(),
                    ),
                ),
                ClassifyNestsPass(),
                # Before what is made once is fused with what is made at each call.
                *only(keeps, PrepareArgumentsPass()),
                FuseSlicesPass(),
                *rules(
                    "fuse-parts",
                    "arrays that several nests make parts of need no memory, or are split.",
                    # Before a tile of their own keeps slabs in memory.
                    InlineStacksPass(),
                    # When accesses have the constants in them that stood in loops of copies.
                    SplitRangesPass(),
                    *only(team, MergeMarginsPass()),
                ),
                # When what is computed in one place stands there, and before tiles are made of it.
                MergeReductionsPass(),
                # When copies between what is scaled and what multiplies it are gone.
                *only(blocks or vectors, HoistFactorsPass()),
                # When sums stand beside what is taken of them, and before tiles are chosen.
                NarrowAccumulatorsPass(),
                # When reductions of the same values are one, and before tiles are chosen.
                *only(team and vectors, SplitColumnsPass()),
                # Before tiles cut loops anywhere.
                *only(team and vectors, DelinearizeLoopsPass()),
                # Before parts of a chain become tiles of rows.
                *only(blocks, ChainProductsPass()),
                # Before what makes a margin becomes part of a tile.
                *only(blocks, AbsorbMarginsPass()),
                FuseTilesPass(),
                InlineProducersPass(),
                # When the body of such a loop is one nest.
                AbsorbLoopsPass(),
                *only(
                    team and vectors,
                    PackArgumentsPass(),
                    PlanContractionsPass(),
                    TileContractionsPass(),
                    ExpandPackingPass(),
                ),
                # When nothing is fused any more: what is stored with steps is hard to see through.
                *rules(
                    "merge-launches",
                    "small nests that do not need each other are launched as one.",
                    *only(blocks, JoinNestsPass(), RollNestsPass()),
                ),
                *only(team and vectors, SplitStepsPass()),
                # When nothing is fused any more, and before loops are cut in any other way.
                *only(team and vectors, InterleaveBatchesPass()),
                # Before loops around it become one.
                *only(team and vectors, CopyColumnsPass(), GatherRowsPass(), ShareIndicesPass()),
                # Before loops are ordered and cut: long loops are better to cut.
                FlattenNestsPass(),
                # Before other rules see that iterations are few.
                *only(blocks, SplitContractionsPass()),
                SplitReductionsPass(),
                SplitScansPass(),
                *rules(
                    "specialize-bodies",
                    "indices, short loops, values and look-ups get the cheapest form there is.",
                    NarrowIndicesPass(),
                    # Before loads are at addresses, and loops around gathers stay as they are.
                    *only(team and vectors, SelectLayersPass()),
                    # When loops that can be one are one.
                    *only(team and vectors, UnrollShortLoopsPass()),
                    *only(vectors, NarrowValuesPass()),
                    # When a load at several indices is one at an address.
                    *only(team and vectors, InterleaveLookupsPass()),
                ),
                # A grid's threads take neighbouring iterations of whichever loop is in order, are
                # streams enough, and share out long sums as a cascade.
                *only(team, OrderLoopsPass(), JamReductionsPass(), BlockSummationPass()),
                ScheduleScattersPass(),
                HoistInvariantsPass(),
                FuseSiblingLoopsPass(),
                *only(team and vectors, JamStencilsPass()),
                *only(vectors, TileTransposesPass()),
                # A grid's threads take an iteration each of loops that are nested perfectly.
                MultiplyReciprocalsPass(between=team),
                # When nothing else is done to what a thread computes.
                *only(blocks, JamWindowsPass()),
                # When a step has its final form, and before threads share the rows.
                *only(team and vectors, TileScansPass()),
                # When iterations are lanes where they can be, and nothing is fused any more.
                *only(team and vectors, PromoteAccumulatorsPass()),
                # When loops are as they will be, and before it is predicted how long they take.
                *only(team and vectors, CutMasksPass(), SplitMasksPass()),
                *only(team, MapParallelismPass()),
                # A grid's threads do not read the lines that they write to.
                *only(team and vectors, UpdateInPlacePass()),
                # Last of those that change nests: vector code is not read again.
                *only(vectors, VectorizeNestsPass()),
                # Of what will run; vectors are estimated where they are made.
                *only(not vectors, EstimateNestsPass()),
                *only(blocks, ChooseKernelsPass(), StageOperandsPass(), EmitKernelsPass()),
                PlanMemoryPass(),
            ],
        }
    )
