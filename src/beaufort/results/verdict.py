"""The gate: whether a model is good enough, with three outcomes: passed, failed, undecided."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

from beaufort._core.errors import OptionError
from beaufort._core.registry import unknown_message
from beaufort._core.text import counted
from beaufort._core.validation import validate_choice, validate_number
from beaufort.metrics import metrics
from beaufort.metrics.stats import Estimate
from beaufort.results.abstention import sets_by_severity
from beaufort.results.baseline import check_baseline
from beaufort.results.deployment import largest_flips
from beaufort.results.differences import difference_text
from beaufort.results.linear import Linear, find_clusters
from beaufort.results.results import Results, join_results, pair_parts
from beaufort.results.scores import ModelScores, Scores
from beaufort.results.scoring import score
from beaufort.results.verdict_details import VerdictDetails, verdict_details
from beaufort.suites import Suite

RULES = ("noninferiority", "significance")
"""`noninferiority` passes only if a drop larger than allowed is ruled out; `significance` fails only if the
drop is larger than allowed and significantly larger than zero, and passes everything else."""

_LIMITS: Mapping[str, Callable[[Suite], bool]] = {
    "require": lambda _: True,
    "min_clean": lambda suite: suite.clean,
    "min_worst": lambda suite: bool(suite.families),
    "floors": lambda suite: suite.clean,
}
"""Limits that need no reference, and whether a suite has the images that each is about."""

MAX_IMAGES = 10**9
"""Largest number of images that is reported as sufficient."""


class Decision(StrEnum):
    """The result of a check."""

    PASSED = "passed"
    """The whole interval meets the limit."""
    FAILED = "failed"
    """The whole interval misses the limit."""
    UNDECIDED = "undecided"
    """The interval contains the limit: more images are needed."""


@dataclass(frozen=True)
class Check:
    """One requirement, and whether it is met."""

    name: str
    """`drop`, `flips`, `value`, `clean`, `worst`, or the key of a floor such as `lac@3`."""
    requirement: str
    """In words, with the limit."""
    estimate: Estimate
    limit: float
    """A fraction, not percent."""
    upper: bool
    """Whether the estimate must be at most the limit; at least, if not."""
    rule: str = RULES[0]
    form: Linear | None = field(default=None, repr=False, compare=False)
    """What each image adds to the estimate, if it is a mean over images."""
    statement: str = ""
    """The estimate in words."""
    form_level: float | None = None
    """Level of an interval of `form` that decides; that of the estimate if None."""
    always_valid: bool = False
    """Whether the interval holds at all numbers of images at once."""
    used: float = 1.0
    """Fraction of the images that the estimate is based on."""

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

        Without `form`, the width of the interval is assumed to shrink with the square root of their number.
        """
        one = self.estimate
        if self.form is not None:
            level = self.form_level or one.level
            needed = self.form.images_to_decide(self.limit, level, always_valid=self.always_valid)
            return None if needed is None else self._images(needed)
        distance = abs(one.value - self.limit)
        width = one.high - one.value if one.value < self.limit else one.value - one.low
        if not distance or (about := one.n * (width / distance) ** 2) > MAX_IMAGES:
            return None
        return self._images(about)

    def _images(self, used: float) -> int:
        """Return the number of images of which so many are used, and more than there are."""
        return max(math.ceil(self.estimate.n / self.used) + 1, math.ceil(used / self.used / 10) * 10)


@dataclass(frozen=True)
class Verdict:
    """The result of a gate, with the reasons."""

    model: str
    metric: str
    value: Estimate
    """The metric of the model."""
    reference: str | None
    reference_value: Estimate | None
    """The metric of the reference, on the same images."""
    checks: tuple[Check, ...]
    images: int
    clusters: int
    """Number of units that intervals are computed over: clusters of images, or the images themselves."""
    notes: tuple[str, ...] = ()
    """Images without a prediction, and why the metric is not the suite's first one."""
    details: VerdictDetails | None = field(default=None, repr=False, compare=False)
    """Versions of both models, and their difference under each corruption."""
    dataset: str = ""
    """Name of the dataset."""
    always_valid: bool = False
    """Whether the intervals hold at all numbers of images at once."""

    @property
    def decision(self) -> Decision:
        """Failed if a check failed; else undecided if a check is undecided; else passed."""
        return worst_decision(self.checks)

    @property
    def ok(self) -> bool:
        """Whether the gate passed."""
        return self.decision is Decision.PASSED

    @property
    def drop(self) -> Estimate | None:
        """How much worse the model is than the reference, in the metric; negative if it is better."""
        return next((check.estimate for check in self.checks if check.name == "drop"), None)

    def reason(self, check: Check) -> str:
        """Return why a check is decided as it is, and how many images would decide it if it is not."""
        if check.rule == "significance":
            if check.decision is Decision.FAILED:
                return "more than allowed, and significant"
            if check.estimate.value > check.limit:
                return "more than allowed, but not significant: the interval contains zero"
            return "not more than allowed; this rule does not require the interval to exclude more"
        if check.decision is not Decision.UNDECIDED:
            side = "meets" if check.decision is Decision.PASSED else "misses"
            return f"the whole interval {side} the limit"
        unit = "image" if self.clusters == self.images else "cluster"
        needed = check.images_needed
        enough = f"more than a billion {unit}s" if needed is None else f"about {counted(needed, unit)}"
        return f"the interval contains the limit; {enough} would be needed to decide, at the measured value"

    def __str__(self) -> str:
        checks = (f"{one.requirement}: {one.statement}, {one.decision}" for one in self.checks)
        return f"gate {self.decision} ({'; '.join(checks)})"


