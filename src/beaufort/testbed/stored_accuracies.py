"""Accuracies from a result store: as a grid of all models, or as the scores of one model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath, PurePosixPath

import numpy as np

from beaufort._core.errors import OptionError
from beaufort._core.validation import validate_choice
from beaufort.corruptions import get_corruption_names
from beaufort.data import FrameSets, frame_number
from beaufort.data.labels import label_maps
from beaufort.models import Preprocessing
from beaufort.results import PmScore, Results, ResultsError, open_parts, pm_scores, stored_suites
from beaufort.suites.conditions import Condition
from beaufort.suites.native_corruptions import NATIVE
from beaufort.testbed.grid import Grid, Score, Setting

# Names in a grid: those of conditions


def grid_of_store(store: str | Path) -> Grid:
    """Return the models of a store: its last suite, or a part of it, and all suites of several datasets.

    Settings have the names of conditions without the dataset: `clean`, `fog@3`. In a suite of several
    datasets, each is a setting of its name, compared with its counterpart, and its conditions are
    `photos/fog@3`. All frames of videos are the settings `vid-robust-pm0` and `vid-robust-pm10` as well. The
    trend is fitted on all models, because a store does not know which are standard.
    """
    last = open_parts(store)
    others = [parts for parts in _open_suites(store, None)[0] if parts[0].part_of]
    models = tuple(
        dict.fromkeys(model for parts in (last, *others) for part in parts for model in part.models)
    )
    columns: dict[Setting, list[float]] = {}
    taken: set[str] = set()
    for parts in (last, *others):
        for part in parts:
            found = [*_columns(part, {other.suite.name for other in parts}), *_frame_columns(part, parts)]
            for setting, accuracies in found:
                if setting.name not in taken:
                    columns[setting] = [100 * accuracies.get(model, np.nan) for model in models]
                    taken.add(setting.name)
    titles = dict.fromkeys(
        parts[0].part_of or f"{parts[0].suite} on {parts[0].dataset}" for parts in (last, *others)
    )
    everything = np.ones(len(models), bool)
    return Grid(
        PurePath(store).name,
        models,
        {setting.name: np.array(column) for setting, column in columns.items()},
        {setting.name: setting for setting in columns},
        ("UNKNOWN",) * len(models),
        everything,
        "all models, because a store does not say which are standard",
        {"not-standard": everything},
        facts={"source": f"a store; {', '.join(titles)}"},
    )


def _columns(part: Results, parts: set[str]) -> Iterator[tuple[Setting, dict[str, float]]]:
    """Yield each setting of a dataset with the accuracies of its models."""
    predictions = {model: part.predictions(model) for model in part.models}
    images = min(len(one) for one in predictions.values())
    counterpart = part.suite.counterpart if part.suite.counterpart in parts else None
    conditions = next(iter(predictions.values())).conditions
    clean = (part.suite.name if part.part_of else "clean") if any(one.clean for one in conditions) else None
    for condition in conditions:
        if clean is not None and condition.clean:
            kind, group = ("natural", "dataset_shift") if counterpart else ("standard", "s1")
            setting = Setting(clean, kind, group, images=images, clean=counterpart)
        else:
            name = str(condition).partition("/")[2]
            name = f"{part.suite.name}/{name}" if part.part_of else name
            corruption, _, severity = name.partition("@")
            setting = Setting(
                name,
                "synthetic",
                "corruption",
                corruption,
                int(severity) if severity.isdigit() else None,
                "on-disk" if part.stored else "in-memory",
                images,
                clean=clean or counterpart,
            )
        yield (
            setting,
            {
                model: float(one.correct[one.conditions.index(condition)].mean())
                for model, one in predictions.items()
            },
        )


# Consistency over the frames of a video

_FRAMES, _ANCHORS = "-frames", "-anchors"
_DISTANCES = (0, 10)


def _frame_columns(part: Results, parts: Sequence[Results]) -> Iterator[tuple[Setting, dict[str, float]]]:
    """Yield pm-0 and pm-10 of the models, if a part has all frames of a set and another its anchors."""
    anchors = _anchors_of(part, parts)
    if anchors is None:
        return
    shared = [model for model in part.models if model in anchors.models]
    scores = [one for model in shared for one in _pm_scores(part, anchors, model)]
    for k in _DISTANCES:
        accuracies = {one.model: one.accuracy.value for one in scores if one.k == k}
        if accuracies:
            yield (
                Setting(
                    f"{part.suite.name.removesuffix(_FRAMES)}-pm{k}",
                    "natural",
                    "consistency_shift",
                    images=min(one.accuracy.n for one in scores),
                    clean=anchors.suite.counterpart,
                ),
                accuracies,
            )


def _anchors_of(part: Results, parts: Sequence[Results]) -> Results | None:
    """Return the part with the anchors of a part with frames."""
    if not part.suite.name.endswith(_FRAMES):
        return None
    name = part.suite.name.removesuffix(_FRAMES) + _ANCHORS
    return next((other for other in parts if other.suite.name == name), None)


def _pm_scores(part: Results, anchors: Results, model: str) -> tuple[PmScore, ...]:
    """Return pm-0 and pm-10 of a model; nothing if it lacks the frame of an anchor.

    The neighbors of an anchor are the frames of its video at most ten frames away, as in the published lists.
    """
    frames = part.predictions(model).ids
    by_video: dict[PurePosixPath, list[str]] = {}
    for frame in frames:
        by_video.setdefault(PurePosixPath(frame).parent, []).append(frame)
    wanted = anchors.predictions(model).ids
    if not set(wanted) <= set(frames):
        return ()
    sets = FrameSets(
        {
            anchor: tuple(
                frame
                for frame in by_video[PurePosixPath(anchor).parent]
                if frame != anchor and abs(frame_number(frame) - frame_number(anchor)) <= max(_DISTANCES)
            )
            for anchor in wanted
        }
    )
    return pm_scores(part, sets, _DISTANCES, models=[model])


# Names in the scores of a model: those of the testbed

_ATTACKS: Mapping[str, str] = {
    "testbed-pgd-linf@0.5/255": "pgd.linf.eps0.5",
    "testbed-pgd-linf@2/255": "pgd.linf.eps2",
    "testbed-pgd-l2@0.1": "pgd.l2.eps0.1",
    "testbed-pgd-l2@0.5": "pgd.l2.eps0.5",
}

PART_SETTINGS: Mapping[str, str] = {
    "imagenet-val": "val",
    "imagenet-val-imagenet-a": "val-on-imagenet-a-classes",
    "imagenet-val-imagenet-r": "val-on-imagenet-r-classes",
    "imagenet-val-objectnet": "val-on-objectnet-classes",
    "imagenet-val-objectnet-125": "val-on-objectnet-classes",
    "imagenet-val-one-eighth": "val_subsampled_class_1_8",
    "imagenet-val-vid-robust": "val-on-vid-robust-classes",
    "imagenet-val-ytbb-robust": "val-on-ytbb-robust-classes",
    "imagenetv2-matched-frequency": "imagenetv2",
    "imagenetv2-matched-frequency-one-eighth": "imagenetv2-matched-frequency-format-val_subsampled_class_1_8",
    "imagenetv2-threshold-0.7": "imagenetv2-threshold-0.7-format-val",
    "imagenetv2-top-images": "imagenetv2-top-images-format-val",
    "stylized-imagenet": "stylized_imagenet",
    "vid-robust-anchors": "vid-robust",
    "ytbb-robust-anchors": "ytbb-robust",
}
"""The testbed's names of datasets in the suites of natural shifts, where they differ."""

