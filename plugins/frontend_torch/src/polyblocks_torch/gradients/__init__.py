"""Gradients: of the function by its caller, inside of it, and of gradients."""
