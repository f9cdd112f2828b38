"""Names of metrics, and what a reader must know of each to make sense of its number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from beaufort._core.registry import Registry

Better = Literal["lower", "higher"]

Unit = Literal["share", "ratio", "nats", "score"]
"""`share`: in [0, 1], shown in percent; `ratio`: 1 is the baseline, shown in percent; `score`: a number."""

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Metric:
    """A named number; called, it is the function that makes it."""

    name: str
    """As in a suite: `mce`."""
    title: str
    """As in a table: `mCE`."""
    better: Better | None
    """Which way is good; None where neither is."""
    unit: Unit
    summary: str
    """What it is, in one sentence."""
    function: Callable[..., Any] = field(repr=False)
    of_errors: bool = False
    """Whether it sums up a suite, so that one may ask for it: a function of the mean error under each
    corruption, by name, and of the clean error, None without clean images."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        """What the function gives."""
        return self.function(*args, **options)

    @property
    def in_percent(self) -> bool:
        """Whether its values are shown in percent."""
        return self.unit in ("share", "ratio")

    def shown(self, value: Any) -> str:
        """An estimate of it as people read it: in percent, or as the number it is.

        >>> metrics["mce"].shown(0.767), metrics["nll"].shown(1.2)
        ('76.7%', '1.20')
        """
        return f"{value:.1%}" if self.in_percent else f"{value:.2f}"


metrics = Registry[Metric]("metric")
"""Every metric that is one number, by name."""


def metric(
    name: str | None = None,
    *,
    better: Better | None,
    title: str | None = None,
    unit: Unit = "share",
    of_errors: bool = False,
) -> Callable[[F], F]:
    """Register a function as a metric; the function stays what it is.

    Args:
        name: the function's own if not given.
        better: which way is good.
        title: what tables call it; made of the name if not given.
        unit: what its values are.
        of_errors: whether suites can ask for it; see `Metric.of_errors`.

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
