"""Backends that corrupt images: threads of the CPU, or the device on which the models run.

Both prepare batches ahead of the models. On a device, the clean images of a batch are copied once for all
conditions and corrupted on a separate stream, while the model runs on the previous batch.
"""

from __future__ import annotations

import contextlib
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, cast

import numpy as np

from beaufort._core.arrays import Bytes, Images
from beaufort._core.errors import BeaufortError
from beaufort.corruptions import Chain
from beaufort.evaluation.batches import HELD, Batch, ImageBlock, divisor_of_block, power_of_two
from beaufort.evaluation.sources import ImageSource
from beaufort.models import Model
from beaufort.models.network import Network
from beaufort.suites.conditions import Condition
from beaufort.suites.frames import Frame

if TYPE_CHECKING:
    import torch
    from torch import Tensor

_IN_FLIGHT = 1 << 28
"""Maximum bytes of corrupted images waiting for a model; a single batch may be larger."""

_TURN_S = 0.0005
"""Switch interval of the interpreter; decoding threads must not delay the thread that feeds a device."""

_Kind = TypeVar("_Kind")  # arrays or tensors

BatchGroup = tuple[Batch, ...]
"""Batches of the same images that are made together, as frames of a sequence; usually one."""


class DeviceError(BeaufortError, RuntimeError):
    """A device failed or ran out of memory."""


