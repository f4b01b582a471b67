"""The group ``cliffs``: single operations at the sizes people use, to find those that fall off.

Hundreds of operations of PyTorch, JAX and TensorFlow, each at two sizes, forward and backward;
ours, the framework itself and its compiler take turns in one process of the framework.
"""
