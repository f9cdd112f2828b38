"""What the study of enhancements has beyond trained arms: photos, the testbed's networks, and style transfer.

The paper's stylized images were never published: Stylized-ImageNet (Geirhos et al. 2019) is the same method
at full strength with other paintings, and photos are stylized by a network of ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import OptionError
from beaufort._core.text import counted, csv_text
from beaufort.metrics.stats import Estimate, resample
from beaufort.report.drawing import Drawing, diverging
from beaufort.studies.arm_metrics import (
    ArmMetrics,
    Contributions,
    alexnet,
    combined,
    intervals,
    metrics_of_arm,
)
from beaufort.studies.prediction_archive import find_predictions, has_predictions
from beaufort.studies.predictions import StudyPredictions, correct_only
from beaufort.studies.question_pages import question_files
from beaufort.studies.questions import (
    OFF_THE_LINE,
    ArmRow,
    StudyArms,
    StudyFinding,
    check_alike,
    find,
    finding,
    load_trained,
    question_rows,
    runs_text,
    signed,
)
from beaufort.studies.study_file import StudySettings
from beaufort.studies.study_tasks import Log, StudyTask
from beaufort.studies.verdicts import Requirement, decide
from beaufort.testbed.architectures import (
    FAMILIES,
    ArchitectureStudy,
    architectures_csv,
    draw_architectures,
    study_architectures,
)
from beaufort.testbed.styles import draw_styles, styles_csv, styles_in_testbed

Floats = NDArray[np.float64]

NETWORKS = ("resnet50_224", "efficientnet_lite0_224", "mobilenet_v1_1.0_224")
"""Files `NAME.onnx` of the directory of networks: the paper's, and two others."""

STYLE_LEVELS = (0, 1, 2, 3, 4, 5)
"""Severities of stylized photos; at 0 the network paints without any style."""

PASSES = {"filters": ("nlm", "clahe", "style"), "crops": ("ten-crop",), "styles": ("style",)}
"""Questions of each pass over the photos: at 224 pixels behind image filters, at 256 in crops, stylized."""
_TITLES = {"filters": "photos", "crops": "photos in crops", "styles": "stylized photos"}

_LEAST_SPREAD = 0.05
"""Points of clean error that networks must differ by to define a line."""
_RESNETS = ("resnet20", "resnet56", "resnet110")
_BESIDE = "resnet20-double"
"""An arm of `small` that is not small."""
_STYLE = "stylize"
_CELL = 34
_CAPTIONS = {
    "architectures.svg": "mCE against clean error of 35 networks of the testbed",
    "style.svg": "CE of Stylized-ImageNet against the largest CE of a corruption, by network",
    "transfer-matrix.svg": "Gain in CE by the corruption of training and the corruption of the test",
}
_BESIDE_FIGURES = {
    "aggregation": "architectures.svg",
    "small": "architectures.svg",
    "transfer": "transfer-matrix.svg",
}


def plan(settings: StudySettings, only: Sequence[str], log: Log) -> list[list[StudyTask]]:
    """Return the tasks: photos, one condition per task, and training runs."""
    from beaufort.studies.trained_arms import training_tasks, wanted_arms

    questions = [name for name in settings.file["questions"] if not only or name in only]
    passes = [which for which, some in PASSES.items() if set(some) & set(questions)]
    photos, networks = settings.dataset("photos"), settings.dataset("networks")
    if passes and not (photos and networks):
        text = "add --data imagenet=PATH and --data networks=PATH"
        if questions == ["nlm"]:
            raise OptionError(f"nlm requires photos and networks: {text}")
        chosen = [name for name in questions if any(name in some for some in PASSES.values())]
        log(f"{', '.join(chosen)} without photos: {text}")
        passes = []
    elif passes and not network_files(settings):
        files = ", ".join(f"{name}.onnx" for name in NETWORKS)
        raise OptionError(f"{networks} has none of the networks {files}")
    return [*_photo_tasks(settings, passes), training_tasks(settings, wanted_arms(settings, only))]


