"""The error that names what breaks the contract."""

from __future__ import annotations

from typing import Any

from polyblocks.s3.contract import S3_VERSION


def violation(op: Any, rule: str) -> ValueError:
    """An error with the operation, its location, and the rule that it breaks."""
    return ValueError(
        f"'{op.name}' at {_place(op)}: {rule} (version {S3_VERSION} of the contract of S3, "
        "docs/s3.md)"
    )


def _place(op: Any) -> str:
    text = str(op.location)
    return "an unknown location" if text == "loc(unknown)" else text
