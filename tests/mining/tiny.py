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


def save_tiny_llava(folder: Path) -> None:
    """A LLaVA of a few thousand random weights, with a vocabulary of letters."""
    import torch
    import transformers
    from tokenizers import Tokenizer
    from tokenizers import models as kinds
    from tokenizers import pre_tokenizers as splits

    models: Any = transformers
    torch.manual_seed(0)
    special = ["<unk>", "<pad>", "<s>", "</s>", "<image>"]
    names = [*special, *(chr(code) for code in range(32, 127))]
    letters = Tokenizer(kinds.WordLevel({name: number for number, name in enumerate(names)}, "<unk>"))
    letters.pre_tokenizer = splits.Split("", "isolated")
    tokenizer = models.PreTrainedTokenizerFast(
        tokenizer_object=letters, unk_token="<unk>", pad_token="<pad>", bos_token="<s>", eos_token="</s>",
        additional_special_tokens=["<image>"], clean_up_tokenization_spaces=False,
    )  # fmt: skip
    vision = models.CLIPVisionConfig(
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        image_size=32,
        patch_size=16,
    )
    text = models.LlamaConfig(
        vocab_size=len(names), hidden_size=16, intermediate_size=16, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=2, pad_token_id=1, bos_token_id=2, eos_token_id=3,
    )  # fmt: skip
    config = models.LlavaConfig(
        vision_config=vision, text_config=text, image_token_index=names.index("<image>"), image_seq_length=4
    )
    models.LlavaForConditionalGeneration(config).save_pretrained(str(folder))
    sizes = {"height": 32, "width": 32}
    processor = models.LlavaProcessor(
        models.CLIPImageProcessor(size=sizes, crop_size=sizes),
        tokenizer,
        patch_size=16,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template="{% for m in messages %}USER: {% for c in m['content'] %}{% if c['type'] == 'image' %}"
        "<image>{% else %}{{ c['text'] }}{% endif %}{% endfor %}{% endfor %} ASSISTANT:",
    )
    processor.save_pretrained(str(folder))


def perturb_weights(path: Path) -> None:
    """Change the tensors of a safetensors file slightly."""
    from safetensors.torch import load_file, save_file

    save_file({name: tensor * 1.01 for name, tensor in load_file(path).items()}, path)
