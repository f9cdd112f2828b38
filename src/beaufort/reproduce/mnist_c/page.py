"""The files of the study: CSV tables, figures, a Markdown page and an HTML page, ours beside the paper's."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from html import escape
from pathlib import Path

import numpy as np

from beaufort.errors import BeaufortError, OptionError
from beaufort.files import write_bytes
from beaufort.reproduce.mnist_c.answers import Answers
from beaufort.reproduce.mnist_c.claims import Claim, claims
from beaufort.reproduce.mnist_c.pessimal import rank_one_share, read_pessimal
from beaufort.reproduce.mnist_c.selection import draw_selection, matrix_csv, selection
from beaufort.reproduce.mnist_c.settings import MODELS, Settings
from beaufort.reproduce.mnist_c.tables import (
    Entry,
    Results,
    Table,
    figure_2,
    figure_3,
    figure_4,
    load_results,
    table_csv,
    tuned_means,
)

__all__ = ["write_all"]

EXPLANATIONS = "explanations.yaml"
"""Texts by `table/row/column`, with * for any, that say why a number differs from the paper's."""

_RULE = (
    "A number is marked if the paper's lies outside the 95 % intervals of all our trainings: it is then more "
    "than chance in the digits and, as far as our trainings show, in the training. The paper has one of each."
)


def write_all(folder: Path, settings: Settings) -> Iterator[Path]:
    """Write every file that the answers suffice for; yields each path."""
    results = load_results(folder, settings)
    if not results.models.get("conv1"):
        raise OptionError(f"{folder} has no answers of Conv1 yet; run the study first")
    tables = [figure_2(results), figure_3(results), figure_4(results)]
    tables = [table for table in tables if any(table.rows.values())]
    for table in tables:
        yield _write(folder / f"{table.name}.csv", table_csv(table))
    by_name = {table.name: table for table in tables}
    found = claims(results, by_name["fig2"], by_name["fig3"], by_name["fig4"])
    figures: dict[str, bytes] = {}
    if (chosen := selection(results)) is not None:
        yield _write(
            folder / "transfer.csv", matrix_csv(chosen.names, "trained on", 100 * chosen.accuracy, 2)
        )
        yield _write(folder / "failures.csv", matrix_csv(chosen.names, "wrong under", chosen.failures, 3))
        figures["selection.svg"] = draw_selection(chosen).svg().encode()
    figures |= _galleries(results)
    noise = _pessimal(folder)
    if noise is not None:
        yield _write_bytes(folder / "pessimal_noise_matrix.npy", noise[0])
    for name, content in figures.items():
        yield _write_bytes(folder / name, content)
    facts = _facts(folder, results)
    words = _explanations(folder)
    pages = tables, found, facts, words, noise[1] if noise else ""
    yield _write(folder / "README.md", _markdown(*pages, list(figures), results))
    yield _write(folder / "index.html", _html(*pages, figures, results))


def _galleries(results: Results) -> dict[str, bytes]:
    """One for each model; none where the digits are not at hand."""
    from beaufort.reproduce.mnist_c.gallery import error_gallery

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


def _facts(folder: Path, results: Results) -> dict[str, str]:
    """The hardware, the seeds and the time."""
    every = [one for some in (*results.models.values(), *results.tuned.values()) for one in some]
    runs = json.loads((folder / "study.json").read_bytes())["runs"]
    return {
        "hardware": ", ".join(sorted({one.facts["device"] for one in every})),
        "torch": ", ".join(sorted({one.facts["torch"] for one in every})),
        "seeds": ", ".join(
            f"{MODELS[name]} {len(some)}" for name, some in results.models.items() if name in MODELS
        ),
        "trainings": f"{_count(results.models)} models, {_count(results.tuned)} tunings",
        "time": f"{sum(run['seconds'] for run in runs) / 60:.1f} minutes in {len(runs)} runs of the command",
        "command": "beaufort reproduce mnist-c --device cuda --jobs 8",
    }


def _count(answers: Mapping[str, Sequence[Answers]]) -> int:
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


def _why(words: Mapping[str, str], table: Table, row: str, column: str) -> str:
    place = f"{table.name}/{row}/{column}"
    return next((text for key, text in words.items() if fnmatchcase(place, key)), "")


def _differing(tables: list[Table], words: Mapping[str, str]) -> list[tuple[str, str, str]]:
    return [
        (
            f"{table.name}, {row}, {column}",
            f"{100 * entry.value:.2f}, paper {100 * (entry.printed or 0):.2f}",
            _why(words, table, row, column) or "not explained",
        )
        for table in tables
        for row, cells in table.rows.items()
        for column, entry in cells.items()
        if entry.differs
    ]


def _cell(entry: Entry | None) -> str:
    if entry is None:
        return ""
    printed = "" if entry.printed is None else f" · {100 * entry.printed:.2f}{'*' if entry.differs else ''}"
    return f"{100 * entry.value:.2f} [{100 * entry.low:.2f}, {100 * entry.high:.2f}]{printed}"


