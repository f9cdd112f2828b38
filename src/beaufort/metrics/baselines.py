"""Published baselines, whose errors are the divisors of corruption errors.

`alexnet`, the default of suites, has the errors by severity in common use. `alexnet-paper` has the means in
the paper's appendix, with one decimal. `conv1` is the baseline of MNIST-C.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

from beaufort._core.errors import OptionError
from beaufort._core.validation import validate_choice
from beaufort.metrics._checks import MetricError, MissingResultsError, fractions
from beaufort.metrics.corruption import Errors
from beaufort.metrics.published import read_sheet

BASELINE_NAMES = ("alexnet", "alexnet-paper", "conv1")
"""Names of the baselines in `data/<name>.csv`."""

Severities: TypeAlias = Sequence[int | float] | Literal["published"] | None
"""Severities 1 to 5; `published` or None for the single published severity, as in MNIST-C."""

_ALL = (1, 2, 3, 4, 5)


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """The errors of a model on clean images and under corruptions, as the divisors of CE."""

    name: str
    errors: Mapping[str, tuple[float, ...]]
    """Errors by corruption, one per severity; a single one for corruptions in `averaged`."""
    severities: tuple[int, ...] | Literal["published"] | None
    """Severities of the errors; None if only means over severities 1 to 5 are known."""
    averaged: frozenset[str] = frozenset()
    """Corruptions of which only the mean over severities 1 to 5 is known."""
    benchmark: tuple[str, ...] = ()
    """Corruptions of the published benchmark; all if empty."""
    clean: float | None = None
    """Error on clean images."""
    title: str = ""
    source: str = ""
    """Source of the values."""
    classes: int | None = None
    """Number of classes of the model; errors with other classes are not comparable. None if unknown."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "errors", dict(self.errors))
        object.__setattr__(self, "benchmark", tuple(self.benchmark) or tuple(self.errors))
        object.__setattr__(self, "title", self.title or self.name)
        if self.severities is None:
            object.__setattr__(self, "averaged", frozenset(self.errors))
        levels = len(self.severities) if isinstance(self.severities, tuple) else 1
        for name, values in self.errors.items():
            wanted = 1 if name in self.averaged else levels
            if len(fractions(values, f"the error of {self.name} under {name}")) != wanted:
                raise MetricError(
                    f"the baseline {self.name!r} must have {wanted} errors under {name} (one per severity, "
                    f"or one if only their mean is known), got {len(values)}"
                )
        if self.clean is not None:
            fractions(self.clean, f"the clean error of {self.name}")

    def select(self, corruptions: Iterable[str], severities: Severities) -> Errors:
        """Return the errors for some corruptions and severities, in the given order.

        If only the mean over severities 1 to 5 is known, it is a number, and all five are required.

        >>> get_baseline("alexnet").select(["fog", "snow"], [1, 5])
        {'fog': (0.67474, 0.945), 'snow': (0.71726, 0.94952)}
        >>> get_baseline("alexnet-paper").select(["fog"], [1, 2, 3, 4, 5])
        {'fog': 0.819}
        >>> get_baseline("alexnet-paper").select(["fog"], [1, 5])
        Traceback (most recent call last):
        beaufort.metrics._checks.MissingResultsError: the baseline 'alexnet-paper' has only the mean over \
severities 1 to 5 under fog, got 1, 5; use all five, or another baseline
        """
        names = list(corruptions)
        if missing := [name for name in names if name not in self.errors]:
            raise MissingResultsError(
                f"the baseline {self.name!r} has no error under {', '.join(missing)}, but only under "
                f"{', '.join(self.errors)}; omit the others, or use another baseline"
            )
        wanted = _levels(severities)
        return {name: self._at(name, wanted) for name in names}

    def _at(self, name: str, wanted: tuple[int, ...] | Literal["published"]) -> float | tuple[float, ...]:
        values = self.errors[name]
        if name in self.averaged:
            if wanted != "published" and set(wanted) == set(_ALL):
                return values[0]
            raise MissingResultsError(
                f"the baseline {self.name!r} has only the mean over severities 1 to 5 under {name}, got "
                f"{_text(wanted)}; use all five, or another baseline"
            )
        if wanted == self.severities:
            return values
        assert self.severities is not None
        if wanted == "published" or self.severities == "published" or set(wanted) - set(self.severities):
            raise MissingResultsError(
                f"the baseline {self.name!r} has only the severities {_text(self.severities)} under {name}, "
                f"got {_text(wanted)}; use some of them, or another baseline"
            )
        return tuple(values[self.severities.index(level)] for level in wanted)


def _levels(severities: Severities) -> tuple[int, ...] | Literal["published"]:
    if severities is None or severities == "published":
        return "published"
    levels = tuple(severities)
    if not levels or len(set(levels)) < len(levels) or not set(levels) <= set(_ALL):
        raise OptionError(
            f"severities must be distinct integers from 1 to 5, or 'published', got {severities!r}"
        )
    return tuple(map(int, levels))


def _text(severities: tuple[int, ...] | Literal["published"]) -> str:
    return severities if isinstance(severities, str) else ", ".join(map(str, severities))


def get_baseline(name: str) -> Baseline:
    """Return a published baseline.

    >>> get_baseline("alexnet").clean
    0.435
    >>> get_baseline("alex")
    Traceback (most recent call last):
    beaufort.UnknownNameError: unknown baseline 'alex'; did you mean 'alexnet'?
    """
    return _published(validate_choice("baseline", name, BASELINE_NAMES))


@cache
def _published(name: str) -> Baseline:
    sheet = read_sheet(name)
    errors: dict[str, tuple[float, ...]] = {}
    for row in sheet.rows:
        errors[row["corruption"]] = (*errors.get(row["corruption"], ()), float(row["error"]))
    (clean,) = errors.pop("clean")
    known = {row["severity"] for row in sheet.rows} - {"", "average"}
    severities: tuple[int, ...] | Literal["published"] | None
    severities = "published" if known == {"published"} else tuple(sorted(map(int, known))) or None
    return Baseline(
        name=name,
        title=sheet.facts["title"],
        source=sheet.facts["source"],
        classes=int(sheet.facts["classes"]),
        clean=clean,
        errors=errors,
        severities=severities,
        averaged=frozenset(row["corruption"] for row in sheet.rows if row["severity"] == "average"),
        benchmark=tuple(dict.fromkeys(row["corruption"] for row in sheet.rows if row["part"] == "benchmark")),
    )
