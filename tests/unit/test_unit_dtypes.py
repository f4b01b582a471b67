"""Element types by the dtypes of matrix units, and those that vectors are made of."""

from __future__ import annotations

from polyblocks.affine.element import DTYPES, UNIT_DTYPES
from polyblocks.program import DTYPES as ARRAYS


def test_units_store_what_arrays_of_their_dtype_do() -> None:
    for name, dtype in UNIT_DTYPES.items():
        printed, nbytes = ARRAYS[{"tfloat32": "float32"}.get(name, name)]
        assert (printed, nbytes) == (dtype.name, dtype.nbytes)


def test_vectors_are_made_of_numbers_that_fill_their_bytes() -> None:
    vectors = {name for name, dtype in DTYPES.items() if dtype.in_vectors}
    assert vectors == {"f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64"}