def gate(
    results: Results,
    reference: Results | None = None,
    *,
    max_drop: float = 0.01,
    max_flips: float | None = None,
    rule: str = RULES[0],
    metric: str | None = None,
    require: float | None = None,
    min_clean: float | None = None,
    min_worst: float | None = None,
    floors: Mapping[str, float] | None = None,
    baseline: str | None = None,
    clusters: Mapping[str, str] | None = None,
    always_valid: bool = False,
    level: float = 0.95,
) -> Verdict:
    """Check a model against a reference model, against fixed limits, or both.

    Args:
        results: results of the model to check.
        reference: results of the reference model: same suite, data and seed. Without it, at least one
            limit is required.
        max_drop: how much worse than the reference the model may be, as a fraction: 0.01 is one point.
        max_flips: largest fraction of predictions under any condition that may differ from those of the
            reference, as a test of equivalence; see `largest_flips`.
        rule: one of `RULES`, for the comparison with the reference.
        metric: the suite's headline metric if None.
        require: limit of the metric: at most (mCE) or at least (accuracy).
        min_clean: minimum accuracy on clean images.
        min_worst: minimum accuracy under the worst corruption, the mean over its severities.
        floors: smallest allowed coverages of prediction sets that are calibrated to 90 % on clean images, by
            method (`lac`, `aps`, `raps`) and severity, such as `{"lac@3": 0.85}`. `clean`, and `corrupted` in
            suites of one severity, are allowed as well; requires stored logits, as for `score_abstention`.
        baseline: what mCE divides by, as for `score`.
        clusters: clusters of images that are not independent, as for `score`.
        always_valid: whether to use confidence sequences: the gate may then be repeated after any number of
            images, added in random order, and the probability that any of its decisions about a limit is
            wrong is at most 1 - level. The intervals are wider than those for a fixed number of images.
        level: confidence level of all intervals.
    """
    for part in (results, reference):
        if part is not None and len(part.models) != 1:
            raise OptionError(
                f"a gate compares two models, but one of the results has {len(part.models)}: "
                f"{', '.join(part.models)}"
            )
    validate_choice("rule", rule, RULES)
    validate_number("max_drop", max_drop, 0)
    if max_flips is not None:
        validate_number("max_flips", max_flips, 0, 1)
        if reference is None:
            raise OptionError("max_flips requires a reference")
    limits = {"require": require, "min_clean": min_clean, "min_worst": min_worst}
    for name, limit in limits.items():
        if limit is not None:
            validate_number(name, limit, 0, None if name == "require" else 1)
    for name, limit in (floors or {}).items():
        validate_number(f"floor of {name}", limit, 0, 1)
    if reference is None and not floors and all(limit is None for limit in limits.values()):
        raise OptionError("gate requires at least one of reference, require, min_clean, min_worst and floors")
    scores, name, new, old, notes = score_pair(results, reference, metric, baseline, clusters, level)
    evidence = _Evidence(scores, name, new, old, always_valid)
    checks = []
    if reference is not None:
        checks.append(evidence.drop(max_drop, rule))
    if max_flips is not None:
        checks.append(evidence.flips(max_flips, clusters))
    if require is not None:
        checks.append(evidence.value(require))
    if min_clean is not None:
        checks.append(evidence.clean(min_clean))
    if min_worst is not None:
        checks.append(evidence.worst(min_worst))
    if floors:
        checks += evidence.sets(results, floors, clusters)
    return Verdict(
        model=results.models[0],
        metric=name,
        value=evidence.estimate(new),
        reference=None if reference is None else reference.models[0],
        reference_value=None if reference is None else evidence.estimate(old),
        checks=tuple(replace(check, always_valid=always_valid) for check in checks),
        images=scores.images,
        clusters=scores.clusters,
        details=verdict_details(scores, results, reference, new, old, always_valid=always_valid),
        notes=notes,
        dataset=results.dataset,
        always_valid=always_valid,
    )


