"""How models do on a mined set, and where they fail: tables and a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.text import counted
from beaufort.data.labels import Grouping
from beaufort.metrics.stats import Estimate, clopper_pearson, mean_interval
from beaufort.mining._report_parts import (
    EstimateColumn,
    PageCell,
    PageImage,
    PageSection,
    estimate_cell,
    marked_name,
    nuisance_section,
    role,
    thumbnail,
    write_nuisances,
    write_page,
    write_table,
)
from beaufort.mining.export import MinedSet, open_set
from beaufort.mining.plan import MiningError
from beaufort.mining.predictions import SetPredictions, predict_set
from beaufort.mining.selection import nuisance_failures
from beaufort.mining.two_way_choice import ESTIMATES, ChoiceOutcome, ChoiceScores, read_choices, score_choices

if TYPE_CHECKING:
    from beaufort.evaluation import Progress
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
    convention: str | None = None,
    choices: Sequence[Path] = (),
    progress: Callable[[Progress], None] | None = None,
) -> tuple[SetScore, ...]:
    """Run models on a set, write the report, and return the scores.

    Args:
        location: as for `open_set`.
        models: as for `predict_set`.
        output: folder of the report.
        store: where predictions are stored.
        labels: as for `predict_set`; those of the set by default.
        convention: as for `predict_set`.
        choices: answers of vision-language models that `ask_about_set` collected, one file for each model.
        progress: as for `evaluate`.
    """
    mined = open_set(location)
    scored: dict[str, ChoiceScores] = {}
    for path in choices:
        name, answers = read_choices(path, mined.data)
        if name in scored:
            raise MiningError(f"{path} is a second file with answers of {name!r}; pass one for each model")
        scored[name] = score_choices(answers)
    predictions = predict_set(
        models, mined.data, store, labels=labels or mined.labels, convention=convention, progress=progress
    )
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
    marked = [name for name in predictions.models if name in surrogates]
    warning = f" Failures of {', '.join(marked)} chose the images, which is no fair test." if marked else ""
    write_page(
        folder / "index.html",
        title=f"Evaluated on {mined.data.name}",
        sentence=f"{counted(len(predictions.models), 'model')} on {counted(len(mined.data), 'image')}.",
        about=(
            "Right is any output of the intended category. Zero-shot models choose among the names of "
            f"{counted(len(predictions.categories), 'category', 'categories')}, classifiers among all their "
            f"outputs unless that was restricted: the two do not compare directly.{warning} Intervals: 95 %."
        ),
        sections=[
            _scores_section(scores),
            *([_choices_section(choices)] if choices else []),
            nuisance_section(
                nuisances,
                surrogates,
                title="By nuisance",
                text="Share of the images that a model gets wrong.",
            ),
            _category_section(mined, predictions, categories),
            _confusion_section(mined, predictions),
            _gallery(mined, predictions),
        ],
        facts={
            "images": f"{len(mined.data):,} of {mined.data.name}",
            "intervals": "shares: Clopper and Pearson, 95 %; means over categories: over categories, 95 %",
        },
    )


def _fair(mined: MinedSet, predictions: SetPredictions) -> tuple[str, ...]:
    """Models that did not choose the images, by which they are sorted; all of them if there are none."""
    return tuple(name for name in predictions.models if name not in mined.surrogates) or predictions.models


def _who(mined: MinedSet, predictions: SetPredictions) -> str:
    """The same in words."""
    return (
        "all models"
        if _fair(mined, predictions) == predictions.models
        else "the models that are no surrogates"
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


def _scores_section(scores: Sequence[SetScore]) -> PageSection:
    kinds = list(dict.fromkeys(one.kind for one in scores))
    rows: dict[str, list[SetScore]] = {}
    for one in scores:
        rows.setdefault(one.model, []).append(one)
    return PageSection(
        "scores",
        "Accuracy",
        "On all images, on each kind of nuisance, and the mean over categories.",
        ("Model", *kinds, "mean over categories"),
        tuple(
            (
                PageCell(model, "surrogate" if row[0].surrogate else ""),
                *(estimate_cell(one.accuracy) for one in row),
                estimate_cell(row[0].category_mean),
            )
            for model, row in rows.items()
        ),
    )


def _choices_section(choices: Mapping[str, ChoiceScores]) -> PageSection:
    return PageSection(
        "choices",
        "Two-way choice",
        "Vision-language models were asked which of two names the main object has: the intended one, or the "
        "wrong favorite of another model. Chance is 50 %. Coverage is the share of answers that name exactly "
        "one of the two; accuracy is among those. Position bias is how much more often the truth is named "
        "where it stands first.",
        ("Model", "images", *ESTIMATES.values()),
        tuple(
            (
                PageCell(model),
                PageCell(f"{one.images:,}"),
                *(estimate_cell(getattr(one, name)) for name in ESTIMATES),
            )
            for model, one in choices.items()
        ),
    )


def _category_section(
    mined: MinedSet, predictions: SetPredictions, categories: Mapping[str, Mapping[str, Estimate]]
) -> PageSection:
    fair = _fair(mined, predictions)
    return PageSection(
        "categories",
        "By category",
        f"Accuracy in each category, the hardest first, by the mean over {_who(mined, predictions)}.",
        ("Category", "images", *(marked_name(model, mined.surrogates) for model in predictions.models)),
        tuple(
            (
                PageCell(category),
                PageCell(f"{next(iter(row.values())).n:,}"),
                *(estimate_cell(row[model]) for model in predictions.models),
            )
            for category, row in sorted(
                categories.items(), key=lambda pair: sum(pair[1][model].value for model in fair)
            )
        ),
    )


def _confusion_section(mined: MinedSet, predictions: SetPredictions) -> PageSection:
    fair = _fair(mined, predictions)
    total: Counter[tuple[str, str]] = Counter()
    for model in fair:
        total += confusions(predictions, model)
    return PageSection(
        "confusions",
        "Confusions",
        f"What is taken for what: at most {_CONFUSIONS}, the most frequent, over {_who(mined, predictions)}.",
        ("Category", "answered", "times"),
        tuple(
            (PageCell(truth), PageCell(said), PageCell(f"{count:,}"))
            for (truth, said), count in total.most_common(_CONFUSIONS)
        ),
    )


def _gallery(mined: MinedSet, predictions: SetPredictions) -> PageSection:
    """Images that most models get wrong first."""
    fair = _fair(mined, predictions)
    failures = predictions.failed[[predictions.row(model) for model in fair]].sum(axis=0)
    order = np.lexsort((np.arange(len(failures)), -failures))[:_GALLERY].tolist()
    shown = []
    for place in order:
        said = predictions.predicted[:, place].tolist()
        lines = tuple(
            f"{marked_name(model, mined.surrogates)}: "
            f"{'right' if one == predictions.labels[place] else predictions.name_of(one)}"
            for model, one in zip(predictions.models, said, strict=True)
        )
        image = mined.images[place]
        caption = ", ".join(filter(None, (predictions.categories[predictions.labels[place]], image.nuisance)))
        shown.append(PageImage(thumbnail(mined.data[place].image), caption, lines))
    return PageSection(
        "gallery",
        "Hardest",
        f"{len(shown)} of {counted(len(mined.data), 'image')}, those that most of {_who(mined, predictions)} "
        "get wrong first.",
        images=tuple(shown),
    )
