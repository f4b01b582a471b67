"""Stores at run-time indices: what a nest of them is, and how threads share its updates."""
