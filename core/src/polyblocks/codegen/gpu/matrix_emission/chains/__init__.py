"""Bodies of kernels that compute chains of products by a matrix unit."""
