"""Programs through all stages of both GPU targets, run by the simulator: right, and no findings."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from bench.programs import in_torch
from tests.support.captured import captured
from tests.support.sweeps import sweep
from torch.nn import functional

from polyblocks import signature
from polyblocks.api import compile_text
from polyblocks.codegen.gpu.manifest import manifest_of
from polyblocks.options import CompileOptions
from polyblocks.passes.standard import standard_pipeline
from polyblocks.pipeline import PassContext, run_stage
from polyblocks.simt import LaunchResult, Semantics, Simulator
from polyblocks.simt.llvm_ir.reader import places_of, read_module
from polyblocks_nvgpu import emit
from polyblocks_nvgpu.ptx_reader.reader import read_ptx

pytestmark = pytest.mark.cpu

TARGETS = {
    **dict.fromkeys(("sm_70", "sm_75", "sm_80", "sm_90a"), "nvgpu"),
    **dict.fromkeys(("gfx1100", "gfx1200"), "amdgpu"),
}
r = torch.randn


def simulate(
    function: Callable[..., Any],
    inputs: list[torch.Tensor],
    arch: str,
    change: Callable[[dict[str, Any]], None] = lambda plan: None,
    options: dict[str, Any] | None = None,
    optimize: Callable[[str], str] = str,
    ptx: bool = False,
) -> tuple[list[np.ndarray], tuple[LaunchResult, ...]]:
    """Outputs of a program on the simulated chip, and what its launches did.

    ``change`` may change the launch plan, ``optimize`` the LLVM IR that LLVM has optimized, and
    ``options`` are others than target and architecture.
    With ``ptx`` what runs is the PTX that LLVM makes of that.
    """
    package = f"polyblocks_{TARGETS[arch]}"
    chosen = CompileOptions(target=TARGETS[arch], arch=arch, **(options or {}))
    target = importlib.import_module(f"{package}.describe").describe(chosen)
    module = captured(function, inputs).module
    context = PassContext.create(target, chosen)
    standard_pipeline(target, chosen).run(module, context)
    signature.keep(module)
    passes = importlib.import_module(f"{package}.lower").stage_s4(target)
    run_stage("S4", passes, module, context)
    plan = manifest_of(module, {})
    rows = plan["arguments"]
    # The workspace is one of the arguments.
    plan["workspace_bytes"] = sum(
        row["shape"][0] for row in signature.rows(module) if row["role"] == "workspace"
    )
    change(plan)
    given = iter(inputs)
    arrays, outputs = [], []
    for row in rows:
        if row["role"] == "input":
            array = next(given)
            # NumPy has no bfloat16: its bits.
            bits = array.view(torch.uint16) if array.dtype is torch.bfloat16 else array
            arrays.append(bits.numpy().copy())
        elif row["role"] == "output":
            dtype = "uint16" if row["dtype"] == "bfloat16" else row["dtype"]
            arrays.append(np.zeros(row["shape"], dtype))
            outputs.append(arrays[-1])
    semantics = importlib.import_module(f"{package}.simt").SEMANTICS
    assert isinstance(semantics, Semantics)
    optimized_ir = importlib.import_module(f"{package}.emit").optimized_ir
    text = optimize(optimized_ir(module, context))
    code = read_ptx(emit.ptx_of(text, target), places_of(text)) if ptx else read_module(text)
    return outputs, Simulator(code, semantics).run_plan(plan, arrays)


#: What takes all instructions that the others do.
IN_PTX = (
    *("element-wise", "softmax", "column means", "transpose", "blur", "matmul", "long cumsum"),
    *("scatter", "argmax", "sort", "doubles", "halves"),
)
PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[], list[torch.Tensor]]]] = {
    "element-wise": (in_torch.elementwise_chain, lambda: [r(37, 53), r(37, 53)]),
    "row means": (in_torch.row_means, lambda: [r(50, 777)]),
    "softmax": (in_torch.softmax, lambda: [r(33, 1000)]),
    "softmax of short rows": (in_torch.softmax, lambda: [r(999, 33)]),
    "softmax of columns": (lambda x: torch.softmax(x, 0), lambda: [r(1000, 37)]),
    "layer norm": (in_torch.layer_norm, lambda: [r(40, 1024), r(1024), r(1024)]),
    "column means": (in_torch.column_means, lambda: [r(100, 777)]),
    "transpose": (in_torch.transpose, lambda: [r(100, 77)]),
    "blur": (in_torch.blur_x_blur_y, lambda: [r(3, 70, 75)]),
    "heat": (in_torch.heat, lambda: [r(70, 70)]),
    "group norm": (in_torch.group_norm, lambda: [r(4, 32, 14, 14), r(32), r(32)]),
    "matmul": (torch.matmul, lambda: [r(40, 50), r(50, 60)]),
    "cumsum": (in_torch.row_cumsum, lambda: [r(5, 700)]),
    "long cumsum": (lambda x: x.cumsum(0), lambda: [r(100_000)]),
    # What the scan leaves is used by a loop behind it.
    "scan and maximum": (lambda x: x.cumsum(0) + x.max(), lambda: [r(5_000)]),
    "gather": (lambda x, i: x[i] * 2, lambda: [r(100, 30), torch.randint(-99, 100, (57,))]),
    "scatter": (
        lambda x, i, v: x.index_add(0, i, v),
        lambda: [r(100, 30), torch.randint(0, 100, (57,)), r(57, 30)],
    ),
    # Of the last block only a few groups have work.
    "norm": (lambda x: torch.linalg.vector_norm(x, -torch.inf), lambda: [r(5, 5)]),
    "take": (torch.take, lambda: [r(9, 7), torch.randint(-63, 63, (40,))]),
    "total": (in_torch.total, lambda: [r(1000, 300)]),
    "argmax": (in_torch.row_argmax, lambda: [r(30, 500)]),
    "sort": (lambda x: torch.sort(x, dim=-1)[0], lambda: [r(10, 20)]),
    # Copies of a tile: several elements a thread, some of which are beyond the end of a row.
    "depthwise": (
        lambda x, w: functional.conv2d(x, w, padding=1, groups=6),
        lambda: [r(8, 6, 28, 28).half(), r(6, 1, 3, 3).half()],
    ),
    "depthwise 7x7": (
        lambda x, w: functional.conv2d(x, w, padding=3, groups=6),
        lambda: [r(2, 6, 28, 28), r(6, 1, 7, 7)],
    ),
    "batch norm": (
        lambda x, w, b: functional.batch_norm(x, None, None, w, b, True),
        lambda: [r(2, 5, 17, 19), r(5), r(5)],
    ),
    "batch norm in parts": (
        lambda x: functional.batch_norm(x, None, None, training=True),
        lambda: [r(3, 16, 112, 100)],
    ),
    "cross": (torch.linalg.cross, lambda: [r(700, 3), r(700, 3)]),
    "average pool": (lambda x: functional.avg_pool2d(x, 3, 1, 1), lambda: [r(2, 3, 40, 40)]),
    "convolution": (
        lambda x, w: functional.conv2d(x, w, padding=1),
        lambda: [r(1, 8, 12, 12), r(8, 8, 3, 3)],
    ),
    "attention": (
        lambda q, k, v: torch.softmax(q @ k.transpose(-1, -2), -1) @ v,
        lambda: [r(2, 33, 16), r(2, 33, 16), r(2, 33, 16)],
    ),
    "ordered updates": (
        lambda x, i, v: x.index_put((i,), v),
        lambda: [r(10, 5), torch.tensor([1, 2, 2, 7]), torch.zeros(4, 5)],
    ),
    "doubles": (lambda x: (x * 3).cumsum(1), lambda: [r(20, 300).double()]),
    "integers": (lambda x: (x * 3 + 1).sum(0), lambda: [torch.randint(0, 9, (20, 30))]),
    "halves": (lambda x: torch.softmax(x, 1), lambda: [r(20, 300).half()]),
}


@pytest.mark.each_choice
# On others of NVIDIA the same is held to PyTorch below, beside its PTX.
@pytest.mark.parametrize("arch", sweep(["sm_90a", "gfx1100", "gfx1200"], "sm_90a", "gfx1100"))
@pytest.mark.parametrize(
    "name",
    # The others are looked at below, beside what becomes of them.
    sweep(
        PROGRAMS,
        *("layer norm", "heat", "scan and maximum", "take", "total", "depthwise"),
        *("average pool", "convolution", "attention", "ordered updates", "integers"),
    ),
)
def test_kernels_compute_what_pytorch_does_without_a_finding(name: str, arch: str) -> None:
    torch.manual_seed(0)
    function, make = PROGRAMS[name]
    inputs = make()
    outputs, launches = simulate(function, inputs, arch)
    are_those_of_pytorch(name, inputs, outputs, launches)


def are_those_of_pytorch(
    name: str,
    inputs: list[torch.Tensor],
    outputs: list[np.ndarray],
    launches: list[LaunchResult],
) -> None:
    assert [str(f) for launch in launches for f in launch.findings] == []
    expected = PROGRAMS[name][0](*inputs)
    rtol = 2e-3 if inputs[0].dtype is torch.float16 else 2e-4
    for found, wanted in zip(
        outputs, expected if isinstance(expected, tuple) else (expected,), strict=True
    ):
        torch.testing.assert_close(torch.from_numpy(found), wanted, rtol=rtol, atol=1e-4)


def depthwise(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """A product into a padded array, whose margins are a kernel of their own."""
    return functional.conv2d(functional.conv2d(x, w).relu(), v, padding=1, groups=len(v))


@pytest.mark.parametrize("arch", ["sm_90a", "gfx1100"])
def test_margins_of_many_images_are_parts_of_several_blocks(arch: str) -> None:
    inputs = [r(1, 64, 28, 28).half(), r(64, 64, 1, 1).half(), r(64, 1, 3, 3).half()]
    (found,), launches = simulate(depthwise, inputs, arch)
    assert [str(f) for launch in launches for f in launch.findings] == []
    torch.testing.assert_close(torch.from_numpy(found), depthwise(*inputs), rtol=4e-3, atol=4e-2)
    margins = launches[0]
    assert margins.counts.global_loaded == 0
    assert margins.grid[0] > 8


@pytest.mark.parametrize("arch", sweep([a for a in TARGETS if a.startswith("sm")], "sm_90a"))
@pytest.mark.parametrize("name", sweep(PROGRAMS, *IN_PTX))
def test_ptx_computes_the_same_and_moves_the_same(name: str, arch: str) -> None:
    """What LLVM's code generator made, against what it was made of."""
    torch.manual_seed(0)
    function, make = PROGRAMS[name]
    inputs = make()
    outputs, launches = simulate(function, inputs, arch)
    are_those_of_pytorch(name, inputs, outputs, launches)
    found, launched = simulate(function, inputs, arch, ptx=True)
    assert [str(f) for launch in launched for f in launch.findings] == []
    for one, other in zip(found, outputs, strict=True):
        torch.testing.assert_close(torch.from_numpy(one), torch.from_numpy(other))
    for ptx, optimized in zip(launched, launches, strict=True):
        assert ptx.counts.sectors == optimized.counts.sectors
        assert ptx.counts.bank_conflicts <= optimized.counts.bank_conflicts
        assert shared_cycles(ptx) <= shared_cycles(optimized)
        # Three neighbours are loaded as four, of which one may be loaded elsewhere, too.
        assert ptx.counts.shared_loaded <= optimized.counts.shared_loaded * 4 / 3


