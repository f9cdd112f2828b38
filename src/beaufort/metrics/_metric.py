"""The registry of metrics, with their titles, units and directions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from beaufort._core.registry import Registry

Better = Literal["lower", "higher"]

Unit = Literal["fraction", "ratio", "nats", "score"]
"""`fraction`: shown in percent; `ratio`: relative to a baseline, in percent; `score`: a number."""

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Metric:
    """A metric; calling it calls its function."""

    name: str
    """Name in suites, such as `mce`."""
    title: str
    """Name in tables, such as `mCE`."""
    better: Better | None
    """Direction of better values; None if there is none."""
    unit: Unit
    summary: str
    """Description in one sentence."""
    function: Callable[..., Any] = field(repr=False)
    of_errors: bool = False
    """Whether suites can use it: a function of the mean error under each corruption, by name, and of the
    clean error, which is None without clean images."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Return the value of the function."""
        return self.function(*args, **options)

    @property
    def in_percent(self) -> bool:
        """Whether its values are shown in percent."""
        return self.unit in ("fraction", "ratio")

    def shown(self, value: Any) -> str:
        """Return a value as text, in percent if the metric is.

        >>> metrics["mce"].shown(0.767), metrics["nll"].shown(1.2)
        ('76.7%', '1.20')
        """
        return f"{value:.1%}" if self.in_percent else f"{value:.2f}"


metrics = Registry[Metric]("metric")
"""All metrics by name."""


def metric(
    name: str | None = None,
    *,
    better: Better | None,
    title: str | None = None,
    unit: Unit = "fraction",
    of_errors: bool = False,
) -> Callable[[F], F]:
    """Register a function as a metric, and return the function.

    Args:
        name: name of the metric; the function's if None.
        better: direction of better values.
        title: name in tables; derived from the name if None.
        unit: unit of its values.
        of_errors: whether suites can use it; see `Metric.of_errors`.

    >>> metrics["mce"].title
    'mCE'
    >>> metrics["mce"]({"fog": (0.25, 0.5)}, {"fog": (0.5, 1.0)})
    0.5
    """

    def register(function: F) -> F:
        key = name or function.__name__
        shown = title or key.replace("_", " ").capitalize()
        summary = (function.__doc__ or "").partition("\n")[0]
        metrics.register(key, Metric(key, shown, better, unit, summary, function, of_errors))
        return function

    return register
