"""Every convolution of ResNet-50 is one kernel of matrix units, whatever chip and layout.

Compiled, not run: see ``bench/gpu_static`` for how fast they are.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from bench.gpu_static.cases import GROUPS, Case, arguments
from tests.support.sweeps import sweep
from torch.nn.functional import conv2d

import polyblocks

pytestmark = pytest.mark.cpu

CHIPS = {"sm_80": "nvgpu", "gfx1100": "amdgpu", "gfx1200": "amdgpu"}
LAYOUTS = ("resnet-50-nchw", "resnet-50")
#: (layout, layer) -> case; layers that a network has several times once.
CASES = {(layout, case.program): case for layout in LAYOUTS for case in GROUPS[layout]}
LAYERS = list(dict.fromkeys(layer for _, layer in CASES))
#: A large window, a stride with padding, and a short row of pixels.
SAMPLED = [
    "float16: 7x7 /2 3->64, 224x224",
    "float16: 3x3 /2 128->128, 56x56",
    "float16: 3x3 /1 512->512, 7x7",
]


def test_every_layer_is_there() -> None:
    assert len(CASES) == 2 * len(LAYERS) == 46


def kernels_of(case: Case, arch: str) -> list[dict[str, Any]]:
    """With a bias and an activation behind it."""
    (x, w), (_, _, window, _) = arguments(case, torch.empty), case.shapes[1]
    stride = case.shapes[0][2] // int((case.problem.columns // case.shapes[0][0]) ** 0.5)

    def function(x: Any, w: Any, b: Any) -> Any:
        return torch.relu(conv2d(x, w, b, stride=stride, padding=window // 2))

    given = [x, w, torch.empty(case.shapes[1][0], dtype=x.dtype)]
    options = {"target": CHIPS[arch], "arch": arch}
    artifact = polyblocks.aot(function, given, options, frontend="torch")
    launches = artifact.manifest["launches"]
    rows = {row["name"]: row for row in artifact.manifest["kernels"]}
    return [rows[launch["kernel"]] for launch in launches]


@pytest.mark.each_choice
@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("layer", sweep(LAYERS, *SAMPLED))
def test_a_layer_is_one_kernel(layer: str, layout: str, arch: str) -> None:
    (kernel,) = kernels_of(CASES[layout, layer], arch)
    assert kernel["resources"]["spill_bytes"] == 0