def shared_cycles(launch: LaunchResult) -> int:
    """How long shared memory is busy."""
    return launch.counts.shared_accesses + launch.counts.bank_conflicts


@pytest.mark.parametrize("arch", ["sm_90a", "gfx1100"])
@pytest.mark.parametrize("columns", [33, 64, 100])
def test_short_rows_are_in_registers_of_a_warp_each(columns: int, arch: str) -> None:
    inputs = [r(2_000, columns)]
    (found,), (launch,) = simulate(in_torch.softmax, inputs, arch)
    torch.testing.assert_close(torch.from_numpy(found), in_torch.softmax(*inputs))
    assert launch.findings == ()
    assert launch.counts.shared_loaded == launch.counts.barriers == 0
    assert launch.counts.global_loaded == inputs[0].nbytes


@pytest.mark.parametrize("arch", ["sm_90a", "gfx1100"])
def test_columns_are_read_by_neighbouring_threads(arch: str) -> None:
    """Also where no block has room for a column of what comes between two reductions."""
    inputs = [r(128, 8_000)]
    (found,), (launch,) = simulate(lambda x: torch.softmax(x, 0), inputs, arch)
    assert launch.findings == ()
    torch.testing.assert_close(torch.from_numpy(found), torch.softmax(inputs[0], 0))
    assert launch.counts.sectors <= 1.01 * launch.counts.ideal_sectors


