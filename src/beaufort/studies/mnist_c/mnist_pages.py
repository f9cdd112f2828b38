"""The files of the study: CSV tables, figures, and pages with our numbers beside the paper's."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from beaufort._core.errors import BeaufortError, OptionError
from beaufort.studies.engine import definition, run_facts
from beaufort.studies.failed_runs import check_runs, ending_facts
from beaufort.studies.mnist_c.corruption_selection import draw_selection, matrix_csv, selection
from beaufort.studies.mnist_c.mnist_runs import CLEAN, MnistSettings, test_digits
from beaufort.studies.mnist_c.paper_figures import (
    MnistResults,
    claims,
    figure_2,
    figure_3,
    figure_4,
    load_results,
    relative_mce_remark,
    tuned_means,
)
from beaufort.studies.mnist_c.pessimal_noise import rank_one_fraction, read_pessimal
from beaufort.studies.paper_tables import ReproducedTable, table_csv
from beaufort.studies.predictions import StudyPredictions, machine_facts
from beaufort.studies.study_page import PageSection, StudyPage, claims_section, table_section

EXPLANATIONS = "explanations.yaml"
"""Why numbers differ from the paper's, by `table/row/column` with * as a wildcard."""


def study_files(folder: Path, settings: MnistSettings) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of every file that the existing predictions allow."""
    results = load_results(folder, settings)
    if not results.models.get("conv1"):
        raise OptionError(f"{folder} has no predictions of Conv1 yet; run the study first")
    fig2, fig3, fig4 = figure_2(results), figure_3(results), figure_4(results)
    tables = [table for table in (fig2, fig3, fig4) if any(table.rows.values())]
    for table in tables:
        yield f"{table.name}.csv", table_csv(table).encode()
    figures: dict[str, bytes] = {}
    if (chosen := selection(results)) is not None:
        yield "transfer.csv", matrix_csv(chosen.names, "trained on", 100 * chosen.accuracy, 2).encode()
        yield "failures.csv", matrix_csv(chosen.names, "wrong under", chosen.failures, 3).encode()
        figures["selection.svg"] = draw_selection(chosen).svg().encode()
    figures |= _galleries(results)
    yield from figures.items()
    means = "; ".join(f"{column} {entry}" for column, entry in tuned_means(results).items())
    remark = f"Over all {len(settings.all_corruptions)} corruptions: {means}." if means else ""
    sections = [claims_section(list(claims(results, fig2, fig3, fig4)))]
    remarks = {fig2.name: relative_mce_remark(fig3), fig4.name: remark}
    for table in tables:
        title = f"{table.title} ({table.name})"
        sections.append(table_section(table, title=title, remark=remarks.get(table.name, "")))
    if matrices := [read_pessimal(path) for path in sorted((folder / "pessimal").glob("seed*.npz"))]:
        file = io.BytesIO()
        np.save(file, matrices[0][0])
        yield "pessimal_noise_matrix.npy", file.getvalue()
        text = " ".join(_noise_text(*one) for one in matrices)
        sections.append(PageSection(id="noise", title="Pessimal noise", text=text))
    head, differing = ("cell", "ours", "explanation"), list(_differences(tables, _explanations(folder)))
    sections += [
        PageSection(
            id="differences",
            title="Differences from the paper",
            text=_count_differences([fig3, fig4]),
            head=head,
            rows=differing,
        ),
        PageSection(id="figures", title="Figures", figures={name: name for name in figures}),
    ]
    texts, runs = definition("mnist-c"), check_runs([*_model_runs(results), *_tuned_runs(results)])
    models, tuned = (dict(by_name) for by_name in (results.models, results.tuned))
    facts = {
        **machine_facts(one for some in (*models.values(), *tuned.values()) for one in some),
        "seeds": ", ".join(f"{title} {len(models[name])}" for name, title in results.titles.items()),
        "training runs": f"{sum(map(len, models.values()))} models, "
        f"{sum(map(len, tuned.values()))} fine-tuned",
        "no sign of learning": runs.text,
        **run_facts(folder),
    }
    page = StudyPage(
        title=texts["title"],
        facts=facts,
        rule=texts["rule"],
        sections=sections,
        runs=runs,
        rehearse=settings.rehearse,
        unit=texts["unit"],
    )
    yield from page.files(figures)


def _count_differences(tables: list[ReproducedTable]) -> str:
    counts = []
    for table in tables:
        cells = [entry for row in table.rows.values() for entry in row.values() if entry.printed is not None]
        if cells:
            counts.append(f"{sum(one.differs for one in cells)} of {len(cells)} cells of {table.name}")
    return f"Different beyond chance: {', '.join(counts)}." if counts else ""


def _differences(
    tables: list[ReproducedTable], explanations: Mapping[str, str]
) -> Iterator[tuple[str, str, str]]:
    """Yield the cells whose printed number is outside our intervals: place, values, explanation."""
    for table in tables:
        for row, cells in table.rows.items():
            for column, entry in cells.items():
                if entry.differs:
                    place = f"{table.name}/{row}/{column}"
                    found = (text for pattern, text in explanations.items() if fnmatchcase(place, pattern))
                    values = f"{100 * entry.value:.2f}, paper {100 * (entry.printed or 0):.2f}"
                    yield f"{table.name}, {row}, {column}", values, next(found, "not explained")


def _explanations(folder: Path) -> dict[str, str]:
    path = folder / EXPLANATIONS
    if not path.is_file():
        return {}
    import yaml

    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    if not isinstance(found, dict):
        raise OptionError(f"{path} must have lines of the form 'table/row/column: explanation'")
    return {str(key): str(value) for key, value in found.items()}


def _noise_text(matrix: np.ndarray[Any, Any], about: Mapping[str, Any]) -> str:
    accuracy = about["accuracy"]
    names = [name for name in ("clean", "white", "published", "ours") if name in accuracy]
    return (
        f"Accuracy of Conv1 (seed {about['seed']}) in percent: "
        f"{', '.join(f'{name} {100 * accuracy[name]:.2f}' for name in names)}. "
        f"{100 * rank_one_fraction(matrix):.2f} % of our matrix's energy is in one direction."
    )


def _galleries(results: MnistResults) -> dict[str, bytes]:
    """Return an image of misclassified digits for each model; none if the digits are not available."""
    try:
        return {
            f"errors-{name}.png": _error_gallery(title, results.models[name][0], results.settings)
            for name, title in results.titles.items()
        }
    except BeaufortError:  # the tables do not need the digits
        return {}


_COLUMNS, _SCALE, _GAP, _NAMES, _HEAD = 12, 2, 4, 110, 30
_TILE = 28 * _SCALE
_LINE = _TILE + 16


def _error_gallery(title: str, predictions: StudyPredictions, settings: MnistSettings) -> bytes:
    """Draw digits that are wrong under a condition as a PNG, chosen at random, a row per condition."""
    digits = test_digits(settings)
    names = [name for name in (CLEAN, *settings.benchmark) if name in predictions.conditions]
    width = _NAMES + _COLUMNS * (_TILE + _GAP) + _GAP
    sheet = Image.new("RGB", (width, _HEAD + len(names) * (_LINE + _GAP)), "white")
    draw = ImageDraw.Draw(sheet)
    large, middle, small = map(ImageFont.load_default, (13, 12, 11))
    heading = f"{title}: random misclassified digits (clean prediction → prediction, label)"
    draw.text((_GAP, 6), heading, "black", large)
    clean = predictions.predicted[predictions.conditions.index(CLEAN)]
    for number, name in enumerate(names):
        top = _HEAD + number * (_LINE + _GAP)
        correct = predictions.row(name)
        draw.text((_GAP, top + 16), name.replace("_", " "), "black", middle)
        draw.text((_GAP, top + 32), f"{1 - correct.mean():.1%} wrong", "dimgray", small)
        wrong = np.random.default_rng(number).permutation(np.flatnonzero(~correct))
        for column, place in enumerate(wrong[:_COLUMNS]):
            left = _NAMES + column * (_TILE + _GAP)
            digit = Image.fromarray(digits.images[name][int(place), 0].cpu().numpy())
            sheet.paste(digit.resize((_TILE, _TILE), Image.Resampling.NEAREST), (left, top))
            predicted = predictions.predicted[predictions.conditions.index(name), place]
            text = f"{clean[place]}→{predicted} ({predictions.labels[place]})"
            draw.text((left, top + _TILE), text, "black", small)
    file = io.BytesIO()
    sheet.save(file, "PNG", optimize=True)
    return file.getvalue()


def _model_runs(results: MnistResults) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for name, title in results.titles.items():
        for seed, predictions in enumerate(results.models[name]):
            inside = f"fig2 and fig3, {title}, and conclusions about it"
            if name == "conv1":
                inside += (
                    ", relative mCE of all models; fig4, clean, and fine-tuning of this seed; failures.csv"
                )
            yield title, inside + ("" if seed else f"; errors-{name}.png"), ending_facts(predictions)


def _tuned_runs(results: MnistResults) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    means = "means of that column over rows that all have this seed"
    for label, runs in results.tuned.items():
        kind, _, row = label.partition("-")
        inside = {
            "all": f"fig4, all; all_but_one of {CLEAN}",
            "but": f"fig4, {row}, all_but_one; {means}",
            "single": f"fig4, {row}, single; {means}; transfer.csv, {row}; selection.svg",
        }[kind]
        for predictions in runs:
            yield f"Conv1 tuned on {label.replace('-', ' ')}", inside, ending_facts(predictions)
