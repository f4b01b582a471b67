"""Nothing of a vendor's is installed: all but launching works, and that says what is missing."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest

import polyblocks
from polyblocks.errors import TargetError
from polyblocks_amdgpu import driver as hip
from polyblocks_nvgpu import driver as cuda
from polyblocks_nvgpu import ptxas

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.cpu

MISSING = {
    "nvgpu": "target 'nvgpu' launches kernels through cuda-bindings, which is not installed; "
    "pip install polyblocks-nvgpu[cuda]",
    "amdgpu": "target 'amdgpu' launches kernels through hip-python, which is not installed; "
    "pip install polyblocks-amdgpu[hip]",
}
ARCHS = {"nvgpu": "sm_90a", "amdgpu": "gfx1100"}


@pytest.fixture(params=sorted(ARCHS))
def options(request, monkeypatch):
    """Options for a target whose vendor's packages, driver and assembler are not there."""
    for package in ("cuda", "cuda.bindings", "hip", "nvidia"):
        monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr(ptxas, "find", lambda: None)
    for vendor in (cuda, hip):
        monkeypatch.setattr(vendor, "_driver", None)
    return {"target": request.param, "arch": ARCHS[request.param], "strict_target": True}


def scaled(x):
    return torch.softmax(x * 2, -1)


def test_compiling_works_and_launching_says_what_is_missing(options):
    x = torch.rand(5, 40)
    compiled = polyblocks.compile(scaled, frontend="torch", compile_options=options)
    with pytest.raises(TargetError, match=f"^{re.escape(MISSING[options['target']])}$"):
        compiled(x)
    (variant,) = compiled.polyblocks_report().variants
    assert variant.outcome == "compiled"


def test_the_simulator_works(options):
    x = torch.rand(5, 40)
    simulated = options | {"simulate": True}
    compiled = polyblocks.compile(scaled, frontend="torch", compile_options=simulated)
    torch.testing.assert_close(compiled(x), scaled(x))


def test_ahead_of_time_works_and_loading_touches_nothing(options, tmp_path):
    made = polyblocks.aot(scaled, [torch.rand(5, 40)], options, frontend="torch")
    form = {"nvgpu": "ptx", "amdgpu": "hsaco"}[options["target"]]
    assert list(made.blobs) == [f"kernels.{options['arch']}.{form}"]
    made.write(tmp_path / "f.zip")
    loaded = polyblocks.load(tmp_path / "f.zip")
    with pytest.raises(TargetError, match=f"^{re.escape(MISSING[options['target']])}$"):
        loaded(np.ones((5, 40), np.float32))