class Backend(Protocol):
    """Corrupts the batches of a block."""

    lag: int
    """Maximum number of batches whose predictions were not copied to the host yet."""
    ahead: bool
    """Whether the next block is decoded while the current one is predicted."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def batch_size(self, image_bytes: int) -> int:
        """Return the default batch size for images of this size."""

    def corrupted(self, pool: Executor, batches: Iterator[BatchGroup]) -> Iterator[tuple[Batch, Images]]:
        """Yield the batches with their corrupted images."""

    def used(self, condition: Condition) -> str:
        """Return the name of the device that corrupts the images of a condition, for the provenance."""

    def notes(self, conditions: Sequence[Condition]) -> Iterator[str]:
        """Yield notes on conditions that the device does not support."""


def choose_backend(models: Sequence[Model], source: ImageSource, jobs: int) -> Backend:
    """Return the CUDA device of the first model that takes tensors, else threads."""
    for model in models:
        if isinstance(model, Network) and model.on_device and model.device.startswith("cuda"):
            return DeviceBackend(source, model.device)
    return CpuBackend(source, jobs)


class CpuBackend:
    """Corrupts arrays in threads."""

    lag = 0
    ahead = False  # all threads corrupt images

    def __init__(self, source: ImageSource, jobs: int) -> None:
        self._source = source
        self._jobs = jobs

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @staticmethod
    def batch_size(image_bytes: int) -> int:
        return power_of_two(16 * 224 * 224 * 3 // image_bytes)

    def corrupted(self, pool: Executor, batches: Iterator[BatchGroup]) -> Iterator[tuple[Batch, Images]]:
        waiting: deque[tuple[BatchGroup, Future[list[Bytes]]]] = deque()
        size = 0
        for group in batches:
            waiting.append((group, pool.submit(_corrupt_on_host, self._source, group)))
            size += _group_bytes(group, self._source)
            while len(waiting) > self._jobs + 1 or (size > _IN_FLIGHT and waiting):
                first, images = waiting.popleft()
                size -= _group_bytes(first, self._source)
                yield from zip(first, images.result(), strict=True)
        while waiting:
            first, images = waiting.popleft()
            yield from zip(first, images.result(), strict=True)

    def used(self, condition: Condition) -> str:  # noqa: ARG002
        return "cpu"

    def notes(self, conditions: Sequence[Condition]) -> Iterator[str]:  # noqa: ARG002
        yield from ()


class DeviceBackend:
    """Corrupts tensors on a device; corruptions that support arrays only run on the CPU."""

    lag = 2
    ahead = True

    def __init__(self, source: ImageSource, device: str) -> None:
        import torch

        self._source = source
        self._device = torch.device(device)
        self._stream: Any = _stream_of(self._device) if self._device.type == "cuda" else None

    def __enter__(self) -> Self:
        self._interval = sys.getswitchinterval()
        sys.setswitchinterval(_TURN_S)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setswitchinterval(self._interval)

    @staticmethod
    def batch_size(image_bytes: int) -> int:
        return divisor_of_block(256 * 224 * 224 * 3 // image_bytes)

    def corrupted(self, pool: Executor, batches: Iterator[BatchGroup]) -> Iterator[tuple[Batch, Images]]:
        import torch

        waiting: deque[tuple[Batch, Images, Any]] = deque()
        most = 0  # the model starts with the first batch; others are made meanwhile
        clean: _Clean | None = None
        for group in batches:
            if clean is None or clean.block is not group[0].block:
                clean = _Clean(group[0].block, pool, self._device)
            corrupted = self._corrupted(group, clean)
            for batch in group:
                with torch.cuda.stream(self._stream):
                    made = next(corrupted)
                    waiting.append((batch, made, self._stream and self._stream.record_event()))
                if len(waiting) > most:
                    yield self._hand_over(*waiting.popleft())
                    most = self.lag
        while waiting:
            yield self._hand_over(*waiting.popleft())

    def used(self, condition: Condition) -> str:
        import torch

        if not _supports_tensors(condition):
            return "cpu"
        named = f": {torch.cuda.get_device_name(self._device)}" if self._stream else ""
        return f"{self._device.type}{named}"

    def notes(self, conditions: Sequence[Condition]) -> Iterator[str]:
        for name in dict.fromkeys(c.corruption for c in conditions if not _supports_tensors(c)):
            yield f"{name} is computed on the CPU, because it does not support tensors"

    def _hand_over(self, batch: Batch, images: Any, made: Any) -> tuple[Batch, Images]:
        """Make the stream of the model wait for the images, and keep them until it is done."""
        if made is not None:
            import torch

            here = torch.cuda.current_stream(self._device)
            here.wait_event(made)
            images.record_stream(here)
        return batch, images

    def _corrupted(self, group: BatchGroup, clean: _Clean) -> Iterator[Images]:
        """Yield the corrupted images of a group, batch by batch."""
        first = group[0]
        if not first.rows:
            yield from (np.empty((0, 0, 0, 0), np.uint8) for _ in group)
            return
        with explain_device_errors(f"{first.condition} on {len(first.rows)} images"), _note_images(group):
            if _supports_tensors(first.condition):
                yield from _corrupt(self._source, group, clean.tensor(first))
                return
            from beaufort._core.device import upload

            for made in _corrupt(self._source, group, clean.array(first)):
                yield upload(made, self._device)


@cache
def _stream_of(device: torch.device) -> Any:
    """Return the stream for corruptions, one for all runs: torch caches memory per stream."""
    import torch

    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


class _Clean:
    """The images of a block on the device, up to `HELD` bytes."""

    def __init__(self, block: ImageBlock, pool: Executor, device: Any) -> None:
        self.block, self._pool, self._device = block, pool, device
        self._held: dict[tuple[int, ...], Tensor] = {}
        self._room = HELD

    def array(self, batch: Batch, out: Bytes | None = None) -> Bytes:
        held = self.block.held(batch.rows)
        if held is None:  # the pool may be busy with the next block
            held = list(self._pool.map(self.block.image, batch.rows))
        return np.stack(held, out=out)

    def tensor(self, batch: Batch) -> Tensor:
        import torch

        if batch.rows in self._held:
            return self._held[batch.rows]
        shape = (len(batch.rows), *batch.shape)
        host = torch.empty(shape, dtype=torch.uint8, pin_memory=self._device.type == "cuda")
        self.array(batch, host.numpy())
        tensor = host.to(self._device, non_blocking=True)
        if batch.size <= self._room:
            self._room -= batch.size
            self._held[batch.rows] = tensor
        return tensor


def _supports_tensors(condition: Condition) -> bool:
    if condition.links:
        return Chain(condition.links).tensors
    return condition.clean or condition.needs_model or isinstance(condition.shift, Frame)


@contextlib.contextmanager
def explain_device_errors(what: str, *, only_memory: bool = False) -> Iterator[None]:
    """Raise errors of the device as `DeviceError`, with advice."""
    import torch

    try:
        yield
    except BeaufortError:
        raise
    except torch.OutOfMemoryError as error:
        raise DeviceError(
            f"the device ran out of memory ({what}); use a smaller batch_size: {_line(error)}"
        ) from error
    except Exception as error:
        if only_memory:
            raise
        raise DeviceError(
            f"the device failed ({what}): {type(error).__name__}: {_line(error)}; a corruption of your own "
            "that supports arrays only must be declared with tensors=False"
        ) from error


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _group_bytes(group: BatchGroup, source: ImageSource) -> int:
    """Return the bytes of the images of a group."""
    return sum(batch.size for batch in group) // source.frames


def _corrupt_on_host(source: ImageSource, group: BatchGroup) -> list[Bytes]:
    rows = group[0].rows
    if not rows:
        return [np.empty((0, 0, 0, 0), np.uint8) for _ in group]
    with _note_images(group):
        return list(_corrupt(source, group, group[0].block.images(rows)))


@contextlib.contextmanager
def _note_images(group: BatchGroup) -> Iterator[None]:
    """Add a note with the images of the batch to an error."""
    try:
        yield
    except BeaufortError as error:
        ids = group[0].ids
        others = f", the first of {len(ids)} images" if len(ids) > 1 else ""
        error.add_note(f"{ids[0]}{others}, under {group[0].condition}")
        raise


def _corrupt(source: ImageSource, group: BatchGroup, clean: _Kind) -> Iterator[_Kind]:
    """Yield the corrupted images, arrays or tensors `(n, h, w, c)`, for each condition of a group."""
    first, ids = group[0].condition, group[0].ids
    shifts = [batch.condition.shift for batch in group]
    frames = [shift for shift in shifts if isinstance(shift, Frame)]
    images: Any = clean
    if frames and source.stored:
        yield from (cast("_Kind", frame.cut(images)) for frame in frames)
    elif frames:
        numbers = [frame.number for frame in frames]
        made = frames[0].frames(images, numbers, ids=ids, seed=source.seed)
        yield from (cast("_Kind", frame) for frame in made)
    elif source.stored or first.needs_model:
        yield clean  # already corrupted, or changed when the model is run
    elif isinstance(images, np.ndarray):
        yield first.apply(images, ids=ids, seed=source.seed, scale=source.scale)
    else:
        some = first.apply(images.movedim(-1, 1), ids=ids, seed=source.seed, scale=source.scale)
        yield some.movedim(1, -1)