def _markdown(
    tables: list[Table],
    found: list[Claim],
    facts: Mapping[str, str],
    words: Mapping[str, str],
    noise: str,
    figures: list[str],
    results: Results,
) -> str:
    lines = ["# MNIST-C, reproduced", ""]
    if results.settings.rehearse:
        lines += ["**A rehearsal with few digits and tiny trainings: its numbers mean nothing.**", ""]
    lines += [f"- {key}: {value}" for key, value in facts.items()]
    lines += ["", "Each cell: our value [95 % interval over digits] · the paper's.", _RULE, ""]
    lines += ["## Conclusions", "", "| statement | measured | |", "|---|---|---|"]
    lines += [f"| {one.statement} | {one.measured} | {one.verdict} |" for one in found]
    for table in tables:
        lines += ["", f"## {table.title} ({table.name})", ""]
        lines += [
            f"| {table.corner} | {' | '.join(table.columns)} |",
            "|---" * (len(table.columns) + 1) + "|",
        ]
        lines += [
            f"| {row} | {' | '.join(_cell(cells.get(column)) for column in table.columns)} |"
            for row, cells in table.rows.items()
        ]
    if means := tuned_means(results):
        told = "; ".join(f"{column} {_cell(entry)}" for column, entry in means.items())
        lines += ["", f"Over all {len(results.settings.all_corruptions)} corruptions: {told}."]
    if noise:
        lines += ["", "## Pessimal noise", "", noise]
    lines += ["", "## Where we differ", "", "| cell | ours | why |", "|---|---|---|"]
    lines += [f"| {place} | {values} | {why} |" for place, values, why in _differing(tables, words)]
    lines += ["", "## Figures", ""]
    lines += [f"![{name}]({name})" for name in figures]
    return "\n".join(lines) + "\n"


_STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 1200px; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #8884; text-align: left; vertical-align: top; }
td small { display: block; opacity: .7; white-space: nowrap; }
td.differs { background: #d9743a33; }
.wide { overflow-x: auto; }
img, svg { max-width: 100%; background: #fff; }
"""


def _html(
    tables: list[Table],
    found: list[Claim],
    facts: Mapping[str, str],
    words: Mapping[str, str],
    noise: str,
    figures: Mapping[str, bytes],
    results: Results,
) -> str:
    parts = ["<h1>MNIST-C, reproduced</h1>"]
    if results.settings.rehearse:
        parts.append(
            "<p><b>A rehearsal with few digits and tiny trainings: its numbers mean nothing.</b></p>"
        )
    parts.append(_list(f"{key}: {value}" for key, value in facts.items()))
    parts.append(f"<p>Each cell: our value, its 95 % interval over digits, the paper's. {escape(_RULE)}</p>")
    rows = [(one.statement, one.measured, one.verdict) for one in found]
    parts += ["<h2>Conclusions</h2>", _plain_table(("statement", "measured", ""), rows)]
    for table in tables:
        parts += [f"<h2>{escape(table.title)} ({table.name})</h2>", _table(table, words)]
    if means := tuned_means(results):
        told = "; ".join(f"{column} {_cell(entry)}" for column, entry in means.items())
        parts.append(f"<p>Over all {len(results.settings.all_corruptions)} corruptions: {escape(told)}.</p>")
    if noise:
        parts += ["<h2>Pessimal noise</h2>", f"<p>{escape(noise)}</p>"]
    parts += ["<h2>Where we differ</h2>", _plain_table(("cell", "ours", "why"), _differing(tables, words))]
    parts += ["<h2>Figures</h2>", *(_figure(name, content) for name, content in figures.items())]
    head = f'<meta charset="utf-8"><title>MNIST-C, reproduced</title><style>{_STYLE}</style>'
    body = "\n".join(parts)
    return f'<!doctype html><html lang="en"><head>{head}</head><body>\n{body}\n</body></html>\n'


def _table(table: Table, words: Mapping[str, str]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in (table.corner, *table.columns))
    lines = [f"<tr>{head}</tr>"]
    for row, cells in table.rows.items():
        inside = "".join(
            _html_cell(cells.get(column), _why(words, table, row, column)) for column in table.columns
        )
        lines.append(f"<tr><th>{escape(row)}</th>{inside}</tr>")
    return f'<div class="wide"><table>{"".join(lines)}</table></div>'


def _html_cell(entry: Entry | None, why: str) -> str:
    if entry is None:
        return "<td></td>"
    mark = f' class="differs" title="{escape(why)}"' if entry.differs else ""
    spread = "" if entry.spread is None else f", ± {100 * entry.spread:.2f} over trainings"
    printed = "" if entry.printed is None else f"<small>paper {100 * entry.printed:.2f}</small>"
    ends = f"<small>[{100 * entry.low:.2f}, {100 * entry.high:.2f}]{spread}</small>"
    return f"<td{mark}>{100 * entry.value:.2f}{ends}{printed}</td>"


def _plain_table(head: tuple[str, ...], rows: list[tuple[str, str, str]]) -> str:
    lines = ["".join(f"<th>{escape(name)}</th>" for name in head)]
    lines += ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    return f'<div class="wide"><table>{"".join(f"<tr>{line}</tr>" for line in lines)}</table></div>'


def _list(lines: Iterator[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


def _figure(name: str, content: bytes) -> str:
    if name.endswith(".svg"):
        return f"<h3>{escape(name)}</h3>{content.decode()}"
    data = base64.b64encode(content).decode()
    return f'<h3>{escape(name)}</h3><img alt="{escape(name)}" src="data:image/png;base64,{data}">'


def _write(path: Path, text: str) -> Path:
    return _write_bytes(path, text.encode())


def _write_bytes(path: Path, content: bytes) -> Path:
    write_bytes(path, content)
    return path
