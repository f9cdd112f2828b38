"""Metrics for torch loops: updated by batch, exact over any number of batches and processes.

Each keeps sums, so that parts add up to the whole: `update` adds a batch of logits, `compute` gives the value
over all images seen so far, `merge_state` adds what another metric of its class has seen. With
`torch.distributed`, `compute` adds up the sums of all processes; all must call it and get the same value.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Self, TypeAlias

from beaufort._core.errors import MissingExtraError, OptionError, UnknownNameError
from beaufort._core.registry import unknown_message
from beaufort._core.validation import validate_count
from beaufort.metrics._checks import MetricError, MissingResultsError
from beaufort.metrics.baselines import Baseline, Severities, get_baseline
from beaufort.metrics.calibration import ece_from_bins
from beaufort.metrics.corruption import mean_corruption_error, relative_mean_corruption_error

try:
    import torch
    from torch import distributed
except ImportError as error:
    raise MissingExtraError("beaufort.metrics.torch requires torch: pip install 'beaufort[torch]'") from error

_SHOWN = 8
"""Largest number of missing conditions in a message."""

Sums: TypeAlias = Mapping[str, torch.Tensor]


class SumMetric(ABC):
    """A metric that follows from sums over images.

    Sums are float64, so counts are exact and many small batches lose nothing.
    """

    def __init__(self, *settings: object, **shapes: tuple[int, ...]) -> None:
        self._settings = settings
        self._sums = {name: torch.zeros(shape, dtype=torch.float64) for name, shape in shapes.items()}

    @abstractmethod
    def value(self, sums: Sums) -> float:
        """Return the value of sums on the CPU."""

    @property
    def device(self) -> torch.device:
        """Device of the sums."""
        return next(iter(self._sums.values())).device

    def to(self, device: torch.device | str) -> Self:
        """Move the sums; logits may come from any device."""
        self._sums = {name: sums.to(device) for name, sums in self._sums.items()}
        return self

    def reset(self) -> None:
        """Reset the sums."""
        self._sums = {name: torch.zeros_like(sums) for name, sums in self._sums.items()}

    def merge_state(self, other: SumMetric) -> None:
        """Add the sums of another metric."""
        if type(other) is not type(self) or other._settings != self._settings:
            raise MetricError(
                f"only a metric of the same class and settings can be merged into {self!r}, got {other!r}"
            )
        self._add(**other._sums)

    def compute(self, *, sync: bool = True) -> torch.Tensor:
        """Return the value over all images so far, of all processes unless `sync` is false."""
        together = sync and distributed.is_available() and distributed.is_initialized()
        sums = self._everyones() if together else self._sums
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

    def _require_images(self, count: torch.Tensor) -> None:
        if count.sum() == 0:
            raise MissingResultsError(f"{type(self).__name__} has no images; call update first")


class MeanMetric(SumMetric):
    """The mean over images of a value per image."""

    def __init__(self, *settings: object) -> None:
        super().__init__(*settings, total=(), count=())

    @abstractmethod
    def per_image(self, logits: torch.Tensor, labels: Any) -> torch.Tensor:
        """Return the value of each image, or a row of summands; logits are float64."""

    def update(self, logits: torch.Tensor, labels: torch.Tensor) -> None:
        """Add a batch."""
        values = self.per_image(_checked(logits, labels), labels)
        self._add(total=values.sum(), count=torch.tensor(len(values)))

    def value(self, sums: Sums) -> float:
        self._require_images(sums["count"])
        return float(sums["total"] / sums["count"])


class Accuracy(MeanMetric):
    """Fraction of images whose label is among the k highest predictions.

    >>> metric = Accuracy()
    >>> metric.update(torch.tensor([[2.0, 1.0], [2.0, 1.0]]), torch.tensor([0, 1]))
    >>> metric.compute()
    tensor(0.5000, dtype=torch.float64)
    """

    def __init__(self, k: int = 1) -> None:
        super().__init__(validate_count("k", k))
        self._k = k

    def per_image(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        if self._k > logits.shape[1]:
            raise MetricError(f"k must be at most {logits.shape[1]}, the number of classes, got {self._k}")
        return _hits(logits, labels, self._k)


class CalibrationError(SumMetric):
    """Mean absolute difference between confidence and accuracy in bins of confidence.

    >>> metric = CalibrationError(bins=10)
    >>> metric.update(torch.zeros(4, 2), torch.tensor([0, 0, 0, 1]))
    >>> metric.compute()
    tensor(0.2500, dtype=torch.float64)
    """

    def __init__(self, bins: int = 15) -> None:
        super().__init__(validate_count("bins", bins), count=(bins,), confidence=(bins,), correct=(bins,))
        self._edges = torch.arange(1, bins, dtype=torch.float64) / bins

    def update(self, logits: torch.Tensor, labels: torch.Tensor) -> None:
        """Add a batch."""
        logits = _checked(logits, labels)
        confidence = logits.softmax(dim=1).amax(dim=1)
        place = torch.bucketize(confidence, self._edges.to(logits.device))
        empty = torch.zeros(len(self._edges) + 1, dtype=torch.float64, device=logits.device)
        self._add(
            count=empty.index_add(0, place, torch.ones_like(confidence)),
            confidence=empty.index_add(0, place, confidence),
            correct=empty.index_add(0, place, _hits(logits, labels, 1)),
        )

    def value(self, sums: Sums) -> float:
        self._require_images(sums["count"])
        return float(
            ece_from_bins(sums["count"].numpy(), sums["confidence"].numpy(), sums["correct"].numpy())
        )


class BrierScore(MeanMetric):
    """Squared distance of probabilities and label, summed over classes and averaged over images.

    >>> metric = BrierScore()
    >>> metric.update(torch.zeros(4, 2), torch.tensor([0, 0, 0, 1]))
    >>> metric.compute()
    tensor(0.5000, dtype=torch.float64)
    """

    def per_image(self, logits: torch.Tensor, labels: Any) -> torch.Tensor:
        p = logits.softmax(dim=1)
        return p.square().sum(dim=1) - 2 * _of_labels(p, labels) + 1


class NegativeLogLikelihood(MeanMetric):
    """Negative logarithm of the probability of the label, in nats, averaged over images.

    >>> metric = NegativeLogLikelihood()
    >>> metric.update(torch.zeros(4, 2), torch.tensor([0, 0, 0, 1]))
    >>> metric.compute()
    tensor(0.6931, dtype=torch.float64)
    """

    def per_image(self, logits: torch.Tensor, labels: Any) -> torch.Tensor:
        return -_of_labels(logits.log_softmax(dim=1), labels)


class Entropy(MeanMetric):
    """Entropy of the probabilities, in nats, averaged over images; labels are ignored.

    >>> metric = Entropy()
    >>> metric.update(torch.zeros(4, 2))
    >>> metric.compute()
    tensor(0.6931, dtype=torch.float64)
    """

    def per_image(self, logits: torch.Tensor, labels: Any) -> torch.Tensor:  # noqa: ARG002
        logs = logits.log_softmax(dim=1)
        return -(logs.exp() * logs)

    def update(self, logits: torch.Tensor, labels: torch.Tensor | None = None) -> None:
        """Add a batch."""
        super().update(logits, labels)  # type: ignore[arg-type]


class MeanCorruptionError(SumMetric):
    """mCE, or relative mCE, relative to a baseline.

    Args:
        baseline: a published one by name, or one of your own.
        relative: whether to subtract clean errors; the clean images are needed then.
        corruptions: those that count; the baseline's benchmark if not given.
        severities: those that count; all that the baseline has if not given.

    >>> metric = MeanCorruptionError("alexnet", corruptions=["fog"], severities=[1])
    >>> metric.update(torch.tensor([[2.0, 1.0], [2.0, 1.0]]), torch.tensor([0, 1]), "fog", 1)
    >>> metric.compute()  # error 50 %, AlexNet 67.474 %
    tensor(0.7410, dtype=torch.float64)
    """

    def __init__(
        self,
        baseline: str | Baseline = "alexnet",
        *,
        relative: bool = False,
        corruptions: Iterable[str] | None = None,
        severities: Severities = None,
    ) -> None:
        self._baseline = get_baseline(baseline) if isinstance(baseline, str) else baseline
        self._relative = relative
        if relative and self._baseline.clean is None:
            raise MissingResultsError(
                f"the baseline {self._baseline.name!r} has no clean error, which relative mCE requires; "
                "use another"
            )
        names = self._baseline.benchmark if corruptions is None else tuple(corruptions)
        levels = severities or self._baseline.severities or (1, 2, 3, 4, 5)
        self._theirs = self._baseline.select(names, levels)
        self._levels: tuple[int | float | None, ...] = (None,) if levels == "published" else tuple(levels)
        self._rows = {None: 0} | {name: row for row, name in enumerate(names, start=1)}
        shape = (len(self._rows), len(self._levels))
        super().__init__(self._baseline.name, relative, names, self._levels, wrong=shape, count=shape)

    def update(
        self,
        logits: torch.Tensor,
        labels: torch.Tensor,
        corruption: str | None = None,
        severity: int | None = None,
    ) -> None:
        """Add a batch of images under one corruption, or of clean ones."""
        logits = _checked(logits, labels)
        row, column = self._place(corruption, severity)
        wrong, count = (torch.zeros_like(self._sums["wrong"]) for _ in range(2))
        wrong[row, column] = len(logits) - _hits(logits, labels, 1).sum().to(wrong.device)
        count[row, column] = len(logits)
        self._add(wrong=wrong, count=count)

    def _place(self, corruption: str | None, severity: int | None) -> tuple[int, int]:
        if corruption not in self._rows:
            known = {name: row for name, row in self._rows.items() if name is not None}
            raise UnknownNameError(unknown_message("corruption of this metric", corruption, known))
        if corruption is None:
            if severity is not None:
                raise OptionError(f"severity {severity!r} requires a corruption")
            return 0, 0
        if severity not in self._levels:
            levels = ", ".join(map(str, self._levels))
            raise OptionError(
                f"severity must be one of {levels} for this metric, got {severity!r} under {corruption}"
            )
        return self._rows[corruption], self._levels.index(severity)

    def value(self, sums: Sums) -> float:
        count = sums["count"].numpy()
        self._all_there(count)
        fractions = sums["wrong"].numpy() / count.clip(min=1)
        errors = {name: fractions[row] for name, row in self._rows.items() if name is not None}
        if not self._relative:
            return float(mean_corruption_error(errors, self._theirs))
        assert self._baseline.clean is not None
        return float(
            relative_mean_corruption_error(errors, fractions[0, 0], self._theirs, self._baseline.clean)
        )

    def _all_there(self, count: Any) -> None:
        missing = ["clean"] if self._relative and not count[0, 0] else []
        missing += [
            name if level is None else f"{name}@{level}"
            for name, row in self._rows.items()
            if name is not None
            for column, level in enumerate(self._levels)
            if not count[row, column]
        ]
        if missing:
            more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
            raise MissingResultsError(
                f"MeanCorruptionError has no images of {', '.join(missing[:_SHOWN])}{more}: call update "
                "with them, or pass the corruptions and severities to include"
            )


def _checked(logits: torch.Tensor, labels: torch.Tensor | None) -> torch.Tensor:
    """Return the logits as float64 `(images, classes)`, with validated labels."""
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
                f"labels must be from 0 to {logits.shape[1] - 1}, because the logits have {logits.shape[1]} "
                f"classes, got {int(labels.min())} to {int(labels.max())}"
            )
    return logits.double()


def _of_labels(values: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the value of each image for its label."""
    return values.gather(1, labels.to(values.device, torch.int64)[:, None])[:, 0]


def _hits(logits: torch.Tensor, labels: torch.Tensor, k: int) -> torch.Tensor:
    """Return whether the label is among the k largest logits; ties go to the lower class."""
    own = _of_labels(logits, labels)[:, None]
    lower = torch.arange(logits.shape[1], device=logits.device) < labels.to(logits.device)[:, None]
    before = (logits > own) | ((logits == own) & lower)
    return (before.sum(dim=1) < k).double()
