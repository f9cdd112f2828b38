"""Questions of a study: every arm beside its control, and the verdict on a claim.

A question in a study's file names its arms and their controls, and what confirms and refutes its claim:
`augmix mCE < 0` compares an arm with its control; an arm may have wildcards, and
`ARM against CONTROL METRIC < 0` chooses one of several controls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from beaufort._core.errors import OptionError
from beaufort._core.text import counted
from beaufort.metrics.stats import Estimate, holm, mcnemar
from beaufort.studies.arm_metrics import (
    ArmMetrics,
    Contributions,
    combined,
    intervals,
    metrics_of_arm,
    normalizer_of,
)
from beaufort.studies.failed_runs import CheckedRuns, check_runs, ending_facts
from beaufort.studies.prediction_archive import predictions_by_seed
from beaufort.studies.predictions import StudyPredictions
from beaufort.studies.study_file import StudySettings, parse_comparison
from beaufort.studies.verdicts import Requirement, decide

_ALPHA = 0.05
_LOWER = "lower CEs"
"""A metric: the number of corruptions whose CE is lower than the control's."""
_SEVERAL = 3
"""Number of arms above which a comparison is summarized."""


@dataclass(frozen=True)
class StudyArms:
    """All arms with predictions."""

    groups: Mapping[str, Mapping[str, ArmMetrics]]
    """By group, the trained arms' or a network on photos, and arm."""
    settings: StudySettings
    images: Mapping[str, int]
    runs: CheckedRuns = field(default_factory=CheckedRuns)
    left_out: Sequence[str] = ()
    """Predictions that are not used, because those of an earlier seed are missing."""

    @property
    def trained_group(self) -> str:
        return trained_group(self.settings)

    @property
    def trained(self) -> Mapping[str, ArmMetrics]:
        return self.groups.get(self.trained_group, {})

    def rows_group(self, data: str) -> dict[str, Mapping[str, ArmMetrics]]:
        """Return the groups of a kind of rows: `trained`, or all others."""
        own = self.trained_group
        return {name: arms for name, arms in self.groups.items() if (name == own) == (data == "trained")}


def trained_group(settings: StudySettings) -> str:
    """Return the name of the data that a study trains on."""
    return str(settings.file.get("trained_on", "the test images"))


def load_trained(folder: Path, settings: StudySettings) -> StudyArms:
    """Read the predictions of all trained arms.

    Only seeds 0, 1, … up to the first that is missing count, so that arms are compared seed by seed.
    """
    trained: dict[str, list[StudyPredictions]] = {}
    left_out: list[str] = []
    where = {name: arm.folder for name, arm in settings.arms.items()}
    for part in dict.fromkeys(where.values()):
        for name, some in predictions_by_seed(folder, part).items():
            usable = [one for seed, one in enumerate(some) if one.facts.get("seed", seed) == seed]
            left_out += [f"{name}, seed {one.facts['seed']}" for one in some[len(usable) :]]
            if usable:
                trained[name] = usable
    base = settings.file["base"]
    group, arms, images = trained_group(settings), {}, {}
    if base in trained:
        each = {
            f"{where.get(arm, '')}/{arm}-seed{n}.npz": one
            for arm, some in trained.items()
            for n, one in enumerate(some)
        }
        check_alike(f"{where[base]}/{base}-seed0.npz", each)
        normalizer = normalizer_of(trained[base][0], settings.clean)
        arms = {name: metrics_of_arm(some, normalizer, settings) for name, some in trained.items()}
        images = {group: trained[base][0].correct.shape[1]}
    return StudyArms({group: arms}, settings, images, _check_trained(trained, settings), left_out)


def check_alike(file: str, each: Mapping[str, StudyPredictions]) -> None:
    """Check that all files have the conditions and images of one, so that predictions can be paired."""
    first = each[file]
    for other, one in each.items():
        if one.conditions != first.conditions or one.correct.shape != first.correct.shape:
            sizes = [
                f"{counted(rows, 'row')} of {counted(images, 'image')}"
                for rows, images in (one.correct.shape, first.correct.shape)
            ]
            raise OptionError(
                f"{other} has {sizes[0]} and {file} has {sizes[1]}, so they cannot be compared; delete the "
                "file that is out of date"
            )


