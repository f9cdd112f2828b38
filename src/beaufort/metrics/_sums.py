"""Sums over images that batches, metrics and processes add to: what the classes for torch are made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Self, TypeAlias

from beaufort._core.errors import MissingExtraError
from beaufort.metrics._errors import MetricError, MissingResultsError

try:  # here, so that whatever needs torch takes it from here and the error says what to install
    import torch as torch  # noqa: PLC0414
    from torch import distributed
except ImportError as error:
    raise MissingExtraError("beaufort.metrics.torch needs torch: pip install 'beaufort[torch]'") from error

Sums: TypeAlias = Mapping[str, torch.Tensor]


class SumMetric(ABC):
    """A value that follows from sums over images.

    Sums are float64, so counts are exact and many small batches lose nothing.
    """

    def __init__(self, *settings: object, **shapes: tuple[int, ...]) -> None:
        self._settings = settings
        self._sums = {name: torch.zeros(shape, dtype=torch.float64) for name, shape in shapes.items()}

    @abstractmethod
    def value(self, sums: Sums) -> float:
        """What the sums, on the CPU, come to."""

    @property
    def device(self) -> torch.device:
        """Where the sums are."""
        return next(iter(self._sums.values())).device

    def to(self, device: torch.device | str) -> Self:
        """Move the sums; logits may come from any device."""
        self._sums = {name: sums.to(device) for name, sums in self._sums.items()}
        return self

    def reset(self) -> None:
        """Forget all images seen so far."""
        self._sums = {name: torch.zeros_like(sums) for name, sums in self._sums.items()}

    def merge_state(self, other: SumMetric) -> None:
        """Add what another one has seen, as if it had come here."""
        if type(other) is not type(self) or other._settings != self._settings:
            raise MetricError(
                f"only a metric of the same class and settings can be merged into {self!r}, got {other!r}"
            )
        self._add(**other._sums)

    def compute(self, *, sync: bool = True) -> torch.Tensor:
        """The value over all images seen so far, on all processes together unless `sync` is false."""
        sums = self._everyones() if sync and _running() else self._sums
        value = self.value({name: each.cpu() for name, each in sums.items()})
        return torch.tensor(value, dtype=torch.float64, device=self.device)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._settings))})"

    def _add(self, **more: torch.Tensor) -> None:
        # Not in place: sums made under inference_mode could not be changed outside of it.
        self._sums = {name: sums + more[name].to(sums.device) for name, sums in self._sums.items()}

    def _everyones(self) -> dict[str, torch.Tensor]:
        flat = torch.cat([sums.flatten() for sums in self._sums.values()])
        if flat.device.type == "cpu" and distributed.get_backend() == "nccl":
            flat = flat.to(torch.device("cuda", torch.cuda.current_device()))
        distributed.all_reduce(flat)
        parts = torch.split(flat, [sums.numel() for sums in self._sums.values()])
        return {
            name: part.reshape(sums.shape)
            for (name, sums), part in zip(self._sums.items(), parts, strict=True)
        }


def _running() -> bool:
    """Whether there are other processes to add up with."""
    return distributed.is_available() and distributed.is_initialized()


def checked(logits: torch.Tensor, labels: torch.Tensor | None) -> torch.Tensor:
    """The logits in float64, `(images, classes)`, with labels that fit."""
    logits = logits.detach()
    if logits.ndim != 2 or logits.shape[1] == 0 or not logits.is_floating_point():
        raise MetricError(
            "logits must be floating-point of shape (images, classes), got "
            f"{logits.dtype} of shape {tuple(logits.shape)}"
        )
    if not bool(torch.isfinite(logits).all()):
        raise MetricError("logits must be finite, got NaN or infinity")
    if labels is not None:
        if labels.shape != logits.shape[:1] or labels.is_floating_point() or labels.dtype == torch.bool:
            raise MetricError(
                f"labels must be integers of shape ({len(logits)},), got {labels.dtype} of shape "
                f"{tuple(labels.shape)}"
            )
        if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < logits.shape[1]:
            raise MetricError(
                f"labels must be from 0 to {logits.shape[1] - 1}, as the logits have {logits.shape[1]} "
                f"classes, got {int(labels.min())} to {int(labels.max())}"
            )
    return logits.double()


def of_labels(values: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Each image's value for its label."""
    return values.gather(1, labels.to(values.device, torch.int64)[:, None])[:, 0]


def hits(logits: torch.Tensor, labels: torch.Tensor, k: int) -> torch.Tensor:
    """Whether the label is among the k largest logits; of equal ones the lower class counts as larger."""
    own = of_labels(logits, labels)[:, None]
    lower = torch.arange(logits.shape[1], device=logits.device) < labels.to(logits.device)[:, None]
    before = (logits > own) | ((logits == own) & lower)
    return (before.sum(dim=1) < k).double()


def mean(total: torch.Tensor, count: torch.Tensor, what: str) -> float:
    """Total by count, where there is something to count."""
    if count == 0:
        raise MissingResultsError(f"{what} has seen no images; call update first")
    return float(total / count)
