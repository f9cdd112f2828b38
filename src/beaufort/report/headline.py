"""The headline number of a model, and its meaning in words."""

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
    """A number next to the headline."""

    title: str
    value: str
    note: str
    """Its interval."""


@dataclass(frozen=True)
class Headline:
    """The first paragraph of a page about a model."""

    model: str
    sentence: str
    """The result in words, for readers who do not know the metric."""
    metric: str
    """Title of the metric, with its baseline."""
    estimate: Estimate
    meaning: str
    """Explanation of the number."""
    standing: str
    """Place among the models; empty if it is the only one."""
    tiles: tuple[Tile, ...]


def headline(scores: Scores, model: ModelScores) -> Headline:
    """Return the headline of a model."""
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
    """Return what the models were evaluated on, in words."""
    suite = scores.suite
    each = Counter(condition.corruption for condition in suite.conditions() if not condition.clean)
    fewest, most = min(each.values(), default=0), max(each.values(), default=0)
    each_has = f"{fewest} to {most}" if fewest < most else str(most)
    if suite.sequences:  # frames of noise are all as strong
        ways = f"in {counted(len(suite.families), 'sequence')} of {each_has} frames"
    else:
        ways = f"under {_kinds(scores)} at {'one severity' if most == 1 else f'{each_has} severities'}"
    count = len(suite.conditions())
    clean = "clean and" if suite.clean else "each"
    return (
        f"{counted(scores.images, 'image')} of {scores.results.dataset}, {clean} {ways}: "
        f"{counted(count, 'condition')}, {counted(count * scores.images, 'prediction')} per model."
    )


def _ratio(scores: Scores, model: ModelScores) -> tuple[str, str]:
    """Return the sentences for mCE and relative mCE."""
    assert scores.baseline is not None
    value, base, relative = model.headline, scores.baseline.short_name, scores.headline == "relative_mce"
    if value.exact:
        return f"{base} is the baseline.", "100 % by definition."
    fraction = f"{100 * value.value:.0f} %"
    errors = f"On corrupted images, the error of {model.model} is {fraction} of the error of {base}"
    losses = f"The accuracy that {model.model} loses under corruption is {fraction} of the loss of {base}"
    return (
        f"{losses if relative else errors}, on average over {_kinds(scores)}"
        f"{'' if value.high < 1 or value.low > 1 else '; the interval contains 100 %'}.",
        f"{base} has 100 %; lower is better.",
    )


def _kinds(scores: Scores) -> str:
    return counted(len(scores.suite.families), "corruption")


def _mean_accuracy(scores: Scores, model: ModelScores) -> tuple[str, str]:
    value = percent(model.metrics["mean_accuracy"].value)
    if scores.suite.clean_in_mean:
        return (
            f"{model.model} classifies {value} of the corrupted and clean images correctly.",
            f"Mean over {_kinds(scores)} and the clean images, with equal weights.",
        )
    clean = f", and {percent(model.clean.value)} of the clean images" if model.clean else ""
    return (
        f"{model.model} classifies {value} of the corrupted images correctly{clean}.",
        f"Mean over {_kinds(scores)}.",
    )


def _plain(scores: Scores, model: ModelScores) -> tuple[str, str]:
    one = metrics[scores.headline]
    better = f"{one.better.capitalize()} is better." if one.better else ""
    return f"{model.model} has {one.title} {shown(model.headline)}.", f"{one.summary} {better}".strip()


def _flip_probability(scores: Scores, model: ModelScores) -> tuple[str, str]:
    value, sequences = model.metrics["flip_probability"], counted(len(scores.suite.sequences), "sequence")
    clean = f"; it classifies {percent(model.clean.value)} of clean images correctly" if model.clean else ""
    return (
        f"The prediction of {model.model} changes in {percent(value.value)} of the frames of perturbation "
        f"sequences{clean}.",
        f"Mean over {sequences}. Labels are not used: a model that always predicts the same class has 0 %.",
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
        said = f"It ranks {ordinal(mine.best)} of {len(scores.ranking)} models"
    else:
        said = (
            f"It ranks between {ordinal(mine.best)} and {ordinal(mine.worst)} of {len(scores.ranking)} models"
        )
    if not ties:
        return f"{said}; it differs significantly from all others."
    if len(ties) > 3:
        return f"{said}; it does not differ significantly from {len(ties)} others."
    return f"{said}; it does not differ significantly from {spoken(ties, 'or')}."


def _tiles(scores: Scores, model: ModelScores) -> list[Tile]:
    tiles = []
    if model.clean is not None:
        tiles.append(_tile("Clean accuracy", model.clean))
    if scores.headline != "mean_accuracy":
        tiles.append(_tile("Accuracy under corruption", model.metrics["mean_accuracy"]))
    errors = sorted(model.corruptions.items(), key=lambda item: item[1].value)
    if len(errors) > 1 and errors[-1][1].value > errors[-2][1].value:
        tiles.append(_tile(f"Highest error: {words(errors[-1][0])}", errors[-1][1]))
    if len(errors) > 1 and errors[0][1].value < errors[1][1].value:
        tiles.append(_tile(f"Lowest error: {words(errors[0][0])}", errors[0][1]))
    if model.calibration:
        last = list(model.calibration)[-1]
        at = {"clean": "on clean images", "corrupted": "under corruption"}.get(last, f"at severity {last}")
        tiles.append(_tile(f"Calibration error {at}", model.calibration[last].ece))
    return tiles


def _tile(title: str, estimate: Estimate) -> Tile:
    value, _, bounds = shown(estimate).partition(" [")
    return Tile(title, value, f"[{bounds}")
