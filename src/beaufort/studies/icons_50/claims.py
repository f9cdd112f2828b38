"""The paper's conclusions about Icons-50, each with the numbers that bear it out or refute it."""

from __future__ import annotations

from beaufort.studies.claim import Claim
from beaufort.studies.icons_50.effects import Effect, difference
from beaufort.studies.icons_50.settings import NETWORKS, SPLITS, VARIANTS
from beaufort.studies.icons_50.tables import IconResults
from beaufort.studies.measured import measured


def claims(results: IconResults, found: list[Effect]) -> list[Claim]:
    """Those that can be looked at with what is there."""
    told = [_of_effect(one) for one in found]
    told += [one for name in NETWORKS for one in _about_rules(results, name)]
    return told + [
        one for name in ("resnet20", "densenet40", "resnext29") for one in _multiscale(results, name)
    ]


def _of_effect(one: Effect) -> Claim:
    return Claim(
        f"{one.name}: {one.first} is above {one.second} on {one.split}",
        f"{_points(one.value, one.low, one.high)}, {_trainings(*one.trainings)}",
        one.decided,
    )


def _about_rules(results: IconResults, name: str) -> list[Claim]:
    """A new surface is harder than a new rendition, so the amount of data is not what is missing."""
    found = []
    easy = results.right(name, "traditional")
    for split in ("style", "subtype"):
        hard = results.right(name, split)
        if easy is None or hard is None:
            continue
        first, second = measured(easy, None), measured(hard, None)
        least, most = first.lowest - second.highest, first.highest - second.lowest
        decided = True if least > 0.1 else False if most < 0.1 else None
        found.append(
            Claim(
                f"{VARIANTS[name].title} is more than 10 points better on {SPLITS['traditional']} than on "
                f"{SPLITS[split]}",
                f"{100 * first.value:.1f} and {100 * second.value:.1f}: {100 * least:+.1f} to "
                f"{100 * most:+.1f} points apart by the trainings' own intervals, "
                f"{_trainings(len(easy), len(hard))}",
                decided if min(len(easy), len(hard)) > 1 else None,
            )
        )
    return found


def _multiscale(results: IconResults, name: str) -> list[Claim]:
    """MSDNet is the best of the paper's networks without Shake-Shake when a style is new."""
    ours, theirs = results.right("msdnet", "style"), results.right(name, "style")
    if ours is None or theirs is None:
        return []
    value, low, high = difference(ours, theirs)
    effect = Effect(
        "multiscale features",
        SPLITS["style"],
        VARIANTS["msdnet"].title,
        VARIANTS[name].title,
        value,
        low,
        high,
        (len(ours), len(theirs)),
    )
    return [_of_effect(effect)]


def _trainings(first: int, second: int) -> str:
    if first == second == 1:
        return "one training of each"
    return f"{first} trainings of each" if first == second else f"{first} and {second} trainings"


def _points(value: float, low: float, high: float) -> str:
    return f"{100 * value:+.1f} points [{100 * low:+.1f}, {100 * high:+.1f}]"
