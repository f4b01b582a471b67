"""The model that examples/c/main.c calls: an image in, a score for each of ten classes out."""

import torch

torch.manual_seed(0)

classifier = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 3, padding=1),
    torch.nn.BatchNorm2d(16),
    torch.nn.ReLU(),
    torch.nn.MaxPool2d(2),
    torch.nn.Conv2d(16, 32, 3, padding=1),
    torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(1),
    torch.nn.Flatten(),
    torch.nn.Linear(32, 10),
).eval()

classifier.example_inputs = [torch.empty(1, 3, 32, 32, device="meta")]
