"""A check for CI: is the new model worse than the old one, by more than is allowed and more than chance?"""

from __future__ import annotations

from dataclasses import dataclass

from beaufort.errors import OptionError
from beaufort.metrics import metrics
from beaufort.registry import unknown
from beaufort.results.join import join_results
from beaufort.results.open import Results
from beaufort.results.scores import score
from beaufort.stats import RESAMPLES, Estimate, interval

__all__ = ["Verdict", "gate"]


@dataclass(frozen=True)
class Verdict:
    """What a gate says."""

    metric: str
    model: Estimate
    baseline: Estimate
    """The metric of the new and of the old model, on the images that both have."""
    drop: Estimate
    """How much worse the new one is, whichever way the metric counts; negative if it is better."""
    max_drop: float
    """What is allowed; a share, not percent."""

    @property
    def significant(self) -> bool:
        """Whether it is worse by more than chance: the whole interval of the drop is above zero."""
        return self.drop.low > 0

    @property
    def ok(self) -> bool:
        """Whether to let it through; only a drop that is both too large and significant is not."""
        return not (self.significant and self.drop.value > self.max_drop)


def gate(
    results: Results,
    baseline: Results,
    *,
    max_drop: float = 0.0,
    metric: str | None = None,
    reference: str | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = 0.95,
) -> Verdict:
    """Compare the one model of `results` with the one of `baseline`.

    Args:
        results: the new model's.
        baseline: the old model's: same suite, same data, same seed, or a `ResultsError` says what differs.
        max_drop: how much worse the new one may be, as a share.
        metric: the suite's headline metric if None.
        reference: what mCE divides by, as for `score`.
        resamples: of the bootstrap.
        seed: of the bootstrap's draws.
        level: of all intervals.
    """
    for part in (results, baseline):
        if len(part.models) != 1:
            raise OptionError(
                f"{len(part.models)} models came, {', '.join(part.models)}; a gate compares one with one"
            )
    if max_drop < 0:
        raise OptionError(f"the largest drop {max_drop!r} came; accepted is a number from 0")
    joined = join_results([results, baseline])
    new, old = joined.models if len(joined.models) == 2 else joined.models * 2
    scores = score(joined, baseline=reference, models=[new, old], resamples=resamples, seed=seed, level=level)
    by_name = {one.model: one for one in scores.models}
    name = scores.headline if metric is None else metric
    if name not in by_name[new].metrics:
        raise OptionError(unknown(f"metric of {scores.suite}", name, dict.fromkeys(by_name[new].metrics)))
    sign = 1 if metrics[name].better == "lower" else -1
    value = sign * (by_name[new].metrics[name].value - by_name[old].metrics[name].value)
    drawn = sign * (scores.drawn[new][name] - scores.drawn[old][name])
    drop = interval(value, drawn, scores.images, level)
    return Verdict(name, by_name[new].metrics[name], by_name[old].metrics[name], drop, max_drop)
