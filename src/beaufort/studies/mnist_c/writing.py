"""The files of the study: CSV tables, figures, a Markdown page and an HTML page, ours beside the paper's."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from beaufort._core.errors import BeaufortError, OptionError
from beaufort.studies.answers import StudyAnswers, machine_facts
from beaufort.studies.failed import TrainingsLooked
from beaufort.studies.measured import table_csv
from beaufort.studies.mnist_c.claims import claims
from beaufort.studies.mnist_c.markdown import markdown_page
from beaufort.studies.mnist_c.page import html_page
from beaufort.studies.mnist_c.pessimal import rank_one_share, read_pessimal
from beaufort.studies.mnist_c.selection import draw_selection, matrix_csv, selection
from beaufort.studies.mnist_c.settings import MODELS, Settings
from beaufort.studies.mnist_c.story import Story
from beaufort.studies.mnist_c.tables import (
    StudyResults,
    figure_2,
    figure_3,
    figure_4,
    load_results,
    tuned_means,
)
from beaufort.studies.mnist_c.trainings import trainings_of
from beaufort.studies.record import run_facts

EXPLANATIONS = "explanations.yaml"
"""Texts by `table/row/column`, with * for any, that say why a number differs from the paper's."""


def study_files(folder: Path, settings: Settings) -> Iterator[tuple[str, bytes]]:
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
    trainings = trainings_of(results)
    story = Story(
        tables=tables,
        claims=claims(results, fig2, fig3, fig4),
        facts=_facts(folder, results, trainings),
        words=_explanations(folder),
        noise=noise[1] if noise else "",
        over_all=tuned_means(results),
        corruptions=len(settings.all_corruptions),
        trainings=trainings,
        rehearsal=settings.rehearse,
    )
    yield "README.md", markdown_page(story, list(figures)).encode()
    yield "index.html", html_page(story, figures).encode()


def _galleries(results: StudyResults) -> dict[str, bytes]:
    """One for each model; none where the digits are not at hand."""
    from beaufort.studies.mnist_c.gallery import error_gallery

    try:
        return {
            f"errors-{name}.png": error_gallery(title, results.models[name][0], results.settings)
            for name, title in MODELS.items()
            if name in results.models
        }
    except BeaufortError:  # the tables do not need the digits, so a page can be made without
        return {}


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
            f"{100 * rank_one_share(matrix):.2f} % of our matrix's energy lies in one direction."
        )
    return file.getvalue(), " ".join(lines)


def _facts(folder: Path, results: StudyResults, trainings: TrainingsLooked) -> dict[str, str]:
    """The hardware, the seeds and the time."""
    every = [one for some in (*results.models.values(), *results.tuned.values()) for one in some]
    return {
        **machine_facts(every),
        "seeds": ", ".join(
            f"{title} {len(results.models[name])}" for name, title in MODELS.items() if name in results.models
        ),
        "trainings": f"{_count(results.models)} models, {_count(results.tuned)} tunings",
        "no sign of learning": trainings.text,
        **run_facts(folder),
    }


def _count(answers: Mapping[str, Sequence[StudyAnswers]]) -> int:
    return sum(map(len, answers.values()))


def _explanations(folder: Path) -> dict[str, str]:
    path = folder / EXPLANATIONS
    if not path.is_file():
        return {}
    import yaml

    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    if not isinstance(found, dict):
        raise OptionError(f"{path} must be lines of 'table/row/column: why'")
    return {str(key): str(value) for key, value in found.items()}