_OBJECTNET = {"paper": "imagenet-val-objectnet-125", "latest": "imagenet-val-objectnet"}
"""The clean counterpart of ObjectNet in each grid: 125 classes in the paper, 113 in later versions."""


def scores_of_store(
    store: Path | str, model: str | None, reference: Grid, suite: str | None = None
) -> tuple[tuple[Score, ...], tuple[tuple[str, str], ...]]:
    """Return the accuracies of a model in a store under the names of a grid, and suites that are incomplete.

    Corruptions made by Beaufort correspond to the testbed's in-memory settings, stored images to its settings
    on disk; for a leaderboard they are averaged. A dataset of a suite of several is the setting of its name.
    If several suites have a setting, the one with the model's own preprocessing and the most images counts.

    Args:
        store: folder or URL of the store.
        model: name of the model; may be None if there is only one.
        reference: the grid.
        suite: name of a suite; all of the store by default.
    """
    opened, skipped = _open_suites(store, suite)
    models = {
        name: None
        for parts in opened
        for name in parts[0].models
        if all(name in part.models for part in parts)
    }
    if model is None and len(models) != 1:
        raise OptionError(f"{store} has {len(models)} models; choose one with --model")
    name = next(iter(models)) if model is None else validate_choice(f"model of {store}", model, models)
    return _best_scores(opened, name, reference, _name_of(store)), skipped


