"""Passes that tile contractions and split their sums."""
