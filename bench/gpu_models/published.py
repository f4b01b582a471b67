"""What others have measured of these models on chips of the table. Data only.

Each number was read where its source says, and none was converted. Peers that were measured in
float32, or without graphs, say so: what they take at batch 1 is mostly the host's time.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.gpu.published import Source


@dataclass(frozen=True)
class Time:
    """The time of a call.

    Attributes:
        model: by its name in :mod:`bench.gpu_models.zoo`.
        batch: images or sequences.
        arch: of the chip.
        system: that ran it.
        milliseconds: measured, the average where there are several.
        conditions: chip, dtype, versions.
        source: of the number.
    """

    model: str
    batch: int
    arch: str
    system: str
    milliseconds: float
    conditions: str
    source: Source


_COMPILED = Source(
    "Transformers: Optimize inference using torch.compile(), dataset docs-benchmarks",
    "Hugging Face",
    0,
    "https://huggingface.co/datasets/stevhliu/compile-benchmarks",
)
_MODES = Source(
    "Transformers: Optimize inference using torch.compile()",
    "Hugging Face",
    0,
    "https://github.com/huggingface/transformers/blob/"
    "0559c47bd90245da451bc9edf9bce4e757392829/docs/source/en/perf_torch_compile.md",
)
_BERT = Source(
    "AITemplate: examples/03_bert/README.md",
    "Meta",
    0,
    "https://github.com/facebookincubator/AITemplate/tree/main/examples/03_bert",
)
_RESNET = Source(
    "AITemplate: examples/01_resnet-50/README.md",
    "Meta",
    0,
    "https://github.com/facebookincubator/AITemplate/tree/main/examples/01_resnet-50",
)
_VIT = Source(
    "AITemplate: examples/04_vit/README.md",
    "Meta",
    0,
    "https://github.com/facebookincubator/AITemplate/tree/main/examples/04_vit",
)
_DEMO_BERT = Source(
    "TensorRT: demo/BERT/README.md, BERT Base",
    "NVIDIA",
    0,
    "https://github.com/NVIDIA/TensorRT/tree/main/demo/BERT",
)

_INDUCTOR_2_0 = "A100, PyTorch 2.0.1, default mode, dtype as loaded (float32)"
_EAGER_2_0 = "A100, PyTorch 2.0.1, dtype as loaded (float32)"
_REDUCED_2_1 = "A100, PyTorch 2.1.0dev, mode reduce-overhead, dtype as loaded (float32)"
_EAGER_2_1 = "A100, PyTorch 2.1.0dev, dtype as loaded (float32)"
_EAGER_1_12 = "A100 40 GB, CUDA 11.6.2, PyTorch 1.12"
_TEMPLATES = "A100 40 GB, CUDA 11.6.2, float16"
_ENGINE = "A100 40 GB, float16, average"

TIMES = (
    Time("ResNet-50", 1, "sm_80", "Inductor", 4.124, _INDUCTOR_2_0, _COMPILED),
    Time("ResNet-50", 1, "sm_80", "eager", 6.531, _EAGER_2_0, _COMPILED),
    Time("ResNet-50", 1, "sm_80", "Inductor", 3.801, _REDUCED_2_1, _MODES),
    Time("ResNet-50", 1, "sm_80", "eager", 7.435, _EAGER_2_1, _MODES),
    Time("ResNet-50", 1, "sm_80", "eager", 7.68, _EAGER_1_12, _RESNET),
    Time("ResNet-50", 1, "sm_80", "AITemplate", 0.58, _TEMPLATES, _RESNET),
    Time("ResNet-50", 4, "sm_80", "Inductor", 4.268, _INDUCTOR_2_0, _MODES),
    Time("ResNet-50", 4, "sm_80", "Inductor", 2.187, _REDUCED_2_1, _MODES),
    Time("ResNet-50", 4, "sm_80", "eager", 6.657, _EAGER_2_0, _MODES),
    Time("ResNet-50", 8, "sm_80", "eager", 7.02, _EAGER_1_12, _RESNET),
    Time("ResNet-50", 8, "sm_80", "AITemplate", 0.88, _TEMPLATES, _RESNET),
    Time("ViT-B/16", 1, "sm_80", "Inductor", 7.584, _INDUCTOR_2_0, _COMPILED),
    Time("ViT-B/16", 1, "sm_80", "eager", 9.325, _EAGER_2_0, _COMPILED),
    Time("ViT-B/16", 1, "sm_80", "eager", 4.95, _EAGER_1_12, _VIT),
    Time("ViT-B/16", 1, "sm_80", "AITemplate", 1.02, _TEMPLATES, _VIT),
    Time("ViT-B/16", 4, "sm_80", "Inductor", 14.499, _INDUCTOR_2_0, _MODES),
    Time("ViT-B/16", 4, "sm_80", "eager", 14.832, _EAGER_2_0, _MODES),
    Time("ViT-B/16", 8, "sm_80", "eager", 5.56, _EAGER_1_12, _VIT),
    Time("ViT-B/16", 8, "sm_80", "AITemplate", 2.20, _TEMPLATES, _VIT),
    Time("BERT-base 128", 1, "sm_80", "eager", 8.02, _EAGER_1_12, _BERT),
    Time("BERT-base 128", 1, "sm_80", "AITemplate", 0.78, _TEMPLATES, _BERT),
    Time("BERT-base 128", 1, "sm_80", "TensorRT", 0.67, _ENGINE, _DEMO_BERT),
    Time("BERT-base 128", 8, "sm_80", "eager", 8.12, _EAGER_1_12, _BERT),
    Time("BERT-base 128", 8, "sm_80", "AITemplate", 1.43, _TEMPLATES, _BERT),
    Time("BERT-base 128", 8, "sm_80", "TensorRT", 1.38, _ENGINE, _DEMO_BERT),
)


def times_of(model: str, batch: int, arch: str) -> list[Time]:
    """What others have measured of a row of the table."""
    return [time for time in TIMES if (time.model, time.batch, time.arch) == (model, batch, arch)]
