"""Elements of tensors at places that tensors say: ``x[k]`` and ``x[k] = y``."""