def gate_parts(
    results: Sequence[Results], reference: Sequence[Results] | None = None, **options: Any
) -> list[Verdict]:
    """Check a model on every dataset of a suite, as `gate` does on one.

    Limits for clean or shifted images apply to the datasets that have such images. Without a reference, a
    dataset to which no limit applies has no verdict.

    Args:
        results: results of the model to check, one for each dataset.
        reference: results of the reference model, likewise.
        **options: options of `gate`.
    """
    pairs: list[tuple[Results, Results | None]] = [(one, None) for one in results]
    if reference is not None:
        pairs = [(one, other) for one, other in pair_parts([results, reference])]
    given = [name for name in _LIMITS if options.get(name) is not None]
    verdicts = []
    for one, other in pairs:
        unused = [
            name
            for name in given
            if not _LIMITS[name](one.suite) and any(_LIMITS[name](each.suite) for each in results)
        ]  # where no dataset has such images, an error says so
        if other is None and given and len(unused) == len(given):
            continue
        verdicts.append(gate(one, other, **options | dict.fromkeys(unused)))
    return verdicts


def worst_decision(judged: Sequence[Verdict] | Sequence[Check]) -> Decision:
    """Return the decision over several datasets or checks: failed before undecided before passed."""
    decisions = [one.decision for one in judged]
    return next((one for one in (Decision.FAILED, Decision.UNDECIDED) if one in decisions), Decision.PASSED)


class PairScores(NamedTuple):
    """The scores of a model and its reference, and the metric that they are compared by."""

    scores: Scores
    metric: str
    new: str
    """The name of the model in `scores`."""
    old: str
    """The name of the reference; the model's without one."""
    notes: tuple[str, ...]


def score_pair(
    results: Results,
    reference: Results | None,
    metric: str | None,
    baseline: str | None,
    clusters: Mapping[str, str] | None,
    level: float = 0.95,
) -> PairScores:
    """Score a model and its reference on their common images.

    Without `metric`, the suite's first metric counts. If only the suite's own baseline is missing for it,
    that is an error: a gate must not silently check another metric.
    """
    joined = results if reference is None else join_results([results, reference])
    if metric is None and baseline is None and metrics[joined.suite.metrics[0]].unit == "ratio":
        hint = "choose another with baseline (--baseline), or a metric"
        check_baseline(joined.suite, joined.baseline_cells, hint)
    models = joined.models[: 1 if reference is None else 2]
    scores = score(
        joined, baseline=baseline, models=models, clusters=clusters, level=level, calibration=False
    )
    name = scores.headline if metric is None else metric
    if name not in scores.models[0].metrics:
        message = unknown_message(f"metric of {scores.suite}", name, scores.models[0].metrics)
        raise OptionError(". ".join([message, " ".join(scores.notes)] if scores.notes else [message]))
    if not metrics[name].in_percent:
        raise OptionError(f"metric must be a fraction or a ratio, as limits are in percent, got {name}")
    replaced = metric is None and name != scores.suite.metrics[0]
    notes = scores.notes if replaced else scores.image_notes
    return PairScores(scores, name, models[0], models[-1], notes)


def drop_form(scores: Scores, metric: str, new: str, old: str) -> Linear:
    """Return how much worse the new model is than the old one, whichever way the metric counts."""
    sign = 1 if metrics[metric].better == "lower" else -1
    return (scores.pairs.forms[new][metric] - scores.pairs.forms[old][metric]) * sign


