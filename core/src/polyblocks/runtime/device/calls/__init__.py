"""Calls of device programs: of arrays on a device, on the host, and of XLA's."""
