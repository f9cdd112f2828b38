"""Text to image with any pipeline of diffusers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from PIL import Image

from beaufort.errors import MissingExtraError
from beaufort.mining.plan import MiningError, PlanItem

__all__ = ["DiffusionGenerator"]


class DiffusionGenerator:
    """A pipeline from a local folder or by its name on the hub; weights are safetensors, never pickles.

    Args:
        model: the folder or the name.
        steps: of the sampler.
        size: height and width in pixels; the pipeline's own if not given.
        batch: images at a time; each has a generator of its own, seeded by its item.
        dtype: float32, float16 or bfloat16.
        device: cpu, cuda or cuda:1.
        scheduler: name of a scheduler of diffusers; the pipeline's own if not given.
        guidance: scale of classifier-free guidance; the pipeline's own if not given.
    """

    def __init__(
        self,
        model: str,
        *,
        steps: int = 30,
        size: int | None = None,
        batch: int = 4,
        dtype: str = "float32",
        device: str = "cpu",
        scheduler: str | None = None,
        guidance: float | None = None,
    ) -> None:
        if dtype not in ("float32", "float16", "bfloat16"):
            raise MiningError(f"dtype must be float32, float16 or bfloat16, got {dtype!r}")
        if steps < 1 or batch < 1:
            raise MiningError(f"steps and batch must be at least 1, got {steps} and {batch}")
        self._model, self._steps, self._size, self.batch = model, steps, size, batch
        self._dtype, self._device, self._scheduler, self._guidance = dtype, device, scheduler, guidance

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """The pipeline, its scheduler with all settings, and how it was asked."""
        pipeline = self._pipeline
        settings = {
            key: value for key, value in sorted(dict(pipeline.scheduler.config).items()) if key[:1] != "_"
        }
        return {
            "name": "diffusers",
            "model": self._model,
            "pipeline": type(pipeline).__name__,
            "scheduler": {"name": type(pipeline.scheduler).__name__, **settings},
            "steps": self._steps,
            "size": self._size,
            "dtype": self._dtype,
            "guidance": self._guidance,
        }

    def check(self, items: Sequence[PlanItem]) -> None:
        """Every item needs a prompt; loading the pipeline shows whether it can be had at all."""
        if empty := next((item for item in items if not item.prompt.strip()), None):
            raise MiningError(
                f"every row must have a prompt, got none for {empty.category} with {empty.nuisance}"
            )
        _ = self._pipeline

    def make(self, items: Sequence[PlanItem]) -> Sequence[Image.Image]:
        """The images of some items, each with noise of its own seed."""
        import torch

        # Noise is drawn on the CPU, so that it is the same wherever the network runs.
        generators = [torch.Generator("cpu").manual_seed(item.seed) for item in items]
        options: dict[str, Any] = {} if self._size is None else {"height": self._size, "width": self._size}
        if self._guidance is not None:
            options["guidance_scale"] = self._guidance
        made = self._pipeline(
            prompt=[item.prompt for item in items],
            generator=generators,
            num_inference_steps=self._steps,
            output_type="pil",
            **options,
        )
        return list(made.images)

    @cached_property
    def _pipeline(self) -> Any:
        try:
            import diffusers
            import torch
        except ImportError:
            raise MissingExtraError(
                "text to image needs diffusers and transformers; pip install 'beaufort[mining]' has them"
            ) from None
        kinds: Any = diffusers
        try:
            pipeline = kinds.DiffusionPipeline.from_pretrained(
                self._model, use_safetensors=True, dtype=getattr(torch, self._dtype)
            )
        except (OSError, ValueError, KeyError) as error:
            raise MiningError(
                f"model must be a pipeline of diffusers with safetensors, got {self._model!r}: {error}"
            ) from None
        if self._scheduler is not None:
            kind = getattr(kinds, self._scheduler, None)
            if kind is None or not hasattr(kind, "from_config"):
                raise MiningError(f"scheduler must be one of diffusers, got {self._scheduler!r}")
            pipeline.scheduler = kind.from_config(pipeline.scheduler.config)
        pipeline.set_progress_bar_config(disable=True)
        return pipeline.to(self._device)
