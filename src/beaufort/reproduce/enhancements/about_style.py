"""Is style transfer harder than every corruption? By Stylized-ImageNet in the testbed, and by photos.

The paper's stylized images were never published. Stylized-ImageNet (Geirhos et al. 2019) is the same method
at its full strength with other paintings; photos are stylized by a network of our own or of the user.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from beaufort.corruptions import get_corruption_names
from beaufort.reproduce.answers import StudyAnswers
from beaufort.reproduce.enhancements.findings import StudyArms, StudyFinding, signed, verdict_of
from beaufort.reproduce.enhancements.settings import CLEAN, NETWORKS
from beaufort.reproduce.enhancements.statistics import Shares
from beaufort.stats import Estimate
from beaufort.stats.resampling import bootstrap_means
from beaufort.testbed.load import load_grid

__all__ = ["StyleRow", "about_style", "photo_ces", "styles_in_testbed"]

Floats = NDArray[np.float64]

_IMAGES = 50_000
"""That every accuracy of the testbed is over."""
_STYLE = "stylize"
_LEVEL = 1.96


@dataclass(frozen=True)
class StyleRow:
    """CEs of one standard network of the testbed, in percent."""

    network: str
    style: float
    """Of Stylized-ImageNet."""
    worst: str
    worst_ce: float
    """The corruption with the largest CE."""
    mce: float
    gap: Estimate
    """Style's CE less the worst corruption's."""


@lru_cache(maxsize=1)
def styles_in_testbed() -> tuple[StyleRow, ...]:
    """Every standard network but AlexNet, whose errors divide.

    Answers about single images are not published, so the interval of a gap assumes the worst about how errors
    go together: deviations are added up, not their squares.
    """
    grid = load_grid("paper")
    columns = {
        name: np.stack(
            [1 - grid.column(one) / 100 for one in grid.setting(f"imagenet-c.{name}_on-disk").members], axis=1
        )
        for name in get_corruption_names("common")
    }
    styled = 1 - grid.column("stylized_imagenet") / 100
    whole = np.isfinite(styled) & np.all([np.isfinite(one).all(axis=1) for one in columns.values()], axis=0)
    base = grid.place_of["alexnet"]
    found = []
    for row in np.flatnonzero(grid.fitted & whole):
        if row == base:
            continue
        errors = {name: values[row] for name, values in columns.items()}
        ces = {name: errors[name].sum() / columns[name][base].sum() for name in errors}
        worst = max(ces, key=lambda name: float(ces[name]))
        style = styled[row] / styled[base]
        spread = _deviation(styled[row]) / styled[base]
        spread += sum(map(_deviation, errors[worst])) / columns[worst][base].sum()
        gap = 100 * float(style - ces[worst])
        ends = (gap - _LEVEL * 100 * float(spread), gap + _LEVEL * 100 * float(spread))
        found.append(
            StyleRow(
                grid.models[row],
                100 * float(style),
                worst,
                100 * float(ces[worst]),
                100 * float(np.mean(list(ces.values()))),
                Estimate(gap, *ends, _IMAGES),
            )
        )
    return tuple(found)


def _deviation(error: float) -> float:
    return float(np.sqrt(error * (1 - error) / _IMAGES))


def about_style(arms: StudyArms) -> StudyFinding:
    """Confirmed if style's CE is surely the largest of 16, refuted if surely not, by all there is."""
    statement = "Style transfer is harder for ResNet-50 than each of the 15 corruptions"
    known = styles_in_testbed()
    one = next(row for row in known if row.network == "resnet50")
    rank = sum(row.gap.value > 0 for row in known)
    above = sum(row.style > row.mce for row in known)
    told = (
        f"Stylized-ImageNet has CE {one.style:.1f}, {signed(one.gap)} to {one.worst}, and is hardest for "
        f"{rank} of {len(known)} networks of the testbed; it is above mCE for {above}"
    )
    verdicts = {verdict_of(one.gap, above=True)}
    if found := photo_gap(arms):
        network, gap, worst, level = found
        verdicts.add(verdict_of(gap, above=True))
        told += (
            f"; of photos stylized here, {network} has CE {signed(gap)} to {worst} (divided by "
            f"{_reference(arms)}), and an error of {level[0]:.1f} % at severity 0 against {level[1]:.1f} % "
            "on the photos themselves"
        )
    verdict = verdicts.pop() if len(verdicts) == 1 else "undecided"
    caveat = "the paper's stylized images were never published, these are others"
    return StudyFinding("style", statement, verdict, told, "CE 92, above all 15", caveat, ())


def _reference(arms: StudyArms) -> str:
    """The network whose errors divide: the last of those that are there."""
    known = [name for name in NETWORKS if name in arms.photos] or list(arms.photos)
    return known[-1]


def photo_ces(arms: StudyArms) -> dict[str, tuple[tuple[str, ...], Floats]]:
    """By network: the 15 corruptions and `stylize`, and what each photo adds to their CEs, `(photos, 16)`."""
    if not arms.styles or len(arms.photos) < 2 or any("plain" not in arms.photos[n] for n in arms.styles):
        return {}
    wrong = {name: _wrong(arms.photos[name]["plain"], styles) for name, styles in arms.styles.items()}
    base = {name: values.mean() for name, values in wrong[_reference(arms)].items()}
    return {
        network: (tuple(values), np.stack([100 * values[name] / base[name] for name in values], axis=1))
        for network, values in wrong.items()
        if network != _reference(arms)
    }


def _wrong(plain: Shares, styles: StudyAnswers) -> Mapping[str, Floats]:
    """How many severities of each corruption, and of style, each photo is not recognized under."""
    assert plain.right is not None
    found = {}
    for name in plain.corruptions:
        places = [i for i, one in enumerate(plain.conditions) if one.partition("@")[0] == name]
        found[name] = (~plain.right[places]).sum(axis=0).astype(np.float64)
    places = [i for i, one in enumerate(styles.conditions) if one != f"{_STYLE}@0"]
    found[_STYLE] = (~styles.right[places]).sum(axis=0).astype(np.float64)
    return found


def photo_gap(arms: StudyArms) -> tuple[str, Estimate, str, tuple[float, float]] | None:
    """Of one network: style's CE less the largest other, that one, and errors at severity 0 and clean."""
    found = photo_ces(arms)
    if not found:
        return None
    network = next((name for name in NETWORKS if name in found), next(iter(found)))
    names, shares = found[network]
    means = bootstrap_means(shares, resamples=10_000, seed=0)
    own, others = names.index(_STYLE), [i for i, name in enumerate(names) if name != _STYLE]
    drawn = means[:, own] - means[:, others].max(axis=1)
    whole = shares.mean(axis=0)
    worst = others[int(whole[others].argmax())]
    low, high = np.quantile(drawn, [0.025, 0.975])
    gap = Estimate(float(whole[own] - whole[worst]), float(low), float(high), len(shares))
    plain = arms.photos[network]["plain"]
    assert plain.right is not None
    errors = [
        100 * float(1 - one.mean())
        for one in (arms.styles[network].row(f"{_STYLE}@0"), plain.right[plain.conditions.index(CLEAN)])
    ]
    return network, gap, names[worst], (errors[0], errors[1])
