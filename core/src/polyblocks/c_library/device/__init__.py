"""Libraries for C of programs for GPUs: the vendor's driver is opened when they are called."""
