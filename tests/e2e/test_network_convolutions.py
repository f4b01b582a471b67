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
#: (layout, layer) -> case; layers that a network has several times once.
LAYERS = {(g, c.program): c for g in ("resnet-50", "resnet-50-nchw") for c in GROUPS[g]}
#: A large window, a stride with padding, and a short row of pixels.
SAMPLED = [
    ("resnet-50", "float16: 3x3 /2 128->128, 56x56"),
    ("resnet-50-nchw", "float16: 7x7 /2 3->64, 224x224"),
    ("resnet-50-nchw", "float16: 3x3 /1 512->512, 7x7"),
]


def test_every_layer_is_there() -> None:
    assert len(LAYERS) == 2 * len({case.program for case in GROUPS["resnet-50"]}) == 46
    assert set(SAMPLED) <= LAYERS.keys()


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
@pytest.mark.parametrize("layer", sweep(LAYERS, *SAMPLED), ids=" ".join)
def test_a_layer_is_one_kernel(layer: tuple[str, str], arch: str) -> None:
    (kernel,) = kernels_of(LAYERS[layer], arch)
    assert kernel["resources"]["spill_bytes"] == 0
