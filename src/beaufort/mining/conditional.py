"""A diffusion model of one's own: a small UNet that knows pairs of a category and a nuisance."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from beaufort._core.optional import installed, require
from beaufort.mining.plan import MiningError, PlanItem

CONDITIONS = "conditions.json"
WEIGHTS = "unet"


@dataclass(frozen=True)
class ConditionPair:
    """What an image was made for: a category, and what is unusual."""

    category: str
    kind: str
    nuisance: str


class ConditionalGenerator:
    """Samples a UNet that `train_conditional` trained, by deterministic DDIM steps.

    Args:
        folder: `conditions.json` and the UNet, as safetensors.
        steps: of the sampler.
        batch: images at a time.
        device: cpu, cuda or cuda:1.
        guidance: how much the pair counts against nothing at all; 1 takes the model as it is.
    """

    def __init__(
        self, folder: Path, *, steps: int = 50, batch: int = 256, device: str = "cpu", guidance: float = 2.0
    ) -> None:
        if steps < 1 or batch < 1:
            raise MiningError(f"steps and batch must be at least 1, got {steps} and {batch}")
        try:
            about = json.loads((folder / CONDITIONS).read_text(encoding="utf-8"))
            self._pairs = {ConditionPair(*pair): place for place, pair in enumerate(about["pairs"])}
            self._size, self._training = int(about["size"]), dict(about["training"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise MiningError(
                f"folder must have a {CONDITIONS} that a training wrote, got {folder} ({error!r})"
            ) from None
        self._folder, self._steps, self._device, self._guidance = folder, steps, device, guidance
        self.batch = batch

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """The weights by their digest, how they were trained, and how they are sampled."""
        files = sorted((self._folder / WEIGHTS).glob("*.safetensors"))
        weights = sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
        return {
            "name": "conditional",
            "weights": weights,
            "training": self._training,
            "size": self._size,
            "scheduler": "DDIMScheduler",
            "steps": self._steps,
            "guidance": self._guidance,
        }

    def check(self, items: Sequence[PlanItem]) -> None:
        """Every item's category and nuisance must be a pair that was trained."""
        for item in items:
            if ConditionPair(item.category, item.kind, item.nuisance) not in self._pairs:
                raise MiningError(
                    f"a row must be one of the {len(self._pairs)} pairs that the model was trained on, got "
                    f"{item.category} with {item.kind} {item.nuisance}"
                )
        _ = self._network

    def make(self, items: Sequence[PlanItem]) -> Sequence[Image.Image]:
        """The images of some items, each from noise of its own seed."""
        import torch

        network, scheduler = self._network
        shape = (3, self._size, self._size)
        noise = [torch.randn(shape, generator=torch.Generator().manual_seed(item.seed)) for item in items]
        places = [self._pairs[ConditionPair(item.category, item.kind, item.nuisance)] for item in items]
        pairs = torch.tensor(places, device=self._device)
        nothing = torch.full_like(pairs, len(self._pairs))
        sample = torch.stack(noise).to(self._device)
        scheduler.set_timesteps(self._steps)
        with torch.inference_mode():
            for step in scheduler.timesteps:
                guess = network(sample, step, class_labels=pairs).sample
                if self._guidance != 1:
                    free = network(sample, step, class_labels=nothing).sample
                    guess = free + self._guidance * (guess - free)
                sample = scheduler.step(guess, step, sample).prev_sample
        pixels = ((sample.clamp(-1, 1) + 1) * 127.5).round().byte().permute(0, 2, 3, 1).cpu().numpy()
        return [Image.fromarray(np.ascontiguousarray(image)) for image in pixels]

    @cached_property
    def _network(self) -> tuple[Any, Any]:
        kinds = require("diffusers", "mining", what="diffusion models")
        try:
            network = kinds.UNet2DModel.from_pretrained(
                str(self._folder / WEIGHTS), use_safetensors=True, low_cpu_mem_usage=installed("accelerate")
            )
        except (OSError, ValueError, KeyError) as error:
            raise MiningError(
                f"folder must hold a UNet as safetensors, got {self._folder}: {error}"
            ) from None
        return network.to(self._device).eval(), kinds.DDIMScheduler(**SCHEDULE)


SCHEDULE: dict[str, Any] = {
    "num_train_timesteps": 1000,
    "beta_schedule": "squaredcos_cap_v2",
    "prediction_type": "v_prediction",
    "clip_sample": False,
}
"""How much noise there is at which time, and what the network says about it; the same in training."""
