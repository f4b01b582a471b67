"""Architectures of ``make models`` that PyTorch runs in part, and why; at most five."""

#: Name of the architecture: why it is not compiled whole.
KNOWN: dict[str, str] = {}
