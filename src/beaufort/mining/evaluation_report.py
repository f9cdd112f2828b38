"""How models do on a mined set, and where they fail: tables and a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.text import counted
from beaufort.data.labels import Grouping
from beaufort.metrics.stats import Estimate, clopper_pearson, mean_interval
from beaufort.mining._report_parts import (
    MARK,
    EstimateColumn,
    PageCell,
    PageImage,
    estimate_cell,
    marked_name,
    nuisance_table,
    role,
    thumbnail,
    write_nuisances,
    write_page,
    write_table,
)
from beaufort.mining.export import MinedSet, open_set
from beaufort.mining.plan import MiningError
from beaufort.mining.predictions import SetPredictions, predict_set
from beaufort.mining.selection import NuisanceFailures, nuisance_failures
from beaufort.mining.two_way_choice import ESTIMATES, ChoiceOutcome, ChoiceScores, read_choices, score_choices

if TYPE_CHECKING:
    from beaufort.store import Store

_CONFUSIONS = 15
_GALLERY = 48
POOLED = "all"


@dataclass(frozen=True)
class SetScore:
    """One model on a set, or on one kind of nuisance in it."""

    model: str
    surrogate: bool
    """Whether its failures chose the images: its accuracy is low by choice then."""
    kind: str
    accuracy: Estimate
    """Image-weighted."""
    category_mean: Estimate
    """The mean over categories of the accuracy in each."""


def score_set(mined: MinedSet, predictions: SetPredictions) -> tuple[SetScore, ...]:
    """Every model on all images and on each kind of nuisance; surrogates are marked, and come last."""
    kinds = np.array([image.kind for image in mined.images])
    groups = {POOLED: np.ones(len(kinds), np.bool_)}
    groups |= {str(kind): kinds == kind for kind in sorted(set(kinds.tolist())) if kind}
    ordered = sorted(predictions.models, key=lambda name: name in mined.surrogates)
    return tuple(
        SetScore(name, name in mined.surrogates, kind, *_accuracies(predictions, name, group))
        for name in ordered
        for kind, group in groups.items()
    )


def confusions(predictions: SetPredictions, model: str) -> Counter[tuple[str, str]]:
    """How often each category was taken for each other one."""
    predicted = predictions.predicted[predictions.row(model)].tolist()
    pairs = zip(predictions.labels.tolist(), predicted, strict=True)
    return Counter(
        (predictions.categories[label], predictions.name_of(said)) for label, said in pairs if said != label
    )


def evaluate_set(
    location: str,
    models: Sequence[Any],
    output: Path,
    store: str | Path | Store,
    *,
    labels: Grouping | str | None = None,
    choices: Sequence[Path] = (),
    **options: Any,
) -> tuple[SetScore, ...]:
    """Run models on a set, write the report, and return the scores.

    Args:
        location: as for `open_set`.
        models: as for `predict_set`.
        output: folder of the report.
        store: where predictions are stored.
        labels: as for `predict_set`; those of the set by default.
        choices: answers of vision-language models that `ask_about_set` collected, one file for each model.
        **options: those of `predict_set`: convention, batch_size, progress.
    """
    mined = open_set(location)
    scored: dict[str, ChoiceScores] = {}
    for path in choices:
        name, answers = read_choices(path, mined.data)
        if name in scored:
            raise MiningError(f"{path} is a second file with answers of {name!r}; pass one for each model")
        scored[name] = score_choices(answers)
    predictions = predict_set(models, mined.data, store, labels=labels or mined.labels, **options)
    write_evaluation_report(mined, predictions, output, choices=scored)
    return score_set(mined, predictions)


def write_evaluation_report(
    mined: MinedSet,
    predictions: SetPredictions,
    folder: Path,
    *,
    choices: Mapping[str, ChoiceScores] | None = None,
) -> None:
    """Write `scores.csv`, `nuisances.csv`, `categories.csv`, `confusions.csv` and `index.html`.

    Args:
        mined: the set.
        predictions: of classifiers and zero-shot models.
        folder: where the files go.
        choices: of vision-language models, by name; they are written as `choices.csv`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    surrogates = mined.surrogates
    scores = score_set(mined, predictions)
    write_table(
        folder / "scores.csv",
        [
            *("model", "role", "kind"),
            *(EstimateColumn("accuracy"), EstimateColumn("category_mean", "categories")),
        ],
        [
            [one.model, role(one.model, surrogates), one.kind, one.accuracy, one.category_mean]
            for one in scores
        ],
    )
    nuisances = nuisance_failures(predictions, [(one.kind, one.nuisance) for one in mined.images])
    write_nuisances(folder / "nuisances.csv", nuisances, surrogates)
    categories = _category_accuracies(predictions)
    write_table(
        folder / "categories.csv",
        ["category", "model", "role", EstimateColumn("accuracy")],
        [
            [category, model, role(model, surrogates), one]
            for category, row in categories.items()
            for model, one in row.items()
        ],
    )
    write_table(
        folder / "confusions.csv",
        ["model", "role", "category", "answered", "images"],
        [
            [model, role(model, surrogates), *pair, count]
            for model in predictions.models
            for pair, count in confusions(predictions, model).most_common()
        ],
    )
    if choices:
        counts: tuple[ChoiceOutcome, ...] = ("right", "wrong", "both", "neither")
        write_table(
            folder / "choices.csv",
            ["model", "images", "questions", *counts, *map(EstimateColumn, ESTIMATES)],
            [
                [
                    *(model, one.images, one.questions),
                    *(one.counts[name] for name in counts),
                    *(getattr(one, name) for name in ESTIMATES),
                ]
                for model, one in choices.items()
            ],
        )
    else:  # those of an earlier report would pass for this one's
        (folder / "choices.csv").unlink(missing_ok=True)
    _write_page(folder / "index.html", mined, predictions, scores, nuisances, categories, choices or {})


