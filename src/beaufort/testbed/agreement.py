"""Accuracies under unlabeled shifts, estimated from how often models agree (Baek et al., 2022).

Where accuracies under a shift lie on a line over clean accuracies, the fractions of images on which two
models predict the same class lie on the same line. It can be fitted without labels of the shifted images.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import OptionError
from beaufort.metrics.scales import get_scale
from beaufort.results import Results, SharedPredictions, open_parts
from beaufort.suites.conditions import Condition
from beaufort.testbed.trend import MIN_MODELS, Line, fit_line

Floats = NDArray[np.float64]

RELIABLE_R2 = 0.95
"""Squared correlation of agreements from which the published study relies on the estimates."""
_SCALE = "probit"


@dataclass(frozen=True)
class EstimatedAccuracy:
    """The accuracy of one model under a shift, in percent."""

    model: str
    clean: float
    estimated: float | None
    """From the agreements of this model with the others (ALine-D); None for a clean accuracy of 0 or 100."""
    on_line: float | None
    """From the clean accuracy and the line of agreements alone (ALine-S)."""
    measured: float | None
    """From labels; None if all shifted images have the same one, as unlabeled images do."""


@dataclass(frozen=True)
class AgreementLine:
    """The line of agreements for one shift, and the accuracies that it predicts."""

    clean: str
    shifted: str
    line: Line
    """Agreement of pairs of models under the shift over their agreement on clean images, on probit axes."""
    models: tuple[EstimatedAccuracy, ...]
    images: tuple[int, int]
    """Numbers of clean and of shifted images."""

    @property
    def pairs(self) -> int:
        """Number of pairs of models on the line."""
        return self.line.n

    @property
    def reliable(self) -> bool:
        """Whether agreements lie on a line, without which the estimates mean nothing."""
        return self.line.r2 >= RELIABLE_R2

    @property
    def error(self) -> float | None:
        """Mean absolute difference of estimated and measured accuracies, in points; None without labels."""
        known = [
            abs(one.estimated - one.measured)
            for one in self.models
            if one.estimated is not None and one.measured is not None
        ]
        return float(np.mean(known)) if known else None


def agreement_lines(
    store: Path | str, *, suite: str | None = None, models: Sequence[str] | None = None
) -> list[AgreementLine]:
    """Estimate accuracies under every shift of a suite from stored predictions, without labels of its images.

    A dataset with a counterpart is a shift of its counterpart; corruptions and other conditions are shifts of
    the clean images.

    Args:
        store: folder or URL of a store.
        suite: name of a suite; that of the latest run by default.
        models: names of models; all by default, at least three.
    """
    parts = open_parts(store, suite=suite, models=models)
    by_name = {part.suite.name: part for part in parts}
    found = []
    for part in parts:
        reference = by_name.get(part.suite.counterpart or "", part)
        names = [name for name in part.models if name in reference.models]
        if len(names) < MIN_MODELS:
            raise OptionError(
                f"agreement requires predictions of at least {MIN_MODELS} models, got {len(names)} on "
                f"{part.suite.name}"
            )
        found += list(_lines(part, reference, names))
    if not found:
        raise OptionError(f"the suite {parts[0].part_of or parts[0].suite} has no shift with clean images")
    return found


def _lines(part: Results, reference: Results, names: Sequence[str]) -> Iterator[AgreementLine]:
    shifted = SharedPredictions(part, names)
    clean = shifted if reference is part else SharedPredictions(reference, names)
    row_of_clean = [row for row, one in enumerate(clean[names[0]].conditions) if one.clean]
    if not row_of_clean:
        return
    first = np.stack([clean[name].top[row_of_clean[0], :, 0] for name in names])
    accuracies = np.array([100 * clean[name].correct[row_of_clean[0]].mean() for name in names])
    for row, condition in enumerate(shifted[names[0]].conditions):
        if condition.clean and reference is part:
            continue
        second = np.stack([shifted[name].top[row, :, 0] for name in names])
        measured = None
        if len(np.unique(shifted[names[0]].labels)) > 1:
            measured = np.array([100 * shifted[name].correct[row].mean() for name in names])
        yield _line(
            (_name(reference, None), _name(part, condition)), names, first, second, accuracies, measured
        )


def _name(part: Results, condition: Condition | None) -> str:
    own = part.suite.name if part.part_of else part.dataset
    return own if condition is None or condition.clean else f"{own}/{condition.done}"


def _line(
    what: tuple[str, str],
    names: Sequence[str],
    first: NDArray[np.int32],
    second: NDArray[np.int32],
    accuracies: Floats,
    measured: Floats | None,
) -> AgreementLine:
    pairs = [(i, j) for i in range(len(names)) for j in range(i)]
    agreed_first, agreed_second = (
        np.array([100 * np.mean(tops[i] == tops[j]) for i, j in pairs]) for tops in (first, second)
    )
    line = fit_line(agreed_first, agreed_second, scale=_SCALE, what=f"the line of agreements on {what[1]}")
    on_line = line.predict(accuracies)
    estimated = _solve(line, pairs, agreed_first, agreed_second, accuracies)
    return AgreementLine(
        *what,
        line,
        tuple(
            EstimatedAccuracy(
                name,
                float(accuracies[row]),
                _known(estimated[row]),
                _known(on_line[row]),
                None if measured is None else float(measured[row]),
            )
            for row, name in enumerate(names)
        ),
        (first.shape[1], second.shape[1]),
    )


def _solve(
    line: Line, pairs: Sequence[tuple[int, int]], first: Floats, second: Floats, accuracies: Floats
) -> Floats:
    """Return accuracies whose means over pairs fit the agreements best, on the axis of the line.

    The mean accuracy of a pair is as far from its agreement under the shift as the line makes it from the
    clean images: one equation for each pair, solved by least squares.
    """
    scale = get_scale(line.scale)
    clean, agreed, shifted = (scale.forward(values) for values in (accuracies, first, second))
    usable = [
        place
        for place, (i, j) in enumerate(pairs)
        if np.isfinite([clean[i], clean[j], agreed[place], shifted[place]]).all()
    ]
    design = np.zeros((len(usable), len(clean)))
    target = np.zeros(len(usable))
    for row, place in enumerate(usable):
        i, j = pairs[place]
        design[row, [i, j]] = 0.5
        target[row] = shifted[place] + line.slope * ((clean[i] + clean[j]) / 2 - agreed[place])
    found = np.full(len(clean), np.nan)
    covered = design.any(axis=0)
    if covered.sum() >= MIN_MODELS:
        solution, *_ = np.linalg.lstsq(design[:, covered], target, rcond=None)
        found[covered] = scale.inverse(solution)
    return found


def _known(value: np.floating) -> float | None:
    return None if np.isnan(value) else float(value)
