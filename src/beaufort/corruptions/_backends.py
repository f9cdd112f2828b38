"""Run a recipe on a batch: on arrays with threads, or on torch tensors on their device."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cache
from itertools import pairwise
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes, Images, read_only
from beaufort.corruptions._kernels import cpu_ops, torch_ops
from beaufort.corruptions._recipe import Recipe
from beaufort.corruptions.rng import Key, Keyed, ReferenceStream

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")

_PIECE = 1_204_224
"""Bytes of images worked on at a time: eight 224×224×3 images, or two with a number drawn for each value."""

_GPU_PIECE, _CPU_PIECE = 1 << 31, 1 << 26
"""Bytes in use at a time, temporary arrays included, on a GPU and on the CPU."""

_PER_VALUE = 24
"""Approximate bytes in use for each value of an image, where numbers are drawn for each."""


def run_reference(color: Bytes, recipe: Recipe, params: Any, random: ReferenceStream) -> Bytes:
    """Corrupt a batch with NumPy's legacy stream, one image after the other."""
    out = np.empty_like(color)
    for i in range(len(color)):
        out[i : i + 1] = recipe.run(color[i : i + 1], params, random.repeated(), cpu_ops())
    return out


def run_arrays(
    color: Bytes, recipe: Recipe, params: Any, key: Key, words: NDArray[np.uint64] | None, jobs: int
) -> Bytes:
    """Corrupt a batch in main memory, in pieces that fit the cache, on several threads."""
    ops = cpu_ops()
    color = read_only(color)
    if words is None:
        words = np.zeros(len(color), np.uint64) if recipe.draw is None else np.asarray(ops.content_ids(color))

    def corrupted(part: slice) -> Bytes:
        made = recipe.run(color[part], params, lambda: Keyed(key, words[part], ops), ops)
        return cast("Bytes", made)

    if jobs == 1 and (len(color) == 1 or color.size * recipe.bulk <= _PIECE):
        return _own(np.asarray(corrupted(slice(None))), color)
    step = max(1, _PIECE // (math.prod(color.shape[1:]) * recipe.bulk))
    out = np.empty_like(color)

    def run(part: slice) -> None:
        out[part] = corrupted(part)

    in_threads(run, _pieces(len(color), step, jobs), jobs)
    return out


def _own(made: Bytes, color: Bytes) -> Bytes:
    """Return the result in memory of its own; a render may return its input or a view of it."""
    whole = made.flags.carray  # contiguous and writable
    return made if whole and not np.may_share_memory(made, color) else made.copy()


def _pieces(count: int, step: int, jobs: int) -> list[slice]:
    """Split a batch into pieces of `step` images.

    For several threads, which wait for each other between pieces, they are up to twice as large and
    become smaller toward the end, so that the first thread without work does not wait long.
    """
    cuts = [0]
    while cuts[-1] < count:
        left = count - cuts[-1]
        size = step if jobs == 1 else min(2 * step, max(left // (4 * jobs), step // 2, 1))
        cuts.append(cuts[-1] + size)
    return [slice(start, stop) for start, stop in pairwise(cuts)]


def in_threads(work: Callable[[T], None], items: Iterable[T], threads: int) -> None:
    """Call `work` on every item; after an error each thread ends with its item, and the error is raised.

    A thread pool would start one thread more and wake them all through a queue, which is noticeable in a
    batch of a few milliseconds.
    """
    rest = iter(items)
    errors: list[BaseException] = []

    def go() -> None:
        for item in rest:
            if errors:
                return
            try:
                work(item)
            except BaseException as error:  # of another thread, or an interrupt of this one
                errors.append(error)

    others = [Thread(target=go) for _ in range(threads - 1)]
    for other in others:
        other.start()
    go()
    for other in others:
        other.join()
    if errors:
        raise errors[0]


def run_tensors(
    color: Images, recipe: Recipe, params: Any, key: Key, words: NDArray[np.uint64] | None
) -> Images:
    """Corrupt a batch `(n, h, w, c)` with torch.

    `words` are those of the images' ids, or None if pixels identify the images. The host waits for the
    device only where it draws numbers itself and pixels are the ids.
    """
    import torch

    from beaufort._core.device import upload

    if isinstance(color, np.ndarray):
        return np.asarray(run_tensors(torch.from_numpy(color), recipe, params, key, words))
    if len(color) == 0:
        return color.clone()
    ops = torch_ops()

    @cache
    def ids() -> Tensor:
        """The words on the device: an int64 tensor of the same bits."""
        if words is None:
            return cast("Tensor", ops.content_ids(color))
        return upload(words.view(np.int64), color.device)

    @cache
    def host_ids() -> NDArray[np.uint64]:
        return words if words is not None else ids().cpu().numpy().view(np.uint64)

    def run(part: slice) -> Images:
        def random() -> Keyed:
            return Keyed(key, ids()[part], ops, lambda: host_ids()[part])

        return recipe.run(color[part], params, random, ops)

    size = math.prod(color.shape[1:]) * _PER_VALUE * max(1, recipe.bulk // 4)
    step = max(1, (_CPU_PIECE if color.is_cpu else _GPU_PIECE) // size)
    with torch.cuda.device_of(color):  # type: ignore[no-untyped-call]
        if step >= len(color):
            return run(slice(0, len(color)))
        out = torch.empty_like(color)
        for start in range(0, len(color), step):
            part = slice(start, start + step)
            out[part] = torch.as_tensor(run(part))
        return out
