"""Tilings of contractions: the space of them, their predicted times, and schedules as data."""
