"""Where images are corrupted: on threads of the processor, or on the device that the models run on.

Both make batches a little before they are asked for. On a device the clean images of a block are copied once;
they are corrupted there on a stream of their own, beside the model that looks at the batch before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from beaufort.arrays import Bytes, Images, is_tensor
from beaufort.conditions import Condition
from beaufort.errors import BeaufortError
from beaufort.evaluation.plan import Range, Setup
from beaufort.models import Model
from beaufort.models.network import Network
from beaufort.models.spec import Logits

__all__ = ["Batch", "Device", "Engine", "Threads", "ask", "choose_engine"]


@dataclass(frozen=True)
class Batch:
    """Images of one range under one condition that are shown together."""

    condition: Condition
    span: Range
    rows: tuple[int, ...]
    """Places in the data set."""
    last: bool
    """Whether it is the last of its span."""


class Engine(Protocol):
    """Corrupts the batches of a block."""

    notes: list[str]
    """What a reader of the results should know."""
    values: int
    """Of a batch, when its size is left to us."""
    lag: int
    """How many answers are asked for before the first is waited for."""
    blocks_ahead: int
    """How many blocks are decoded before their turn; none where that would take threads from corrupting."""

    def shown(
        self, pool: ThreadPoolExecutor, batches: Iterator[Batch], images: dict[int, Bytes]
    ) -> Iterator[tuple[Batch, Images]]:
        """The batches with their corrupted images."""

    def used(self, condition: Condition) -> str:
        """What corrupts the images of a condition."""


def choose_engine(models: Sequence[Model], setup: Setup, jobs: int) -> Engine:
    """The CUDA device of the first model that takes images there, else threads."""
    for model in models:
        if isinstance(model, Network) and model.on_device and model.device.startswith("cuda"):
            return Device(setup, model.device)
    return Threads(setup, jobs)


def ask(model: Model, images: Images) -> Callable[[], Logits]:
    """Show images to a model; what comes back waits for its logits."""
    if isinstance(model, Network):
        return model.submit(images)
    answer = model(images.cpu().numpy() if is_tensor(images) else images)
    return lambda: answer


class Threads:
    """Arrays, corrupted by the CPU engine."""

    values = 16 * 224 * 224 * 3
    lag = 0
    blocks_ahead = 0

    def __init__(self, setup: Setup, jobs: int) -> None:
        self.notes: list[str] = []
        self._setup = setup
        self._jobs = jobs

    def shown(
        self, pool: ThreadPoolExecutor, batches: Iterator[Batch], images: dict[int, Bytes]
    ) -> Iterator[tuple[Batch, Images]]:
        waiting: deque[tuple[Batch, Future[Bytes]]] = deque()
        for batch in batches:
            waiting.append((batch, pool.submit(_corrupted, self._setup, batch, images)))
            if len(waiting) > self._jobs + 1:
                first, shown = waiting.popleft()
                yield first, shown.result()
        while waiting:
            first, shown = waiting.popleft()
            yield first, shown.result()

    def used(self, condition: Condition) -> str:  # noqa: ARG002
        return "cpu"


class Device:
    """Tensors, corrupted on a device by the torch engine; by the CPU engine where that one cannot."""

    values = 256 * 224 * 224 * 3
    lag = 2
    blocks_ahead = 1

    def __init__(self, setup: Setup, device: str) -> None:
        import torch

        self.notes: list[str] = []
        self._setup = setup
        self._device = torch.device(device)
        self._stream: Any = None
        if self._device.type == "cuda":
            self._stream = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        self._unable: dict[str, str] = {}

    def shown(
        self,
        pool: ThreadPoolExecutor,  # noqa: ARG002
        batches: Iterator[Batch],
        images: dict[int, Bytes],
    ) -> Iterator[tuple[Batch, Images]]:
        import torch

        waiting: deque[tuple[Batch, Images, Any]] = deque()
        with torch.cuda.stream(self._stream):
            clean = _Clean(images, self._device)
        for batch in batches:
            with torch.cuda.stream(self._stream):
                made = self._corrupted(batch, clean, images)
                waiting.append((batch, made, self._stream and self._stream.record_event()))
            if len(waiting) > self.lag:
                yield self._handed_over(*waiting.popleft())
        while waiting:
            yield self._handed_over(*waiting.popleft())

    def used(self, condition: Condition) -> str:
        import torch

        if condition.corruption in self._unable:
            return "cpu"
        named = f": {torch.cuda.get_device_name(self._device)}" if self._stream else ""
        return f"{self._device.type}{named}"

    def _handed_over(self, batch: Batch, shown: Images, made: Any) -> tuple[Batch, Images]:
        """Let the stream of the model wait until the images are made, and not be freed before it is done."""
        if made is not None:
            import torch

            here = torch.cuda.current_stream(self._device)
            here.wait_event(made)
            shown.record_stream(here)
        return batch, shown

    def _corrupted(self, batch: Batch, clean: _Clean, images: dict[int, Bytes]) -> Images:
        name = batch.condition.corruption
        if batch.rows and name not in self._unable:
            try:
                some = clean[batch.rows].movedim(-1, 1)
                return _applied(self._setup, batch, some).movedim(1, -1)
            except BeaufortError:
                raise
            except Exception as error:  # a recipe of anyone's may hold code for arrays only
                self._unable[str(name)] = told = (
                    f"{type(error).__name__}: {' '.join(str(error).split()):.200}"
                )
                self.notes.append(f"{name} is made by the CPU engine; it does not run on the device ({told})")
        import torch

        return torch.from_numpy(_corrupted(self._setup, batch, images)).to(self._device)


class _Clean:
    """The images of a block on the device, those of one shape together."""

    def __init__(self, images: dict[int, Bytes], device: Any) -> None:
        from beaufort.ops.torch import upload

        shapes: dict[tuple[int, ...], list[int]] = {}
        for place, image in images.items():
            shapes.setdefault(image.shape, []).append(place)
        self._at = {place: i for places in shapes.values() for i, place in enumerate(places)}
        self._whole: dict[int, Images] = {}
        for places in shapes.values():
            tensor = upload(np.stack([images[place] for place in places]), device)
            self._whole.update(dict.fromkeys(places, tensor))

    def __getitem__(self, places: tuple[int, ...]) -> Images:
        whole = self._whole[places[0]]
        first, last = self._at[places[0]], self._at[places[-1]]
        if last - first == len(places) - 1:
            return whole[first : last + 1]
        from beaufort.ops.torch import upload

        return whole[upload(np.array([self._at[place] for place in places]), whole.device)]


def _corrupted(setup: Setup, batch: Batch, images: dict[int, Bytes]) -> Bytes:
    if not batch.rows:
        return np.empty((0, 0, 0, 0), np.uint8)
    shown: Bytes = _applied(setup, batch, np.stack([images[row] for row in batch.rows]))
    return shown


def _applied(setup: Setup, batch: Batch, clean: Images) -> Images:
    ids = [setup.dataset.ids[row] for row in batch.rows]
    return batch.condition.apply(clean, ids=ids, seed=setup.seed, scale=setup.scale)
