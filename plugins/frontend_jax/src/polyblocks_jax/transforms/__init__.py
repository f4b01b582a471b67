"""The primitive that stands for a compiled function, and JAX's transformations of it."""