@dataclass(frozen=True, eq=False)
class _Evidence:
    """What the checks of a gate are based on."""

    scores: Scores
    metric: str
    new: str
    old: str
    always_valid: bool

    @property
    def model(self) -> ModelScores:
        return next(one for one in self.scores.models if one.model == self.new)

    def estimate(self, model: str) -> Estimate:
        """Return the metric of a model."""
        form = self.scores.pairs.forms[model][self.metric]
        return form.estimate(self.scores.level, always_valid=self.always_valid)

    def drop(self, max_drop: float, rule: str) -> Check:
        metric = metrics[self.metric]
        form = drop_form(self.scores, self.metric, self.new, self.old)
        if _same_model(self.scores.results, self.new, self.old) and not form.values.any():
            form *= 0  # the model may be in two stores: more images could not show a difference either
        estimate = form.estimate(self.scores.level, always_valid=self.always_valid)
        difference = estimate if metric.better == "lower" else -estimate
        points = f"{100 * max_drop:g} point{'' if max_drop == 0.01 else 's'}"
        requirement = f"{metric.title} at most {points} worse than the reference"
        statement = difference_text(self.new, self.old, metric.title, difference)
        return Check("drop", requirement, estimate, max_drop, True, rule, form, statement)

    def flips(self, limit: float, clusters: Mapping[str, str] | None) -> Check:
        """Check the largest fraction of predictions that differ under a condition."""
        both = self.scores.predictions([self.old, self.new])
        old, new = both[self.old], both[self.new]
        units = find_clusters(old.ids, clusters)
        most = largest_flips(old, new, units, self.scores.level, always_valid=self.always_valid)
        estimate, form = most.estimate, most.form
        if _same_model(self.scores.results, self.new, self.old) and not estimate.value:
            estimate, form = replace(estimate, low=0.0, high=0.0), form * 0
        requirement = f"at most {100 * limit:g} % of predictions differ under every condition"
        statement = f"{estimate:.2%} under {most.condition}"
        level = most.adjusted_level if estimate.value > limit else None
        check = Check("flips", requirement, estimate, limit, True, form=form, statement=statement)
        return replace(check, form_level=level)

    def value(self, limit: float) -> Check:
        metric = metrics[self.metric]
        if metric.unit == "fraction" and limit > 1:
            raise OptionError(f"require must be at most 1 (100 %) for {self.metric}, got {limit:g}")
        return _limit("value", metric.title, self.estimate(self.new), limit, upper=metric.better == "lower")

    def clean(self, limit: float) -> Check:
        estimate = self.model.clean
        if estimate is None:
            raise OptionError("min_clean requires clean images, and the suite has none")
        if self.always_valid and self.model.clean_form is not None:
            estimate = 1 - self.model.clean_form.estimate(self.scores.level, always_valid=True)
        return _limit("clean", "clean accuracy" if self.scores.with_clean else "accuracy", estimate, limit)

    def worst(self, limit: float) -> Check:
        """Check the lowest accuracy over corruptions; the lowest ends of joint intervals bound it."""
        forms = self.model.error_forms
        if not forms:
            raise OptionError(f"min_worst requires shifted images, and {self.scores.suite} has none")
        each = 1 - (1 - self.scores.level) / len(forms)
        errors = {name: form.estimate(each, always_valid=self.always_valid) for name, form in forms.items()}
        name, worst = max(errors.items(), key=lambda item: item[1].value)
        low = 1 - max(one.high for one in errors.values())
        high = 1 - max(one.low for one in errors.values())
        estimate = Estimate(1 - worst.value, low, high, worst.n, self.scores.level)
        what = f"accuracy under the worst corruption, {name.replace('_', ' ')},"
        return _limit("worst", what, estimate, limit)

    def sets(
        self, results: Results, floors: Mapping[str, float], clusters: Mapping[str, str] | None
    ) -> Iterator[Check]:
        """Check the coverage of prediction sets on the images that do not calibrate them."""
        level = self.scores.level
        (found,) = sets_by_severity(results, clusters=clusters, level=level)
        if found.notes:
            raise OptionError(f"a minimum coverage requires prediction sets; {'; '.join(found.notes)}")
        scores = {f"{one.method}@{group}": one for group, sets in found.scores.items() for one in sets}
        judged = found.images - found.calibrated_on
        for name, limit in floors.items():
            validate_choice("floor", name, scores)
            one, (method, _, group) = scores[name], name.partition("@")
            estimate = one.coverage
            if self.always_valid and one.form is not None:
                estimate = one.form.estimate(level, always_valid=True)
            where = f"severity {group}" if group.isdecimal() else f"{group} images"
            what = (
                f"coverage of {method.upper()} sets at {where}, calibrated to {100 * found.set_coverage:g} %,"
            )
            check = _limit(name, what, estimate, limit)
            yield replace(
                check,
                statement=f"{estimate:.2%} of {counted(judged, 'image')}",
                form=one.form,
                used=judged / found.images,
            )


def _same_model(results: Results, new: str, old: str) -> bool:
    """Whether two names mean the same model by its digest; results in memory have no digest."""
    rows = [list(results.cells[name].values()) for name in (new, old)]
    return rows[0] == rows[1] and all("digest" in cell.model for cell in rows[0])


def _limit(name: str, what: str, estimate: Estimate, limit: float, *, upper: bool = False) -> Check:
    requirement = f"{what} at {'most' if upper else 'least'} {100 * limit:g} %"
    return Check(name, requirement, estimate, limit, upper, statement=f"{estimate:.2%}")
