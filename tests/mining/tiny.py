"""A text-to-image pipeline of a few thousand random weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def save_tiny_pipeline(folder: Path) -> None:
    import diffusers
    import torch
    import transformers

    kinds: Any = diffusers
    models: Any = transformers
    torch.manual_seed(0)
    words = folder / "words"
    words.mkdir(parents=True)
    letters = [chr(code) for code in range(33, 127)]
    names = [*letters, *(f"{one}</w>" for one in letters), "<|startoftext|>", "<|endoftext|>"]
    (words / "vocab.json").write_text(json.dumps({name: number for number, name in enumerate(names)}))
    (words / "merges.txt").write_text("#version: 0.2\n")
    tokenizer = models.CLIPTokenizer(
        str(words / "vocab.json"), str(words / "merges.txt"), model_max_length=77
    )
    text = models.CLIPTextModel(
        models.CLIPTextConfig(
            vocab_size=len(names),
            hidden_size=16,
            intermediate_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            bos_token_id=len(names) - 2,
            eos_token_id=len(names) - 1,
        )
    )
    unet = kinds.UNet2DConditionModel(
        sample_size=8,
        block_out_channels=(8, 8),
        layers_per_block=1,
        norm_num_groups=4,
        attention_head_dim=4,
        cross_attention_dim=16,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
    )
    vae = kinds.AutoencoderKL(
        block_out_channels=(8, 8),
        norm_num_groups=4,
        down_block_types=("DownEncoderBlock2D", "DownEncoderBlock2D"),
        up_block_types=("UpDecoderBlock2D", "UpDecoderBlock2D"),
        latent_channels=4,
    )
    pipeline = kinds.StableDiffusionPipeline(
        vae=vae,
        text_encoder=text,
        tokenizer=tokenizer,
        unet=unet,
        scheduler=kinds.DDIMScheduler(steps_offset=1, clip_sample=False),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )
    pipeline.save_pretrained(str(folder), safe_serialization=True)
