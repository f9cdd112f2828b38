"""How models do on a mined set, and where they fail: tables and a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from beaufort._core.text import counted
from beaufort.metrics.stats import Estimate, clopper_pearson, mean_interval
from beaufort.mining._page import (
    PageCell,
    PageImage,
    PageSection,
    pixels_address,
    share_cell,
    write_page,
)
from beaufort.mining._tables import estimate_columns, estimate_values, marked_name, role, write_table
from beaufort.mining.asking import ChoiceScores
from beaufort.mining.choice_report import choices_section, write_choices
from beaufort.mining.nuisance_report import nuisance_section, write_nuisances
from beaufort.mining.sets import MinedSet
from beaufort.mining.transfer import nuisance_failures
from beaufort.mining.verdicts import Verdicts

_CONFUSIONS = 15
_SHOWN = 48
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


def score_set(mined: MinedSet, verdicts: Verdicts) -> tuple[SetScore, ...]:
    """Every model on all images and on each kind of nuisance; surrogates are marked, and come last."""
    kinds = np.array([image.kind for image in mined.images])
    groups = {POOLED: np.ones(len(kinds), np.bool_)}
    groups |= {str(kind): kinds == kind for kind in sorted(set(kinds.tolist())) if kind}
    ordered = sorted(verdicts.models, key=lambda name: name in mined.surrogates)
    return tuple(
        SetScore(name, name in mined.surrogates, kind, *_accuracies(verdicts, name, group))
        for name in ordered
        for kind, group in groups.items()
    )


def confusions(verdicts: Verdicts, model: str) -> Counter[tuple[str, str]]:
    """How often each category was taken for each other one."""
    predicted = verdicts.predicted[verdicts.row(model)].tolist()
    pairs = zip(verdicts.labels.tolist(), predicted, strict=True)
    return Counter(
        (verdicts.categories[label], verdicts.name_of(said)) for label, said in pairs if said != label
    )


def write_evaluation_report(
    mined: MinedSet, verdicts: Verdicts, folder: Path, *, choices: Mapping[str, ChoiceScores] | None = None
) -> None:
    """Write `scores.csv`, `nuisances.csv`, `categories.csv`, `confusions.csv` and `index.html`.

    Args:
        mined: the set.
        verdicts: answers of classifiers and zero-shot models.
        folder: where the files go.
        choices: of vision-language models, by name; they are written as `choices.csv`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    scores = score_set(mined, verdicts)
    write_table(
        folder / "scores.csv",
        [
            *("model", "role", "kind"),
            *estimate_columns("accuracy"),
            *estimate_columns("category_mean", "categories"),
        ],
        [
            [
                one.model,
                role(one.model, mined.surrogates),
                one.kind,
                *estimate_values(one.accuracy),
                *estimate_values(one.category_mean),
            ]
            for one in scores
        ],
    )
    known = [(image.kind, image.nuisance) for image in mined.images]
    nuisances = nuisance_failures(verdicts, known)
    write_nuisances(folder / "nuisances.csv", nuisances, mined.surrogates)
    categories = _category_accuracies(verdicts)
    write_table(
        folder / "categories.csv",
        ["category", "model", "role", *estimate_columns("accuracy")],
        [
            [category, model, role(model, mined.surrogates), *estimate_values(one)]
            for category, row in categories.items()
            for model, one in row.items()
        ],
    )
    write_table(
        folder / "confusions.csv",
        ["model", "role", "category", "answered", "images"],
        [
            [model, role(model, mined.surrogates), *pair, count]
            for model in verdicts.models
            for pair, count in confusions(verdicts, model).most_common()
        ],
    )
    if choices:
        write_choices(folder / "choices.csv", choices)
    else:  # those of an earlier report would pass for this one's
        (folder / "choices.csv").unlink(missing_ok=True)
    marked = [name for name in verdicts.models if name in mined.surrogates]
    warning = f" Failures of {', '.join(marked)} chose the images, which is no fair test." if marked else ""
    write_page(
        folder / "index.html",
        title=f"Evaluated on {mined.data.name}",
        sentence=f"{counted(len(verdicts.models), 'model')} on {counted(len(mined.data), 'image')}.",
        about=(
            "Right is any output of the intended category. Zero-shot models choose among the names of "
            f"{counted(len(verdicts.categories), 'category', 'categories')}, classifiers among all their "
            f"outputs unless that was restricted: the two do not compare directly.{warning} Intervals: 95 %."
        ),
        sections=[
            _scores_section(scores),
            *([choices_section(choices)] if choices else []),
            nuisance_section(
                nuisances,
                mined.surrogates,
                title="By nuisance",
                text="Share of the images that a model gets wrong.",
            ),
            _category_section(mined, verdicts, categories),
            _confusion_section(mined, verdicts),
            _gallery(mined, verdicts),
        ],
        facts={
            "images": f"{len(mined.data):,} of {mined.data.name}",
            "intervals": "shares: Clopper and Pearson, 95 %; means over categories: over categories, 95 %",
        },
    )


