"""The convolutions of ResNet-50."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Layer:
    """A convolution of square images without a bias: channels, size of the window, and steps."""

    inputs: int
    outputs: int
    window: int
    stride: int
    image: int

    @property
    def result(self) -> int:
        """Rows of an image of the result; windows begin half a window outside."""
        return (self.image + self.window // 2 * 2 - self.window) // self.stride + 1


def layers() -> list[Layer]:
    """The 53 convolutions, in order (He et al., "Deep Residual Learning for Image Recognition",
    2016, with the strides of PyTorch's ``torchvision``: on the windows of 3 by 3)."""
    found = [Layer(3, 64, 7, 2, 224)]
    inputs, image = 64, 56
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            found.append(Layer(inputs, width, 1, 1, image))
            found.append(Layer(width, width, 3, stride, image))
            found.append(Layer(width, 4 * width, 1, 1, image // stride))
            if not block:
                found.append(Layer(inputs, 4 * width, 1, stride, image))
            inputs, image = 4 * width, image // stride
    return found
