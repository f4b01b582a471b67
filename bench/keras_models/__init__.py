"""The group ``keras``: networks of ``keras.applications`` under ours, ``tf.function`` and XLA.

Random weights, images of 96 x 96: a forward pass of one image, and a training step of eight, with
the gradients and the optimizer's updates inside of the compiled function. Each network has a
process of its own, in which its peers take turns.
"""
