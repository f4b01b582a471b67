"""Cases that are known to fail, and why; they count as failures all the same."""

from __future__ import annotations

KNOWN: dict[str, str] = {}
