"""A check for CI: is a model good enough, is it not, or is it not known?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from beaufort._core.errors import OptionError
from beaufort._core.registry import unknown_message
from beaufort._core.validation import validate_choice, validate_number
from beaufort.metrics import metrics
from beaufort.metrics.stats import Estimate
from beaufort.results.baseline import check_baseline
from beaufort.results.linear import Linear
from beaufort.results.results import Results, join_results
from beaufort.results.scores import ModelScores, Scores
from beaufort.results.scoring import score

RULES = ("noninferiority", "significance")
"""`noninferiority` asks whether a drop larger than allowed is ruled out; `significance` fails only if the
drop is larger than allowed and surely larger than zero, and passes everything else."""

MAX_IMAGES = 10**9
"""Largest number of images that is worth recommending."""


class Decision(StrEnum):
    """What a gate says."""

    PASSED = "passed"
    """The whole interval is on the good side of the limit."""
    FAILED = "failed"
    """The whole interval is on the bad side."""
    UNDECIDED = "undecided"
    """The limit lies in the interval: more images are needed to know."""


@dataclass(frozen=True)
class Check:
    """One demand, and whether it is met."""

    name: str
    """`drop`, `value`, `clean` or `worst`."""
    demand: str
    """In words, with the limit."""
    estimate: Estimate
    limit: float
    """A share, not percent."""
    upper: bool
    """Whether the limit is an upper one."""
    rule: str = RULES[0]
    form: Linear | None = field(default=None, repr=False, compare=False)
    """What each image adds to the estimate, if it is a mean over images."""

    @property
    def decision(self) -> Decision:
        one = self.estimate
        if self.rule == "significance":
            return Decision.FAILED if one.value > self.limit and one.low > 0 else Decision.PASSED
        if (one.high <= self.limit) if self.upper else (one.low >= self.limit):
            return Decision.PASSED
        if (one.low > self.limit) if self.upper else (one.high < self.limit):
            return Decision.FAILED
        return Decision.UNDECIDED

    @property
    def images_needed(self) -> int | None:
        """About how many images like these would decide the check; None if no number would.

        Where what each image adds is not at hand, the interval is taken to shrink with the square root of
        their number.
        """
        one = self.estimate
        if self.form is not None:
            needed = self.form.images_to_decide(self.limit, one.level)
            return None if needed is None else max(one.n + 1, math.ceil(needed / 10) * 10)
        distance = abs(one.value - self.limit)
        width = one.high - one.value if one.value < self.limit else one.value - one.low
        if not distance or (about := one.n * (width / distance) ** 2) > MAX_IMAGES:
            return None
        return max(one.n + 1, math.ceil(about / 10) * 10)


@dataclass(frozen=True)
class Verdict:
    """What a gate says, and why."""

    model: str
    metric: str
    value: Estimate
    """The metric of the model."""
    reference: str | None
    reference_value: Estimate | None
    """The metric of the older model, on the same images."""
    checks: tuple[Check, ...]
    images: int
    clusters: int
    """Units that intervals are over: clusters of images, or the images themselves."""
    notes: tuple[str, ...] = ()
    """Images without a prediction, and why the metric is not the suite's first one, if that cannot be had."""
    dataset: str = ""
    """Name of the data set."""

    @property
    def decision(self) -> Decision:
        """Failed if any check is; else undecided if any check is; else passed."""
        return worst_decision(self.checks)

    def __str__(self) -> str:
        checks = (f"{one.demand}: {one.estimate:.2%}, {one.decision}" for one in self.checks)
        return f"gate {self.decision} ({'; '.join(checks)})"

    @property
    def ok(self) -> bool:
        """Whether it passed."""
        return self.decision is Decision.PASSED

    @property
    def drop(self) -> Estimate | None:
        """How much worse than the older model it is, whichever way the metric counts; negative if better."""
        return next((check.estimate for check in self.checks if check.name == "drop"), None)


def gate(
    results: Results,
    reference: Results | None = None,
    *,
    max_drop: float = 0.01,
    rule: str = RULES[0],
    metric: str | None = None,
    require: float | None = None,
    min_clean: float | None = None,
    min_worst: float | None = None,
    baseline: str | None = None,
    clusters: Mapping[str, str] | None = None,
    level: float = 0.95,
) -> Verdict:
    """Check one model against an older one, against fixed limits, or both.

    Args:
        results: the new model's.
        reference: the older model's: same suite, same data, same seed, or a `ResultsError` says what differs;
            without one, at least one limit is needed.
        max_drop: how much worse than the older one it may be, as a share: 0.01 is one point.
        rule: one of `RULES`, for the drop.
        metric: the suite's headline metric if None.
        require: what the metric must be at most (mCE) or at least (accuracy).
        min_clean: least accuracy on clean images.
        min_worst: least accuracy under the worst corruption, the mean over its severities.
        baseline: what mCE divides by, as for `score`.
        clusters: images that are not independent, as for `score`.
        level: of all intervals.
    """
    for part in (results, reference):
        if part is not None and len(part.models) != 1:
            raise OptionError(
                f"a gate compares one model with one, got {len(part.models)}: {', '.join(part.models)}"
            )
    validate_choice("rule", rule, RULES)
    validate_number("max_drop", max_drop, 0)
    limits = {"require": require, "min_clean": min_clean, "min_worst": min_worst}
    for name, limit in limits.items():
        if limit is not None:
            validate_number(name, limit, 0, None if name == "require" else 1)
    if reference is None and all(limit is None for limit in limits.values()):
        raise OptionError("a gate needs at least one of reference, require, min_clean and min_worst")
    joined = results if reference is None else join_results([results, reference])
    check_own_baseline(joined, metric, baseline)
    new, old = joined.models if len(joined.models) == 2 else (joined.models[0],) * 2
    scores = score(
        joined, baseline=baseline, models=[new, old], clusters=clusters, level=level, calibration=False
    )
    by_name = {one.model: one for one in scores.models}
    model, name = by_name[new], find_metric(scores, metric)
    checks = []
    if reference is not None:
        checks.append(_drop(scores, name, new, old, max_drop, rule))
    if require is not None:
        checks.append(_value(model, name, require))
    if min_clean is not None:
        checks.append(_clean(model, scores, min_clean))
    if min_worst is not None:
        checks.append(_worst(model, scores, min_worst))
    return Verdict(
        model=results.models[0],
        metric=name,
        value=model.metrics[name],
        reference=None if reference is None else reference.models[0],
        reference_value=None if reference is None else by_name[old].metrics[name],
        checks=tuple(checks),
        images=scores.images,
        clusters=scores.clusters,
        notes=notes_on_metric(scores, metric),
        dataset=results.dataset,
    )


