"""The one number, and what it means, in words that need no paper."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from beaufort._core.text import counted
from beaufort.metrics import metrics
from beaufort.metrics.stats import Estimate
from beaufort.report.wording import ordinal, percent, shown, spoken, words
from beaufort.results import ModelScores, Scores


@dataclass(frozen=True)
class Tile:
    """A number beside the headline."""

    title: str
    value: str
    note: str
    """Its interval, or what it is."""


@dataclass(frozen=True)
class Headline:
    """What a page says first about a model."""

    model: str
    sentence: str
    """For someone who has never heard of the metric."""
    metric: str
    """The metric's title, with its baseline."""
    estimate: Estimate
    meaning: str
    """How to read the number."""
    standing: str
    """Its place among the models; empty if it is the only one."""
    tiles: tuple[Tile, ...]


def headline(scores: Scores, model: ModelScores) -> Headline:
    """The first things to know about one model."""
    name = scores.headline
    sentence, meaning = _SAID.get(name, _plain)(scores, model)
    return Headline(
        model.model,
        sentence,
        scores.metric_title(name),
        model.headline,
        meaning,
        _standing(scores, model),
        tuple(_tiles(scores, model)),
    )


def about(scores: Scores) -> str:
    """What was shown to the models, in words."""
    suite = scores.suite
    each = Counter(condition.corruption for condition in suite.conditions() if not condition.clean)
    fewest, most = min(each.values(), default=0), max(each.values(), default=0)
    if suite.sequences:  # frames of noise are all as strong
        ways = f"in {counted(len(suite.families), 'sequence')} of {_range(fewest, most)} frames"
    else:
        kinds = counted(len(suite.families), "kind of damage", "kinds of damage")
        ways = f"under {kinds} at {_strengths(fewest, most)}"
    count = len(suite.conditions())
    clean = "each as it is and" if suite.clean else "each"
    return (
        f"{counted(scores.images, 'image')} of {scores.results.dataset}, {clean} {ways}: "
        f"{counted(count, 'version')}, {counted(count * scores.images, 'answer')} a model."
    )


def _strengths(fewest: int, most: int) -> str:
    return "one strength" if most == 1 else f"{_range(fewest, most)} strengths"


def _range(fewest: int, most: int) -> str:
    return f"{fewest} to {most}" if fewest < most else str(most)


def _mce(scores: Scores, model: ModelScores) -> tuple[str, str]:
    assert scores.baseline is not None
    value, base = model.metrics["mce"], scores.baseline.short_name
    if value.exact:
        return _itself(base)
    return (
        f"On damaged pictures, the error rate of {model.model} is {_share(value)} of {base}'s, "
        f"on average over {_kinds(scores)}{_undecided(value)}.",
        f"100 % would be the errors of {base}; less is better.",
    )


def _relative_mce(scores: Scores, model: ModelScores) -> tuple[str, str]:
    assert scores.baseline is not None
    value, base = model.metrics["relative_mce"], scores.baseline.short_name
    if value.exact:
        return _itself(base)
    return (
        f"Damage costs {model.model} {_share(value)} of the accuracy that it costs {base}, on average over "
        f"{_kinds(scores)}{_undecided(value)}.",
        f"100 % would be as much as {base} loses; less is better.",
    )


def _itself(baseline: str) -> tuple[str, str]:
    return f"{baseline} is the model that the others are measured against.", "100 % by definition."


def _share(value: Estimate) -> str:
    return f"{100 * value.value:.0f} %"


def _kinds(scores: Scores) -> str:
    return f"{counted(len(scores.suite.families), 'kind', 'kinds')} of damage"


def _undecided(value: Estimate) -> str:
    """What to add if the interval does not say on which side of 100 % the truth is."""
    if value.high < 1 or value.low > 1:
        return ""
    return "; whether that is more or less than 100 % is not decided with so few images"


def _mean_accuracy(scores: Scores, model: ModelScores) -> tuple[str, str]:
    value, kinds = model.metrics["mean_accuracy"], counted(len(scores.suite.families), "kind", "kinds")
    if scores.suite.clean_in_mean:
        return (
            f"{model.model} names {percent(value.value)} of the pictures correctly, damaged ones and clean.",
            f"The average over {kinds} of damage and the clean images, each counted once.",
        )
    clean = f", and {percent(model.clean.value)} of clean ones" if model.clean else ""
    return (
        f"{model.model} names {percent(value.value)} of damaged pictures correctly{clean}.",
        f"The average over {kinds} of damage.",
    )


def _plain(scores: Scores, model: ModelScores) -> tuple[str, str]:
    one = metrics[scores.headline]
    better = f"{one.better.capitalize()} is better." if one.better else ""
    return f"{model.model} has {one.title} {shown(model.headline)}.", f"{one.summary} {better}".strip()


def _flip_probability(scores: Scores, model: ModelScores) -> tuple[str, str]:
    value, films = model.metrics["flip_probability"], counted(len(scores.suite.sequences), "sequence")
    clean = f"; it names {percent(model.clean.value)} of clean pictures correctly" if model.clean else ""
    return (
        f"The answer of {model.model} changes in {percent(value.value)} of the frames of a small perturbation"
        f"{clean}.",
        f"The average over {films}. Labels are not used: 0 % is a model that always says the same.",
    )


_SAID = {
    "mce": _mce,
    "relative_mce": _relative_mce,
    "mean_accuracy": _mean_accuracy,
    "flip_probability": _flip_probability,
}


def _standing(scores: Scores, model: ModelScores) -> str:
    if len(scores.ranking) < 2:
        return ""
    mine = next(one for one in scores.ranking if one.name == model.model)
    ties = [
        other.name for other in scores.ranking if other.name != mine.name and {*other.groups} & {*mine.groups}
    ]
    if mine.best == mine.worst:
        said = f"It is {ordinal(mine.best)} of {len(scores.ranking)} models"
    else:
        said = f"Its place is between {mine.best} and {mine.worst} of {len(scores.ranking)} models"
    if not ties:
        return f"{said}, told apart from every other by more than chance."
    if len(ties) > 3:
        return f"{said}; {counted(len(ties), 'other')} cannot be told apart from it with these images."
    return f"{said}; {spoken(ties)} cannot be told apart from it with these images."


def _tiles(scores: Scores, model: ModelScores) -> list[Tile]:
    tiles = []
    if model.clean is not None:
        tiles.append(_tile("Clean accuracy", model.clean))
    if scores.headline != "mean_accuracy":
        tiles.append(_tile("Accuracy under damage", model.metrics["mean_accuracy"]))
    errors = sorted(model.corruptions.items(), key=lambda item: item[1].value)
    if len(errors) > 1 and errors[-1][1].value > errors[-2][1].value:
        tiles.append(_tile(f"Most errors measured: {words(errors[-1][0])}", errors[-1][1]))
    if len(errors) > 1 and errors[0][1].value < errors[1][1].value:
        tiles.append(_tile(f"Fewest errors measured: {words(errors[0][0])}", errors[0][1]))
    if model.calibration:
        last = list(model.calibration)[-1]
        at = {"clean": "on clean images", "corrupted": "under damage"}.get(last, f"at severity {last}")
        tiles.append(_tile(f"Calibration error {at}", model.calibration[last].ece))
    return tiles


def _tile(title: str, estimate: Estimate) -> Tile:
    value, _, bounds = shown(estimate).partition(" [")
    return Tile(title, value, f"[{bounds}")
