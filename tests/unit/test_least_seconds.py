"""Seconds by which kernels are left out: never more than what is predicted of them."""

from __future__ import annotations

from math import isfinite
from typing import Any

import pytest
import torch
from tests.support.any_unit import predict_by
from tests.support.captured import captured

from polyblocks.codegen.gpu.mapping.contraction_cost import least_contraction, predict_contraction
from polyblocks.codegen.gpu.matrix.cost import least_matrix, predict_matrix
from polyblocks.options import CompileOptions
from polyblocks.passes.standard import standard_pipeline
from polyblocks.pipeline import PassContext
from polyblocks.registry.honoured_options import describe_target

MODELS = {
    "matrix": (predict_matrix, least_matrix),
    "contraction": (predict_contraction, least_contraction),
}


@pytest.mark.parametrize("sizes", [(1000, 300, 700), (17, 2048, 96)])
@pytest.mark.parametrize(("target", "arch"), [("nvgpu", "sm_80"), ("amdgpu", "gfx1100")])
@pytest.mark.parametrize("kind", MODELS)
def test_no_kernel_is_quicker(
    kind: str, target: str, arch: str, sizes: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    predict, least = MODELS[kind]
    seen = []

    def checked(kernel: Any, description: Any, chip: Any) -> Any:
        found = predict(kernel, description, chip)
        if isfinite(found.seconds):
            seen.append((least(description, chip)(kernel), found.seconds))
        return found

    predict_by(monkeypatch, checked, kind)
    m, n, k = sizes
    options = CompileOptions(target=target, arch=arch)
    description = describe_target(options)
    inputs = [torch.zeros(m, k).half(), torch.zeros(k, n).half()]
    module = captured(torch.matmul, inputs).module
    standard_pipeline(description, options).run(module, PassContext.create(description, options))
    assert len(seen) > 50
    assert all(0 < bound <= seconds * (1 + 1e-9) for bound, seconds in seen)
