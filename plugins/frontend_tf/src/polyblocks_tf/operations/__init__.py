"""Families of operations that TensorFlow's bridge does not translate, in operations that it does."""
