"""Given photos, changed by a prompt: as a whole, or only behind the object or on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps

from beaufort.data.images import read_image
from beaufort.mining._cutouts import category_pictures, images_digest, read_cutout
from beaufort.mining._pipelines import (
    PipelineOptions,
    check_prompts,
    cpu_generators,
    load_pipeline,
    pipeline_facts,
)
from beaufort.mining.plan import MiningError, PlanItem

RETOUCHES = {"image-to-image": "Img2Img", "inpainting": "Inpaint"}
"""What can be done to a photo, and how classes of diffusers that do it are called."""


class RetouchGenerator:
    """Photos of the category, changed by the prompt.

    Image to image changes the whole picture, the more the higher the strength. Inpainting needs masks: for a
    background it paints all but the object, for a texture or a material the object alone.

    Args:
        model: a pipeline of diffusers, a folder or a name on the hub.
        photos: a folder for each category; masks as for `CompositeGenerator`. The seed chooses among them.
        task: `image-to-image` or `inpainting`.
        strength: from just above 0, which leaves a photo as it is, to 1.
        steps: of the sampler; with a strength of 0.6, about 0.6 times as many are taken.
        size: height and width; photos are cut to a square around their middle.
        batch: images at a time.
        dtype: float32, float16 or bfloat16.
        device: cpu, cuda or cuda:1.
        scheduler: name of a scheduler of diffusers; the pipeline's own if not given.
        guidance: scale of classifier-free guidance; the pipeline's own if not given.
    """

    def __init__(
        self,
        model: str,
        photos: Path,
        *,
        task: str = "image-to-image",
        strength: float = 0.6,
        steps: int = 30,
        size: int = 512,
        batch: int = 4,
        dtype: str = "float32",
        device: str = "cpu",
        scheduler: str | None = None,
        guidance: float | None = None,
    ) -> None:
        if task not in RETOUCHES:
            raise MiningError(f"task must be one of {', '.join(RETOUCHES)}, got {task!r}")
        if not photos.is_dir():
            raise MiningError(f"photos must be a folder, got {photos}")
        if not 0 < strength <= 1:
            raise MiningError(f"strength must be above 0 and at most 1, got {strength:g}")
        if int(steps * strength) < 1:
            raise MiningError(
                f"steps times strength must be at least 1, got {steps} and {strength:g}: nothing would change"
            )
        self._options = PipelineOptions(model, steps, batch, dtype, device, scheduler, guidance)
        self._photos, self._task, self._strength, self._size = photos, task, strength, size
        self.batch = batch

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """The pipeline, how it was asked, and a digest of all photos that could have been used."""
        return {
            "name": f"diffusers {self._task}",
            **pipeline_facts(self._options, self._pipeline),
            "size": self._size,
            "strength": self._strength,
            "pictures": images_digest([self._photos]),
        }

    def check(self, items: Sequence[PlanItem]) -> None:
        """Every category must have photos, with masks where they are needed; every item a prompt."""
        check_prompts(items)
        for category in sorted({item.category for item in items}):
            for path in category_pictures(self._photos, category):
                if self._task == "inpainting":
                    read_cutout(path)
        _ = self._pipeline

    def make(self, items: Sequence[PlanItem]) -> Sequence[Image.Image]:
        """The photos of some items, changed."""
        given = [self._given(item) for item in items]
        options = dict(self._options.call, strength=self._strength)
        if self._task == "inpainting":
            options |= {"mask_image": [mask for _, mask in given], "height": self._size, "width": self._size}
        made = self._pipeline(
            prompt=[item.prompt for item in items],
            image=[photo for photo, _ in given],
            generator=cpu_generators(items),
            **options,
        )
        return list(made.images)

    def _given(self, item: PlanItem) -> tuple[Image.Image, Image.Image | None]:
        """A photo of the category, and what of it is to be painted: white in the mask."""
        choices = category_pictures(self._photos, item.category)
        path = choices[np.random.Generator(np.random.Philox(item.seed)).integers(len(choices))]
        square = (self._size, self._size)
        if self._task == "image-to-image":
            return ImageOps.fit(read_image(path).convert("RGB"), square, Image.Resampling.LANCZOS), None
        cutout = ImageOps.fit(read_cutout(path), square, Image.Resampling.LANCZOS)
        mask = cutout.getchannel("A").point(lambda value: 255 if value > 127 else 0)
        return cutout.convert("RGB"), ImageOps.invert(mask) if item.kind == "background" else mask

    @cached_property
    def _pipeline(self) -> Any:
        return load_pipeline(self._options, RETOUCHES[self._task])
