"""Text to image with any pipeline of diffusers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from PIL import Image

from beaufort.mining._pipelines import (
    PipelineOptions,
    check_prompts,
    cpu_generators,
    load_pipeline,
    pipeline_facts,
)
from beaufort.mining.plan import PlanItem


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
        self._options = PipelineOptions(model, steps, batch, dtype, device, scheduler, guidance)
        self._size, self.batch = size, batch

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """The pipeline, its scheduler with all settings, and how it was asked."""
        return {"name": "diffusers", **pipeline_facts(self._options, self._pipeline), "size": self._size}

    def check(self, items: Sequence[PlanItem]) -> None:
        """Every item needs a prompt; loading the pipeline shows whether it can be had at all."""
        check_prompts(items)
        _ = self._pipeline

    def make(self, items: Sequence[PlanItem]) -> Sequence[Image.Image]:
        """The images of some items, each with noise of its own seed."""
        sizes: dict[str, Any] = {} if self._size is None else {"height": self._size, "width": self._size}
        made = self._pipeline(
            prompt=[item.prompt for item in items],
            generator=cpu_generators(items),
            **self._options.call,
            **sizes,
        )
        return list(made.images)

    @cached_property
    def _pipeline(self) -> Any:
        return load_pipeline(self._options)