@pytest.mark.parametrize("arch", ["sm_90a", "gfx1100"])
@pytest.mark.parametrize("function", [lambda x: x.var(0), lambda x: x.argmax(0)])
def test_few_columns_are_read_by_parts_of_warps(
    function: Callable[[torch.Tensor], torch.Tensor], arch: str
) -> None:
    """What a sector has of a row are neighbouring lanes, so that many blocks have work."""
    inputs = [r(1_111, 200)]
    (found,), (launch,) = simulate(function, inputs, arch)
    assert launch.findings == ()
    torch.testing.assert_close(torch.from_numpy(found), function(inputs[0]))
    assert launch.counts.sectors <= 1.01 * launch.counts.ideal_sectors


@pytest.mark.parametrize("arch", ["sm_90a", "gfx1100"])
def test_rows_that_no_block_has_room_for_are_one_kernel(arch: str) -> None:
    """Exponentials are computed again for the quotients, from what is read."""
    module = captured(in_torch.softmax, [torch.zeros(1024, 50_257).half()]).module
    text = module.operation.get_asm(enable_debug_info=True)
    artifact = compile_text(text, CompileOptions(target=TARGETS[arch], arch=arch))
    (kernel,) = artifact.manifest["kernels"]
    assert kernel["resources"]["stack_bytes"] == 0