def worst_decision(judged: Sequence[Verdict] | Sequence[Check]) -> Decision:
    """The decision over several datasets or checks: failed if one is, else undecided if one is."""
    decisions = [one.decision for one in judged]
    return next((one for one in (Decision.FAILED, Decision.UNDECIDED) if one in decisions), Decision.PASSED)


def check_own_baseline(results: Results, metric: str | None, baseline: str | None) -> None:
    """Refuse to take another metric in place of the suite's first, if only the suite's baseline is absent."""
    if metric is None and baseline is None and metrics[results.suite.metrics[0]].unit == "ratio":
        way_out = "name another with baseline (--baseline), or a metric"
        check_baseline(results.suite, results.possible_baselines, way_out)


def notes_on_metric(scores: Scores, metric: str | None) -> tuple[str, ...]:
    """What to know about models and images, and why the metric is not the suite's first, unless asked for."""
    if metric is None and scores.headline != scores.suite.metrics[0]:
        return scores.notes
    return scores.image_notes


def find_metric(scores: Scores, metric: str | None) -> str:
    """A metric that the scores have; the first one if None."""
    name = scores.headline if metric is None else metric
    if name not in scores.models[0].metrics:
        told = unknown_message(f"metric of {scores.suite}", name, scores.models[0].metrics)
        raise OptionError(". ".join([told, " ".join(scores.notes)] if scores.notes else [told]))
    if not metrics[name].in_percent:
        raise OptionError(f"metric must be a share or a ratio, whose limits are in percent, got {name}")
    return name


def drop_form(scores: Scores, metric: str, new: str, old: str) -> Linear:
    """How much worse the new model is than the old one, whichever way the metric counts."""
    sign = 1 if metrics[metric].better == "lower" else -1
    return (scores.pairs.forms[new][metric] - scores.pairs.forms[old][metric]) * sign


def _drop(scores: Scores, metric: str, new: str, old: str, max_drop: float, rule: str) -> Check:
    form = drop_form(scores, metric, new, old)
    if _same_model(scores.results, new, old) and not form.values.any():
        form *= 0  # it may be in two stores: more images could not show a drop either
    title = metrics[metric].title
    points = f"{100 * max_drop:g} point{'' if max_drop == 0.01 else 's'}"
    demand = f"{title} at most {points} worse than the older model's"
    return Check("drop", demand, form.estimate(scores.level), max_drop, upper=True, rule=rule, form=form)


def _same_model(results: Results, new: str, old: str) -> bool:
    """Whether two names stand for one model by its digest; results that no store holds have none."""
    rows = [list(results.cells[name].values()) for name in (new, old)]
    return rows[0] == rows[1] and all("digest" in cell.model for cell in rows[0])


def _value(model: ModelScores, metric: str, limit: float) -> Check:
    upper = metrics[metric].better == "lower"
    if metrics[metric].unit == "share" and limit > 1:
        raise OptionError(f"require must be a share from 0 to 1 (100 %) for {metric}, got {limit:g}")
    demand = f"{metrics[metric].title} at {'most' if upper else 'least'} {100 * limit:g} %"
    return Check("value", demand, model.metrics[metric], limit, upper=upper)


def _clean(model: ModelScores, scores: Scores, limit: float) -> Check:
    if model.clean is None:
        raise OptionError("min_clean needs clean images, and the suite has none; leave it out")
    what = "clean accuracy" if scores.with_clean else "accuracy"
    return Check("clean", f"{what} at least {100 * limit:g} %", model.clean, limit, upper=False)


def _worst(model: ModelScores, scores: Scores, limit: float) -> Check:
    """The least accuracy over corruptions; the intervals hold together, so their least ends bound it."""
    if not model.corruptions:
        raise OptionError(f"min_worst needs shifted images, and {scores.suite} has none; leave it out")
    each = 1 - (1 - scores.level) / len(model.corruptions)
    errors = {name: form.estimate(each) for name, form in model.error_forms.items()}
    name, worst = max(errors.items(), key=lambda item: item[1].value)
    low = 1 - max(one.high for one in errors.values())
    high = 1 - max(one.low for one in errors.values())
    demand = f"accuracy under the worst corruption, {name.replace('_', ' ')}, at least {100 * limit:g} %"
    estimate = Estimate(1 - worst.value, low, high, worst.n, scores.level)
    return Check("worst", demand, estimate, limit, upper=False)
