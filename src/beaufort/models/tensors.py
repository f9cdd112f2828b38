"""Preprocessing of images on the model's device, and asynchronous copies to the host."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.optional import installed, require
from beaufort.models.preprocessing import LUMA, Preprocessing


def preprocess_tensors(images: Any, preprocessing: Preprocessing, *, channels_last: bool = False) -> Any:
    """Return `Preprocessing.apply`, bit for bit, for uint8 tensors `(n, h, w, c)` of the network's size.

    Args:
        images: the tensors.
        preprocessing: its layout NCHW uses the memory format channels last if `channels_last` is set.
        channels_last: memory format of the result.
    """
    torch = require("torch", "torch", what="torch models")
    channels = preprocessing.channels
    if images.shape[-1] == 1 and channels == 3:
        images = images.expand(-1, -1, -1, 3)
    elif images.shape[-1] == 3 and channels == 1:
        red, green, blue = (images[..., i : i + 1].int() * LUMA[i] for i in range(3))
        images = ((red + green + blue + 0x8000) >> 16).to(torch.uint8)
    if preprocessing.order == "BGR":
        images = images.flip(-1)
    first = preprocessing.layout == "NCHW"
    if preprocessing.dtype != "uint8":
        table = _table(preprocessing, images.device)
        if images.is_cuda and os.environ.get("BEAUFORT_KERNELS") != "0" and installed("triton"):
            from beaufort.models._prepare_kernels import look_up

            planes = first and not channels_last
            out = look_up(images.contiguous(), table, planes=planes)
            return out.movedim(-1, 1) if first and channels_last else out
        images = table.flatten()[images.int() + 256 * torch.arange(channels, device=images.device)]
    layout = torch.channels_last if first and channels_last else torch.contiguous_format
    return (images.movedim(-1, 1) if first else images).contiguous(memory_format=layout)


@lru_cache(maxsize=64)
def _table(preprocessing: Preprocessing, device: Any) -> Any:
    torch = require("torch", "torch", what="torch models")
    return torch.from_numpy(preprocessing.tables().astype(preprocessing.dtype)).to(device)


def as_pixels(images: NDArray[np.uint8], device: str) -> Any:
    """Return uint8 images `(n, h, w, c)` as float32 values in [0, 1], `(n, c, h, w)`, on a device."""
    torch = require("torch", "torch", what="torch models")
    pixels = torch.from_numpy(np.ascontiguousarray(images.transpose(0, 3, 1, 2))).to(device).float()
    return pixels / torch.full((), 255.0, device=pixels.device)  # a number would become a factor 1/255


def preprocess_pixels(pixels: Any, preprocessing: Preprocessing) -> Any:
    """Return preprocessed values in [0, 1], `(n, c, h, w)`, differentiably.

    The result is that of `Preprocessing.apply`, bit for bit, where the values are multiples of 1/255.
    """
    torch = require("torch", "torch", what="torch models")

    def per_channel(values: tuple[float, ...]) -> Any:
        return torch.tensor(values, dtype=torch.float32, device=pixels.device)[:, None, None]

    if preprocessing.order == "BGR":
        pixels = pixels.flip(1)
    if preprocessing.value_range == "0..255":
        pixels = pixels * 255
    if preprocessing.mean:
        pixels = pixels - per_channel(preprocessing.mean)
    if preprocessing.std:
        pixels = pixels / per_channel(preprocessing.std)
    pixels = pixels.to(getattr(torch, preprocessing.dtype))
    return pixels if preprocessing.layout == "NCHW" else pixels.movedim(1, -1).contiguous()


def copy_to_host(tensor: Any) -> Callable[[], NDArray[Any]]:
    """Start a copy of a tensor to the host; the returned function waits for it and returns the array."""
    torch = require("torch", "torch", what="torch models")
    if not tensor.is_cuda:
        return lambda: np.asarray(tensor.cpu().numpy())
    host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    host.copy_(tensor, non_blocking=True)
    done = torch.cuda.Event()
    done.record(torch.cuda.current_stream(tensor.device))

    def wait() -> NDArray[Any]:
        done.synchronize()
        return np.asarray(host.numpy())

    return wait
