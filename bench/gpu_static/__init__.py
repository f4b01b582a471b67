"""How fast generated kernels can be, read from their machine code: no GPU is needed."""
