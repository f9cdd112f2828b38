"""Evaluation of models on a mined set, with its report: tables and a page."""

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
    GALLERY,
    EstimateColumn,
    ModelRoles,
    PageCell,
    PageImage,
    estimate_cell,
    thumbnail,
    write_nuisances,
    write_page,
    write_table,
)
from beaufort.mining.export import MinedSet, open_set
from beaufort.mining.plan import MiningError
from beaufort.mining.predictions import SetPredictions, predict_set
from beaufort.mining.selection import nuisance_failures
from beaufort.mining.two_way_choice import ESTIMATES, OUTCOMES, ChoiceScores, read_choices, score_choices

if TYPE_CHECKING:
    from beaufort.store import Store

_CONFUSIONS = 15
POOLED = "all"


@dataclass(frozen=True)
class SetScore:
    """Accuracy of a model on a set, or on one kind of nuisance in it."""

    model: str
    surrogate: bool
    """Whether the model selected the images by its failures, so that its accuracy is low by construction."""
    kind: str
    accuracy: Estimate
    category_mean: Estimate
    """Mean over categories of the accuracy in each."""


def score_set(mined: MinedSet, predictions: SetPredictions) -> tuple[SetScore, ...]:
    """Return scores of models on all images and each kind of nuisance; surrogates are marked and last."""
    kinds = np.array([image.kind for image in mined.images])
    groups = {POOLED: np.ones(len(kinds), np.bool_)}
    groups |= {str(kind): kinds == kind for kind in sorted(set(kinds.tolist())) if kind}
    ordered = sorted(predictions.models, key=lambda name: name in mined.surrogates)
    return tuple(
        SetScore(name, name in mined.surrogates, kind, *_accuracies(predictions, name, group))
        for name in ordered
        for kind, group in groups.items()
    )


def _accuracies(
    predictions: SetPredictions, model: str, group: NDArray[np.bool_]
) -> tuple[Estimate, Estimate]:
    correct = ~predictions.failed[predictions.row(model)][group]
    labels = predictions.labels[group]
    each = [float(correct[labels == label].mean()) for label in np.unique(labels)]
    return clopper_pearson(int(correct.sum()), len(correct)), mean_interval(each)


