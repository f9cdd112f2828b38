"""The photos of the study: prepared, corrupted, and behind which front ends they are shown."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from beaufort._core.arrays import Bytes
from beaufort._core.errors import ImageFileError
from beaufort.corruptions import corruptions
from beaufort.data import PreparedImages, Problem, Step, load_dataset
from beaufort.data.labels import DatasetLabels, LabelSpace, ModelOutputs, class_names, find_space
from beaufort.studies.enhancements.settings import CLEAN, EnhancementSettings, PhotoPass

NLM = {f"nlm-h{h:g}": f"nlm:h={h}" for h in (0.4, 0.8, 1.2)}
FRONTS: Mapping[PhotoPass, Mapping[str, str]] = {
    "fronts": {
        "plain": "",
        **NLM,
        "clahe": "clahe:clip=2,tiles=8",
        "equalize": "equalize",
        "stretch": "stretch",
    },
    "crops": {"middle-crop": "multi-crop:grid=1,mirror=no,side=256", "ten-crop": "ten-crop:side=256"},
    "styles": {"plain": ""},
}
"""The arms of each pass over the photos, and their front ends. Two more kinds of `fronts` follow from these:
non-local means behind a gate, and CLAHE with renormalized networks."""

SIDE = 224
SIDES: Mapping[PhotoPass, int] = {"fronts": 224, "crops": 256, "styles": 224}
"""Of the pictures that are corrupted, with the constants for 224 pixels."""


class Photos(NamedTuple):
    """Squares of one side, and what is right about them."""

    pixels: Bytes
    ids: tuple[str, ...]
    labels: NDArray[np.int64]
    space: LabelSpace


@lru_cache(maxsize=2)
def photos_of(settings: EnhancementSettings, side: int) -> Photos:
    """The photos as `beaufort run --suite imagenet-c` prepares them: short side 256, the middle square."""
    dataset = load_dataset(settings.photos, limit=settings.limit)
    ready = PreparedImages(dataset, (Step.parse("resize 256"), Step.parse(f"crop {side}")), False)
    pixels = []
    for place in range(len(dataset)):
        picture = ready(place)
        if isinstance(picture, Problem):
            raise ImageFileError(f"{picture.id} of {settings.photos} cannot be read: {picture.message}")
        pixels.append(picture)
    names = DatasetLabels(dataset.name, dataset.classes, np.unique(dataset.labels), dataset.by_name)
    outputs = ModelOutputs("the networks", 1000, class_names("imagenet-1k"), "imagenet-1k")
    space = find_space(names, outputs)
    return Photos(np.stack(pixels), tuple(dataset.ids), np.asarray(dataset.labels), space)


def corrupted_photos(photos: Photos, condition: str, first: int, size: int, device: str) -> Tensor:
    """Some of the photos under a condition, uint8 `(n, 3, h, w)`."""
    pixels, ids = photos.pixels[first : first + size], list(photos.ids[first : first + size])
    name, _, severity = condition.partition("@")
    if name == "stylize":
        from beaufort.training.stylization import Stylize

        return as_tensor(Stylize(severity).apply(pixels, ids=ids, seed=0), device)
    images = as_tensor(pixels, device)
    if condition == CLEAN:
        return images
    made: Tensor = corruptions[name](images, int(severity), ids=ids, seed=0, scale="imagenet")
    return made


def as_tensor(pixels: Bytes, device: str) -> Tensor:
    """Images `(n, h, w, 3)` as `(n, 3, h, w)` on a device."""
    return torch.from_numpy(np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))).to(device)
