"""Plans of kernels: how the nests of a program run on a grid of blocks of threads."""
