"""Whole models on GPUs: see :mod:`bench.gpu_models.__main__`."""
