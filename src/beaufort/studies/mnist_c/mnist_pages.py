"""The files of the study: CSV tables, figures, a Markdown page and an HTML page, ours beside the paper's."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from beaufort._core.errors import BeaufortError, OptionError
from beaufort.studies.engine import run_facts
from beaufort.studies.failed_runs import CheckedRuns, check_runs, ending_facts
from beaufort.studies.mnist_c.corruption_selection import draw_selection, matrix_csv, selection
from beaufort.studies.mnist_c.mnist_claims import claims
from beaufort.studies.mnist_c.mnist_models import CLEAN, MODELS, MnistSettings
from beaufort.studies.mnist_c.mnist_runs import test_digits
from beaufort.studies.mnist_c.paper_figures import (
    StudyResults,
    figure_2,
    figure_3,
    figure_4,
    load_results,
    tuned_means,
)
from beaufort.studies.mnist_c.pessimal_noise import rank_one_fraction, read_pessimal
from beaufort.studies.paper_tables import (
    Claim,
    ReproducedTable,
    cell_text,
    claims_markdown,
    table_csv,
    table_markdown,
)
from beaufort.studies.predictions import StudyPredictions, machine_facts
from beaufort.studies.study_page import StudyPage, data_url

EXPLANATIONS = "explanations.yaml"
"""Texts by `table/row/column`, with * for any, that say why a number differs from the paper's."""

_RULE = (
    "A number is marked if the paper's lies outside the 95 % intervals of all our trainings: it is then more "
    "than chance in the digits and, as far as our trainings show, in the training. The paper has one of each."
)
_REHEARSAL = "A rehearsal with few digits and tiny trainings: its numbers mean nothing."


@dataclass(frozen=True)
class _Findings:
    """What both pages show."""

    tables: Sequence[ReproducedTable]
    claims: Sequence[Claim]
    words: Mapping[str, str]
    """Explanations by `table/row/column`."""
    noise: str
    """About the pessimal noise; empty without."""
    over_all: str
    """The means over all corruptions as a sentence; empty without."""
    figures: Mapping[str, bytes]

    def why(self, table: ReproducedTable, row: str, column: str) -> str:
        """Return the explanation of a cell; empty if there is none."""
        place = f"{table.name}/{row}/{column}"
        return next((text for key, text in self.words.items() if fnmatchcase(place, key)), "")

    def differing(self) -> list[tuple[str, str, str]]:
        """Return the cells where the paper's number is outside our intervals: place, values, explanation."""
        return [
            (
                f"{table.name}, {row}, {column}",
                f"{100 * entry.value:.2f}, paper {100 * (entry.printed or 0):.2f}",
                self.why(table, row, column) or "not explained",
            )
            for table in self.tables
            for row, cells in table.rows.items()
            for column, entry in cells.items()
            if entry.differs
        ]


def study_files(folder: Path, settings: MnistSettings) -> Iterator[tuple[str, bytes]]:
    """Every file that the answers suffice for: its name and its content."""
    results = load_results(folder, settings)
    if not results.models.get("conv1"):
        raise OptionError(f"{folder} has no answers of Conv1 yet; run the study first")
    fig2, fig3, fig4 = figure_2(results), figure_3(results), figure_4(results)
    tables = [table for table in (fig2, fig3, fig4) if any(table.rows.values())]
    for table in tables:
        yield f"{table.name}.csv", table_csv(table).encode()
    figures: dict[str, bytes] = {}
    if (chosen := selection(results)) is not None:
        transfer = matrix_csv(chosen.names, "trained on", 100 * chosen.accuracy, 2)
        yield "transfer.csv", transfer.encode()
        failures = matrix_csv(chosen.names, "wrong under", chosen.failures, 3)
        yield "failures.csv", failures.encode()
        figures["selection.svg"] = draw_selection(chosen).svg().encode()
    figures |= _galleries(results)
    noise = _pessimal(folder)
    if noise is not None:
        yield "pessimal_noise_matrix.npy", noise[0]
    yield from figures.items()
    runs = check_runs([*_model_runs(results), *_tuned_runs(results)])
    found = _Findings(
        tables,
        claims(results, fig2, fig3, fig4),
        _explanations(folder),
        noise[1] if noise else "",
        _over_all(results),
        figures,
    )
    page = StudyPage(
        "mnist-c",
        "MNIST-C, reproduced",
        _facts(folder, results, runs),
        _RULE,
        runs,
        _REHEARSAL if settings.rehearse else "",
        "digits",
    )
    yield "README.md", _markdown(page, found).encode()
    yield "index.html", _html(page, found).encode()


def _over_all(results: StudyResults) -> str:
    told = "; ".join(f"{column} {cell_text(entry)}" for column, entry in tuned_means(results).items())
    return f"Over all {len(results.settings.all_corruptions)} corruptions: {told}." if told else ""


def _markdown(page: StudyPage, found: _Findings) -> str:
    lines = [*page.markdown_head(), *claims_markdown(found.claims)]
    for table in found.tables:
        lines += table_markdown(table, f"{table.title} ({table.name})")
    lines += ["", found.over_all] if found.over_all else []
    lines += ["", "## Pessimal noise", "", found.noise] if found.noise else []
    lines += ["", "## Where we differ", "", "| cell | ours | why |", "|---|---|---|"]
    lines += [f"| {place} | {values} | {why} |" for place, values, why in found.differing()]
    lines += ["", "## Figures", "", *(f"![{name}]({name})" for name in found.figures)]
    return "\n".join(lines) + "\n"


