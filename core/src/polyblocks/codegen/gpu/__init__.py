"""From affine nests to GPU kernels: grids of blocks of threads. Target-neutral."""
