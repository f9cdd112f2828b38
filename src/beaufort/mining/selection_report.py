"""What a selection did, as tables and a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from beaufort._core.text import counted
from beaufort.mining._page import PageCell, PageChart, PageImage, PageSection, picture, share_cell, write_page
from beaufort.mining._tables import MARK, estimate_columns, estimate_values, marked_name, role, write_table
from beaufort.mining.curve import SUBSETS, HardnessPoint, hardness_curve, orders_are_drawn
from beaufort.mining.nuisance_report import nuisance_section, write_nuisances
from beaufort.mining.selection import MinedSelection, write_selection
from beaufort.mining.transfer import hardness, nuisance_failures, transfer_matrix

_SHOWN = 48


def write_selection_report(selection: MinedSelection, folder: Path, *, seed: int = 0) -> None:
    """Write `selection.csv`, `models.csv`, `surrogates.csv`, `transfer.csv`, `nuisances.csv`, `index.html`.

    Args:
        selection: what was kept, of what, and by whom.
        folder: where the files go.
        seed: of the sample of sets of surrogates, where there are too many.
    """
    folder.mkdir(parents=True, exist_ok=True)
    models = hardness(selection)
    curve = hardness_curve(selection.verdicts.failed, seed=seed) if len(selection.verdicts.models) > 1 else ()
    cells = transfer_matrix(selection)
    known = [(image.item.kind, image.item.nuisance) for image in selection.images]
    nuisances = nuisance_failures(selection.verdicts, known)
    write_selection(selection, folder / "selection.csv")
    write_table(
        folder / "models.csv",
        ["model", "role", *estimate_columns("unfiltered"), *estimate_columns("kept")],
        [
            [
                one.model,
                role(one.model, selection.surrogates),
                *estimate_values(one.unfiltered),
                *estimate_values(one.kept),
            ]
            for one in models
        ],
    )
    write_table(
        folder / "surrogates.csv",
        [
            "surrogates",
            "sets",
            "possible",
            "share_kept",
            *estimate_columns("accuracy"),
            "lowest",
            "highest",
            *estimate_columns("step"),
        ],
        [
            [
                one.surrogates,
                one.subsets,
                one.possible,
                one.kept,
                *estimate_values(one.accuracy),
                one.lowest,
                one.highest,
                *estimate_values(one.step),
            ]
            for one in curve
        ],
    )
    write_table(
        folder / "transfer.csv",
        ["fails", "shared_by", *estimate_columns("share")],
        [[one.source, one.target, *estimate_values(one.share)] for one in cells],
    )
    write_nuisances(folder / "nuisances.csv", nuisances, selection.surrogates)
    kept = int(selection.kept.sum())
    write_page(
        folder / "index.html",
        title="Mined by shared failures",
        sentence=f"{kept:,} of {counted(len(selection.images), 'image')} kept.",
        about=(
            f"An image is kept if {selection.rule} ({', '.join(selection.surrogates)}): the "
            "answer is not the intended category. Surrogates chose the images, so their accuracy on them "
            "is no measure of the surrogates. Intervals are 95 %, over images."
        ),
        sections=[
            _models(selection),
            *([_curve(curve, len(selection.verdicts.models))] if curve else []),
            _transfer(selection),
            nuisance_section(
                nuisances,
                selection.surrogates,
                title="Which nuisances break whom",
                text="Share of all images with a nuisance that a model fails on.",
            ),
            _gallery(selection),
        ],
        facts=_facts(selection, seed),
    )


def _marked(selection: MinedSelection, model: str) -> PageCell:
    return PageCell(model, MARK if model in selection.surrogates else "")


def _models(selection: MinedSelection) -> PageSection:
    return PageSection(
        "models",
        "Models",
        "Accuracy on all images that were made, and on those that were kept. Part of the failures is the "
        "generator's: an image that does not show its category is wrong for every model. People who look at "
        "what is kept take such images out.",
        ("Model", "unfiltered", "kept"),
        tuple(
            (_marked(selection, one.model), share_cell(one.unfiltered), share_cell(one.kept))
            for one in hardness(selection)
        ),
    )


def _curve(curve: Sequence[HardnessPoint], models: int) -> PageSection:
    which = "every set of each size, the rest held out"
    if orders_are_drawn(models):
        which = f"the first of {SUBSETS:,} orders of the models, drawn by the seed, the rest held out"
    return PageSection(
        "surrogates",
        "How many surrogates",
        f"Accuracy of held-out models on what 1, 2, 3 … surrogates all fail on. Each of the {models} models "
        f"takes both parts: {which}. Sets that share no failure are left out. The step is how much one more "
        "surrogate takes away; an interval that contains 0 leaves open whether it takes anything.",
        ("Surrogates", "accuracy of the others", "lowest and highest set", "images kept", "step"),
        tuple(
            (
                PageCell(str(one.surrogates), f"{one.subsets} of {one.possible} sets"),
                share_cell(one.accuracy),
                PageCell(f"{100 * one.lowest:.1f} – {100 * one.highest:.1f} %"),
                PageCell(f"{100 * one.kept:.1f} %"),
                PageCell("") if one.step is None else share_cell(one.step),
            )
            for one in curve
        ),
        chart=PageChart(
            "Accuracy of held-out models by number of surrogates",
            tuple(str(one.surrogates) for one in curve),
            tuple(one.accuracy for one in curve),
        ),
    )


def _transfer(selection: MinedSelection) -> PageSection:
    models = selection.verdicts.models
    headers = [marked_name(model, selection.surrogates) for model in models]
    cells = {(one.source, one.target): one.share for one in transfer_matrix(selection)}
    return PageSection(
        "transfer",
        "Which failures carry over",
        "Of the images that the model of the row fails on, among all, the share that the model of the column "
        "fails on too.",
        ("Fails", *headers),
        tuple(
            (
                _marked(selection, source),
                *(
                    PageCell("–") if source == target else share_cell(cells[source, target], heat=True)
                    for target in models
                ),
            )
            for source in models
        ),
    )


def _gallery(selection: MinedSelection) -> PageSection:
    verdicts = selection.verdicts
    places = [place for place, kept in enumerate(selection.kept.tolist()) if kept]
    count = min(_SHOWN, len(places))
    shown = [places[number * len(places) // count] for number in range(count)]
    return PageSection(
        "gallery",
        "Kept",
        f"{len(shown)} of {len(places)} kept images, evenly spaced in the order of their files, with what "
        "surrogates said."
        if places
        else "Nothing was kept.",
        images=tuple(
            PageImage(
                picture(selection.images[place].path),
                f"{selection.images[place].item.category}, {selection.images[place].item.nuisance}",
                tuple(
                    f"{name}: {verdicts.name_of(int(verdicts.predicted[verdicts.row(name), place]))}"
                    for name in selection.surrogates
                ),
            )
            for place in shown
        ),
    )


def _facts(selection: MinedSelection, seed: int) -> dict[str, str]:
    made = {str(image.generator.get("name", "unknown")) for image in selection.images}
    return {
        "images": f"{len(selection.images):,}, made by {', '.join(sorted(made))}",
        "rule": selection.rule,
        "intervals": "shares: Clopper and Pearson, 95 %; the curve: percentiles of 1,000 resamples of images"
        + (" and of orders" if orders_are_drawn(len(selection.verdicts.models)) else "")
        + ", each with one that nobody has seen",
        "seed": str(seed),
    }
