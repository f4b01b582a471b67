"""The architectures of ``make models``: small networks with random weights, and their inputs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import transformers
from convolutional import NETWORKS
from multimodal import MULTIMODAL
from scientific import DIFFERENTIATING, SCIENTIFIC

#: What most configurations of language models call their sizes.
SMALL = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 512,
    "max_position_embeddings": 64,
}
#: Of decoders with fewer heads of keys than of queries.
GROUPED = {**SMALL, "num_key_value_heads": 2, "head_dim": 16}
#: Numbers of special tokens that lie beyond a small vocabulary by default.
TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
EXPERTS = {**GROUPED, "moe_intermediate_size": 32, "num_experts": 4, "num_experts_per_tok": 2}

#: Language models that read or continue a text: what differs from the defaults.
LANGUAGE: dict[str, dict[str, Any]] = {
    "Albert": {**SMALL, "embedding_size": 32},
    "Arcee": GROUPED,
    "Bert": SMALL,
    "BigBird": SMALL,
    "BioGpt": SMALL,
    "Bloom": {**SMALL, "n_layer": 2},
    "Canine": SMALL,
    "Cohere": {**GROUPED, **TOKENS},
    "ConvBert": {**SMALL, "embedding_size": 32},
    "Deberta": {**SMALL, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
    "DebertaV2": {**SMALL, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
    "DeepseekV3": {
        **SMALL,
        "q_lora_rank": 24,
        "kv_lora_rank": 16,
        "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 16,
        "v_head_dim": 16,
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "n_group": 2,
        "topk_group": 1,
        "moe_intermediate_size": 32,
        "first_k_dense_replace": 1,
    },
    "DiffLlama": GROUPED,
    "DistilBert": {"dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128, "vocab_size": 512},
    "Electra": {**SMALL, "embedding_size": 32},
    "Esm": {**SMALL, "pad_token_id": 0, "mask_token_id": 3},
    "Falcon": SMALL,
    "FalconMamba": {**SMALL, "num_hidden_layers": 1},
    "FNet": SMALL,
    "Funnel": {
        "block_sizes": [1, 1],
        "d_model": 64,
        "n_head": 4,
        "d_head": 16,
        "d_inner": 128,
        "vocab_size": 512,
    },
    "GPT2": {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64, "vocab_size": 512},
    "GPTBigCode": {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64, "vocab_size": 512},
    "GPTJ": {
        "n_embd": 64,
        "n_layer": 2,
        "n_head": 4,
        "n_positions": 64,
        "rotary_dim": 8,
        "vocab_size": 512,
    },
    "GPTNeo": {
        "hidden_size": 64,
        "num_layers": 2,
        "num_heads": 4,
        "vocab_size": 512,
        "attention_types": [[["global", "local"], 1]],
        "window_size": 8,
        "max_position_embeddings": 64,
    },
    "GPTNeoX": SMALL,
    "Gemma": GROUPED,
    "Gemma2": {**GROUPED, "sliding_window": 8},
    "Gemma3Text": {**GROUPED, "sliding_window": 8},
    "Glm": {**GROUPED, **TOKENS},
    "GptOss": {**GROUPED, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 8},
    "Granite": GROUPED,
    "GraniteMoe": {**GROUPED, "num_local_experts": 4, "num_experts_per_tok": 2},
    "Helium": GROUPED,
    "LayoutLM": SMALL,
    "Llama": GROUPED,
    "MPNet": SMALL,
    "Mamba": {**SMALL, "num_hidden_layers": 1},
    "Mamba2": {
        "hidden_size": 64,
        "num_hidden_layers": 1,
        "num_heads": 8,
        "head_dim": 16,
        "expand": 2,
        "state_size": 16,
        "n_groups": 2,
        "chunk_size": 8,
        "vocab_size": 512,
    },
    "MegatronBert": SMALL,
    "MiniMax": {**GROUPED, "num_local_experts": 4, "num_experts_per_tok": 2, "block_size": 8},
    "Mistral": {**GROUPED, "sliding_window": 8},
    "Mixtral": {**GROUPED, "num_local_experts": 4, "num_experts_per_tok": 2},
    "MobileBert": {**SMALL, "intra_bottleneck_size": 32, "embedding_size": 32},
    "ModernBert": {**SMALL, **TOKENS, "cls_token_id": 1, "sep_token_id": 2, "local_attention": 8},
    "Nemotron": GROUPED,
    "NomicBert": SMALL,
    "OPT": {**SMALL, "ffn_dim": 128, "word_embed_proj_dim": 32},
    "Olmo2": GROUPED,
    "Persimmon": SMALL,
    "Phi": {**SMALL, "num_key_value_heads": 2},
    "Phi3": {**GROUPED, **TOKENS},
    "Qwen2": GROUPED,
    "Qwen2Moe": {**EXPERTS, "shared_expert_intermediate_size": 32},
    "Qwen3": GROUPED,
    "Qwen3Moe": EXPERTS,
    "RemBert": {**SMALL, "input_embedding_size": 32, "output_embedding_size": 32},
    "RoFormer": SMALL,
    "Roberta": SMALL,
    "Rwkv": {**SMALL, "context_length": 64},
    "SqueezeBert": {**SMALL, "embedding_size": 64},
    "StableLm": GROUPED,
    "Starcoder2": {**GROUPED, "sliding_window": 8},
    "XGLM": {
        "d_model": 64,
        "num_layers": 2,
        "attention_heads": 4,
        "ffn_dim": 128,
        "vocab_size": 512,
    },
    "XLNet": {"d_model": 64, "n_layer": 2, "n_head": 4, "d_inner": 128, "vocab_size": 512},
}

BART = {
    "d_model": 64,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 128,
    "decoder_ffn_dim": 128,
    "max_position_embeddings": 64,
    "vocab_size": 512,
    "decoder_start_token_id": 1,
    **TOKENS,
}
T5 = {
    "d_model": 64,
    "d_kv": 16,
    "d_ff": 128,
    "num_layers": 1,
    "num_heads": 4,
    "vocab_size": 512,
    "decoder_start_token_id": 0,
}
#: With an encoder and a decoder.
TRANSLATION: dict[str, dict[str, Any]] = {
    "Bart": BART,
    "Blenderbot": BART,
    "M2M100": BART,
    "MBart": BART,
    "Marian": BART,
    "Pegasus": BART,
    "T5": T5,
    "UMT5": T5,
}

#: Of images of 32 x 32.
VIT = {**SMALL, "image_size": 32, "patch_size": 8}
STAGES = {
    "embed_dim": 16,
    "depths": [1, 1],
    "num_heads": [2, 4],
    "window_size": 4,
    "image_size": 32,
    "patch_size": 2,
}
TWO_STAGES = {"hidden_sizes": [16, 32], "depths": [1, 1]}
FOUR_STAGES = {"hidden_sizes": [16, 16, 32, 32], "depths": [1, 1, 1, 1]}
FOUR_WITH_HEADS = {**FOUR_STAGES, "num_attention_heads": [1, 1, 2, 2]}
VISION: dict[str, dict[str, Any]] = {
    "Beit": VIT,
    "Bit": {**TWO_STAGES, "embedding_size": 16, "num_groups": 4},
    "ConvNext": {**TWO_STAGES, "num_stages": 2},
    "ConvNextV2": {**TWO_STAGES, "num_stages": 2},
    "DeiT": VIT,
    "Dinov2": VIT,
    "FocalNet": {
        **TWO_STAGES,
        "embed_dim": 16,
        "focal_levels": [2, 2],
        "focal_windows": [3, 3],
        "image_size": 32,
        "patch_size": 2,
    },
    "GLPN": FOUR_WITH_HEADS,
    "Hiera": {
        "embed_dim": 16,
        "image_size": [32, 32],
        "patch_stride": [4, 4],
        "patch_size": [7, 7],
        "patch_padding": [3, 3],
        "depths": [1, 1],
        "num_heads": [1, 2],
        "query_stride": [2, 2],
        "num_query_pool": 1,
        "masked_unit_size": [4, 4],
    },
    "Levit": {
        "image_size": 32,
        "hidden_sizes": [16, 32, 48],
        "num_attention_heads": [1, 2, 3],
        "depths": [1, 1, 1],
        "key_dim": [8, 8, 8],
        "down_ops": [["Subsample", 8, 2, 2, 2, 2], ["Subsample", 8, 4, 2, 2, 2]],
    },
    "MobileViT": {
        "hidden_sizes": [32, 48, 64],
        "neck_hidden_sizes": [8, 16, 24, 32, 40, 48, 160],
        "image_size": 32,
    },
    "PoolFormer": FOUR_STAGES,
    "Pvt": {**FOUR_WITH_HEADS, "image_size": 32},
    "RegNet": {**TWO_STAGES, "embedding_size": 16, "groups_width": 8},
    "ResNet": {**TWO_STAGES, "embedding_size": 16},
    "Segformer": FOUR_WITH_HEADS,
    "Swin": STAGES,
    "Swinv2": STAGES,
    "ViT": VIT,
    "Yolos": {**VIT, "image_size": [32, 32], "num_detection_tokens": 4},
}

SPEECH = {
    **SMALL,
    "conv_dim": [16, 16],
    "conv_kernel": [10, 3],
    "conv_stride": [5, 2],
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
}
#: Of a sound.
SOUND: dict[str, dict[str, Any]] = {
    "Hubert": SPEECH,
    "Wav2Vec2": SPEECH,
    "WavLM": SPEECH,
    "UniSpeech": SPEECH,
}


@dataclass(frozen=True)
class Model:
    """One architecture.

    Attributes:
        name: what it is called.
        kind: what it works on.
        build: makes the network and its arguments by keyword; without a name, a list of those
            without one.
        training: whether it runs in training mode, with gradients.
        gradients: whether it takes gradients itself.
    """

    name: str
    kind: str
    build: Callable[[], tuple[torch.nn.Module, dict[str, Any]]]
    training: bool = False
    gradients: bool = False


def models() -> Iterator[Model]:
    """All of them: transformers' first, then networks of convolutions, then those also trained."""
    tables = {
        "text": (LANGUAGE, _tokens),
        "two texts": (TRANSLATION, _two_texts),
        "image": (VISION, _pixels),
        "sound": (SOUND, _waves),
    }
    for kind, (table, inputs) in tables.items():
        for name, changes in table.items():
            yield Model(
                f"{name}Model", kind, functools.partial(_transformer, name, changes, inputs)
            )
    for name, (make, shape) in NETWORKS.items():
        kind = "video" if len(shape) == 5 else "noise" if name == "DCGAN" else "image"
        yield Model(name, kind, functools.partial(_network, make, shape))
    for kind, examples in (("several", MULTIMODAL), ("numbers", SCIENTIFIC)):
        for name, build in examples.items():
            inner = name in DIFFERENTIATING
            yield Model(name, kind, build, gradients=inner)
            yield Model(f"{name}, training step", kind, build, training=True, gradients=inner)


def _transformer(
    name: str, changes: dict[str, Any], inputs: Callable[[], dict[str, Any]]
) -> tuple[torch.nn.Module, dict[str, Any]]:
    cls = getattr(transformers, f"{name}Model")
    return cls(cls.config_class(**changes)), inputs()


def _network(
    make: Callable[[], torch.nn.Module], shape: tuple[int, ...]
) -> tuple[torch.nn.Module, dict[str, Any]]:
    return make(), {"": [torch.rand(shape)]}


def _tokens() -> dict[str, Any]:
    return {"input_ids": torch.randint(3, 500, (2, 16))}


def _two_texts() -> dict[str, Any]:
    return {**_tokens(), "decoder_input_ids": torch.randint(3, 500, (2, 11))}


def _pixels() -> dict[str, Any]:
    return {"pixel_values": torch.rand(1, 3, 32, 32)}


def _waves() -> dict[str, Any]:
    return {"input_values": torch.randn(1, 800)}