def grid_of_scores(store: str | Path, reference: Grid) -> Grid:
    """Return the models of all suites of a store, with the settings of another grid."""
    opened, skipped = _open_suites(store, None)
    models = tuple(dict.fromkeys(name for parts in opened for part in parts for name in part.models))
    name = _name_of(store)
    scores = {model: _best_scores(opened, model, reference, name) for model in models}
    cells = {model: {one.setting: one for one in own} for model, own in scores.items()}
    settings = dict.fromkeys(setting for own in cells.values() for setting in own)
    everything = np.ones(len(models), bool)
    facts = {"source": "a store"}
    if skipped:
        facts["caveat"] = "; ".join(f"the suite {suite} is omitted: {why}" for suite, why in skipped)
    return Grid(
        name,
        models,
        {
            setting: np.array([own[setting].accuracy if setting in own else np.nan for own in cells.values()])
            for setting in settings
        },
        {setting: Setting(setting) for setting in settings},
        ("UNKNOWN",) * len(models),
        everything,
        "all models, because a store does not say which are standard",
        {"not-standard": everything},
        facts=facts,
        cells=cells,
    )


def _open_suites(
    store: Path | str, suite: str | None
) -> tuple[list[tuple[Results, ...]], tuple[tuple[str, str], ...]]:
    """Open one suite of a store, or all; also return those without a complete model, with the reason."""
    opened: list[tuple[Results, ...]] = []
    skipped: list[tuple[str, str]] = []
    suites = stored_suites(store) if suite is None else (suite,)
    for chosen in suites or (None,):
        try:
            opened.append(open_parts(store, suite=chosen))
        except ResultsError as error:
            if len(suites) < 2:
                raise
            skipped.append((str(chosen), str(error)))
    if not opened:
        raise ResultsError(f"{store} has no complete suite: {skipped[0][1]}")
    return opened, tuple(skipped)


def _name_of(store: Path | str) -> str:
    return PurePath(str(store).rstrip("/")).name or "store"


def _best_scores(
    opened: Sequence[tuple[Results, ...]], model: str, reference: Grid, source: str
) -> tuple[Score, ...]:
    """Return the scores of a model; of several under one setting, the best by `_preference`."""
    scores = _leaderboard_scores if reference.base.name.startswith("robustbench-") else _testbed_scores
    best: dict[str, Score] = {}
    for parts in opened:
        for part in (part for part in parts if model in part.models):
            date = max((str(origin.get("time", "")) for origin in part.origins), default="")[:10]
            for one in scores(part, parts, model, reference):
                before = best.get(one.setting)
                if before is None or _preference(one) > _preference(before):
                    best[one.setting] = replace(one, measured=True, date=date, source=source)
    return tuple(best.values())


def _preference(score: Score) -> tuple[bool, int]:
    return score.preprocessing == "own", score.images or 0