@pytest.mark.parametrize(
    ("name", "size"),
    [("softmax", [300, 4096]), ("blur", [1, 260, 516]), ("element-wise", [300, 500])],
)
def test_what_is_read_twice_is_read_once(name: str, size: list[int]) -> None:
    function, make = PROGRAMS[name]
    inputs = [torch.rand(size) for _ in make()]
    outputs, launches = simulate(function, inputs, "sm_90a")
    (launch,) = launches
    floor = sum(a.nbytes for a in outputs) + sum(x.numel() * 4 for x in inputs)
    moved = launch.counts.global_loaded + launch.counts.global_stored
    # A tile of the blur reads two rows and columns of its neighbours.
    assert moved <= floor * (1.25 if name == "blur" else 1.0)
    # Warps go on in the tile's next rows, which are some rows below where threads have several.
    assert launch.counts.bank_conflicts <= (
        0.15 * launch.counts.shared_accesses if name == "blur" else 0
    )


# --- planted in what LLVM made -----------------------------------------------------------------

_SHARED_STORE = re.compile(r"(?m)^  store float (%\S+), ptr addrspace\(3\).*\n")
_SHARED_LOAD = re.compile(r"(?m)^  (%\S+) = load float, ptr addrspace\(3\).*\n")
_BARRIER = re.compile(r"(?m)^  tail call void @llvm\.\w+\.(?:s\.)?barrier.*\n")


def dropped_load(text: str) -> str:
    """A load after the barrier becomes what the thread itself stored before it."""
    barrier = _BARRIER.search(text)
    assert barrier is not None
    stored = list(_SHARED_STORE.finditer(text, 0, barrier.start()))[-1][1]
    load = list(_SHARED_LOAD.finditer(text, barrier.end()))[1]
    rest = re.sub(rf"{re.escape(load[1])}\b", stored, text[load.end() :])
    return text[: load.start()] + rest


def late_store(text: str) -> str:
    """The barrier comes before the store that it follows."""
    barrier = _BARRIER.search(text)
    assert barrier is not None
    store = list(_SHARED_STORE.finditer(text, 0, barrier.start()))[-1]
    before, between = text[: store.start()], text[store.end() : barrier.start()]
    return before + barrier[0] + store[0] + between + text[barrier.end() :]


@pytest.mark.parametrize("arch", ["sm_90a", "gfx1100"])
def test_a_load_that_is_dropped_after_a_barrier_is_found(arch: str) -> None:
    """As LLVM may do it where a barrier is said to touch no memory: nothing races, it is wrong."""
    # Columns for whole warps: every thread stores.
    inputs = [r(100, 2_200)]
    (right,), _ = simulate(in_torch.column_means, inputs, arch)
    expected = in_torch.column_means(*inputs)
    torch.testing.assert_close(torch.from_numpy(right), expected, rtol=2e-4, atol=1e-4)
    (wrong,), _ = simulate(in_torch.column_means, inputs, arch, optimize=dropped_load)
    assert not torch.allclose(torch.from_numpy(wrong), expected, rtol=2e-4, atol=1e-4)


@pytest.mark.parametrize("arch", ["sm_90a", "gfx1100"])
def test_a_store_that_moved_behind_a_barrier_is_found_and_named(arch: str) -> None:
    _, (launch,) = simulate(in_torch.column_means, [r(100, 77)], arch, optimize=late_store)
    races = [finding for finding in launch.findings if finding.kind == "race"]
    assert races
    assert "llvm.load" in races[0].op
    assert races[0].location
    assert "llvm.store" in races[0].message


def test_a_barrier_that_is_missing_in_ptx_is_found_and_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = emit.ptx_of
    monkeypatch.setattr(emit, "ptx_of", lambda *given: made(*given).replace("bar.sync \t0;", ""))
    _, (launch,) = simulate(in_torch.column_means, [r(100, 77)], "sm_90a", ptx=True)
    races = [finding for finding in launch.findings if finding.kind == "race"]
    assert races
    assert races[0].location
    assert "llvm.store" in races[0].message