def confusions(predictions: SetPredictions, model: str) -> Counter[tuple[str, str]]:
    """Return how often each category was predicted as each other one."""
    wrong = np.flatnonzero(predictions.failed[predictions.row(model)]).tolist()
    labels = predictions.labels
    return Counter((predictions.categories[labels[place]], predictions.name(model, place)) for place in wrong)


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
        choices: files of `ask_about_set`, one for each vision-language model.
        **options: options of `predict_set`: convention, batch_size, progress.
    """
    mined = open_set(location)
    scored: dict[str, ChoiceScores] = {}
    for path in choices:
        name, replies = read_choices(path, mined.data)
        if name in scored:
            raise MiningError(f"{path} is a second file with replies of {name!r}; pass one for each model")
        scored[name] = score_choices(replies)
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

    Scores of vision-language models, by name, are written as `choices.csv`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    models, surrogates, roles = predictions.models, mined.surrogates, ModelRoles(mined.surrogates)
    # Sorting and totals are over models that did not select the images, if there are any.
    fair = tuple(name for name in models if name not in surrogates) or models
    scores = score_set(mined, predictions)
    by_model: dict[str, list[SetScore]] = {}
    for one in scores:
        by_model.setdefault(one.model, []).append(one)
    write_table(
        folder / "scores.csv",
        [
            *("model", "role", "kind"),
            *(EstimateColumn("accuracy"), EstimateColumn("category_mean", "categories")),
        ],
        [[one.model, roles.role(one.model), one.kind, one.accuracy, one.category_mean] for one in scores],
    )
    failures = nuisance_failures(predictions, [(one.kind, one.nuisance) for one in mined.images])
    nuisance_values = write_nuisances(folder / "nuisances.csv", failures, roles)
    categories = _category_accuracies(predictions)
    write_table(
        folder / "categories.csv",
        ["category", "model", "role", EstimateColumn("accuracy")],
        [
            [category, model, roles.role(model), one]
            for category, row in categories.items()
            for model, one in row.items()
        ],
    )
    confused = {model: confusions(predictions, model) for model in models}
    write_table(
        folder / "confusions.csv",
        ["model", "role", "category", "predicted", "images"],
        [
            [model, roles.role(model), *pair, count]
            for model, counts in confused.items()
            for pair, count in counts.most_common()
        ],
    )
    choices = choices or {}
    if choices:
        write_table(
            folder / "choices.csv",
            ["model", "images", "questions", *OUTCOMES, *map(EstimateColumn, ESTIMATES)],
            [
                [
                    *(model, one.images, one.questions),
                    *(one.counts[name] for name in OUTCOMES),
                    *(getattr(one, name) for name in ESTIMATES),
                ]
                for model, one in choices.items()
            ],
        )
    else:  # remove the table of an earlier report
        (folder / "choices.csv").unlink(missing_ok=True)
    write_page(
        folder / "index.html",
        "mining/evaluation.html",
        title=f"Evaluation on {mined.data.name}",
        sentence=f"{counted(len(models), 'model')} on {counted(len(mined.data), 'image')}.",
        navigation={
            "scores": "Accuracy",
            **({"choices": "Two-way choice"} if choices else {}),
            "nuisances": "Failures by nuisance",
            "categories": "Accuracy by category",
            "confusions": "Confusions",
            "gallery": "Hardest images",
        },
        counted=counted,
        predictions=predictions,
        surrogates=[name for name in models if name in surrogates],
        who="all models" if fair == models else "the models that are not surrogates",
        images=len(mined.data),
        score_header=["Model", *(one.kind for one in next(iter(by_model.values()))), "mean over categories"],
        scores=[
            (
                roles.cell(model),
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
        **nuisance_values,
        category_header=["Category", "images", *map(roles.header, models)],
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
            (PageCell(label), PageCell(predicted), PageCell(f"{count:,}"))
            for (label, predicted), count in sum(
                (confused[model] for model in fair), Counter[tuple[str, str]]()
            ).most_common(_CONFUSIONS)
        ],
        gallery=_gallery(mined, predictions, fair, roles),
        facts={
            "images": f"{len(mined.data):,} of {mined.data.name}",
            "intervals": "fractions: Clopper-Pearson, 95 %; means over categories: over categories, 95 %",
        },
    )


def _category_accuracies(predictions: SetPredictions) -> dict[str, dict[str, Estimate]]:
    accuracies: dict[str, dict[str, Estimate]] = {}
    for label in np.unique(predictions.labels).tolist():
        own = predictions.labels == label
        accuracies[predictions.categories[label]] = {
            model: clopper_pearson(int((~predictions.failed[row][own]).sum()), int(own.sum()))
            for row, model in enumerate(predictions.models)
        }
    return accuracies


def _gallery(
    mined: MinedSet, predictions: SetPredictions, fair: Sequence[str], roles: ModelRoles
) -> list[PageImage]:
    """Return the images that most models get wrong."""
    failures = predictions.failed[[predictions.row(model) for model in fair]].sum(axis=0)
    gallery = []
    for place in np.argsort(-failures, kind="stable")[:GALLERY].tolist():
        lines = []
        for model in predictions.models:
            failed = predictions.failed[predictions.row(model), place]
            lines.append(f"{roles.header(model)}: {predictions.name(model, place) if failed else 'correct'}")
        names = predictions.categories[predictions.labels[place]], mined.images[place].nuisance
        caption = ", ".join(filter(None, names))
        gallery.append(PageImage(thumbnail(mined.data[place].image), caption, tuple(lines)))
    return gallery
