"""Transformers that read images, sounds or series beside text, small and with random weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers
from torch import nn

TEXT = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "intermediate_size": 64,
    "vocab_size": 128,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
#: A vision tower that makes four rows of an image of 16 x 16.
EYES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "image_size": 16,
    "patch_size": 8,
}
#: The token in whose place a row of an image is put.
IMAGE = 120


def image_and_text(rows: int, width: int = 12) -> dict[str, Any]:
    """An image of 16 x 16, and a text with ``rows`` places for it."""
    ids = torch.randint(3, 100, (1, width))
    ids[0, 2 : 2 + rows] = IMAGE
    return {"input_ids": ids, "pixel_values": torch.rand(1, 3, 16, 16)}


def gemma3() -> tuple[nn.Module, dict[str, Any]]:
    """Windows of eight tokens beside full attention; rows of an image see each other."""
    config = transformers.Gemma3Config(
        text_config={**TEXT, "sliding_window": 8, "query_pre_attn_scalar": 8},
        vision_config=EYES,
        mm_tokens_per_image=4,
        image_token_index=IMAGE,
    )
    inputs = image_and_text(4)
    return transformers.Gemma3Model(config), {
        **inputs,
        "token_type_ids": (inputs["input_ids"] == IMAGE).long(),
    }


def mistral3() -> tuple[nn.Module, dict[str, Any]]:
    """Rows of Pixtral's tower, of which patches are merged."""
    config = transformers.Mistral3Config(
        text_config={**TEXT, "model_type": "mistral"},
        vision_config={**EYES, "model_type": "pixtral", "head_dim": 8, "patch_size": 4},
        image_token_index=IMAGE,
        spatial_merge_size=2,
        vision_feature_layer=-1,
    )
    return transformers.Mistral3Model(config), {
        **image_and_text(4),
        "image_sizes": torch.tensor([[16, 16]]),
    }


def llava() -> tuple[nn.Module, dict[str, Any]]:
    """CLIP's tower before a Llama."""
    config = transformers.LlavaConfig(
        text_config={**TEXT, "model_type": "llama"},
        vision_config={**EYES, "model_type": "clip_vision_model"},
        image_token_index=IMAGE,
        image_seq_length=4,
    )
    return transformers.LlavaModel(config), image_and_text(4)


def paligemma() -> tuple[nn.Module, dict[str, Any]]:
    """SigLIP's tower before a Gemma."""
    config = transformers.PaliGemmaConfig(
        text_config={**TEXT, "model_type": "gemma"},
        vision_config={**EYES, "model_type": "siglip_vision_model", "projection_dim": 32},
        image_token_index=IMAGE,
        projection_dim=32,
        hidden_size=32,
    )
    return transformers.PaliGemmaModel(config), {
        **image_and_text(4),
        "token_type_ids": (torch.arange(12) > 8).long()[None],
    }


def siglip2() -> tuple[nn.Module, dict[str, Any]]:
    """Patches of an image of any shape, with resized places."""
    eyes = {k: v for k, v in EYES.items() if k != "image_size"}
    config = transformers.Siglip2VisionConfig(**eyes, num_patches=16)
    return transformers.Siglip2VisionModel(config), {
        "pixel_values": torch.rand(2, 16, 3 * 8 * 8),
        "pixel_attention_mask": (torch.arange(16) < torch.tensor([[16], [12]])).long(),
        "spatial_shapes": torch.tensor([[4, 4], [3, 4]]),
    }


def _qwen(cls: Any, eyes: dict[str, Any]) -> tuple[nn.Module, dict[str, Any]]:
    """Patches of any number of images in one list, and places in three dimensions."""
    rope = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 1e4}
    config = cls.config_class(
        text_config={**TEXT, "rope_parameters": rope},
        vision_config={"depth": 2, "num_heads": 4, "patch_size": 4, **eyes},
        image_token_id=IMAGE,
        video_token_id=IMAGE + 1,
        vision_start_token_id=IMAGE + 2,
        vision_end_token_id=IMAGE + 3,
    )
    ids = image_and_text(4)["input_ids"]
    ids[0, 1] = IMAGE + 2
    return cls(config), {
        "input_ids": ids,
        "pixel_values": torch.rand(16, 3 * 2 * 4 * 4),
        "image_grid_thw": torch.tensor([[1, 4, 4]]),
        "mm_token_type_ids": (ids == IMAGE).int(),
    }


def qwen2_vl() -> tuple[nn.Module, dict[str, Any]]:
    """Qwen2-VL: all patches of an image see each other."""
    return _qwen(transformers.Qwen2VLModel, {"embed_dim": 32, "hidden_size": 32})


def qwen2_5_vl() -> tuple[nn.Module, dict[str, Any]]:
    """Qwen2.5-VL: windows of patches, in an order of their own."""
    eyes = {
        "hidden_size": 32,
        "out_hidden_size": 32,
        "intermediate_size": 64,
        "window_size": 16,
        "fullatt_block_indexes": [1],
    }
    return _qwen(transformers.Qwen2_5_VLModel, eyes)


def clip() -> tuple[nn.Module, dict[str, Any]]:
    """CLIP: how well texts describe images."""
    text = {k: v for k, v in TEXT.items() if k not in ("num_key_value_heads", "head_dim")}
    config = transformers.CLIPConfig(text_config=text, vision_config=EYES, projection_dim=16)
    return transformers.CLIPModel(config), {
        "input_ids": torch.cat([torch.randint(3, 100, (2, 7)), torch.full((2, 1), 2)], 1),
        "pixel_values": torch.rand(2, 3, 16, 16),
    }


def whisper() -> tuple[nn.Module, dict[str, Any]]:
    """Whisper: a text of a spectrum."""
    config = transformers.WhisperConfig(
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        num_mel_bins=8,
        max_source_positions=16,
        max_target_positions=16,
        vocab_size=128,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        suppress_tokens=None,
        begin_suppress_tokens=None,
        apply_spec_augment=False,
    )
    return transformers.WhisperModel(config), {
        "input_features": torch.randn(1, 8, 32),
        "decoder_input_ids": torch.randint(3, 100, (1, 5)),
    }


def patch_tst() -> tuple[nn.Module, dict[str, Any]]:
    """PatchTST: a forecast of several series."""
    config = transformers.PatchTSTConfig(
        num_input_channels=3,
        context_length=32,
        prediction_length=8,
        patch_length=8,
        patch_stride=4,
        d_model=16,
        num_attention_heads=4,
        num_hidden_layers=2,
        ffn_dim=32,
        loss="mse",
    )
    values = torch.randn(2, 32, 3)
    return transformers.PatchTSTForPrediction(config), {"past_values": values}


#: By name: what makes the network and its arguments.
MULTIMODAL: dict[str, Callable[[], tuple[nn.Module, dict[str, Any]]]] = {
    "CLIP": clip,
    "Gemma-3": gemma3,
    "LLaVA": llava,
    "Mistral-3": mistral3,
    "PaliGemma": paligemma,
    "PatchTST": patch_tst,
    "Qwen2-VL": qwen2_vl,
    "Qwen2.5-VL": qwen2_5_vl,
    "SigLIP-2": siglip2,
    "Whisper": whisper,
}
