"""Compiled programs as calls of TensorFlow's XLA."""
