"""A recipe on torch tensors: on their device, in pieces that fit its memory."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Images
from beaufort.corruptions._kernels import cpu_ops, torch_ops
from beaufort.corruptions.rng import Key, Keyed

if TYPE_CHECKING:
    from torch import Tensor

    from beaufort.corruptions._corruption import Recipe

_GPU_PIECE, _CPU_PIECE = 1 << 31, 1 << 26
"""Bytes in use at a time, temporary arrays included, on a GPU and on the processor."""

_PER_VALUE = 24
"""Bytes in use for each value of an image, roughly, where numbers are drawn for each."""


def run_tensors(
    color: Images, recipe: Recipe, params: Any, key: Key, words: NDArray[np.uint64] | None
) -> Images:
    """A batch `(n, h, w, c)`, corrupted.

    `words` are those of the images' ids; None if their pixels identify them. The host waits for the device
    only where it draws numbers itself and the ids are the pixels.
    """
    import torch

    if isinstance(color, np.ndarray):
        return np.asarray(run_tensors(torch.from_numpy(color), recipe, params, key, words))
    if len(color) == 0:
        return color.clone()
    if color.is_cuda:
        with torch.cuda.device(color.device):
            return _run(color, recipe, params, key, words)
    return _run(color, recipe, params, key, words)


def _run(color: Tensor, recipe: Recipe, params: Any, key: Key, words: NDArray[np.uint64] | None) -> Images:
    import torch

    ops = torch_ops()
    ids = _Ids(color, words)

    def run(part: slice) -> Images:
        def random() -> Keyed:
            return Keyed(
                key,
                ids.there[part],
                ops,
                lambda fields: Keyed(key, ids.here[part], cpu_ops(), fields=fields),
            )

        return recipe.run(color[part], params, random, ops)

    size = math.prod(color.shape[1:]) * _PER_VALUE * max(1, recipe.bulk // 4)
    step = max(1, (_CPU_PIECE if color.is_cpu else _GPU_PIECE) // size)
    if step >= len(color):
        return run(slice(0, len(color)))
    out = torch.empty_like(color)
    for start in range(0, len(color), step):
        part = slice(start, start + step)
        out[part] = torch.as_tensor(run(part))
    return out


class _Ids:
    """The words of a batch's ids on its device and on the host, each when it is first asked for."""

    def __init__(self, color: Tensor, words: NDArray[np.uint64] | None) -> None:
        self._color = color
        self._words = words

    @cached_property
    def there(self) -> Tensor:
        """On the device, an int64 tensor of the same bits."""
        from beaufort._core.device import upload

        if self._words is None:
            return cast("Tensor", torch_ops().content_ids(self._color))
        return upload(self._words.view(np.int64), self._color.device)

    @cached_property
    def here(self) -> NDArray[np.uint64]:
        if self._words is not None:
            return self._words
        words: NDArray[np.int64] = self.there.cpu().numpy()
        return words.view(np.uint64)
