"""Element types by the dtypes of matrix units, and those that vectors are made of."""

from __future__ import annotations

from polyblocks.affine.element import ARRAY_DTYPES, DTYPES
from polyblocks.program import DTYPES as ARRAYS
from polyblocks.target import UNIT_BITS


def test_elements_take_as_many_bytes_as_in_arrays() -> None:
    assert ARRAYS.keys() - ARRAY_DTYPES.keys() == {"complex64", "complex128"}
    for name, dtype in ARRAY_DTYPES.items():
        printed, nbytes = ARRAYS[{"tfloat32": "float32"}.get(name, name)]
        assert (printed, nbytes) == (dtype.name, dtype.nbytes)


def test_units_take_numbers_of_as_many_bits_as_arrays_have() -> None:
    for name in UNIT_BITS.keys() & ARRAY_DTYPES.keys():
        assert UNIT_BITS[name] == ARRAY_DTYPES[name].bits


def test_every_element_of_an_array_has_the_name_of_a_dtype_with_a_sign() -> None:
    named = {name: dtype.array for name, dtype in DTYPES.items()}
    assert named == {
        "i1": "bool",
        "i8": "int8",
        "i16": "int16",
        "i32": "int32",
        "i64": "int64",
        "f16": "float16",
        "bf16": "bfloat16",
        "f32": "float32",
        "f64": "float64",
        "index": "",
    }


def test_vectors_are_made_of_numbers_that_fill_their_bytes() -> None:
    vectors = {name for name, dtype in DTYPES.items() if dtype.in_vectors}
    assert vectors == {"f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64"}
