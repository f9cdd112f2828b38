"""What makes the pixels that models see: threads of the processor, or the device that the models run on.

Both make batches a little before they are asked for. On a device the clean images of a batch are copied once
for all conditions. They are corrupted there on a stream of their own, while the model looks at the batch
before.
"""

from __future__ import annotations

import contextlib
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Bytes, Images, on_host
from beaufort._core.errors import BeaufortError
from beaufort.corruptions import Chain
from beaufort.data.labels import LabelSpace
from beaufort.evaluation.batches import HELD, Batch, ImageBlock, divisor_of_block, power_of_two
from beaufort.evaluation.sources import ImageSource
from beaufort.models import Model
from beaufort.models.filtered import FilteredModel
from beaufort.models.network import Network
from beaufort.models.scoring import (
    PredictionScores,
    are_probabilities,
    score_logits,
    score_tensor,
    unpack_scores,
)
from beaufort.suites.conditions import Condition
from beaufort.suites.frames import Frame
from beaufort.suites.shifts import ModelShift

if TYPE_CHECKING:
    import torch
    from torch import Tensor

_IN_FLIGHT = 1 << 28
"""Maximum bytes of corrupted images that wait for a model; a single batch may be larger."""

_TURN_S = 0.0005
"""Switch interval of the interpreter, so that decoding threads do not hold up the one that feeds a device."""

_Kind = TypeVar("_Kind")  # arrays or tensors: what came comes back

BatchScores = tuple[PredictionScores, NDArray[np.float32] | None]
"""What is kept of the answers to a batch, and the logits if they are wanted."""


BatchGroup = tuple[Batch, ...]
"""Batches of the same images that are made together, as frames of a sequence; most have one."""


class DeviceError(BeaufortError, RuntimeError):
    """A device failed or ran out of memory."""


