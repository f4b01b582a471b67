"""Predicted times of single operations on GPUs beside the least that any kernel could take."""