def _photo_tasks(settings: StudySettings, passes: Sequence[str]) -> Iterator[list[StudyTask]]:
    def task(name: str, file: str, call: str, serves: tuple[str, ...] = (), **options: Any) -> StudyTask:
        call = f"beaufort.studies.photos:{call}"
        return StudyTask(name, file, call, {"settings": settings, **options}, serves=serves)

    filters = tuple(condition_file("filters", one) for one in photo_conditions(settings, "filters"))
    yield [
        task(f"{network} behind CLAHE", lines_file(network), "renormalize", filters, network=network)
        for network in (network_files(settings) if "filters" in passes else ())
    ]
    yield [
        task(f"{which}, {one}", condition_file(which, one), "predict_condition", which=which, condition=one)
        for which in passes
        for one in photo_conditions(settings, which)
    ]


def network_files(settings: StudySettings) -> dict[str, Path]:
    """Return the networks that exist, by name."""
    folder = Path(settings.dataset("networks"))
    files = {name: path for name in NETWORKS if (path := folder / f"{name}.onnx").is_file()}
    if settings.rehearse and not files:
        files = {path.stem: path for path in sorted(folder.glob("*.onnx"))[:2]}
    return files


def photo_conditions(settings: StudySettings, which: str) -> tuple[str, ...]:
    """Return the conditions of a pass over photos; crops need no extra ones, because they select nothing."""
    if which == "styles":
        return tuple(f"{_STYLE}@{level}" for level in STYLE_LEVELS)
    return settings.conditions(extra=which == "filters")


def condition_file(which: str, condition: str) -> str:
    """Return the file with the predictions under a condition, relative to the study's directory."""
    return f"photos/{which}/{condition}.npz"


def lines_file(network: str) -> str:
    """Return the file with the re-estimated statistics of a network behind CLAHE."""
    return f"photos/renormalized/{network}.npz"


@dataclass(frozen=True)
class EnhancementArms(StudyArms):
    """All arms, and predictions on stylized photos."""

    styles: Mapping[str, StudyPredictions] = field(default_factory=dict)
    """By network."""

    @property
    def photos(self) -> Mapping[str, Mapping[str, ArmMetrics]]:
        """Arms on photos by network."""
        return self.rows_group("photos")


def load_arms(folder: Path, settings: StudySettings) -> EnhancementArms:
    """Read all predictions of the study."""
    photos: dict[str, dict[str, ArmMetrics]] = {}
    images: dict[str, int] = {}
    for which in ("filters", "crops"):
        for network, by_arm in photo_predictions(folder, which, settings).items():
            for arm, one in by_arm.items():
                images[_TITLES[which]] = one.correct.shape[1]
                photos.setdefault(network, {})[arm] = metrics_of_arm([one], alexnet(settings), settings)
    stylized = photo_predictions(folder, "styles", settings)
    styles = {network: by_arm["plain"] for network, by_arm in stylized.items()}
    if styles:
        images[_TITLES["styles"]] = next(iter(styles.values())).correct.shape[1]
    counts = [images[name] for name in (_TITLES["filters"], _TITLES["styles"]) if name in images]
    if len(set(counts)) > 1:
        raise OptionError(
            f"photos/filters has predictions for {counts[0]} photos and photos/styles for {counts[1]}; "
            "delete the directory that is out of date"
        )
    made = load_trained(folder, settings)
    groups = {**photos, **made.groups}
    return EnhancementArms(groups, settings, {**images, **made.images}, made.runs, made.left_out, styles)


def photo_predictions(
    folder: Path, which: str, settings: StudySettings
) -> dict[str, dict[str, StudyPredictions]]:
    """Return the predictions of a pass by network and arm; empty until all of its conditions are done."""
    names = photo_conditions(settings, which)
    files = [condition_file(which, name) for name in names]
    if not all(has_predictions(folder, file) for file in files):
        return {}
    each = {file: find_predictions(folder, file) for file in files}
    check_alike(files[0], each)
    found: dict[str, dict[str, StudyPredictions]] = {}
    for key in each[files[0]].conditions:
        network, _, arm = key.partition("/")
        correct = np.stack([one.row(key) for one in each.values()]).astype(np.uint8)
        found.setdefault(network, {})[arm] = correct_only(names, correct, {})
    return found


