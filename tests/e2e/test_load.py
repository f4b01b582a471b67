"""A compiled file runs on NumPy arrays, with no compiler and no framework in the process."""

from __future__ import annotations

import textwrap
from pathlib import Path

import numpy as np
import pytest

import polyblocks
from polyblocks.api import compile_file
from polyblocks.artifact import Artifact
from polyblocks.errors import ArtifactError, InputError
from polyblocks.options import CompileOptions

pytestmark = pytest.mark.cpu

MODULE = """
func.func @main(%a: tensor<40x30xf32>, %b: tensor<40x30xf32>) -> tensor<40x30xf32> {
  %e = tensor.empty() : tensor<40x30xf32>
  %r = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>,
                       affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<40x30xf32>, tensor<40x30xf32>) outs(%e : tensor<40x30xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %m = arith.mulf %x, %y : f32
      linalg.yield %m : f32
  } -> tensor<40x30xf32>
  return %r : tensor<40x30xf32>
}
"""


@pytest.fixture(scope="module")
def artifact(tmp_path_factory) -> Path:
    pytest.importorskip("polyblocks_cpu")
    folder = tmp_path_factory.mktemp("load")
    source = folder / "product.mlir"
    source.write_text(MODULE)
    path = folder / "product.zip"
    compile_file(source, CompileOptions()).write(path)
    return path


def test_result(artifact):
    a, b = np.random.default_rng(1).random((2, 40, 30), np.float32)
    for product in (
        polyblocks.load(artifact),
        polyblocks.load(str(artifact), num_threads=2, num_iters=3),
        polyblocks.load(Artifact.read(artifact)),
    ):
        np.testing.assert_array_equal(product(a, b), a * b)


def test_wrong_argument(artifact):
    product = polyblocks.load(artifact)
    with pytest.raises(InputError, match=r"expected float32\[40, 30\], got float64\[40, 30\]"):
        product(np.ones((40, 30)), np.ones((40, 30)))


def test_no_program_in_it():
    with pytest.raises(ArtifactError, match="the artifact holds a plan, not a program"):
        polyblocks.load(Artifact.from_bytes(Artifact({"kind": "plan"}).to_bytes()))


def test_damaged_file(artifact, tmp_path):
    path = tmp_path / "damaged.zip"
    path.write_bytes(artifact.read_bytes()[:1000])
    with pytest.raises(ArtifactError, match=r"damaged.zip: the artifact is damaged"):
        polyblocks.load(path)


def test_a_process_that_loads_it_has_no_compiler(artifact, run_python):
    done = run_python(
        textwrap.dedent(
            """
            import sys
            import numpy as np
            import polyblocks
            product = polyblocks.load(sys.argv[1])
            print(product(np.full((40, 30), 2, np.float32), np.full((40, 30), 3, np.float32)).sum())
            print([m for m in ("torch", "torch_mlir") if m in sys.modules])
            """
        ),
        str(artifact),
    )
    assert (done.stdout, done.stderr) == ("7200.0\n[]\n", "")


def test_masked_array_is_refused(artifact):
    product = polyblocks.load(artifact)
    masked = np.ma.masked_array(np.ones((40, 30), np.float32), False)
    with pytest.raises(InputError, match="programs know no masks"):
        product(np.ones((40, 30), np.float32), masked)


class Marked(np.ndarray):
    """An array of somebody's."""


class MarkedMasked(np.ma.MaskedArray):
    """A masked array of somebody's."""


def test_subclasses_are_arrays_of_numpy(artifact):
    product = polyblocks.load(artifact)
    a = np.random.default_rng(2).random((40, 30), np.float32)
    fixed = a.copy().view(Marked)
    fixed.flags.writeable = False
    for x in (a.view(Marked), np.asmatrix(a), np.rec.array(a), fixed):
        np.testing.assert_array_equal(product(x, a), a * a)
    with pytest.raises(InputError, match="the array's bytes are swapped"):
        product(a.astype(">f4").view(Marked), a)
    with pytest.raises(InputError, match="programs know no masks"):
        product(np.ma.masked_array(a, a > 0.5).view(MarkedMasked), a)
