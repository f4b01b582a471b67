"""Small arguments of the benchmark's pipelines."""

from bench.gpu.pipelines import SMALL

__all__ = ["SMALL"]