def study_files(folder: Path, settings: StudySettings) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of every file that the existing predictions allow."""
    arms = load_arms(folder, settings)
    findings = [find_enhancement(arms, question) for question in settings.file["questions"]]
    facts = {"networks on photos": ", ".join(arms.photos) or "none yet"}
    more = _more_files(arms)
    yield from question_files(
        folder, arms, findings, more=more, captions=_CAPTIONS, beside=_BESIDE_FIGURES, facts=facts
    )


def _more_files(arms: EnhancementArms) -> Iterator[tuple[str, str]]:
    yield "architectures.csv", architectures_csv(architectures())
    yield "architectures.svg", draw_architectures(architectures()).svg()
    yield "style-testbed.csv", styles_csv(styles_in_testbed())
    yield "style.svg", draw_styles(styles_in_testbed()).svg()
    if ces := photo_ces(arms):
        yield "style.csv", ces_csv(ces, photo_errors(arms))
    if gains := transfer_gains(arms):
        yield "transfer-matrix.csv", gains_csv(gains)
        yield "transfer-matrix.svg", draw_gains(gains).svg()


def find_enhancement(arms: EnhancementArms, question: str) -> StudyFinding:
    """Return the result of a question: by the testbed, by an interval over arms, or as its file says."""
    rows = question_rows(arms, question)
    if arms.settings.file["questions"][question].get("second") == OFF_THE_LINE:
        rows = [_with_line(arms, row) for row in rows]
        verdict, text = _by_line(arms, rows, question)
    elif question == "style":
        verdict, text = _style(arms)
    elif question == "transfer":
        verdict, text = _transfer(arms)
    else:
        return find(arms, question, rows)
    return finding(arms.settings, question, verdict, text, rows)


@lru_cache(maxsize=1)
def architectures() -> ArchitectureStudy:
    """Return the networks of the testbed and their distances from the line of accuracy."""
    return study_architectures()


def _by_line(arms: StudyArms, rows: Sequence[ArmRow], question: str) -> tuple[str, str]:
    """Decide by the distances of the testbed's networks from its line; trained arms only add to the text.

    Confirmed if all networks are on the claimed side, above for small and below for aggregating ones.
    """
    study, declared, small = architectures(), arms.settings.file["testbed"], question == "small"
    distances = {
        one.name: Estimate(one.residual, one.residual_interval.low, one.residual_interval.high, study.fitted)
        for one in study.networks
        if one.name in (FAMILIES["small"] if small else declared["aggregating"])
    }
    above, below = ([Requirement(one, sign) for one in distances.values()] for sign in "><")
    verdict = decide(above if small else below, below if small else above, together=True)
    text = f"on all of ImageNet-C, off the line of {study.fitted} standard networks of the testbed: "
    text += _list(distances)
    if not small:
        mce = {one.name: one.mce for one in study.networks}
        falls = all(mce[one] > mce[two] for names in declared["by_size"] for one, two in pairwise(names))
        ends = ", ".join(f"{names[0]} to {names[-1]}" for names in declared["by_size"])
        text += f"; mCE {'falls' if falls else 'does not always fall'} with size from {ends}"
    tested = [row for row in rows if _is_tested(row)]
    if off := {row.arm: row.numbers[OFF_THE_LINE] for row in tested if OFF_THE_LINE in row.numbers}:
        line = ", ".join(name for name in _RESNETS if name in arms.trained)
        seeds = runs_text(*(row.line_seeds for row in tested if row.arm in off))
        text += f"; on {arms.trained_group}, off the line of {line} ({seeds}): {_list(off)}"
    elif tested:
        text += (
            f"; on {arms.trained_group} there is no line, which requires two ResNets with different clean "
        )
        text += "errors"
    return verdict, text


def _list(distances: Mapping[str, Estimate]) -> str:
    return ", ".join(f"{name} {signed(off)}" for name, off in distances.items())


def _is_tested(row: ArmRow) -> bool:
    return bool(row.differences) and row.arm not in (*_RESNETS, _BESIDE)


def _with_line(arms: StudyArms, row: ArmRow) -> ArmRow:
    """Return a row with the distance of its network from the line of ResNets, if there is a line."""
    if not _is_tested(row):
        return row
    seeds = min(arms.trained[one].seeds for one in (*_RESNETS, row.arm) if one in arms.trained)
    off = _off_the_line(arms, row.arm, seeds)
    return row if off is None else replace(row, numbers={**row.numbers, OFF_THE_LINE: off}, line_seeds=seeds)


def _off_the_line(arms: StudyArms, name: str, seeds: int) -> Estimate | None:
    """Return how far a network's mCE is above the line of ResNets against clean error, over images and seeds.

    None if there is no line: with one network, or with networks of one clean error. The interval accounts for
    the variation of all clean errors and mCEs, and so of the line, by its derivatives: far from the ResNets
    the slope matters most.
    """
    line, one = [arms.trained[known] for known in _RESNETS if known in arms.trained], arms.trained[name]
    x, y = (np.array([known.mean(metric, seeds) for known in line]) for metric in ("clean error", "mCE"))
    if len(line) < 2 or x.max() - x.min() < _LEAST_SPREAD:
        return None
    right, up = x - x.mean(), y - y.mean()
    slope, far = right @ up / (right @ right), one.mean("clean error", seeds) - x.mean()
    by_x = slope / len(line) - far * (up - 2 * slope * right) / (right @ right)
    by_y = -1 / len(line) - far * right / (right @ right)
    residual = combined(
        (1, one.rows["mCE"]),
        (-slope, one.rows["clean error"]),
        *((factor, known.rows["clean error"]) for factor, known in zip(by_x, line, strict=True)),
        *((factor, known.rows["mCE"]) for factor, known in zip(by_y, line, strict=True)),
    )
    return intervals({"residual": residual})["residual"]


def _style(arms: EnhancementArms) -> tuple[str, str]:
    """Confirmed if style has the largest CE for ResNet-50, in testbed and photos; refuted if in neither."""
    known = styles_in_testbed()
    one = next(row for row in known if row.network == "resnet50")
    rank = sum(row.gap.value > 0 for row in known)
    above = sum(row.style > row.mce for row in known)
    text = (
        f"Stylized-ImageNet has CE {one.style:.1f}, {signed(one.gap)} to {one.worst}, and is hardest for "
        f"{rank} of {len(known)} networks of the testbed; it is above mCE for {above}"
    )
    gaps = [one.gap]
    if (found := photo_gap(arms)) is not None:
        if found.network == NETWORKS[0]:  # the claim is about no other network
            gaps.append(found.gap)
        text += (
            f"; on our stylized photos, {found.network} has CE {signed(found.gap)} to {found.worst} "
            f"(divided by {found.reference}); undivided, its mean error is {np.mean(found.errors):.1f} % "
            f"({', '.join(f'{error:.1f}' for error in found.errors)} by severity) and the largest of a "
            f"corruption {found.hardest_error:.1f} % ({found.hardest}); an error of {found.painted:.1f} % at "
            f"severity 0 against {found.clean:.1f} % on the photos themselves"
        )
    harder, easier = ([Requirement(gap, sign) for gap in gaps] for sign in "><")
    return decide(harder, easier, together=True), text


def photo_ces(arms: EnhancementArms) -> dict[str, dict[str, Contributions]]:
    """Return what each photo adds to the CE, by network and by `stylize` or corruption.

    CEs are divided by the errors of one of the networks, which has to make some everywhere.
    """
    networks = _stylized_networks(arms)
    if len(networks) < 2:
        return {}
    wrong = {name: _wrong(arms.photos[name]["plain"], arms.styles[name]) for name in networks}
    base = {name: float(values.mean()) for name, values in wrong[_reference(networks)].items()}
    if not all(base.values()):
        return {}
    most = len(arms.settings.severities), len(STYLE_LEVELS) - 1
    return {
        network: {
            name: Contributions(100 * values[None] / base[name], (0, 100 * most[name == _STYLE] / base[name]))
            for name, values in wrong[network].items()
        }
        for network in networks
        if network != _reference(networks)
    }


def _stylized_networks(arms: EnhancementArms) -> list[str]:
    return [name for name, by_arm in arms.photos.items() if name in arms.styles and "plain" in by_arm]


def _reference(networks: Sequence[str]) -> str:
    """Return the network whose errors are the divisor: the last one."""
    return ([name for name in NETWORKS if name in networks] or networks)[-1]


def _wrong(plain: ArmMetrics, styles: StudyPredictions) -> Mapping[str, Floats]:
    """Return under how many severities of each corruption, and of style, each photo is misclassified."""
    assert plain.right is not None
    wrong = {}
    for name in plain.corruptions:
        places = [i for i, one in enumerate(plain.conditions) if one.partition("@")[0] == name]
        wrong[name] = (~plain.right[places]).sum(axis=0).astype(np.float64)
    places = [i for i, one in enumerate(styles.conditions) if one != f"{_STYLE}@0"]
    wrong[_STYLE] = (~styles.correct[places]).sum(axis=0).astype(np.float64)
    return wrong


def photo_errors(arms: EnhancementArms) -> dict[str, dict[str, float]]:
    """Return the mean error over severities in percent, by network and by `stylize` or corruption."""
    levels = len(arms.settings.severities), len(STYLE_LEVELS) - 1
    return {
        network: {
            name: 100 * float(values.mean()) / levels[name == _STYLE]
            for name, values in _wrong(arms.photos[network]["plain"], arms.styles[network]).items()
        }
        for network in _stylized_networks(arms)
    }


@dataclass(frozen=True)
class PhotoGap:
    """Style beside the hardest corruption for one network, on photos; percentages."""

    network: str
    gap: Estimate
    """Style's CE minus the largest other CE."""
    worst: str
    """The corruption with the largest CE."""
    reference: str
    """The network whose errors are the divisor."""
    painted: float
    """Error at severity 0 of style."""
    clean: float
    errors: tuple[float, ...]
    """At the severities of style above 0."""
    hardest: str
    """The corruption with the largest error, whatever that of the reference."""
    hardest_error: float


