"""A board: static pages that rank the models of many bundles."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from beaufort import __version__
from beaufort._core.errors import OptionError
from beaufort._core.files import unused, write_bytes
from beaufort._core.pages import render
from beaufort._core.text import counted
from beaufort._core.validation import validate_directory, validate_output_directory
from beaufort.metrics.scales import get_scale
from beaufort.metrics.stats import Estimate
from beaufort.report.formats import write_text
from beaufort.report.headline import headline
from beaufort.report.html_page import ranking_table, to_html
from beaufort.report.json_csv import to_csv
from beaufort.report.multi_dataset import Expectations, shift_table, to_text_of_several
from beaufort.report.wording import value_and_bounds
from beaufort.results import (
    Bundle,
    ModelScores,
    Results,
    Scores,
    join_results,
    open_parts,
    score,
    shift_scores,
    verify_bundle,
)
from beaufort.store import folder_name

INDEX = "index.html"

_STYLES = ("report/report.css", "report/board.css")
_SCRIPTS = ("_core/pages/base.js", "_core/pages/theme.js", "report/board.js")
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 640.0, 420.0, 52.0, 46.0
_FEWEST = 5
"""Smallest number of models for a trend."""
_ENDS = (0.05, 99.95)
"""Ends of the axes, in percent: 0 and 100 are infinitely far."""
_TICKS = (0.5, 1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 98, 99, 99.5)


class BoardTrend(NamedTuple):
    """The accuracy under corruption that models of a clean accuracy have, in percent."""

    center: np.ndarray
    low: np.ndarray
    high: np.ndarray


FitTrend = Callable[[ArrayLike, ArrayLike], Callable[[ArrayLike], BoardTrend]]
"""Fits a trend to accuracies in percent, clean and under corruption, and returns it as a function."""
Expect = Callable[[Sequence[Scores]], Expectations]


@dataclass(frozen=True)
class Rejected:
    """A bundle that is not on the board."""

    name: str
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Board:
    """What was written."""

    folder: Path
    tables: int
    models: int
    bundles: tuple[str, ...]
    rejected: tuple[Rejected, ...]


def write_board(
    bundles: str | Path,
    output: str | Path,
    *,
    title: str | None = None,
    fit: FitTrend | None = None,
    expect: Expect | None = None,
) -> Board:
    """Verify all bundles below a directory, and write the pages that rank their models.

    Bundles on the same suite, data and seed share a table. A bundle with a problem is listed, and left out.

    Args:
        bundles: directory of bundles, one below the other or side by side.
        output: directory of the pages.
        title: title of the first page.
        fit: function that fits the trend of effective robustness, as `beaufort.testbed.fit_accuracies`.
        expect: function that returns what reference models have under natural shifts, as
            `beaufort.testbed.shift_expectations`.
    """
    root = validate_directory("bundles", bundles)
    folder = validate_output_directory(output)
    found, rejected = _verified(root)
    if not found:
        more = f"; {rejected[0].name}: {rejected[0].problems[0]}" if rejected else ""
        raise OptionError(f"{root} has no valid bundle{more}")
    slugs: dict[str, None] = {}
    tables = [
        _write_table(_unused(_slug(parts), slugs), folder, parts, fit, expect)
        for parts in _joined([bundle for _, bundle in found])
    ]
    page = render(
        "report/board.html",
        styles=_STYLES,
        scripts=_SCRIPTS,
        data={},
        title=title or "Robustness board",
        eyebrow=f"{counted(len(tables), 'table')}, {counted(len(found), 'bundle')}",
        navigation={
            **{table["slug"]: table["title"] for table in tables},
            "bundles": "Bundles",
            "methods": "Methods",
        },
        tables=tables,
        bundles=[_bundle_row(name, bundle) for name, bundle in found],
        rejected=rejected,
        version=__version__,
    )
    write_text(page, folder / INDEX)
    models = sum(len(table["models"]) for table in tables)
    return Board(folder, len(tables), models, tuple(name for name, _ in found), tuple(rejected))


def _verified(root: Path) -> tuple[list[tuple[str, Bundle]], list[Rejected]]:
    """Return the sound bundles below a directory with their names, and the others."""
    found, rejected = [], []
    for path in sorted(root.rglob("bundle.json")):
        name = path.parent.relative_to(root).as_posix()
        problems = verify_bundle(path.parent).problems
        if problems:
            rejected.append(Rejected(name, problems))
        else:
            found.append((root.name if name == "." else name, Bundle(path.parent)))
    return found, rejected


def _joined(bundles: Sequence[Bundle]) -> Iterator[tuple[Results, ...]]:
    """Yield the results that can be compared, joined over bundles."""
    groups: dict[str, list[tuple[Results, ...]]] = {}
    for bundle in bundles:
        parts = open_parts(bundle)
        key = [(part.suite.digest, part.setting, part.stored, part.suite.clean) for part in parts]
        groups.setdefault(json.dumps(key, default=str), []).append(parts)
    for several in groups.values():
        yield tuple(
            parts[0] if len(parts) == 1 else join_results(parts) for parts in zip(*several, strict=True)
        )


def _write_table(
    slug: str,
    folder: Path,
    parts: Sequence[Results],
    fit: FitTrend | None,
    expect: Expect | None,
) -> dict[str, Any]:
    """Write the pages of one table, and return the values of its section on the first page."""
    scores = [score(part) for part in parts]
    first = scores[0]
    names = [model.model for model in first.models]
    files: dict[str, None] = {INDEX: None, "scores.csv": None}
    links = {name: _unused(name, files, ".html") for name in names}
    home = f"../{INDEX}#{slug}"
    expectations = expect(scores) if expect is not None and len(scores) > 1 else None
    title = first.results.part_of or f"{first.suite.title}, {first.results.dataset}"
    if len(scores) == 1:
        write_text(to_html(first, title=title, home=home), folder / slug / INDEX)
    else:
        whole = to_text_of_several(scores, title=title, expectations=expectations, home=home)
        write_text(whole, folder / slug / INDEX)
    for name, link in links.items():
        own = [score(part, models=[name], calibration=bool(first.models[0].calibration)) for part in parts]
        if len(own) == 1:
            page = to_html(own[0], title=name, home=home)
        else:
            page = to_text_of_several(own, title=name, expectations=expectations, home=home)
        write_text(page, folder / slug / link)
    write_bytes(folder / slug / "scores.csv", "".join(_csv(scores)).encode())
    about = {
        "slug": slug,
        "title": title,
        "models": names,
        "links": links,
        "sentence": "",
        "about": "",
        "ranking": None,
        "plot": None,
        "shifts": None,
        "rho": {},
    }
    if len(scores) > 1:
        table = shift_table(shift_scores(scores), scores, expectations or {})
        cells = [[_cell(cell) for cell in row] for row in table.rows]
        return {**about, "shifts": {"header": table.header, "rows": cells, "caption": table.caption}}
    words = headline(first, first.models[0])
    plot = _plot(first, links, fit)
    return {
        **about,
        "sentence": words.sentence,
        "about": words.standing,
        "ranking": ranking_table(first),
        "plot": plot,
        "rho": {point["name"]: point["rho"] for point in plot["points"]} if plot else {},
    }


def _csv(scores: Sequence[Scores]) -> Iterator[str]:
    for number, one in enumerate(scores):
        text = to_csv(one)
        yield text if number == 0 else text.partition("\n")[2]


def _cell(cell: Any) -> tuple[str, str]:
    if isinstance(cell, Estimate):
        return value_and_bounds(cell)
    return "–" if cell is None else str(cell), ""


def _slug(parts: Sequence[Results]) -> str:
    name = parts[0].part_of or parts[0].suite.name
    return re.sub("[^a-z0-9]+", "-", name.lower()).strip("-") or "table"


def _unused(name: str, taken: dict[str, None], ending: str = "") -> str:
    """Return a file name for a text that no other has, also where case does not count."""
    chosen = unused(f"{folder_name(name)}{ending}", lambda name: name.casefold() in taken)
    taken[chosen.casefold()] = None
    return chosen


# Effective robustness


def corrupted_accuracy(model: ModelScores, level: float) -> Estimate | None:
    """Return the mean accuracy over the corruptions; None without corruptions."""
    forms = list(model.error_forms.values())
    if not forms:
        return None
    whole = forms[0]
    for form in forms[1:]:
        whole = whole + form
    return 1 - (whole * (1 / len(forms))).estimate(level)


def _plot(scores: Scores, links: Mapping[str, str], fit: FitTrend | None) -> dict[str, Any] | None:
    """Return the plot of the accuracy under corruption by clean accuracy, and the distances to the trend."""
    pairs = [
        (model, model.clean, corrupted_accuracy(model, scores.level))
        for model in scores.models
        if model.clean is not None and scores.with_clean
    ]
    known = [(model, clean, shifted) for model, clean, shifted in pairs if clean and shifted]
    if len(known) < 2:
        return None
    x = np.array([100 * clean.value for _, clean, _ in known])
    y = np.array([100 * shifted.value for _, _, shifted in known])
    across = _Axis([100 * end for _, one, _ in known for end in (one.low, one.high)], _LEFT, _WIDTH - 12)
    down = _Axis([100 * end for *_, one in known for end in (one.low, one.high)], _HEIGHT - _BOTTOM, 12)
    trend = None
    if fit is not None and len(known) >= _FEWEST:
        try:
            trend = fit(x, y)
        except OptionError:  # models of the same accuracy have no trend
            trend = None
    expected = None if trend is None else trend(x)
    points = [
        {
            "name": model.model,
            "link": f"{links[model.model]}",
            "x": across(100 * clean.value),
            "y": down(100 * shifted.value),
            "x0": across(100 * clean.low),
            "x1": across(100 * clean.high),
            "y0": down(100 * shifted.low),
            "y1": down(100 * shifted.high),
            "clean": clean,
            "shifted": shifted,
            "rho": None if expected is None else float(y[number] - expected.center[number]),
        }
        for number, (model, clean, shifted) in enumerate(known)
    ]
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "left": _LEFT,
        "right": _WIDTH - 12,
        "top": 12,
        "bottom": _HEIGHT - _BOTTOM,
        "x_ticks": across.ticks(),
        "y_ticks": down.ticks(),
        "points": points,
        "n": len(known),
        "level": f"{100 * scores.level:g}",
        **({} if trend is None else _lines(trend, across, down)),
        "fitted": trend is not None,
        "outside": []
        if expected is None
        else [
            model.model
            for number, (model, *_) in enumerate(known)
            if not expected.low[number] <= y[number] <= expected.high[number]
        ],
    }


def _lines(trend: Callable[[ArrayLike], BoardTrend], across: _Axis, down: _Axis) -> dict[str, str]:
    """Return the trend and its band as paths."""
    x = across.grid(60)
    found = trend(x)

    def path(values: np.ndarray) -> list[str]:
        return [f"{across(a):.1f} {down(float(b)):.1f}" for a, b in zip(x, values, strict=True)]

    band = "L".join([*path(found.high), *reversed(path(found.low))])
    return {"line": f"M{'L'.join(path(found.center))}", "band": f"M{band}Z"}


class _Axis:
    """A logit axis of percentages between two positions."""

    def __init__(self, values: Sequence[float], start: float, stop: float) -> None:
        self._scale = get_scale("logit")
        z, ends = self._scale.forward(np.clip(values, *_ENDS)), self._scale.forward(_ENDS)
        room = 0.06 * max(float(np.ptp(z)), 0.2)
        self._low = max(float(z.min()) - room, float(ends[0]))
        self._high = min(float(z.max()) + room, float(ends[1]))
        self._start, self._stop = start, stop

    def __call__(self, percent: float) -> float:
        z = float(self._scale.forward(np.clip(percent, *_ENDS)))
        return self._start + (z - self._low) / (self._high - self._low) * (self._stop - self._start)

    def grid(self, count: int) -> np.ndarray:
        """Return percentages at equal distances."""
        return self._scale.inverse(np.linspace(self._low, self._high, count))

    def ticks(self) -> list[tuple[str, float]]:
        """Return round percentages with their positions, not too close to each other."""
        low, high = self._scale.inverse([self._low, self._high])
        kept: list[tuple[str, float]] = []
        for value in _TICKS:
            if low <= value <= high and (not kept or abs(self(value) - kept[-1][1]) >= 26):
                kept.append((f"{value:g}", self(value)))
        return kept


def _bundle_row(name: str, bundle: Bundle) -> dict[str, Any]:
    origins = [origin for one in bundle.manifest["predictions"] for origin in one["origins"]]
    times = sorted(str(origin.get("time", ""))[:10] for origin in origins if origin.get("time"))
    versions = sorted({str(origin.get("versions", {}).get("beaufort", "")) for origin in origins} - {""})
    models = sorted({str(entry.cell.model["name"]) for entry in bundle.entries.values()})
    rows = sum(piece.stop - piece.start for piece in bundle.entries)
    return {
        "name": name,
        "title": str(bundle.manifest.get("title", "")),
        "models": models,
        "digest": bundle.digest,
        "dates": " to ".join(dict.fromkeys([*times[:1], *times[-1:]])),
        "versions": ", ".join(versions),
        "predictions": f"{rows:,}",
    }
