"""Cases that are known to fail, and why; they count as failures all the same."""

from __future__ import annotations

KNOWN: dict[str, str] = {
    "torch/constants and Python's numbers/conv_transpose of inf": (
        "a transposed convolution multiplies the zeros that it inserts"
    ),
}
