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
    sentence, meaning = _SENTENCES.get(name, _plain)(scores, model)
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
    """What the models were evaluated on, in words."""
    suite = scores.suite
    each = Counter(condition.corruption for condition in suite.conditions() if not condition.clean)
    fewest, most = min(each.values(), default=0), max(each.values(), default=0)
    each_has = f"{fewest} to {most}" if fewest < most else str(most)
    if suite.sequences:  # frames of noise are all as strong
        ways = f"in {counted(len(suite.families), 'sequence')} of {each_has} frames"
    else:
        ways = f"under {_kinds(scores)} at {'one severity' if most == 1 else f'{each_has} severities'}"
    count = len(suite.conditions())
    clean = "each as it is and" if suite.clean else "each"
    return (
        f"{counted(scores.images, 'image')} of {scores.results.dataset}, {clean} {ways}: "
        f"{counted(count, 'version')}, {counted(count * scores.images, 'prediction')} per model."
    )


def _ratio(scores: Scores, model: ModelScores) -> tuple[str, str]:
    """For mCE and relative mCE."""
    assert scores.baseline is not None
    value, base, relative = model.headline, scores.baseline.short_name, scores.headline == "relative_mce"
    if value.exact:
        return f"{base} is the model that the others are measured against.", "100 % by definition."
    fraction = f"{100 * value.value:.0f} %"
    errors = f"On corrupted images, the error rate of {model.model} is {fraction} of {base}'s"
    losses = f"Corruption costs {model.model} {fraction} of the accuracy that it costs {base}"
    undecided = "; whether that is more or less than 100 % is not decided with so few images"
    return (
        f"{losses if relative else errors}, on average over {_kinds(scores)}"
        f"{'' if value.high < 1 or value.low > 1 else undecided}.",
        f"100 % would be the {'losses' if relative else 'errors'} of {base}; less is better.",
    )


def _kinds(scores: Scores) -> str:
    return counted(len(scores.suite.families), "kind of corruption", "kinds of corruption")


def _mean_accuracy(scores: Scores, model: ModelScores) -> tuple[str, str]:
    value = percent(model.metrics["mean_accuracy"].value)
    if scores.suite.clean_in_mean:
        return (
            f"{model.model} classifies {value} of the images correctly, corrupted ones and clean.",
            f"The average over {_kinds(scores)} and the clean images, each counted once.",
        )
    clean = f", and {percent(model.clean.value)} of clean ones" if model.clean else ""
    return (
        f"{model.model} classifies {value} of corrupted images correctly{clean}.",
        f"The average over {_kinds(scores)}.",
    )


def _plain(scores: Scores, model: ModelScores) -> tuple[str, str]:
    one = metrics[scores.headline]
    better = f"{one.better.capitalize()} is better." if one.better else ""
    return f"{model.model} has {one.title} {shown(model.headline)}.", f"{one.summary} {better}".strip()


def _flip_probability(scores: Scores, model: ModelScores) -> tuple[str, str]:
    value, sequences = model.metrics["flip_probability"], counted(len(scores.suite.sequences), "sequence")
    clean = f"; it classifies {percent(model.clean.value)} of clean images correctly" if model.clean else ""
    return (
        f"The prediction of {model.model} changes in {percent(value.value)} of the frames of a small "
        f"perturbation{clean}.",
        f"The average over {sequences}. Labels are not used: 0 % is a model that always predicts the same.",
    )


_SENTENCES = {
    "mce": _ratio,
    "relative_mce": _ratio,
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
        tiles.append(_tile("Accuracy under corruption", model.metrics["mean_accuracy"]))
    errors = sorted(model.corruptions.items(), key=lambda item: item[1].value)
    if len(errors) > 1 and errors[-1][1].value > errors[-2][1].value:
        tiles.append(_tile(f"Most errors measured: {words(errors[-1][0])}", errors[-1][1]))
    if len(errors) > 1 and errors[0][1].value < errors[1][1].value:
        tiles.append(_tile(f"Fewest errors measured: {words(errors[0][0])}", errors[0][1]))
    if model.calibration:
        last = list(model.calibration)[-1]
        at = {"clean": "on clean images", "corrupted": "under corruption"}.get(last, f"at severity {last}")
        tiles.append(_tile(f"Calibration error {at}", model.calibration[last].ece))
    return tiles


def _tile(title: str, estimate: Estimate) -> Tile:
    value, _, bounds = shown(estimate).partition(" [")
    return Tile(title, value, f"[{bounds}")