def _check_trained(trained: Mapping[str, Sequence[StudyPredictions]], settings: StudySettings) -> CheckedRuns:
    """Check the losses of all trained arms, and name the numbers that contain each."""
    arms, base = settings.arms, settings.file["base"]
    controls = {
        control for question in settings.file["questions"].values() for _, control, _ in question["rows"]
    }

    def inside(arm: str) -> str:
        parts = ["its rows"]
        parts += ["all differences to it"] if arm in controls else []
        parts += (
            ["arms that start from it or test it"]
            if any(arm in (o.start, o.tests) for o in arms.values())
            else []
        )
        parts += ["of seed 0, every mCE"] if arm == base else []
        return ", ".join(parts)

    return check_runs(
        (arm, inside(arm), ending_facts(one))
        for arm, some in trained.items()
        for one in some
        if one.facts.get("recipe", {}).get("name") == arm  # others test what another arm trained
    )


class Flips(NamedTuple):
    """Images that an arm and its control classify differently under a condition, for the first seed."""

    condition: str
    gained: int
    """Correct only for the arm."""
    lost: int
    """Correct only for the control."""
    p: float
    """McNemar's p-value, adjusted for all conditions of the arm."""

    @property
    def verdict(self) -> str:
        if self.p >= _ALPHA:
            return "undecided"
        return "better" if self.gained > self.lost else "worse"


def find_flips(control: ArmMetrics, arm: ArmMetrics, clean: str = "clean") -> tuple[Flips, ...]:
    """Return the flips under clean images and the corruptions in mCE."""
    if control.right is None or arm.right is None:
        return ()
    names = [
        name
        for name in control.conditions
        if name in arm.conditions and name.partition("@")[0] in (clean, *control.corruptions)
    ]
    before = control.right[[control.conditions.index(name) for name in names]]
    after = arm.right[[arm.conditions.index(name) for name in names]]
    gained, lost = (np.count_nonzero(one, axis=1) for one in (after & ~before, before & ~after))
    p = holm([mcnemar(int(a), int(b)) for a, b in zip(lost, gained, strict=True)])
    return tuple(
        Flips(name, int(a), int(b), float(c)) for name, a, b, c in zip(names, gained, lost, p, strict=True)
    )


@dataclass(frozen=True)
class ArmRow:
    """One arm of a question beside its control; percentages and points."""

    group: str
    """The network on photos, or the data of the trained arms."""
    arm: str
    control: str
    numbers: Mapping[str, Estimate]
    differences: Mapping[str, Estimate]
    """The arm minus its control; empty for the control."""
    lower: int
    """Number of corruptions whose CE is lower than the control's."""
    seeds: int
    """Number of seeds that both have."""
    flips: Sequence[Flips] = ()
    """One for each condition; empty for the control."""
    pairs: Mapping[str, Contributions] = field(default_factory=dict, repr=False)
    """What each image adds to each difference."""
    line_seeds: int = 0
    """Number of seeds that the arm and all networks of a line have; 0 without a line."""
    trained: bool = True

    def seeds_of(self, metric: str) -> int:
        return self.line_seeds if metric == OFF_THE_LINE else self.seeds

    def count(self, verdict: str) -> int:
        """Return the number of conditions under which the arm is `better` or `worse` than its control."""
        return sum(one.verdict == verdict for one in self.flips)

    def difference(self, metric: str, level: float) -> Estimate:
        """Return a difference with the interval of a level; `lower CEs` counts corruptions."""
        if metric == _LOWER:
            return Estimate(self.lower, self.lower, self.lower, 0)
        if level == self.differences[metric].level:
            return self.differences[metric]
        return intervals({metric: self.pairs[metric]}, [metric], level)[metric]


OFF_THE_LINE = "off the line"
"""A metric: mCE minus the value of a line at the clean error."""


