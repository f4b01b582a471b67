"""Benchmarks of the GPU targets: built where the compiler is, run where the GPU is."""
