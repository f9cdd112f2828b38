"""Images that are on the model's device already: prepared there, and answered without waiting."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from beaufort.models._lazy import require
from beaufort.models.preprocessing import Preprocessing
from beaufort.models.spec import Logits

__all__ = ["fetched", "prepared"]

_LUMA = (19595, 38470, 7471)  # Pillow's, in 1/65536


def prepared(images: Any, preprocessing: Preprocessing) -> Any:
    """What `preprocessing` makes of uint8 tensors `(n, h, w, c)` of the network's size, on their device."""
    torch = require("torch", "torch", what="torch models")
    channels = preprocessing.channels
    if images.shape[-1] == 1 and channels == 3:
        images = images.expand(-1, -1, -1, 3)
    elif images.shape[-1] == 3 and channels == 1:
        red, green, blue = (images[..., i : i + 1].int() * _LUMA[i] for i in range(3))
        images = ((red + green + blue + 0x8000) >> 16).to(torch.uint8)
    if preprocessing.order == "BGR":
        images = images.flip(-1)
    if preprocessing.dtype != "uint8":
        images = images.float()
        if preprocessing.value_range == "0..1":
            images = images / _vector((255.0,), images.device)  # a number would be inverted first
        if preprocessing.mean:
            images = images - _vector(preprocessing.mean, images.device)
        if preprocessing.std:
            images = images / _vector(preprocessing.std, images.device)
        images = images.to(getattr(torch, preprocessing.dtype))
    return (images.movedim(-1, 1) if preprocessing.layout == "NCHW" else images).contiguous()


@lru_cache(maxsize=64)
def _vector(values: tuple[float, ...], device: Any) -> Any:
    torch = require("torch", "torch", what="torch models")
    return torch.tensor(values, dtype=torch.float32, device=device)


def fetched(logits: Any) -> Callable[[], Logits]:
    """Begin to copy logits to the host; what comes back waits for them."""
    torch = require("torch", "torch", what="torch models")
    if not logits.is_cuda:
        return lambda: np.asarray(logits.cpu().numpy(), np.float32)
    host = torch.empty(logits.shape, dtype=torch.float32, pin_memory=True)
    host.copy_(logits, non_blocking=True)
    done = torch.cuda.Event()
    done.record(torch.cuda.current_stream(logits.device))

    def wait() -> Logits:
        done.synchronize()
        answer: Logits = host.numpy()
        return answer

    return wait
