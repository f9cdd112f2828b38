"""Metrics for loops in torch: fed batch by batch, exact over any number of batches and processes.

Each keeps sums, so that parts add up to the whole: `update` adds a batch of logits, `compute` gives the value
over all images seen so far, `merge_state` adds what another metric of its class has seen. With
`torch.distributed`, `compute` adds up the sums of all processes; all must call it and get the same value.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort._core.registry import unknown
from beaufort.metrics._checks import whole
from beaufort.metrics._errors import MetricError, MissingResultsError
from beaufort.metrics._sums import SumMetric, Sums, checked, hits, mean, of_labels, torch
from beaufort.metrics.baselines import Baseline, Severities, get_baseline
from beaufort.metrics.calibration import ece_from_bins
from beaufort.metrics.corruption import mean_corruption_error, relative_mean_corruption_error

_SHOWN = 8
"""How many missing conditions a message names."""


class Accuracy(SumMetric):
    """Share of images whose label is among the k best answers.

    >>> metric = Accuracy()
    >>> metric.update(torch.tensor([[2.0, 1.0], [2.0, 1.0]]), torch.tensor([0, 1]))
    >>> metric.compute()
    tensor(0.5000, dtype=torch.float64)
    """

    def __init__(self, k: int = 1) -> None:
        super().__init__(whole(k, "k"), correct=(), count=())
        self._k = k

    def update(self, logits: torch.Tensor, labels: torch.Tensor) -> None:
        """Add a batch."""
        logits = checked(logits, labels)
        if self._k > logits.shape[1]:
            raise MetricError(f"k must be at most {logits.shape[1]}, the number of classes, got {self._k}")
        self._add(correct=hits(logits, labels, self._k).sum(), count=torch.tensor(len(logits)))

    def value(self, sums: Sums) -> float:
        return mean(sums["correct"], sums["count"], "Accuracy")


class CalibrationError(SumMetric):
    """Average distance between how sure a model is and how often it is right, by bins of confidence.

    >>> metric = CalibrationError(bins=10)
    >>> metric.update(torch.zeros(4, 2), torch.tensor([0, 0, 0, 1]))
    >>> metric.compute()
    tensor(0.2500, dtype=torch.float64)
    """

    def __init__(self, bins: int = 15) -> None:
        super().__init__(whole(bins, "bins"), count=(bins,), confidence=(bins,), correct=(bins,))
        self._edges = torch.arange(1, bins, dtype=torch.float64) / bins

    def update(self, logits: torch.Tensor, labels: torch.Tensor) -> None:
        """Add a batch."""
        logits = checked(logits, labels)
        confidence = logits.softmax(dim=1).amax(dim=1)
        place = torch.bucketize(confidence, self._edges.to(logits.device))
        empty = torch.zeros(len(self._edges) + 1, dtype=torch.float64, device=logits.device)
        self._add(
            count=empty.index_add(0, place, torch.ones_like(confidence)),
            confidence=empty.index_add(0, place, confidence),
            correct=empty.index_add(0, place, hits(logits, labels, 1)),
        )

    def value(self, sums: Sums) -> float:
        mean(sums["correct"].sum(), sums["count"].sum(), "CalibrationError")
        return float(
            ece_from_bins(sums["count"].numpy(), sums["confidence"].numpy(), sums["correct"].numpy())
        )


class BrierScore(SumMetric):
    """Squared distance between the probabilities and the truth, summed over classes, averaged over images.

    >>> metric = BrierScore()
    >>> metric.update(torch.zeros(4, 2), torch.tensor([0, 0, 0, 1]))
    >>> metric.compute()
    tensor(0.5000, dtype=torch.float64)
    """

    def __init__(self) -> None:
        super().__init__(total=(), count=())

    def update(self, logits: torch.Tensor, labels: torch.Tensor) -> None:
        """Add a batch."""
        p = checked(logits, labels).softmax(dim=1)
        self._add(
            total=(p.square().sum(dim=1) - 2 * of_labels(p, labels) + 1).sum(), count=torch.tensor(len(p))
        )

    def value(self, sums: Sums) -> float:
        return mean(sums["total"], sums["count"], "BrierScore")


class NegativeLogLikelihood(SumMetric):
    """Minus the logarithm of the true class's probability, in nats, averaged over images.

    >>> metric = NegativeLogLikelihood()
    >>> metric.update(torch.zeros(4, 2), torch.tensor([0, 0, 0, 1]))
    >>> metric.compute()
    tensor(0.6931, dtype=torch.float64)
    """

    def __init__(self) -> None:
        super().__init__(total=(), count=())

    def update(self, logits: torch.Tensor, labels: torch.Tensor) -> None:
        """Add a batch."""
        logs = checked(logits, labels).log_softmax(dim=1)
        self._add(total=-of_labels(logs, labels).sum(), count=torch.tensor(len(logs)))

    def value(self, sums: Sums) -> float:
        return mean(sums["total"], sums["count"], "NegativeLogLikelihood")


class Entropy(SumMetric):
    """How undecided the model is, right or wrong, in nats, averaged over images; labels are not needed.

    >>> metric = Entropy()
    >>> metric.update(torch.zeros(4, 2))
    >>> metric.compute()
    tensor(0.6931, dtype=torch.float64)
    """

    def __init__(self) -> None:
        super().__init__(total=(), count=())

    def update(self, logits: torch.Tensor, labels: torch.Tensor | None = None) -> None:
        """Add a batch."""
        logs = checked(logits, labels).log_softmax(dim=1)
        self._add(total=-(logs.exp() * logs).sum(), count=torch.tensor(len(logs)))

    def value(self, sums: Sums) -> float:
        return mean(sums["total"], sums["count"], "Entropy")


class MeanCorruptionError(SumMetric):
    """mCE, or relative mCE, against a baseline.

    Args:
        baseline: a published one by name, or one of your own.
        relative: whether to subtract clean errors; the clean images are needed then.
        corruptions: those that count; the baseline's benchmark if not given.
        severities: those that count; all that the baseline has if not given.

    >>> metric = MeanCorruptionError("alexnet", corruptions=["fog"], severities=[1])
    >>> metric.update(torch.tensor([[2.0, 1.0], [2.0, 1.0]]), torch.tensor([0, 1]), "fog", 1)
    >>> metric.compute()  # half of the answers are wrong, and 67.474 % of AlexNet's
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
                f"the baseline {self._baseline.name!r} has no clean error, which relative mCE needs; "
                "take another"
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
        """Add a batch of images under one corruption; clean ones without a corruption."""
        logits = checked(logits, labels)
        row, column = self._place(corruption, severity)
        wrong, count = (torch.zeros_like(self._sums["wrong"]) for _ in range(2))
        wrong[row, column] = len(logits) - hits(logits, labels, 1).sum().to(wrong.device)
        count[row, column] = len(logits)
        self._add(wrong=wrong, count=count)

    def _place(self, corruption: str | None, severity: int | None) -> tuple[int, int]:
        if corruption not in self._rows:
            known = {name: row for name, row in self._rows.items() if name is not None}
            raise UnknownNameError(unknown("corruption of this metric", corruption, known))
        if corruption is None:
            if severity is not None:
                raise OptionError(f"a severity needs a corruption, got severity {severity!r} alone; name one")
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
        shares = sums["wrong"].numpy() / count.clip(min=1)
        errors = {name: shares[row] for name, row in self._rows.items() if name is not None}
        if not self._relative:
            return float(mean_corruption_error(errors, self._theirs))
        assert self._baseline.clean is not None
        return float(relative_mean_corruption_error(errors, shares[0, 0], self._theirs, self._baseline.clean))

    def _all_there(self, count: Any) -> None:
        absent = ["clean"] if self._relative and not count[0, 0] else []
        absent += [
            name if level is None else f"{name}@{level}"
            for name, row in self._rows.items()
            if name is not None
            for column, level in enumerate(self._levels)
            if not count[row, column]
        ]
        if absent:
            more = f" and {len(absent) - _SHOWN} more" if len(absent) > _SHOWN else ""
            raise MissingResultsError(
                f"MeanCorruptionError has seen no images of {', '.join(absent[:_SHOWN])}{more}: call update "
                "with them, or name the corruptions and severities that count"
            )