class Backend(Protocol):
    """Corrupts the batches of a block."""

    lag: int
    """Maximum batches in flight: handed to a model whose predictions were not copied to the host yet."""
    ahead: bool
    """Whether the next block is decoded while this one is answered."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def batch_size(self, image_bytes: int) -> int:
        """Default number of images in a batch, from the size of one image in bytes."""

    def corrupted(self, pool: Executor, batches: Iterator[BatchGroup]) -> Iterator[tuple[Batch, Images]]:
        """The batches with their corrupted images."""

    def used(self, condition: Condition) -> str:
        """Name of the device that corrupts the images of a condition, for the provenance."""

    def notes(self, conditions: Sequence[Condition]) -> Iterator[str]:
        """What a reader of the results should know, before anything is done."""


def choose_backend(models: Sequence[Model], source: ImageSource, jobs: int) -> Backend:
    """The CUDA device of the first model that takes images there, else threads."""
    for model in models:
        if isinstance(model, Network) and model.on_device and model.device.startswith("cuda"):
            return DeviceBackend(source, model.device)
    return CpuBackend(source, jobs)


def predict(
    model: Model,
    images: Images,
    batch: Batch,
    truth: NDArray[np.int64],
    space: LabelSpace,
    *,
    seed: int,
    keep_logits: bool,
) -> Callable[[], BatchScores]:
    """Run a model on the images of a batch; the result waits for the scores, in a label space.

    A network that takes tensors runs on its device, where the logits are scored, too, and nothing waits; all
    else is done at once. Logits are kept as the model gave them, those of every output.
    """
    shift = batch.condition.shift
    if batch.condition.needs_model:  # images are made for one model, as by an attack
        assert isinstance(shift, ModelShift)
        logits = shift.predict(model, images, ids=batch.ids, labels=truth, space=space, seed=seed)
    elif isinstance(model, Network) and model.takes_tensors(images):
        from beaufort._core.device import upload
        from beaufort.models.tensors import copy_to_host

        with _explained(f"{model.spec.name} on {len(images)} images", only_memory=True):
            found = model.predict_tensors(images)
            if truth.ndim == 1:
                scores = copy_to_host(score_tensor(space.apply(found), upload(truth, found.device)))
                suspect = None if space.identity else copy_to_host(are_probabilities(found))
                kept = copy_to_host(found) if keep_logits else None
                return lambda: (
                    _marked(unpack_scores(scores()), None if suspect is None else suspect()),
                    None if kept is None else kept(),
                )
        logits = found.float().cpu().numpy()  # label sets are scored by the host
    elif isinstance(model, FilteredModel):
        each = [np.asarray(one, np.float32) for one in model.view_logits(on_host(images))]
        own = np.logical_and.reduce([are_probabilities(one) for one in each])  # means over views hide it
        scored, logits_kept = _scored(model.mean_logits(each), truth, space, keep_logits=keep_logits)
        return lambda: (_marked(scored, own), logits_kept)
    else:
        logits = model(on_host(images))
    result = _scored(np.asarray(logits, np.float32), truth, space, keep_logits=keep_logits)
    return lambda: result


def _scored(
    logits: NDArray[np.float32], truth: NDArray[np.int64], space: LabelSpace, *, keep_logits: bool
) -> BatchScores:
    scores = score_logits(space.apply(logits), truth)
    suspect = None if space.identity else are_probabilities(logits)
    return _marked(scores, suspect), logits if keep_logits else None


def _marked(scores: PredictionScores, suspect: NDArray[np.bool_] | None) -> PredictionScores:
    """Whether logits look like probabilities is a question about all outputs, not only the classes."""
    return scores if suspect is None else scores._replace(are_probabilities=suspect)


class CpuBackend:
    """Arrays, corrupted by the CPU backend."""

    lag = 0
    ahead = False  # all threads corrupt

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
            waiting.append((group, pool.submit(_on_host, self._source, group)))
            size += _size(group, self._source)
            while len(waiting) > self._jobs + 1 or (size > _IN_FLIGHT and waiting):
                first, shown = waiting.popleft()
                size -= _size(first, self._source)
                yield from zip(first, shown.result(), strict=True)
        while waiting:
            first, shown = waiting.popleft()
            yield from zip(first, shown.result(), strict=True)

    def used(self, condition: Condition) -> str:  # noqa: ARG002
        return "cpu"

    def notes(self, conditions: Sequence[Condition]) -> Iterator[str]:  # noqa: ARG002
        yield from ()


class DeviceBackend:
    """Tensors, corrupted on a device; by the CPU backend where a recipe is for arrays only."""

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
        most = 0  # the model begins with the first batch, and others are made while it looks
        clean: _Clean | None = None
        for group in batches:
            if clean is None or clean.block is not group[0].block:
                clean = _Clean(group[0].block, pool, self._device)
            images = self._corrupted(group, clean)
            for batch in group:
                with torch.cuda.stream(self._stream):
                    made = next(images)
                    waiting.append((batch, made, self._stream and self._stream.record_event()))
                if len(waiting) > most:
                    yield self._handed_over(*waiting.popleft())
                    most = self.lag
        while waiting:
            yield self._handed_over(*waiting.popleft())

    def used(self, condition: Condition) -> str:
        import torch

        if not _takes_tensors(condition):
            return "cpu"
        named = f": {torch.cuda.get_device_name(self._device)}" if self._stream else ""
        return f"{self._device.type}{named}"

    def notes(self, conditions: Sequence[Condition]) -> Iterator[str]:
        for name in dict.fromkeys(c.corruption for c in conditions if not _takes_tensors(c)):
            yield f"{name} is made by the CPU backend: its recipe is for arrays only"

    def _handed_over(self, batch: Batch, shown: Any, made: Any) -> tuple[Batch, Images]:
        """Let the stream of the model wait until the images are made, and not be freed before it is done."""
        if made is not None:
            import torch

            here = torch.cuda.current_stream(self._device)
            here.wait_event(made)
            shown.record_stream(here)
        return batch, shown

    def _corrupted(self, group: BatchGroup, clean: _Clean) -> Iterator[Images]:
        """The corrupted images of a group, batch by batch."""
        first = group[0]
        if not first.rows:
            yield from (np.empty((0, 0, 0, 0), np.uint8) for _ in group)
            return
        with _explained(f"{first.condition} on {len(first.rows)} images"), _with_ids(group):
            if _takes_tensors(first.condition):
                yield from _applied(self._source, group, clean.tensor(first))
                return
            from beaufort._core.device import upload

            for made in _applied(self._source, group, clean.array(first)):
                yield upload(made, self._device)


@cache
def _stream_of(device: torch.device) -> Any:
    """The stream that images are made on, one for all runs: torch keeps memory for each stream apart."""
    import torch

    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


class _Clean:
    """The images of a block on the device, batch by batch, as far as `HELD` bytes go."""

    def __init__(self, block: ImageBlock, pool: Executor, device: Any) -> None:
        self.block, self._pool, self._device = block, pool, device
        self._held: dict[tuple[int, ...], Tensor] = {}
        self._room = HELD

    def array(self, batch: Batch, out: Bytes | None = None) -> Bytes:
        held = self.block.held(batch.rows)
        if held is None:  # only then: the pool may be busy with the next block
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


def _takes_tensors(condition: Condition) -> bool:
    if condition.links:
        return Chain(condition.links).tensors
    return condition.clean or condition.needs_model or isinstance(condition.shift, Frame)


@contextlib.contextmanager
def _explained(what: str, *, only_memory: bool = False) -> Iterator[None]:
    """Say what failed on the device, and what to do."""
    import torch

    try:
        yield
    except BeaufortError:
        raise
    except torch.OutOfMemoryError as error:
        raise DeviceError(
            f"the device ran out of memory: {what}; give a smaller batch size ({_line(error)})"
        ) from error
    except Exception as error:
        if only_memory:
            raise
        raise DeviceError(
            f"the device failed: {what} ({type(error).__name__}: {_line(error)}); a corruption of your own "
            "whose code is for arrays only is declared with tensors=False"
        ) from error


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _size(group: BatchGroup, source: ImageSource) -> int:
    """In bytes, all of its batches together."""
    return sum(batch.size for batch in group) // source.frames


def _on_host(source: ImageSource, group: BatchGroup) -> list[Bytes]:
    rows = group[0].rows
    if not rows:
        return [np.empty((0, 0, 0, 0), np.uint8) for _ in group]
    with _with_ids(group):
        return list(_applied(source, group, group[0].block.images(rows)))


@contextlib.contextmanager
def _with_ids(group: BatchGroup) -> Iterator[None]:
    """Say of an error which images it is about: those of a batch have the same size."""
    try:
        yield
    except BeaufortError as error:
        ids = group[0].ids
        others = f", the first of {len(ids)} images" if len(ids) > 1 else ""
        error.add_note(f"{ids[0]}{others}, under {group[0].condition}")
        raise


def _applied(source: ImageSource, group: BatchGroup, clean: _Kind) -> Iterator[_Kind]:
    """The corrupted images, arrays or tensors `(n, h, w, c)`, for each condition of a group."""
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
        yield clean  # they are that already, or are changed when the model is asked
    elif isinstance(images, np.ndarray):
        yield first.apply(images, ids=ids, seed=source.seed, scale=source.scale)
    else:
        some = first.apply(images.movedim(-1, 1), ids=ids, seed=source.seed, scale=source.scale)
        yield some.movedim(1, -1)
