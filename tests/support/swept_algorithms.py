"""The algorithms of the benchmark, for tests that are run with each."""

from __future__ import annotations

from bench.algorithms.table import ALGORITHMS
from sweeps import sweep

#: Of each kind one is always taken: filters, stencils, norms, tables, products, element-wise ones.
ALWAYS = (
    "blur_x_blur_y upsample wave softmax fir_bank k_means histogram_equalization max_pool "
    "conv_bias_relu attention black_scholes"
).split()

SWEPT_ALGORITHMS = sweep(ALGORITHMS, *(a for a in ALGORITHMS if a.name in ALWAYS))

#: For what is compiled in several frameworks: of each kind one.
FEWEST = "blur_x_blur_y softmax fir_bank mlp".split()

OF_EACH_KIND = sweep(ALGORITHMS, *(a for a in ALGORITHMS if a.name in FEWEST))