def _html(page: StudyPage, found: _Findings) -> str:
    navigation = {"conclusions": "Conclusions", **{table.name: table.name for table in found.tables}}
    return page.html(
        {**navigation, "differences": "Where we differ", "figures": "Figures"},
        claims=found.claims,
        tables=found.tables,
        why=found.why,
        remarks={"fig4": found.over_all},
        noise=found.noise,
        differing=found.differing(),
        figures={name: data_url(name, content) for name, content in found.figures.items()},
    )


def _galleries(results: StudyResults) -> dict[str, bytes]:
    """One for each model; none where the digits are not at hand."""
    try:
        return {
            f"errors-{name}.png": _error_gallery(title, results.models[name][0], results.settings)
            for name, title in MODELS.items()
            if name in results.models
        }
    except BeaufortError:  # the tables do not need the digits, so a page can be made without
        return {}


_COLUMNS, _SCALE, _GAP, _NAMES, _HEAD = 12, 2, 4, 110, 30
_TILE = 28 * _SCALE
_LINE = _TILE + 16


def _error_gallery(title: str, predictions: StudyPredictions, settings: MnistSettings) -> bytes:
    """Draw the first digits that are wrong as a PNG, a row a condition, as in the paper's Figures 5 to 8."""
    digits = test_digits(settings)
    names = [name for name in (CLEAN, *settings.benchmark) if name in predictions.conditions]
    width = _NAMES + _COLUMNS * (_TILE + _GAP) + _GAP
    sheet = Image.new("RGB", (width, _HEAD + len(names) * (_LINE + _GAP)), "white")
    draw = ImageDraw.Draw(sheet)
    large, middle, small = map(ImageFont.load_default, (13, 12, 11))
    draw.text((_GAP, 6), f"{title}: the first digits it gets wrong (label, answer)", "black", large)
    for number, name in enumerate(names):
        top = _HEAD + number * (_LINE + _GAP)
        correct = predictions.row(name)
        draw.text((_GAP, top + 16), name.replace("_", " "), "black", middle)
        draw.text((_GAP, top + 32), f"{1 - correct.mean():.1%} wrong", "dimgray", small)
        for column, place in enumerate(np.flatnonzero(~correct)[:_COLUMNS]):
            left = _NAMES + column * (_TILE + _GAP)
            digit = Image.fromarray(digits.images[name][int(place), 0].cpu().numpy())
            sheet.paste(digit.resize((_TILE, _TILE), Image.Resampling.NEAREST), (left, top))
            predicted = predictions.predicted[predictions.conditions.index(name), place]
            text = f"{predictions.labels[place]}, {predicted}"
            draw.text((left, top + _TILE), text, "black", small)
    file = io.BytesIO()
    sheet.save(file, "PNG", optimize=True)
    return file.getvalue()


def _pessimal(folder: Path) -> tuple[bytes, str] | None:
    """Our matrix as an npy file, and a sentence about all of them."""
    found = [read_pessimal(path) for path in sorted((folder / "pessimal").glob("seed*.npz"))]
    if not found:
        return None
    file = io.BytesIO()
    np.save(file, found[0][0])
    lines = []
    for matrix, about in found:
        accuracy = about["accuracy"]
        told = ", ".join(
            f"{name} {100 * accuracy[name]:.2f}"
            for name in ("clean", "white", "published", "ours")
            if name in accuracy
        )
        lines.append(
            f"Accuracy of Conv1 (seed {about['seed']}) in percent: {told}. "
            f"{100 * rank_one_fraction(matrix):.2f} % of our matrix's energy lies in one direction."
        )
    return file.getvalue(), " ".join(lines)


def _facts(folder: Path, results: StudyResults, runs: CheckedRuns) -> dict[str, str]:
    """The hardware, the seeds and the time."""
    every = [one for some in (*results.models.values(), *results.tuned.values()) for one in some]
    return {
        **machine_facts(every),
        "seeds": ", ".join(
            f"{title} {len(results.models[name])}" for name, title in MODELS.items() if name in results.models
        ),
        "trainings": f"{_count(results.models)} models, {_count(results.tuned)} tunings",
        "no sign of learning": runs.text,
        **run_facts(folder),
    }


def _count(predictions: Mapping[str, Sequence[StudyPredictions]]) -> int:
    return sum(map(len, predictions.values()))


def _explanations(folder: Path) -> dict[str, str]:
    path = folder / EXPLANATIONS
    if not path.is_file():
        return {}
    import yaml

    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    if not isinstance(found, dict):
        raise OptionError(f"{path} must be lines of 'table/row/column: why'")
    return {str(key): str(value) for key, value in found.items()}


_MEANS = "means of that column over rows that all have this seed"


def _model_runs(results: StudyResults) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for name, title in MODELS.items():
        for place, answers in enumerate(results.models.get(name, ())):
            inside = f"fig2 and fig3, {title}, and conclusions about it"
            if name == "conv1":
                inside += ", relative mCE of all models; fig4, clean, and tunings of this seed; failures.csv"
            yield title, inside + ("" if place else f"; errors-{name}.png"), ending_facts(answers)


def _tuned_runs(results: StudyResults) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for label, some in results.tuned.items():
        kind, _, row = label.partition("-")
        where = {
            "all": f"fig4, all; all_but_one of {CLEAN}",
            "but": f"fig4, {row}, all_but_one; {_MEANS}",
            "single": f"fig4, {row}, single; {_MEANS}; transfer.csv, {row}; selection.svg",
        }[kind]
        for answers in some:
            yield f"Conv1 tuned on {label.replace('-', ' ')}", where, ending_facts(answers)
