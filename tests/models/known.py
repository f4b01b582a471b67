"""Architectures of ``make models`` that PyTorch runs in part, and why; at most five."""

#: Name of the architecture: why it is not compiled whole.
KNOWN = {
    "Mistral-3": "Dynamo does not follow `inspect.signature`, which it asks at each call",
    "Qwen2-VL": "numbers in a tensor, `image_grid_thw`, are the sizes of others",
    "Qwen2.5-VL": "as of Qwen2-VL",
}


def known(name: str) -> str | None:
    """Why an architecture, or its training step, is not compiled whole."""
    return KNOWN.get(name.removesuffix(", training step"))
