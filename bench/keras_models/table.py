"""Which networks, and what is done with them. No framework here."""

from __future__ import annotations

#: Pixels of an image's side, and the fewest that Xception and Inception take are 71 and 75.
SIZE = 96
CLASSES = 1000

#: Attributes of ``keras.applications``, each another kind of network.
MODELS = {
    "MobileNet": "depthwise convolutions",
    "MobileNetV3Small": "squeeze and excitation, hard swish",
    "EfficientNetB0": "squeeze and excitation, swish",
    "NASNetMobile": "cells of many small separable convolutions",
    "DenseNet121": "concatenations",
    "ResNet50": "bottlenecks",
    "Xception": "separable convolutions of many channels",
    "InceptionV3": "parallel branches",
    "ConvNeXtTiny": "depthwise 7 x 7, layer normalization, GELU",
    "VGG16": "large convolutions and matrix products",
}

FORWARD, TRAINING = "forward pass", "training step"

#: What is done with each -> images at once.
MODES = {FORWARD: 1, TRAINING: 8}

OURS, RIVALS = "polyblocks", ("tf.function", "XLA")
PEERS = (OURS, *RIVALS)

#: Error of a result in float32 that is right whatever TensorFlow's is, relative to the largest
#: magnitude of the result in float64; of a training step, to the length of all updates together.
TOLERANCES = {FORWARD: 1e-3, TRAINING: 1e-2}