def _fair(mined: MinedSet, verdicts: Verdicts) -> tuple[str, ...]:
    """Models that did not choose the images, by which they are sorted; all of them if there are none."""
    return tuple(name for name in verdicts.models if name not in mined.surrogates) or verdicts.models


def _who(mined: MinedSet, verdicts: Verdicts) -> str:
    """The same in words."""
    return "all models" if _fair(mined, verdicts) == verdicts.models else "the models that are no surrogates"


def _accuracies(verdicts: Verdicts, model: str, group: NDArray[np.bool_]) -> tuple[Estimate, Estimate]:
    right = ~verdicts.failed[verdicts.row(model)][group]
    labels = verdicts.labels[group]
    each = [float(right[labels == label].mean()) for label in np.unique(labels)]
    return clopper_pearson(int(right.sum()), len(right)), mean_interval(each)


def _category_accuracies(verdicts: Verdicts) -> dict[str, dict[str, Estimate]]:
    found: dict[str, dict[str, Estimate]] = {}
    for label in np.unique(verdicts.labels).tolist():
        own = verdicts.labels == label
        found[verdicts.categories[label]] = {
            model: clopper_pearson(int((~verdicts.failed[row][own]).sum()), int(own.sum()))
            for row, model in enumerate(verdicts.models)
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
                *(share_cell(one.accuracy) for one in row),
                share_cell(row[0].category_mean),
            )
            for model, row in rows.items()
        ),
    )


def _category_section(
    mined: MinedSet, verdicts: Verdicts, categories: Mapping[str, Mapping[str, Estimate]]
) -> PageSection:
    fair = _fair(mined, verdicts)
    return PageSection(
        "categories",
        "By category",
        f"Accuracy in each category, the hardest first, by the mean over {_who(mined, verdicts)}.",
        ("Category", "images", *(marked_name(model, mined.surrogates) for model in verdicts.models)),
        tuple(
            (
                PageCell(category),
                PageCell(f"{next(iter(row.values())).n:,}"),
                *(share_cell(row[model]) for model in verdicts.models),
            )
            for category, row in sorted(
                categories.items(), key=lambda pair: sum(pair[1][model].value for model in fair)
            )
        ),
    )


def _confusion_section(mined: MinedSet, verdicts: Verdicts) -> PageSection:
    fair = _fair(mined, verdicts)
    total: Counter[tuple[str, str]] = Counter()
    for model in fair:
        total += confusions(verdicts, model)
    return PageSection(
        "confusions",
        "Confusions",
        f"What is taken for what: at most {_CONFUSIONS}, the most frequent, over {_who(mined, verdicts)}.",
        ("Category", "answered", "times"),
        tuple(
            (PageCell(truth), PageCell(said), PageCell(f"{count:,}"))
            for (truth, said), count in total.most_common(_CONFUSIONS)
        ),
    )


def _gallery(mined: MinedSet, verdicts: Verdicts) -> PageSection:
    """Images that most models get wrong first."""
    fair = _fair(mined, verdicts)
    failures = verdicts.failed[[verdicts.row(model) for model in fair]].sum(axis=0)
    order = np.lexsort((np.arange(len(failures)), -failures))[:_SHOWN].tolist()
    shown = []
    for place in order:
        said = verdicts.predicted[:, place].tolist()
        lines = tuple(
            f"{marked_name(model, mined.surrogates)}: "
            f"{'right' if one == verdicts.labels[place] else verdicts.name_of(one)}"
            for model, one in zip(verdicts.models, said, strict=True)
        )
        image = mined.images[place]
        caption = ", ".join(filter(None, (verdicts.categories[verdicts.labels[place]], image.nuisance)))
        shown.append(PageImage(pixels_address(mined.data[place].image), caption, lines))
    return PageSection(
        "gallery",
        "Hardest",
        f"{len(shown)} of {counted(len(mined.data), 'image')}, those that most of {_who(mined, verdicts)} "
        "get wrong first.",
        images=tuple(shown),
    )
