"""A function with structures of tensors -> a graph of TensorFlow, and gradients of it."""