def _write_page(
    path: Path,
    mined: MinedSet,
    predictions: SetPredictions,
    scores: Sequence[SetScore],
    nuisances: Sequence[NuisanceFailures],
    categories: Mapping[str, Mapping[str, Estimate]],
    choices: Mapping[str, ChoiceScores],
) -> None:
    models, surrogates = predictions.models, mined.surrogates
    # What is sorted or added up is over models that did not choose the images, if there are any.
    fair = tuple(name for name in models if name not in surrogates) or models
    names = [marked_name(model, surrogates) for model in models]
    kinds = list(dict.fromkeys(one.kind for one in scores))
    by_model = {one.model: [other for other in scores if other.model == one.model] for one in scores}
    nuisance_header, nuisance_rows = nuisance_table(nuisances, surrogates)
    confused: Counter[tuple[str, str]] = Counter()
    for model in fair:
        confused += confusions(predictions, model)
    write_page(
        path,
        "mining/evaluation.html",
        title=f"Evaluated on {mined.data.name}",
        sentence=f"{counted(len(models), 'model')} on {counted(len(mined.data), 'image')}.",
        navigation={
            "scores": "Accuracy",
            **({"choices": "Two-way choice"} if choices else {}),
            "nuisances": "By nuisance",
            "categories": "By category",
            "confusions": "Confusions",
            "gallery": "Hardest",
        },
        counted=counted,
        predictions=predictions,
        surrogates=[name for name in models if name in surrogates],
        who="all models" if fair == models else "the models that are no surrogates",
        images=len(mined.data),
        score_header=["Model", *kinds, "mean over categories"],
        scores=[
            (
                PageCell(model, MARK if row[0].surrogate else ""),
                *(estimate_cell(one.accuracy) for one in row),
                estimate_cell(row[0].category_mean),
            )
            for model, row in by_model.items()
        ],
        choice_header=["Model", "images", *ESTIMATES.values()],
        choices=[
            (
                PageCell(model),
                PageCell(f"{one.images:,}"),
                *(estimate_cell(getattr(one, name)) for name in ESTIMATES),
            )
            for model, one in choices.items()
        ],
        nuisance_header=nuisance_header,
        nuisances=nuisance_rows,
        category_header=["Category", "images", *names],
        categories=[
            (
                PageCell(category),
                PageCell(f"{next(iter(row.values())).n:,}"),
                *(estimate_cell(row[model]) for model in models),
            )
            for category, row in sorted(
                categories.items(), key=lambda pair: sum(pair[1][model].value for model in fair)
            )
        ],
        most_confusions=_CONFUSIONS,
        confusions=[
            (PageCell(truth), PageCell(predicted), PageCell(f"{count:,}"))
            for (truth, predicted), count in confused.most_common(_CONFUSIONS)
        ],
        gallery=_gallery(mined, predictions, fair, names),
        facts={
            "images": f"{len(mined.data):,} of {mined.data.name}",
            "intervals": "shares: Clopper and Pearson, 95 %; means over categories: over categories, 95 %",
        },
    )


def _accuracies(
    predictions: SetPredictions, model: str, group: NDArray[np.bool_]
) -> tuple[Estimate, Estimate]:
    right = ~predictions.failed[predictions.row(model)][group]
    labels = predictions.labels[group]
    each = [float(right[labels == label].mean()) for label in np.unique(labels)]
    return clopper_pearson(int(right.sum()), len(right)), mean_interval(each)


def _category_accuracies(predictions: SetPredictions) -> dict[str, dict[str, Estimate]]:
    found: dict[str, dict[str, Estimate]] = {}
    for label in np.unique(predictions.labels).tolist():
        own = predictions.labels == label
        found[predictions.categories[label]] = {
            model: clopper_pearson(int((~predictions.failed[row][own]).sum()), int(own.sum()))
            for row, model in enumerate(predictions.models)
        }
    return found


def _gallery(
    mined: MinedSet, predictions: SetPredictions, fair: Sequence[str], names: Sequence[str]
) -> list[PageImage]:
    """Images that most models get wrong first."""
    failures = predictions.failed[[predictions.row(model) for model in fair]].sum(axis=0)
    shown = []
    for place in np.lexsort((np.arange(len(failures)), -failures))[:_GALLERY].tolist():
        label, image = predictions.labels[place], mined.images[place]
        lines = tuple(
            f"{name}: {'right' if one == label else predictions.name_of(one)}"
            for name, one in zip(names, predictions.predicted[:, place].tolist(), strict=True)
        )
        caption = ", ".join(filter(None, (predictions.categories[label], image.nuisance)))
        shown.append(PageImage(thumbnail(mined.data[place].image), caption, lines))
    return shown
