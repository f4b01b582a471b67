"""Calls of compiled programs: by XLA, or with arrays."""
