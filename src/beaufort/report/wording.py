"""Names and numbers as text."""

from __future__ import annotations

from beaufort._core.text import counted
from beaufort.data.labels import class_names
from beaufort.metrics import metrics
from beaufort.metrics.stats import Estimate
from beaufort.results import Scores

ARROWS = {"lower": " ↓", "higher": " ↑", "": ""}
"""Arrow for the direction of better values."""

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def words(name: str) -> str:
    """Return a name without underscores.

    >>> words("gaussian_noise")
    'gaussian noise'
    """
    return name.replace("_", " ")


def percent(fraction: float, digits: int = 1) -> str:
    """Return a fraction in percent.

    >>> percent(0.7482)
    '74.8 %'
    """
    return f"{100 * fraction:z.{digits}f} %"


def shown(estimate: Estimate | None) -> str:
    """Return a fraction or ratio in percent with its interval; a dash for None.

    >>> shown(Estimate(0.7482, 0.726, 0.7701, 1000))
    '74.8 % [72.6, 77.0]'
    """
    return "–" if estimate is None else f"{estimate:.1%}"


def value_and_bounds(estimate: Estimate, digits: int = 1) -> tuple[str, str]:
    """Return a fraction or ratio in percent, and its interval, which is empty if the value is exact.

    >>> value_and_bounds(Estimate(0.7482, 0.726, 0.7701, 1000))
    ('74.8', '[72.6, 77.0]')
    """
    bounds = (
        "" if estimate.exact else f"[{100 * estimate.low:z.{digits}f}, {100 * estimate.high:z.{digits}f}]"
    )
    return f"{100 * estimate.value:z.{digits}f}", bounds


def spoken(names: list[str], conjunction: str = "and") -> str:
    """Return names as a list in a sentence.

    >>> spoken(["a", "b", "c"])
    'a, b and c'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {conjunction} {names[-1]}"


def ordinal(number: int) -> str:
    """Return an ordinal number.

    >>> ordinal(1), ordinal(12), ordinal(22), ordinal(111)
    ('first', '12th', '22nd', '111th')
    """
    if number <= len(_ORDINALS):
        return _ORDINALS[number - 1]
    teens = number % 100 in (11, 12, 13)
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def class_name(classes: tuple[str, ...], label: int) -> str:
    """Return the name of a class, or its number if it has no name.

    >>> class_name(("cat", "polar_bear"), 1), class_name((), 7)
    ('polar bear', 'class 7')
    """
    return words(classes[label]) if 0 <= label < len(classes) else f"class {label}"


_CLASSES = {"cifar10": "cifar-10", "mnist": "mnist"}
"""Label space of datasets that are often arrays without names of classes."""


def class_names_of(scores: Scores) -> tuple[str, ...]:
    """Return the names of the dataset's classes; those of the suite's dataset if the data have none."""
    results = scores.results
    space = _CLASSES.get(scores.suite.dataset.partition("-")[0])
    if results.classes or space is None:
        return results.classes
    names = class_names(space)
    return names if results.class_count in (None, len(names)) else ()


def default_title(scores: Scores) -> str:
    """Return the default title of a report."""
    models = [one.model for one in scores.models]
    subject = models[0] if len(models) == 1 else counted(len(models), "model")
    return f"{subject} on {scores.suite.name}"


def units(scores: Scores) -> str:
    """Return the units that intervals are computed over."""
    if scores.clusters == scores.images:
        return "images"
    return f"{counted(scores.clusters, 'cluster')} of images"


def families(scores: Scores) -> str:
    """Return the families that intervals of differences are adjusted for, with their sizes."""
    pairs = scores.pairs
    parts = [
        f"{spoken([metrics[name].title for name in names])} ({counted(pairs.size(family), 'difference')})"
        for family, names in pairs.families.items()
    ]
    if len(parts) == 1:
        return f"one family: {parts[0]}"
    return f"two families: {parts[0]}, and {parts[1]}"
