"""Selection of generated images by surrogates, with its report: tables and a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from beaufort._core.text import counted
from beaufort.data.images import read_image
from beaufort.mining._report_parts import (
    GALLERY,
    EstimateColumn,
    ModelRoles,
    PageCell,
    PageImage,
    chart_dots,
    estimate_cell,
    thumbnail,
    write_nuisances,
    write_page,
    write_table,
)
from beaufort.mining.predictions import predict_set
from beaufort.mining.selection import (
    MinedSelection,
    hardness,
    nuisance_failures,
    open_generated,
    parse_rule,
    select,
    transfer_matrix,
    write_review_list,
    write_selection,
)
from beaufort.mining.surrogate_curve import SUBSETS, hardness_curve, orders_are_drawn

if TYPE_CHECKING:
    from beaufort.store import Store


def select_images(
    images: Path,
    surrogates: Sequence[Any],
    output: Path,
    store: str | Path | Store,
    *,
    others: Sequence[Any] = (),
    rule: str = "all",
    controls: int = 0,
    seed: int = 0,
    **options: Any,
) -> MinedSelection:
    """Run models on generated images, keep what the surrogates get wrong, and write the report.

    The kept images are listed in `kept.csv` in their folder, as input of `create_review`.

    Args:
        images: the folder filled by `generate`.
        surrogates: models that select, as for `predict_set`.
        output: folder of the report.
        store: where predictions are stored.
        others: models that do not select, to measure how hard the images are for them.
        rule: as for `select`.
        controls: as for `write_review_list`.
        seed: seed of the controls and of the sets of surrogates.
        **options: options of `predict_set`: labels, convention, batch_size, progress.
    """
    parse_rule(rule, len(surrogates))  # before models run, which may take hours
    data, generated = open_generated(images)
    predictions = predict_set([*surrogates, *others], data, store, **options)
    selection = select(predictions, generated, predictions.models[: len(surrogates)], rule=rule)
    if selection.kept.any():  # first, because it may fail: list and report are always of one selection
        write_review_list(selection, images / "kept.csv", controls=controls, seed=seed)
    else:  # remove the list of an earlier selection
        (images / "kept.csv").unlink(missing_ok=True)
    write_selection_report(selection, output, seed=seed)
    return selection


def write_selection_report(selection: MinedSelection, folder: Path, *, seed: int = 0) -> None:
    """Write `selection.csv`, `models.csv`, `surrogates.csv`, `transfer.csv`, `nuisances.csv`, `index.html`.

    If there are too many sets of surrogates, a sample of them is drawn with the seed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    predictions, roles = selection.predictions, ModelRoles(selection.surrogates)
    models = hardness(selection)
    curve = hardness_curve(predictions.failed, seed=seed) if len(predictions.models) > 1 else ()
    cells = transfer_matrix(selection)
    write_selection(selection, folder / "selection.csv")
    write_table(
        folder / "models.csv",
        ["model", "role", EstimateColumn("unfiltered"), EstimateColumn("kept")],
        [[one.model, roles.role(one.model), one.unfiltered, one.kept] for one in models],
    )
    write_table(
        folder / "surrogates.csv",
        [
            *("surrogates", "sets", "possible", "fraction_kept"),
            *(EstimateColumn("accuracy"), "lowest", "highest", EstimateColumn("step")),
        ],
        [
            [
                *(one.surrogates, one.subsets, one.possible, one.kept),
                *(one.accuracy, one.lowest, one.highest, one.step),
            ]
            for one in curve
        ],
    )
    write_table(
        folder / "transfer.csv",
        ["fails", "shared_by", EstimateColumn("fraction")],
        [[one.source, one.target, one.fraction] for one in cells],
    )
    nuisances = [(image.item.kind, image.item.nuisance) for image in selection.images]
    nuisance_values = write_nuisances(
        folder / "nuisances.csv", nuisance_failures(predictions, nuisances), roles
    )
    generators = sorted({str(image.generator.get("name", "unknown")) for image in selection.images})
    drawn = SUBSETS if orders_are_drawn(len(predictions.models)) else 0
    kept = int(selection.kept.sum())
    fractions = {(one.source, one.target): estimate_cell(one.fraction, heat=True) for one in cells}
    write_page(
        folder / "index.html",
        "mining/selection.html",
        title="Images selected by shared failures",
        sentence=f"{kept:,} of {counted(len(selection.images), 'image')} kept.",
        navigation={
            "models": "Models",
            **({"surrogates": "Number of surrogates"} if curve else {}),
            "transfer": "Shared failures",
            "nuisances": "Failures by nuisance",
            "gallery": "Kept images",
        },
        selection=selection,
        kept=kept,
        models=[
            (roles.cell(one.model), estimate_cell(one.unfiltered), estimate_cell(one.kept)) for one in models
        ],
        drawn=drawn,
        curve=[
            (
                PageCell(str(one.surrogates), f"{one.subsets} of {one.possible} sets"),
                estimate_cell(one.accuracy),
                PageCell(f"{100 * one.lowest:.1f} – {100 * one.highest:.1f} %"),
                PageCell(f"{100 * one.kept:.1f} %"),
                PageCell("") if one.step is None else estimate_cell(one.step),
            )
            for one in curve
        ],
        chart=chart_dots({str(one.surrogates): one.accuracy for one in curve}),
        transfer_header=["Fails", *map(roles.header, predictions.models)],
        transfer=[
            (
                roles.cell(source),
                *(fractions.get((source, target), PageCell("–")) for target in predictions.models),
            )
            for source in predictions.models
        ],
        **nuisance_values,
        gallery=_gallery(selection),
        facts={
            "images": f"{len(selection.images):,}, generated by {', '.join(generators)}",
            "rule": selection.rule,
            "intervals": "fractions: Clopper-Pearson, 95 %; the curve: percentiles of 1,000 resamples of "
            f"images{' and of orders' * bool(drawn)}, each with one unseen image",
            "seed": str(seed),
        },
    )


def _gallery(selection: MinedSelection) -> list[PageImage]:
    """Return kept images, evenly spaced in the order of their files."""
    predictions = selection.predictions
    places = np.flatnonzero(selection.kept).tolist()
    count = min(GALLERY, len(places))
    gallery = []
    for place in (places[number * len(places) // count] for number in range(count)):
        image = selection.images[place]
        lines = tuple(f"{name}: {predictions.name(name, place)}" for name in selection.surrogates)
        pixels = np.asarray(read_image(image.path).convert("RGB"))
        gallery.append(PageImage(thumbnail(pixels), f"{image.item.category}, {image.item.nuisance}", lines))
    return gallery
