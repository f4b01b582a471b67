"""Algorithms that several frontends need, as code on tensors and in loops."""
