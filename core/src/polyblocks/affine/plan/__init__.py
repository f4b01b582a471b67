"""Schedules: plans of nests as data, with the same keys for cores and for blocks of threads."""