def arm_row(
    group: str,
    arm: str,
    metrics: ArmMetrics,
    control: str = "",
    base: ArmMetrics | None = None,
    *,
    trained: bool = True,
) -> ArmRow:
    """Return the metrics of an arm with intervals, and their differences from a control."""
    seeds = metrics.seeds if base is None else min(metrics.seeds, base.seeds)
    levels = {name: Contributions(rows.values[:seeds], rows.ends) for name, rows in metrics.rows.items()}
    if base is None:
        return ArmRow(group, arm, control, intervals(levels), {}, 0, seeds, trained=trained)
    pairs = {name: combined((1, rows), (-1, base.rows[name])) for name, rows in levels.items()}
    both = {**levels, **{f"Δ {name}": pair for name, pair in pairs.items()}}
    found = intervals(both, paired={f"Δ {name}" for name in pairs})
    numbers, changes = {name: found[name] for name in levels}, {name: found[f"Δ {name}"] for name in levels}
    lower = sum(changes[f"{name} CE"].value < 0 for name in metrics.corruptions)
    flips = find_flips(base, metrics, base.conditions[0] if base.conditions else "clean")
    return ArmRow(group, arm, control, numbers, changes, lower, seeds, flips, pairs, trained=trained)


def question_rows(arms: StudyArms, question: str) -> list[ArmRow]:
    """Return the arms of a question beside their controls, as far as they have predictions."""
    rows = []
    for data, control, patterns in arms.settings.file["questions"][question]["rows"]:
        groups = arms.rows_group(data)
        every = sorted({name for by_arm in groups.values() for name in by_arm})
        names = list(_expand(patterns, every, arms.settings.corruptions))
        is_trained = data == "trained"
        for group, by_arm in groups.items():
            there = [name for name in names if name in by_arm]
            if control in by_arm and (there or not is_trained):
                base = by_arm[control]
                rows.append(arm_row(group, control, base, trained=is_trained))
                rows += [
                    arm_row(group, name, by_arm[name], control, base, trained=is_trained) for name in there
                ]
    return rows


def _expand(patterns: Sequence[str], names: Sequence[str], corruptions: Sequence[str]) -> Iterator[str]:
    for pattern in patterns:
        if "CORRUPTION" in pattern:
            yield from (pattern.replace("CORRUPTION", name) for name in corruptions)
        else:
            yield from (name for name in names if fnmatchcase(name, pattern))


class StudyFinding(NamedTuple):
    """The result of a question; the texts are those of the study's file."""

    name: str
    verdict: str
    """`confirmed`, `refuted`, `undecided`, or `not run` without predictions."""
    measured: str
    rows: Sequence[ArmRow]
    question: str
    claim: str
    scope: str
    """Data and networks that decide the claim."""
    printed: str
    """What the paper prints."""
    caveat: str

    @property
    def sentence(self) -> str:
        """The claim, the verdict, the intervals behind it, the paper's effect, and the caveats."""
        paper = self.printed and f"the paper: {self.printed}"
        parts = (f"{self.claim}: {self.verdict} ({self.scope})", self.measured, paper, self.caveat)
        return "; ".join(filter(None, parts)) + "."


def finding(
    settings: StudySettings, name: str, verdict: str, measured: str, rows: Sequence[ArmRow]
) -> StudyFinding:
    """Return the result of a question with its texts."""
    texts = settings.file["questions"][name]
    small = settings.file.get("small_images", "") if any(row.trained for row in rows) else ""
    caveat = "; ".join(filter(None, [texts.get("caveat", ""), small]))
    question, claim, scope, paper = (texts.get(key, "") for key in ("question", "claim", "scope", "paper"))
    return StudyFinding(name, verdict, measured, rows, question, claim, scope, paper, caveat)


def find(arms: StudyArms, question: str, rows: list[ArmRow] | None = None) -> StudyFinding:
    """Return the result of a question by the comparisons in its file."""
    rows = question_rows(arms, question) if rows is None else rows
    declared = arms.settings.file["questions"][question]
    confirmed, refuted = (
        [_parsed(arms.settings, rows, text, declared.get("networks")) for text in declared[key]]
        for key in ("confirmed", "refuted")
    )
    every = [*confirmed, *refuted]
    if not all(one.rows for one in every):
        return finding(arms.settings, question, "not run", "no predictions decide it yet", rows)
    verdict = decide(
        [comparison for one in confirmed for comparison in one.comparisons],
        [comparison for one in refuted for comparison in one.comparisons],
        complete=all(one.complete for one in every),
    )
    shown = [_parsed(arms.settings, rows, f"{text} < 0", None) for text in declared.get("also", ())]
    texts = list(dict.fromkeys(text for one in (*every, *shown) for text in one.texts))
    best = [row for row in rows if row.differences and fnmatchcase(row.arm, declared.get("selects", ""))]
    if best and "extra CE" in best[0].differences:  # nothing else selects arms
        one = min(best, key=lambda row: row.differences["extra CE"].value)
        texts.append(
            f"best on the extra corruptions is {one.arm}, with ΔmCE {signed(one.differences['mCE'])}"
        )
    if margins := {abs(one.bound) for one in every if one.bound and one.metric != _LOWER}:
        texts.append(
            f"effects below {max(margins):g} {'point' if max(margins) == 1 else 'points'} count as none"
        )
    if (tests := sum(len(one.comparisons) for one in refuted)) > 1:
        texts.append(f"{tests} comparisons can refute it, each at a level of {100 * _ALPHA / tests:.2g} %")
    return finding(arms.settings, question, verdict, "; ".join(texts), rows)


