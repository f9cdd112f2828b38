"""A small conditional diffusion model: a UNet on pairs of category and nuisance, sampled and trained."""

from __future__ import annotations

import copy
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from beaufort._core.files import write_bytes
from beaufort._core.optional import installed, require
from beaufort._core.validation import validate_count
from beaufort.mining.plan import MiningError, PlanItem

if TYPE_CHECKING:
    from torch import Tensor

CONDITIONS = "conditions.json"
WEIGHTS = "unet"

SCHEDULE: dict[str, Any] = {
    "num_train_timesteps": 1000,
    "beta_schedule": "squaredcos_cap_v2",
    "prediction_type": "v_prediction",
    "clip_sample": False,
}
"""Noise schedule and type of prediction, in training and sampling."""


@dataclass(frozen=True)
class ConditionPair:
    """The category and nuisance of an image."""

    category: str
    kind: str
    nuisance: str


class ConditionalGenerator:
    """Samples a UNet trained by `train_conditional`, with deterministic DDIM steps.

    Args:
        folder: folder with `conditions.json` and the UNet as safetensors.
        steps: steps of the sampler.
        batch: images at a time.
        device: cpu, cuda or cuda:1.
        guidance: scale of classifier-free guidance; 1 for none.
    """

    def __init__(
        self, folder: Path, *, steps: int = 50, batch: int = 256, device: str = "cpu", guidance: float = 2.0
    ) -> None:
        try:
            about = json.loads((folder / CONDITIONS).read_text(encoding="utf-8"))
            self._pairs = {ConditionPair(*pair): place for place, pair in enumerate(about["pairs"])}
            self._size, self._training = int(about["size"]), dict(about["training"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise MiningError(f"cannot read {folder / CONDITIONS} as a trained model: {error!r}") from None
        self._folder, self._device, self._guidance = folder, device, guidance
        self._steps, self.batch = validate_count("steps", steps), validate_count("batch", batch)

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """Digest of the weights, options of training and of sampling."""
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
        """Raise an error if the model was not trained on the category and nuisance of an item."""
        for item in items:
            if ConditionPair(item.category, item.kind, item.nuisance) not in self._pairs:
                raise MiningError(f"the model was not trained on {item.category} with {item.nuisance}")
        _ = self._network

    def make(self, items: Sequence[PlanItem]) -> Sequence[Image.Image]:
        """Return the images of items, each from noise with its seed."""
        import torch

        network, scheduler = self._network
        shape = (3, self._size, self._size)
        noise = [torch.randn(shape, generator=torch.Generator().manual_seed(item.seed)) for item in items]
        places = [self._pairs[ConditionPair(item.category, item.kind, item.nuisance)] for item in items]
        pairs = torch.tensor(places, device=self._device)
        unconditional = torch.full_like(pairs, len(self._pairs))
        sample = torch.stack(noise).to(self._device)
        scheduler.set_timesteps(self._steps)
        with torch.inference_mode():
            for step in scheduler.timesteps:
                guess = network(sample, step, class_labels=pairs).sample
                if self._guidance != 1:
                    free = network(sample, step, class_labels=unconditional).sample
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
            raise MiningError(f"cannot load a UNet as safetensors from {self._folder}: {error}") from None
        return network.to(self._device).eval(), kinds.DDIMScheduler(**SCHEDULE)


@dataclass(frozen=True)
class UNetRecipe:
    """Size and training of a UNet."""

    channels: tuple[int, ...] = (64, 128, 128)
    """Channels at each resolution, from full to lowest, as multiples of 8; the lowest has attention."""
    layers: int = 2
    steps: int = 12_000
    batch: int = 256
    rate: float = 4e-4
    """Learning rate after the warm-up; it then decays to 0 with a cosine."""
    warmup: int = 500
    """Steps of the warm-up."""
    average: float = 0.999
    """Decay of the moving average of the weights, which is saved."""
    drop: float = 0.1
    """Fraction of images trained without their pair, for classifier-free guidance."""
    seed: int = 0


def train_conditional(
    images: NDArray[np.uint8],
    places: NDArray[np.int64],
    pairs: Sequence[ConditionPair],
    folder: Path,
    *,
    recipe: UNetRecipe | None = None,
    device: str = "cpu",
    seconds: float | None = None,
    progress: Callable[[int, int, float], None] | None = None,
) -> int:
    """Train a UNet on images of pairs, and return the number of steps.

    Args:
        images: `(n, size, size, 3)`.
        places: index in `pairs` of each image.
        pairs: categories with nuisances.
        folder: output folder, for `ConditionalGenerator`.
        recipe: size and training; defaults of `UNetRecipe` if None.
        device: cpu, cuda or cuda:1.
        seconds: time limit; the learning rate then decays with the time.
        progress: called with the step, the number of steps and the loss.
    """
    import torch

    from beaufort.training.optimize import set_rate
    from beaufort.training.replay import ReplayedStep

    recipe = recipe or UNetRecipe()
    if images.ndim != 4 or images.shape[1] != images.shape[2] or images.shape[3] != 3:
        raise MiningError(f"images must be square with three channels, got shape {images.shape}")
    if len(images) != len(places) or not 0 <= places.min() <= places.max() < len(pairs):
        raise MiningError(f"places must be integers from 0 to {len(pairs) - 1}, one for each image")
    kinds = require("diffusers", "mining", what="diffusion models")
    cuda = device.startswith("cuda")
    with torch.random.fork_rng(devices=[device] if cuda else []):  # keep the caller's random state
        torch.manual_seed(recipe.seed)
        network = _network(kinds, images.shape[1], len(pairs) + 1, recipe).to(device)
        state = _TrainingStep(network, kinds.DDPMScheduler(**SCHEDULE), recipe, unconditional=len(pairs))
        advance = ReplayedStep(state.advance) if cuda else state.advance
        data = torch.as_tensor(images).permute(0, 3, 1, 2).contiguous().to(device)
        labels = torch.as_tensor(places).to(device)
        start, step = time.monotonic(), 0
        while step < recipe.steps:
            done = step / recipe.steps
            if seconds is not None:
                elapsed = time.monotonic() - start
                if elapsed >= seconds:
                    break
                done = max(done, elapsed / seconds)
            warm = min(1, (step + 1) / recipe.warmup)
            set_rate(state.optimizer, recipe.rate * warm * 0.5 * (1 + math.cos(math.pi * done)))
            chosen = torch.randint(len(data), (min(recipe.batch, len(data)),), device=device)
            loss = advance(data[chosen], labels[chosen])
            step += 1
            if step % 100 == 0:
                value = float(loss)  # waits for the device, so that the time limit counts finished work
                if progress is not None:
                    progress(step, recipe.steps, value)
    folder.mkdir(parents=True, exist_ok=True)
    state.average.save_pretrained(str(folder / WEIGHTS), safe_serialization=True)
    about = {
        "version": 1,
        "size": images.shape[1],
        "pairs": [astuple(pair) for pair in pairs],
        "training": {**asdict(recipe), "steps": step, "images": len(images)},
    }
    write_bytes(folder / CONDITIONS, json.dumps(about, indent=1).encode())
    return step


def _network(kinds: Any, size: int, classes: int, recipe: UNetRecipe) -> Any:
    plain = len(recipe.channels) - 1
    return kinds.UNet2DModel(
        sample_size=size,
        in_channels=3,
        out_channels=3,
        layers_per_block=recipe.layers,
        block_out_channels=recipe.channels,
        down_block_types=("DownBlock2D",) * plain + ("AttnDownBlock2D",),
        up_block_types=("AttnUpBlock2D",) + ("UpBlock2D",) * plain,
        norm_num_groups=8,
        num_class_embeds=classes,
    )


class _TrainingStep:
    """The state of training: network, moving average of its weights, and optimizer."""

    def __init__(self, network: Any, noises: Any, recipe: UNetRecipe, *, unconditional: int) -> None:
        import torch

        self.network, self.noises, self.recipe, self.unconditional = network, noises, recipe, unconditional
        self.average = copy.deepcopy(network)
        averaging: Any = torch.optim.swa_utils
        self._move = averaging.get_ema_multi_avg_fn(recipe.average)
        parameters = list(network.parameters())
        options: dict[str, Any] = {"lr": recipe.rate, "weight_decay": 0.01}
        if parameters[0].is_cuda:  # required for a recorded step
            rate = torch.tensor(recipe.rate, device=parameters[0].device)
            options |= {"lr": rate, "fused": True, "capturable": True}
        self.optimizer = torch.optim.AdamW(parameters, **options)

    def advance(self, images: Tensor, pairs: Tensor) -> Tensor:
        """Train on a batch, and return its loss."""
        import torch

        loss = self._loss(images.float() / 127.5 - 1, pairs)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimizer.step()
        self._move(list(self.average.parameters()), list(self.network.parameters()), None)
        return loss.detach()  # type: ignore[no-any-return]

    def _loss(self, clean: Tensor, pairs: Tensor) -> Any:
        """Return the error of the predicted velocity between images and noise, at random times."""
        import torch

        device, count = clean.device, len(clean)
        noise = torch.randn_like(clean)
        times = torch.randint(self.noises.config.num_train_timesteps, (count,), device=device)
        withheld = torch.rand(count, device=device) < self.recipe.drop
        noisy = self.noises.add_noise(clean, noise, times)
        wanted = self.noises.get_velocity(clean, noise, times)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            labels = torch.where(withheld, self.unconditional, pairs)
            guess = self.network(noisy, times, class_labels=labels).sample
        return torch.nn.functional.mse_loss(guess.float(), wanted)
