"""A recipe on a batch: on arrays with threads, or on torch tensors where they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cached_property
from itertools import pairwise
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes, Images
from beaufort.corruptions._kernels import Ops, cpu_ops, torch_ops
from beaufort.corruptions._recipe import Recipe
from beaufort.corruptions.rng import Key, Keyed, ReferenceStream

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")

_PIECE = 1_204_224
"""Bytes of images worked on at a time: eight 224×224×3 images, or two with a number drawn for each value."""

_GPU_PIECE, _CPU_PIECE = 1 << 31, 1 << 26
"""Bytes in use at a time, temporary arrays included, on a GPU and on the processor."""

_PER_VALUE = 24
"""Bytes in use for each value of an image, roughly, where numbers are drawn for each."""


def run_reference(color: Bytes, recipe: Recipe, params: Any, random: ReferenceStream) -> Bytes:
    """A batch in NumPy's legacy stream, one image after the other."""
    out = np.empty_like(color)
    for i in range(len(color)):
        out[i : i + 1] = recipe.run(color[i : i + 1], params, random.repeated(), cpu_ops())
    return out


def run_arrays(
    color: Bytes,
    recipe: Recipe,
    params: Any,
    key: Key,
    words: NDArray[np.uint64] | None,
    jobs: int,
) -> Bytes:
    """A batch in main memory, corrupted in pieces that fit the cache, on several threads."""
    ops = cpu_ops()
    color = _read_only(color)
    ids = words if words is not None else _content_ids(color, recipe, ops)
    if jobs == 1 and (len(color) == 1 or color.size * recipe.bulk <= _PIECE):
        made = recipe.run(color, params, lambda: Keyed(key, ids, ops), ops)
        return _own(np.asarray(made), color)
    step = max(1, _PIECE // (math.prod(color.shape[1:]) * recipe.bulk))
    out = np.empty_like(color)

    def run(part: slice) -> None:
        out[part] = recipe.run(color[part], params, lambda: Keyed(key, ids[part], ops), ops)

    in_threads(run, _pieces(len(color), step, jobs), jobs)
    return out


def _read_only(color: Bytes) -> Bytes:
    """The same memory, not to be written to.

    Numba compiles a kernel anew for arrays that may be written to, and users have both kinds.
    """
    view = color.view()
    view.flags.writeable = False
    return view


def _own(made: Bytes, color: Bytes) -> Bytes:
    """The result in memory of its own: a render may hand back what it got, or a view of it."""
    whole = made.flags.carray  # contiguous, and may be written to
    return made if whole and not np.may_share_memory(made, color) else made.copy()


def _pieces(count: int, step: int, jobs: int) -> list[slice]:
    """A batch in pieces of `step` images.

    For several threads, which wait for each other between pieces, they are up to twice as large, and
    become smaller toward the end: the first thread that finds nothing left has not long to wait then.
    """
    cuts = [0]
    while cuts[-1] < count:
        left = count - cuts[-1]
        size = step if jobs == 1 else min(2 * step, max(left // (4 * jobs), step // 2, 1))
        cuts.append(cuts[-1] + size)
    return [slice(start, stop) for start, stop in pairwise(cuts)]


def _content_ids(color: Bytes, recipe: Recipe, ops: Ops) -> NDArray[np.uint64]:
    return np.zeros(len(color), np.uint64) if recipe.draw is None else np.asarray(ops.content_ids(color))


def in_threads(work: Callable[[T], None], items: Iterable[T], threads: int) -> None:
    """Do `work` on every item; the first error ends all threads after the item they are at, and is raised.

    A pool would start one thread more and wake them all through a queue, which a batch of a few
    milliseconds feels.
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
