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
from beaufort.evaluation.blocks import HELD, Batch, Block, divisor_of_block, power_of_two
from beaufort.evaluation.planning import Setup
from beaufort.models import Model
from beaufort.models.filtered import FilteredModel
from beaufort.models.network import Network
from beaufort.store import AnswerScores, look_like_shares, score_logits, score_tensor, unpack
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

BatchAnswer = tuple[AnswerScores, NDArray[np.float32] | None]
"""What is kept of the answers to a batch, and the logits if they are wanted."""


Film = tuple[Batch, ...]
"""Batches of the same images that are made together: the frames of a sequence. Most have one."""


class DeviceError(BeaufortError, RuntimeError):
    """A device failed or ran out of memory."""


class Backend(Protocol):
    """Corrupts the batches of a block."""

    lag: int
    """Maximum batches in flight: handed to a model whose answers were not fetched yet."""
    ahead: bool
    """Whether the next block is decoded while this one is answered."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def batch_size(self, image_bytes: int) -> int:
        """Default number of images in a batch, from the size of one image in bytes."""

    def shown(self, pool: Executor, films: Iterator[Film]) -> Iterator[tuple[Batch, Images]]:
        """The batches with their corrupted images."""

    def used(self, condition: Condition) -> str:
        """Name of the device that corrupts the images of a condition, for the provenance."""

    def notes(self, conditions: Sequence[Condition]) -> Iterator[str]:
        """What a reader of the results should know, before anything is done."""


def choose_backend(models: Sequence[Model], setup: Setup, jobs: int) -> Backend:
    """The CUDA device of the first model that takes images there, else threads."""
    for model in models:
        if isinstance(model, Network) and model.on_device and model.device.startswith("cuda"):
            return Device(setup, model.device)
    return Threads(setup, jobs)


def ask(
    model: Model, images: Images, truth: NDArray[np.int64], space: LabelSpace, *, keep_logits: bool
) -> Callable[[], BatchAnswer]:
    """Show images to a model; what comes back waits for the answer, scored in a label space.

    A network that takes tensors answers them on its device, where the answers are scored, too, and nobody
    waits; all else is done at once. Logits are kept as the model gave them, those of every output.
    """
    if isinstance(model, Network) and model.takes_tensors(images):
        from beaufort._core.device import upload
        from beaufort.models.tensors import fetched

        with _told(f"{model.spec.name} on {len(images)} images", only_memory=True):
            found = model.predict_tensors(images)
            if truth.ndim == 1:
                scores = fetched(score_tensor(space.apply(found), upload(truth, found.device)))
                shares = None if space.identity else fetched(look_like_shares(found))
                kept = fetched(found) if keep_logits else None
                return lambda: (
                    _with_shares(unpack(scores()), None if shares is None else shares()),
                    None if kept is None else kept(),
                )
        logits = found.float().cpu().numpy()  # sets of labels are scored by the host
    elif isinstance(model, FilteredModel):
        each = [np.asarray(one, np.float32) for one in model.view_logits(on_host(images))]
        own = np.logical_and.reduce([look_like_shares(one) for one in each])  # means over views hide it
        scored, logits_kept = _scored(model.mean_logits(each), truth, space, keep_logits=keep_logits)
        return lambda: (_with_shares(scored, own), logits_kept)
    else:
        logits = np.asarray(model(on_host(images)), np.float32)
    answer = _scored(logits, truth, space, keep_logits=keep_logits)
    return lambda: answer


def ask_changed(
    model: Model,
    images: Images,
    batch: Batch,
    setup: Setup,
    truth: NDArray[np.int64],
    space: LabelSpace,
    *,
    keep_logits: bool,
) -> Callable[[], BatchAnswer]:
    """As `ask`, for a condition that makes its images for one model, as an attack does."""
    shift = batch.condition.shift
    assert isinstance(shift, ModelShift)
    found = shift.predict(model, images, ids=batch.ids, labels=truth, space=space, seed=setup.seed)
    answer = _scored(np.asarray(found, np.float32), truth, space, keep_logits=keep_logits)
    return lambda: answer


def _scored(
    logits: NDArray[np.float32], truth: NDArray[np.int64], space: LabelSpace, *, keep_logits: bool
) -> BatchAnswer:
    scored = score_logits(space.apply(logits), truth)
    answer = _with_shares(scored, None if space.identity else look_like_shares(logits))
    return answer, logits if keep_logits else None


def _with_shares(scores: AnswerScores, shares: NDArray[np.bool_] | None) -> AnswerScores:
    """Whether answers look like probabilities is asked of all outputs, not of those that are classes."""
    return scores if shares is None else scores._replace(shares=shares)


class Threads:
    """Arrays, corrupted by the CPU backend."""

    lag = 0
    ahead = False  # all threads corrupt

    def __init__(self, setup: Setup, jobs: int) -> None:
        self._setup = setup
        self._jobs = jobs

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @staticmethod
    def batch_size(image_bytes: int) -> int:
        return power_of_two(16 * 224 * 224 * 3 // image_bytes)

    def shown(self, pool: Executor, films: Iterator[Film]) -> Iterator[tuple[Batch, Images]]:
        waiting: deque[tuple[Film, Future[list[Bytes]]]] = deque()
        size = 0
        for film in films:
            waiting.append((film, pool.submit(_on_host, self._setup, film)))
            size += _size(film, self._setup)
            while len(waiting) > self._jobs + 1 or (size > _IN_FLIGHT and waiting):
                first, shown = waiting.popleft()
                size -= _size(first, self._setup)
                yield from zip(first, shown.result(), strict=True)
        while waiting:
            first, shown = waiting.popleft()
            yield from zip(first, shown.result(), strict=True)

    def used(self, condition: Condition) -> str:  # noqa: ARG002
        return "cpu"

    def notes(self, conditions: Sequence[Condition]) -> Iterator[str]:  # noqa: ARG002
        yield from ()


class Device:
    """Tensors, corrupted on a device; by the CPU backend where a recipe is for arrays only."""

    lag = 2
    ahead = True

    def __init__(self, setup: Setup, device: str) -> None:
        import torch

        self._setup = setup
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

    def shown(self, pool: Executor, films: Iterator[Film]) -> Iterator[tuple[Batch, Images]]:
        import torch

        waiting: deque[tuple[Batch, Images, Any]] = deque()
        most = 0  # the model begins with the first batch, and others are made while it looks
        clean: _Clean | None = None
        for film in films:
            if clean is None or clean.block is not film[0].block:
                clean = _Clean(film[0].block, pool, self._device)
            frames = self._corrupted(film, clean)
            for batch in film:
                with torch.cuda.stream(self._stream):
                    made = next(frames)
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

    def _corrupted(self, film: Film, clean: _Clean) -> Iterator[Images]:
        """The batches of a film, one after the other as they are asked for."""
        first = film[0]
        if not first.rows:
            yield from (np.empty((0, 0, 0, 0), np.uint8) for _ in film)
            return
        with _told(f"{first.condition} on {len(first.rows)} images"), _named(film):
            if _takes_tensors(first.condition):
                yield from _applied(self._setup, film, clean.tensor(first))
                return
            from beaufort._core.device import upload

            for made in _applied(self._setup, film, clean.array(first)):
                yield upload(made, self._device)


@cache
def _stream_of(device: torch.device) -> Any:
    """The stream that images are made on, one for all runs: torch keeps memory for each stream apart."""
    import torch

    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


class _Clean:
    """The images of a block on the device, batch by batch, as far as `HELD` bytes go."""

    def __init__(self, block: Block, pool: Executor, device: Any) -> None:
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
        shape = (len(batch.rows), *batch.group.shape)
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
def _told(what: str, *, only_memory: bool = False) -> Iterator[None]:
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


def _size(film: Film, setup: Setup) -> int:
    """In bytes, all of its batches together."""
    return sum(batch.size for batch in film) // setup.frames


def _on_host(setup: Setup, film: Film) -> list[Bytes]:
    rows = film[0].rows
    if not rows:
        return [np.empty((0, 0, 0, 0), np.uint8) for _ in film]
    with _named(film):
        return list(_applied(setup, film, film[0].block.images(rows)))


@contextlib.contextmanager
def _named(film: Film) -> Iterator[None]:
    """Say of an error which images it is about: those of a batch have the same size."""
    try:
        yield
    except BeaufortError as error:
        ids = film[0].ids
        others = f", the first of {len(ids)} images" if len(ids) > 1 else ""
        error.add_note(f"{ids[0]}{others}, under {film[0].condition}")
        raise


def _applied(setup: Setup, film: Film, clean: _Kind) -> Iterator[_Kind]:
    """What is shown of a batch of arrays or tensors `(n, h, w, c)`, for each condition of a film."""
    first, ids = film[0].condition, film[0].ids
    shifts = [batch.condition.shift for batch in film]
    frames = [shift for shift in shifts if isinstance(shift, Frame)]
    images: Any = clean
    if frames and setup.stored:
        yield from (cast("_Kind", frame.cut(images)) for frame in frames)
    elif frames:
        numbers = [frame.number for frame in frames]
        made = frames[0].frames(images, numbers, ids=ids, seed=setup.seed)
        yield from (cast("_Kind", frame) for frame in made)
    elif setup.stored or first.needs_model:
        yield clean  # they are that already, or are changed when the model is asked
    elif isinstance(images, np.ndarray):
        yield first.apply(images, ids=ids, seed=setup.seed, scale=setup.scale)
    else:
        some = first.apply(images.movedim(-1, 1), ids=ids, seed=setup.seed, scale=setup.scale)
        yield some.movedim(1, -1)