def _testbed_scores(
    results: Results, parts: Sequence[Results], model: str, reference: Grid
) -> Iterator[Score]:
    differences: tuple[str, ...] = ()
    space = results.space(model)
    outputs = space.count or results.outputs or len(results.classes)
    clean_of_objectnet = _OBJECTNET.get(reference.base.name, results.suite.name)
    if results.suite.name in _OBJECTNET.values() and results.suite.name != clean_of_objectnet:
        differences = (f"the reference's classes are those of {clean_of_objectnet}",)
    elif space.identity and outputs not in {0, 1000}:
        differences = (
            "the reference predicts one of ImageNet's 1,000 classes, this model one of "
            f"{outputs:,} of {results.dataset}: the two are not comparable",
        )
    predictions = results.predictions(model)
    labels = results.suite.labels
    classes = labels if isinstance(labels, str) and labels in label_maps else ""
    convention = "all" if space.identity or space.convention == "all" else "subset"
    if (anchors := _anchors_of(results, parts)) is not None and model in anchors.models:
        name, own = (
            results.suite.name.removesuffix(_FRAMES),
            _preprocessing(results, model, predictions.conditions[0]),
        )
        for one in _pm_scores(results, anchors, model):
            setting = name if one.k == 0 else f"{name}-pm{one.k}"
            accuracy = one.accuracy
            key = results.cells[model][predictions.conditions[0]].fingerprint
            yield Score(
                setting,
                100 * accuracy.value,
                accuracy.n,
                convention,
                own,
                differences,
                classes=classes,
                fingerprint=key,
            )
        return
    for condition, accuracy in zip(
        predictions.conditions, predictions.correct.mean(axis=1).tolist(), strict=True
    ):
        yield Score(
            _testbed_setting(results, condition),
            100 * accuracy,
            len(predictions),
            convention,
            _preprocessing(results, model, condition),
            differences,
            classes=classes,
            fingerprint=results.cells[model][condition].fingerprint,
        )


def _leaderboard_scores(
    results: Results, parts: Sequence[Results], model: str, reference: Grid
) -> Iterator[Score]:
    predictions = results.predictions(model)
    accuracies = 100 * predictions.correct.mean(axis=1)
    clean = np.array([condition.clean for condition in predictions.conditions])
    for accuracy in accuracies[clean].tolist():
        yield Score("clean", accuracy, len(predictions))
    if clean.all():
        return
    suite, dataset, differences = results.suite, reference.base.name.removeprefix("robustbench-"), []
    common = set(suite.corruptions) == set(get_corruption_names("common")) and not suite.shifts
    if not common or set(suite.severities) != {1, 2, 3, 4, 5}:
        differences.append(
            f"the reference's mean is over the benchmark's 15 corruptions × 5, this one over {suite.name}'s"
        )
    if suite.dataset.partition("-")[0] != dataset:
        differences.append(
            f"the reference's images are of {dataset}, these of {results.dataset} ({suite.name})"
        )
    if not results.stored:
        differences.append("the reference uses the published files, these images were corrupted in memory")
    mean = float(accuracies[~clean].mean())
    yield Score("corruptions", mean, len(predictions), differences=tuple(differences))


def _testbed_setting(results: Results, condition: Condition) -> str:
    if condition.clean:
        return PART_SETTINGS.get(results.suite.name, results.suite.name) if results.part_of else "val"
    if condition.corruption in {"greyscale", f"{NATIVE}greyscale"}:
        return "greyscale"
    if (condition.corruption or "").startswith(NATIVE):
        return f"imagenet-c.{(condition.corruption or '').removeprefix(NATIVE)}.{condition.level}_in-memory"
    if condition.corruption in get_corruption_names("all"):
        severity = "" if condition.severity is None else f".{condition.severity}"
        storage = "on-disk" if results.stored else "in-memory"
        return f"imagenet-c.{condition.corruption}{severity}_{storage}"
    return _ATTACKS.get(condition.done, condition.done)


def _preprocessing(results: Results, model: str, condition: Condition) -> str:
    """Return `own` if images were resized as the model does it itself, before anything else was done."""
    steps = results.suite.prepare
    if not steps and (condition.clean or condition.needs_model or results.stored):
        return "own"
    own = Preprocessing.from_dict(results.cells[model][condition].model["preprocessing"])
    usual = [f"resize {own.resize}", f"crop {own.size[0] if own.size else None}"]
    if (results.stored and not condition.clean) or [str(step) for step in steps] == usual:
        return "own"
    return ", ".join(map(str, steps)) or "before the model's own resize and crop"
