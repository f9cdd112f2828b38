"""How every study asks a network: test images on a device, many at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from beaufort.data import load_dataset
from beaufort.models.torch import choose_device

_BATCH, _GPU_BATCH = 250, 2500
"""Images that are shown at once, on the processor and on a GPU."""


class TestImages(NamedTuple):
    """A test set, whole."""

    images: Tensor
    """uint8 `(n, c, h, w)`, on the device."""
    labels: Tensor
    ids: list[str]


def read_test_images(data: str, *, device: str, limit: int | None = None) -> TestImages:
    """The images of what `load_dataset` opens, or the first of them, which must have one size."""
    where = choose_device(device)
    dataset = load_dataset(data, limit=limit)
    pixels = np.stack([dataset[place].image for place in range(len(dataset))])
    images = torch.from_numpy(np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))).to(where)
    return TestImages(images, torch.from_numpy(np.array(dataset.labels)).to(where), list(dataset.ids))


def logits(model: nn.Module, images: Tensor, *, batch: int | None = None, half: bool = False) -> Tensor:
    """What a network, on the device of the images, says to them; the same every time.

    Args:
        model: the network, in float32.
        images: uint8 `(n, c, h, w)`.
        batch: images that are shown at once.
        half: whether a GPU may multiply and remember in float16, which is several times as fast.
    """
    size = batch or (_GPU_BATCH if images.device.type == "cuda" else _BATCH)
    exact = torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False)
    short = torch.autocast("cuda", torch.float16, enabled=half and images.device.type == "cuda")
    with torch.no_grad(), exact, short:
        return torch.cat([model(some.float() / 255).float() for some in images.split(size)])