def photo_gap(arms: EnhancementArms) -> PhotoGap | None:
    """Return the gap of the paper's network, or of the first with predictions."""
    ces = photo_ces(arms)
    if not ces:
        return None
    network = next((name for name in NETWORKS if name in ces), next(iter(ces)))
    others = dict(ces[network])
    style = others.pop(_STYLE)
    drawn = resample(np.concatenate([style.values, *(one.values for one in others.values())]).T, seed=0)
    means = {name: float(one.values.mean()) for name, one in others.items()}
    worst = max(means, key=lambda name: means[name])
    ends = []
    for least, tail in ((0, 0.025), (1, 0.975)):  # of an unseen image, as in `intervals`
        some = drawn.beside([style.ends[least], *(one.ends[1 - least] for one in others.values())])
        ends.append(float(np.quantile(some[:, 0] - some[:, 1:].max(axis=1), tail)))
    gap = float(style.values.mean()) - means[worst]
    painted, *by_level = (
        100 * float(1 - arms.styles[network].row(f"{_STYLE}@{level}").mean()) for level in STYLE_LEVELS
    )
    errors = photo_errors(arms)[network]
    hardest = max(others, key=lambda name: errors[name])
    return PhotoGap(
        network,
        Estimate(gap, min(gap, ends[0]), max(gap, ends[1]), style.values.shape[1]),
        worst,
        _reference([name for name in arms.photos if name in arms.styles]),
        painted,
        arms.photos[network]["plain"].mean("clean error"),
        tuple(by_level),
        hardest,
        errors[hardest],
    )


