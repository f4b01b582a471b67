"""Comparing results, under the import path of the published documentation."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["validate_outputs"]

#: dtype of a result -> (relative, absolute) tolerance. About a hundred rounding errors for the
#: floating types: a sum may be taken in another order than the framework's. Integers are exact.
TOLERANCES: dict[str, tuple[float, float]] = {
    "float64": (1e-10, 1e-12),
    "complex128": (1e-10, 1e-12),
    "float32": (1e-4, 1e-5),
    "complex64": (1e-4, 1e-5),
    "float16": (1e-2, 1e-3),
    "bfloat16": (5e-2, 1e-2),
}


def validate_outputs(
    outputs: Any, references: Any, rtol: float | None = None, atol: float | None = None
) -> bool:
    """Compare results with references and print where and by how much they differ.

    Both are nested structures (tuples, lists, dictionaries, dataclasses) of arrays of any
    framework, numbers or None, of one shape. NaN equals NaN; infinities agree in sign. An element
    agrees when ``|output - reference| <= atol + rtol * |reference|``.

    Args:
        outputs: what the compiled function returned.
        references: what it should have returned.
        rtol: relative tolerance; default by dtype, the less precise one of the two.
        atol: absolute tolerance, likewise.

    Returns:
        Whether all agree.

    Example::

        >>> validate_outputs([np.float32([1, 2])], [np.float32([1, 3])])
        outputs[0]: 1 of 2 elements differ; largest at (1,): 2.0, expected 3.0, off by 1 ...
        False
    """
    differences: list[str] = []
    compared = _compare("outputs", outputs, references, rtol, atol, differences)
    for difference in differences:
        print(difference)
    if not differences:
        print(f"outputs agree with the references: {compared[0]} arrays, off by {compared[1]:.3g}")
    return not differences


def _compare(
    path: str,
    output: Any,
    reference: Any,
    rtol: float | None,
    atol: float | None,
    differences: list[str],
) -> tuple[int, float]:
    """Append what differs; returns how many arrays were compared and the largest difference."""
    pairs = _children(output), _children(reference)
    if pairs[0] is None and pairs[1] is None:
        return 1, _compare_leaf(path, output, reference, rtol, atol, differences)
    if pairs[0] is None or pairs[1] is None or list(pairs[0]) != list(pairs[1]):
        differences.append(f"{path}: is {_outline(output)}, expected {_outline(reference)}")
        return 0, 0.0
    count, worst = 0, 0.0
    for key, child in pairs[0].items():
        below = _compare(f"{path}{key}", child, pairs[1][key], rtol, atol, differences)
        count, worst = count + below[0], max(worst, below[1])
    return count, worst


def _children(value: Any) -> dict[str, Any] | None:
    """The parts of a structure by their way of access; None for a leaf."""
    if isinstance(value, Mapping):
        return {f"[{key!r}]": child for key, child in value.items()}
    if isinstance(value, (tuple, list)):
        return {f"[{index}]": child for index, child in enumerate(value)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f".{f.name}": getattr(value, f.name) for f in dataclasses.fields(value)}
    return None


def _compare_leaf(
    path: str,
    output: Any,
    reference: Any,
    rtol: float | None,
    atol: float | None,
    differences: list[str],
) -> float:
    if output is None or reference is None:
        if output is not reference:
            differences.append(f"{path}: is {_outline(output)}, expected {_outline(reference)}")
        return 0.0
    got, got_dtype = _to_numpy(output)
    want, want_dtype = _to_numpy(reference)
    if got.shape != want.shape:
        differences.append(f"{path}: has shape {got.shape}, expected {want.shape}")
        return 0.0
    if _family(got) != _family(want):
        differences.append(f"{path}: has dtype {got_dtype}, expected {want_dtype}")
        return 0.0
    tolerances = [TOLERANCES.get(name, (0.0, 0.0)) for name in (got_dtype, want_dtype)]
    relative = max(t[0] for t in tolerances) if rtol is None else rtol
    absolute = max(t[1] for t in tolerances) if atol is None else atol
    return _compare_arrays(path, got, want, relative, absolute, differences)


def _compare_arrays(
    path: str,
    got: np.ndarray[Any, Any],
    want: np.ndarray[Any, Any],
    rtol: float,
    atol: float,
    differences: list[str],
) -> float:
    if got.dtype.kind in "fc":
        wide = np.complex128 if "c" in got.dtype.kind + want.dtype.kind else np.float64
        got, want = got.astype(wide), want.astype(wide)
        with np.errstate(invalid="ignore", over="ignore"):
            same = (got == want) | (np.isnan(got) & np.isnan(want))
            off = np.where(same, 0.0, np.abs(got - want))
            bad = ~same & ~((off <= atol + rtol * np.abs(want)) & np.isfinite(want))
        # Where one of the two is not finite no number says how far they are apart.
        off = np.where(np.isnan(off), np.inf, off)
    else:
        bad = np.asarray(got != want)
        off = np.zeros(bad.shape)
        # Python's integers neither wrap nor round.
        off[bad] = np.abs(got[bad].astype(object) - want[bad].astype(object)).astype(float)
    if not bad.any():
        return float(off.max(initial=0.0))
    where = np.unravel_index(int(np.argmax(np.where(bad, off, -1.0))), bad.shape)
    at = tuple(int(i) for i in where)
    scale = abs(want[where])
    relative = f" ({float(off[where]) / float(scale):.3g} relative)" if scale else ""
    differences.append(
        f"{path}: {int(bad.sum())} of {bad.size} elements differ; largest at {at}: "
        f"{got[where]}, expected {want[where]}, off by {float(off[where]):.6g}{relative}; "
        f"tolerances rtol={rtol:g} atol={atol:g}"
    )
    return float(off[where])


def _to_numpy(value: Any) -> tuple[np.ndarray[Any, Any], str]:
    """Any framework's array as numpy's, and the name of the dtype that it had."""
    name = str(getattr(value, "dtype", np.asarray(value).dtype if _is_number(value) else ""))
    name = name.removeprefix("<dtype: '").removesuffix("'>").rpartition(".")[2]
    for step in ("detach", "cpu", "resolve_conj", "resolve_neg"):
        if hasattr(value, step):
            value = getattr(value, step)()
    if name == "bfloat16" and hasattr(value, "float"):
        value = value.float()
    array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    if name == "bfloat16":
        array = array.astype(np.float32)
    return array, name or array.dtype.name


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex))


def _family(array: np.ndarray[Any, Any]) -> str:
    return {"i": "integer", "u": "integer", "f": "real", "b": "bool", "c": "complex"}.get(
        array.dtype.kind, array.dtype.kind
    )


def _outline(value: Any) -> str:
    if value is None or _is_number(value):
        return repr(value)
    children = _children(value)
    if children is None:
        return f"an array of shape {tuple(getattr(value, 'shape', ()))}"
    return f"a {type(value).__name__} of {', '.join(children) or 'nothing'}"