class _Parsed(NamedTuple):
    """A comparison of a file, for every row that it is about."""

    rows: Sequence[ArmRow]
    comparisons: Sequence[Requirement]
    texts: Sequence[str]
    metric: str
    bound: float
    complete: bool
    """Whether all declared arms have predictions."""


def _parsed(settings: StudySettings, rows: Sequence[ArmRow], text: str, networks: str | None) -> _Parsed:
    pattern, control, metric, sign, bound = parse_comparison(text)
    chosen = [
        row
        for row in rows
        if fnmatchcase(row.arm, pattern)
        and control in ("", row.control)
        and (metric in row.differences or (metric == _LOWER and row.differences))
    ]
    if networks == "first":
        chosen = [row for row in chosen if row.group == chosen[0].group]
    compared = [
        Requirement(
            partial(row.difference, metric),
            sign,
            bound,
            row.seeds if row.trained else 2,
        )
        for row in chosen
    ]
    declared = settings.matching([pattern]) if any(row.trained for row in chosen) else []
    there = {row.arm for row in chosen}
    return _Parsed(chosen, compared, _texts(chosen, metric), metric, bound, set(declared) <= there)


def _texts(rows: Sequence[ArmRow], metric: str) -> list[str]:
    """Return the differences of rows in a metric; of many arms, the extremes and how many differ from 0."""
    name = "ΔmCE" if metric == "mCE" else metric if metric == _LOWER else f"Δ {metric}"
    if len(rows) > _SEVERAL and len({row.group for row in rows}) == 1:
        ordered = sorted(rows, key=lambda row: row.differences[metric].value)
        below, above = (
            sum(Requirement(row.differences[metric], sign, 0, row.seeds).holds() for row in rows)
            for sign in ("<", ">")
        )
        ends = " to ".join(
            f"{signed(row.differences[metric])} ({row.arm})" for row in (ordered[0], ordered[-1])
        )
        counts = f"below 0 for {below} and above for {above}"
        return [f"{name} of {len(rows)} arms from {ends}, {counts} ({_where(*rows)})"]
    return [
        f"{name} of {row.arm} to {row.control} "
        + (f"{row.lower}" if metric == _LOWER else signed(row.differences[metric]))
        + f" ({_where(row)})"
        for row in rows
    ]


def _where(*rows: ArmRow) -> str:
    return rows[0].group + (f", {runs_text(*(row.seeds for row in rows))}" if rows[0].trained else "")


def signed(interval: Estimate) -> str:
    """Return a difference with its interval, with as many digits as it takes to tell its ends from zero.

    >>> signed(Estimate(-2.25, -3.5, -0.04, 1000))
    '−2.25 [−3.50, −0.04]'
    """
    ends = interval.low, interval.high
    digits = next((n for n in (1, 2) if all(round(x, n) or not x for x in ends)), 3)
    value, low, high = (f"{x:+z.{digits}f}".replace("-", "−") for x in (interval.value, *ends))
    return f"{value} [{low}, {high}]"


def runs_text(*seeds: int) -> str:
    """Return how many training runs of each arm a number contains.

    >>> runs_text(5, 5)
    '5 runs each'
    """
    least, most = min(seeds), max(seeds)
    if most == 1:
        return "one run each, which decides nothing"
    if least == most:
        return f"{most} runs each"
    return f"{least} to {most} runs each" + ", where one decides nothing" * (least == 1)