def _transfer(arms: StudyArms) -> tuple[str, str]:
    """Confirmed if a quarter of the mean gain under the corruption itself exceeds that under the others.

    Each arm is trained once, and the interval is over images and arms. Without a gain under the corruption
    itself there is nothing to compare with.
    """
    gains = transfer_gains(arms)
    names = list(dict.fromkeys(tuned for tuned, _ in gains))
    if len(names) < 2:
        return "not run", "no predictions decide it yet"
    own, others, gap = [], [], []
    for one in names:
        rest = [gain for (tuned, tested), gain in gains.items() if tuned == one != tested]
        own.append(gains[one, one])
        others.append(combined(*((1 / len(rest), gain) for gain in rest)))
        gap.append(combined((0.25, own[-1]), (-1, others[-1])))
    found = intervals({"itself": _stack(own), "others": _stack(others), "gap": _stack(gap)})
    helps, less, more = (
        Requirement(found[name], sign) for name, sign in (("itself", ">"), ("gap", ">"), ("gap", "<"))
    )
    text = (
        f"mean gain in CE {signed(found['itself'])} under the corruption itself, {signed(found['others'])} "
        f"under the others; a quarter of the first minus the second {signed(found['gap'])} "
        f"({arms.trained_group}, one run on each of {counted(len(gap), 'corruption')})"
    )
    return decide([helps, less], [helps, more], together=True), text


def _stack(each: Sequence[Contributions]) -> Contributions:
    """Return one metric of several arms, which count like seeds of one."""
    low, high = min(one.ends[0] for one in each), max(one.ends[1] for one in each)
    return Contributions(np.concatenate([one.values for one in each]), (low, high))


def transfer_gains(arms: StudyArms) -> dict[tuple[str, str], Contributions]:
    """Return what each image adds to the gain in CE, by corruption of training and of the test."""
    names, control = arms.settings.corruptions, arms.trained.get("tuned-plain")
    if control is None:
        return {}
    return {
        (one, other): combined(
            (1, control.rows[f"{other} CE"]), (-1, arms.trained[f"on-{one}"].rows[f"{other} CE"])
        )
        for one in names
        if f"on-{one}" in arms.trained
        for other in names
    }


def ces_csv(ces: Mapping[str, Mapping[str, Contributions]], errors: Mapping[str, Mapping[str, float]]) -> str:
    """Return the mean error and the CE of style and every corruption on photos, by network, in percent."""
    lines = [
        (network, name, f"{errors[network][name]:.2f}", *(f"{x:.2f}" for x in (ce.value, ce.low, ce.high)))
        for network, rows in ces.items()
        for name, ce in intervals(rows).items()
    ]
    return csv_text(("network", "corruption", "error", "ce", "low", "high"), lines)


def gains_csv(gains: Mapping[tuple[str, str], Contributions]) -> str:
    """Return the gains in points of CE: a row per corruption of training, a column per one of the test."""
    tuned, tested = (list(dict.fromkeys(key[place] for key in gains)) for place in (0, 1))
    lines = ((one, *(f"{gains[one, other].values.mean():.2f}" for other in tested)) for one in tuned)
    return csv_text(("tuned on", *tested), lines)


def draw_gains(gains: Mapping[tuple[str, str], Contributions]) -> Drawing:
    """Draw what tuning on a corruption (rows) gains under each (columns), in points of CE; red is a gain."""
    rows, columns = (list(dict.fromkeys(key[place] for key in gains)) for place in (0, 1))
    means = {key: float(one.values.mean()) for key, one in gains.items()}
    most = max(map(abs, means.values())) or 1
    left, top = 150, 150
    drawing = Drawing(max(left + _CELL * len(columns) + 16, 480), top + _CELL * len(rows) + 16)
    title = "Gain in CE (points) by corruption of training (rows) and of the test (columns)"
    drawing.text((16, 22), title, bold=True)
    for place, name in enumerate(columns):
        drawing.text((left + _CELL * (place + 0.5) + 4, top - 8), name, size=10, upward=True)
    for down, tuned in enumerate(rows):
        drawing.text((left - 8, top + _CELL * (down + 0.5) + 4), tuned, size=10, anchor="end")
        for across, tested in enumerate(columns):
            mean = means[tuned, tested]
            x, y = left + _CELL * across, top + _CELL * down
            drawing.box((x, y), (_CELL - 1, _CELL - 1), diverging(mean / most))
            color, text = "#fff" if abs(mean) > 0.6 * most else "#222", f"{mean:z.0f}".replace("-", "−")
            drawing.text((x + _CELL / 2, y + _CELL / 2 + 4), text, size=10, anchor="middle", color=color)
    return drawing
