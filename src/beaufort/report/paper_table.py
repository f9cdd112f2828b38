"""Tables for papers: a row per model, a column per corruption or group of corruptions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from statistics import fmean

from beaufort._core.errors import OptionError
from beaufort._core.text import counted, csv_text, spreadsheet_cell
from beaufort._core.validation import validate_choice
from beaufort.corruptions import corruptions
from beaufort.metrics import get_baseline, published_table
from beaufort.metrics.stats import Estimate
from beaufort.report.latex import PACKAGES, booktabs, escape_latex
from beaufort.report.markdown import escape_markdown
from beaufort.report.summary_tables import error_of
from beaufort.report.wording import units, value_and_bounds, words
from beaufort.results import Linear, ModelScores, Scores, published_baseline
from beaufort.suites import Suite, get_suite

COLUMNS = ("group", "corruption")
"""Kinds of columns: groups of corruptions (noise, blur, …), or single corruptions."""

LAYOUTS = ("imagenet-c", "cifar10-c", "cifar100-c", "tiny-imagenet-c", "mnist-c")
"""Suites with a layout as in papers: clean error, means, and a column per corruption, by group."""

MEASURES = ("error", "accuracy", "ce")
"""Contents of a cell; `ce` is the error as a fraction of the baseline's."""

_SHORT = {
    "gaussian_noise": "Gauss.",
    "shot_noise": "Shot",
    "impulse_noise": "Impulse",
    "defocus_blur": "Defocus",
    "glass_blur": "Glass",
    "motion_blur": "Motion",
    "zoom_blur": "Zoom",
    "brightness": "Bright",
    "contrast": "Contr.",
    "elastic_transform": "Elastic",
    "pixelate": "Pixel",
    "jpeg_compression": "JPEG",
    "translate": "Transl.",
    "dotted_line": "Dotted",
    "canny_edges": "Canny",
}
"""Headers of columns in papers, where they are not the names."""


@dataclass(frozen=True)
class _Column:
    """A column: its header, and how its numbers are computed."""

    title: str
    keys: tuple[str, ...]
    """Corruptions whose mean it is; or `clean`, or a metric."""
    form: Callable[[ModelScores], Linear | None]
    group: str = ""
    """Header above it; empty for none."""
    digits: int = 1


@dataclass(frozen=True)
class _Cell:
    value: Estimate | float | None
    """With an interval, or as printed in a paper; None if unknown."""
    digits: int = 1
    best: bool = False
    """Whether it is significantly better than those of all other evaluated models."""


_Cells = tuple[_Cell, ...]


@dataclass(frozen=True)
class _Table:
    caption: str
    columns: tuple[_Column, ...]
    rows: tuple[tuple[str, _Cells], ...]
    """Name and cells of each model."""
    published: tuple[tuple[str, _Cells], ...]
    """The same of networks in papers."""
    intervals: bool
    wide: bool
    """Whether it has one column per corruption and must be scaled to the width of a page."""

    @property
    def header(self) -> tuple[str, ...]:
        return ("Model", *(column.title for column in self.columns))


def to_table(
    scores: Scores,
    format: str = "md",  # noqa: A002  the option's name
    *,
    columns: str = "group",
    measure: str | None = None,
    intervals: bool | None = None,
    published: bool = False,
) -> str:
    """Return a table in percent with one row per model, ready for a paper.

    Bold numbers are significantly better than those of all other models in their column.

    Args:
        scores: from `score`.
        format: `md`, `latex` (requires the packages booktabs and graphicx) or `csv`.
        columns: `group` (noise, blur, …), `corruption`, or one of `LAYOUTS` for the layout of papers about
            that suite: clean error, mCE, relative mCE, and a column per corruption.
        measure: `error`, `accuracy`, or `ce`, which requires a baseline; `error` if None, but `ce` in the
            layout of a paper with a baseline.
        intervals: whether cells have intervals; if None, they have, except in the layout of a paper.
        published: whether to add the published results of the suite's paper.
    """
    validate_choice("table format", format, TABLE_FORMATS)
    validate_choice("columns", columns, (*COLUMNS, *LAYOUTS))
    layout = columns in LAYOUTS
    _check_columns(scores, columns)
    if measure is None:
        measure = "ce" if layout and scores.models[0].ce_forms else "error"
    if intervals is None:
        intervals = not layout
    validate_choice("measure", measure, MEASURES)
    _check_measure(scores, measure)
    kinds = tuple(_columns(scores, columns, measure))
    rows = {model.model: _row(scores, model, kinds, measure) for model in scores.models}
    best = [_best(scores, column, measure, len(kinds)) for column in kinds]
    others = _published_errors(scores, measure) if published else {}
    printed = {name: _printed(scores, row, kinds, measure) for name, row in others.items()}
    table = _Table(
        _caption(scores, measure, intervals, published),
        kinds,
        tuple(
            (name, tuple(replace(cell, best=name == top) for cell, top in zip(row, best, strict=True)))
            for name, row in rows.items()
        ),
        tuple(printed.items()),
        intervals,
        layout or columns == "corruption",
    )
    return TABLE_FORMATS[format](table)


def _check_columns(scores: Scores, columns: str) -> None:
    if not scores.suite.corruptions:
        raise OptionError(f"a table for a paper requires corruptions, but {scores.suite} has none")
    if columns in LAYOUTS and set(scores.suite.corruptions) != set(get_suite(columns).corruptions):
        raise OptionError(
            f"--table {columns} requires results of that suite, but these are of {scores.suite}; use --table "
            "group or --table corruption"
        )


def _check_measure(scores: Scores, measure: str) -> None:
    if measure == "ce" and not scores.models[0].ce_forms:
        why = "".join(f". {note}" for note in scores.notes if note.startswith("mCE is not shown"))
        unable = (
            f"{scores.baseline.name} cannot be the divisor{why}" if scores.baseline else "pass --baseline"
        )
        raise OptionError(f"measure 'ce' requires a baseline; {unable}")


def _columns(scores: Scores, columns: str, measure: str) -> Iterator[_Column]:
    """Yield the columns: clean images, and means before or after the corruptions."""
    names, layout = list(scores.suite.corruptions), columns in LAYOUTS
    if scores.suite.clean:
        title = "Clean error" if measure == "ce" or layout else "Clean"
        yield _Column("Clean acc." if layout and measure == "accuracy" else title, ("clean",), _clean_form)
    forms = partial(_mean_form, measure=measure)
    mean = _Column("mCE" if measure == "ce" else "Mean", tuple(names), partial(forms, names=tuple(names)))
    if layout:
        metrics = scores.pairs.forms[scores.models[0].model]
        yield mean
        if "relative_mce" in metrics and measure != "accuracy":
            yield _Column(
                "Rel. mCE", ("relative_mce",), lambda model: _metric_form(scores, model, "relative_mce")
            )
        ordered = sorted(names, key=lambda name: _GROUPS.index(corruptions[name].group))
        for name in ordered:
            group = corruptions[name].group.capitalize()
            title = _SHORT.get(name, words(name).capitalize())
            yield _Column(title, (name,), partial(forms, names=(name,)), group, 0 if measure == "ce" else 1)
        return
    parts: dict[str, tuple[str, ...]] = {words(name): (name,) for name in names}
    if columns == "group":
        groups: dict[str, tuple[str, ...]] = {}
        for name in names:
            group = corruptions[name].group.capitalize()
            groups[group] = (*groups.get(group, ()), name)
        parts = groups
    for title, part in parts.items():
        yield _Column(title, part, partial(forms, names=part))
    yield mean


_GROUPS = ("noise", "blur", "weather", "digital", "digits", "unseen")
"""Order of the groups in a paper."""


def _mean_form(model: ModelScores, *, names: Sequence[str], measure: str) -> Linear:
    forms = model.ce_forms if measure == "ce" else model.error_forms
    return Linear.mean([forms[name] for name in names])


def _clean_form(model: ModelScores) -> Linear | None:
    return model.clean_form


def _metric_form(scores: Scores, model: ModelScores, metric: str) -> Linear:
    return scores.pairs.forms[model.model][metric]


def _row(scores: Scores, model: ModelScores, columns: Sequence[_Column], measure: str) -> _Cells:
    cells = []
    for column in columns:
        if column.keys == ("clean",):
            assert model.clean is not None
            value = model.clean if measure == "accuracy" else error_of(model.clean)
        else:
            form = column.form(model)
            assert form is not None
            value = form.estimate(scores.level)
            value = error_of(value) if measure == "accuracy" else value
        cells.append(_Cell(value, column.digits))
    return tuple(cells)


def _best(scores: Scores, column: _Column, measure: str, columns: int) -> str | None:
    """Return the model that is significantly better than all others in a column, if there is one.

    The p-values are Bonferroni-adjusted for all pairs of models and all columns. All forms are of errors, so
    that lower is better even if the table has accuracies.
    """
    forms = {model.model: column.form(model) for model in scores.models}
    known = {name: form for name, form in forms.items() if form is not None}
    if len(known) < 2:
        return None
    family = columns * len(known) * (len(known) - 1) // 2
    first, *rest = sorted(known, key=lambda name: known[name].value)
    apart = ((known[first] - known[other]).p_value() * family < 1 - scores.level for other in rest)
    return first if all(apart) else None


def _printed(scores: Scores, row: Mapping[str, float], columns: Sequence[_Column], measure: str) -> _Cells:
    """Return the cells of a published network, with as many decimals as its paper prints."""
    cells = []
    for column in columns:
        value = _printed_mean(row, column.keys)
        if measure == "ce" and column.title == "mCE":
            value = row.get("mce", value)
        if measure == "accuracy" and value is not None:
            value = 1 - value
        whole = measure == "ce" and column.title not in ("mCE", "Rel. mCE", "Clean error")
        cells.append(_Cell(value, 0 if whole else column.digits))
    return tuple(cells)


def _printed_mean(row: Mapping[str, float], names: Sequence[str]) -> float | None:
    return fmean(row[name] for name in names) if all(name in row for name in names) else None


def _caption(scores: Scores, measure: str, intervals: bool, published: bool) -> str:
    what = {"error": "Error", "accuracy": "Accuracy", "ce": "Corruption error (CE)"}[measure]
    over = f" relative to {scores.baseline.short_name}" if measure == "ce" and scores.baseline else ""
    severities = "" if scores.suite.severities == "published" else ", mean over severities"
    parts = [
        f"{scores.suite.title} ({scores.suite}), {counted(scores.images, 'image')} of "
        f"{scores.results.dataset}. {what} in percent{over}{severities}"
        + (f", with {100 * scores.level:g} % intervals over {units(scores)}." if intervals else ".")
    ]
    if len(scores.models) > 1:
        whose = "evaluated " if published else ""
        parts.append(
            f"Bold: significantly better than all other {whose}models in the column (paired, "
            f"{100 * scores.level:g} %, Bonferroni-adjusted for all columns and pairs)."
        )
    if published:
        parts.append(f"Below: published results. {_published_source(scores, measure)}")
    return " ".join(parts)


_ACCURACIES = {"mnist-c": "mnist-c-figure3"}
"""Published table of accuracies under each corruption, by suite."""

_RATIOS = {"imagenet-c": ("imagenet-c-table1", "imagenet-c-table2")}
"""Published tables of CE and relative CE, whose means are mCE and relative mCE, by suite."""

_CLASSES = {"imagenet-c": "alexnet", "mnist-c": "conv1"}
"""Published baseline of each suite, with the number of classes."""


def _published_errors(scores: Scores, measure: str) -> dict[str, Mapping[str, float]]:
    """Return the clean error (`clean`) and the error or CE under each corruption, by network.

    The paper of ImageNet-C prints CE for all networks, but errors only for AlexNet.
    """
    suite = scores.suite
    _check_published(scores)
    if measure == "ce":
        if scores.baseline is None or not scores.baseline.name.startswith(_CLASSES[suite.name]):
            raise OptionError(
                f"published results of {suite.name} are relative to {_CLASSES[suite.name]}; pass --baseline "
                f"{_CLASSES[suite.name]}, or use the measure error"
            )
        return _published_ratios(suite)
    if suite.name in _ACCURACIES:
        table = published_table(_ACCURACIES[suite.name])
        return {network: {key: 1 - value for key, value in table[network].items()} for network in table}
    baseline = published_baseline(suite, _CLASSES[suite.name])
    clean = {} if baseline.clean is None else {"clean": baseline.clean}
    return {baseline.short_name: {**clean, **(baseline.errors or {})}}


def _published_ratios(suite: Suite) -> dict[str, Mapping[str, float]]:
    """Return clean error, mCE, relative mCE and CE under each corruption, by network.

    They follow from accuracies where a paper prints those. In ImageNet-C's table of CE, some cells are
    illegible in the source; the table of relative CE determines the error, and so the CE. On legible cells,
    this differs from the printed value by at most 0.64, mostly because of rounding.
    """
    baseline = published_baseline(suite, _CLASSES[suite.name])
    assert baseline.errors is not None
    assert baseline.clean is not None
    found: dict[str, Mapping[str, float]] = {}
    if suite.name in _ACCURACIES:
        accuracies = published_table(_ACCURACIES[suite.name])
        for network, row in accuracies.items():
            errors = {name: 1 - row[name] for name in ("clean", *baseline.errors)}
            added = [
                (errors[name] - errors["clean"]) / (base - baseline.clean)
                for name, base in baseline.errors.items()
            ]
            ce = {name: errors[name] / base for name, base in baseline.errors.items()}
            found[network] = {**ce, "clean": errors["clean"], "relative_mce": fmean(added)}
        return found
    ratios, relative = (published_table(name) for name in _RATIOS[suite.name])
    for network, row in ratios.items():
        clean, derived = row["clean_error"], {}
        for name, base in baseline.errors.items():
            error = clean + relative[network][name] * (base - baseline.clean)
            derived[name] = round(100 * error / base) / 100
        means = {"clean": clean, "relative_mce": relative[network]["relative_mce"]}
        found[network] = {**derived, **row, **means}
    return found


def _published_source(scores: Scores, measure: str) -> str:
    """Return the source of the published results."""
    name = scores.suite.name
    if measure == "ce" and name in _RATIOS:
        source = published_table(_RATIOS[name][0]).source
        return f"{source}, Tables 1 and 2; cells that are illegible in Table 1 are derived from Table 2."
    if name in _ACCURACIES:
        return published_table(_ACCURACIES[name]).source
    return get_baseline(_CLASSES[name]).source


def _check_published(scores: Scores) -> None:
    """Raise an error unless published results are of the same suite and number of classes."""
    suite = scores.suite
    if suite.name not in _CLASSES:
        raise OptionError(
            f"published results are available for {' and '.join(_CLASSES)}, but not for {suite.name!r}"
        )
    own = get_suite(suite.name)
    if (suite.corruptions, suite.severities) != (own.corruptions, own.severities):
        raise OptionError(f"published results of {suite.name} have other conditions than this suite")
    classes, given = get_baseline(_CLASSES[suite.name]).classes, scores.results.class_count
    if classes is not None and given not in {None, classes}:
        raise OptionError(
            f"published results of {suite.name} are for {classes:,} classes, but {scores.results.dataset} "
            f"has {given:,}"
        )


def _markdown(table: _Table) -> str:
    def cell(one: _Cell) -> str:
        value, bounds = _texts(one, table.intervals)
        return (f"**{value}**" if one.best else value or "–") + (bounds and f" {bounds}")

    rows = [
        *((escape_markdown(name), *map(cell, cells)) for name, cells in table.rows),
        *((f"{escape_markdown(name)} (published)", *map(cell, cells)) for name, cells in table.published),
    ]
    rule = ("---", *["---:"] * (len(table.header) - 1))
    lines = (f"| {' | '.join(line)} |" for line in (tuple(map(escape_markdown, table.header)), rule, *rows))
    return f"{escape_markdown(table.caption)}\n\n" + "\n".join(lines) + "\n"


def _latex(table: _Table) -> str:
    """Return a table of at most the width of the text; a wide one has its intervals below the values."""

    def lines(rows: Sequence[tuple[str, _Cells]]) -> Iterator[list[str]]:
        for name, cells in rows:
            texts = [_texts(one, table.intervals) for one in cells]
            values = [
                f"\\textbf{{{value}}}" if one.best else value or "--"
                for one, (value, _) in zip(cells, texts, strict=True)
            ]
            if not table.wide:
                small = (f" {{\\scriptsize {bounds}}}" if bounds else "" for _, bounds in texts)
                values = [value + more for value, more in zip(values, small, strict=True)]
            yield [escape_latex(name), *values]
            if table.wide and any(bounds for _, bounds in texts):
                yield ["", *(f"{{\\tiny {bounds}}}" if bounds else "" for _, bounds in texts)]

    columns = f"l{'r' * len(table.columns)}"
    blocks = [list(lines(rows)) for rows in (table.rows, table.published) if rows]
    header = list(map(escape_latex, table.header))
    body = booktabs(
        table.caption, "beaufort", columns, header, *blocks, above=_groups_above(table), fit=table.wide
    )
    return f"{PACKAGES}\n{body}\n"


def _groups_above(table: _Table) -> list[str]:
    """Return the header with the groups of corruptions, and the rules below them."""
    if not any(column.group for column in table.columns):
        return []
    cells, rules, place = [""], [], 2
    for group, members in groupby(table.columns, key=lambda column: column.group):
        width = len(list(members))
        if group:
            cells.append(f"\\multicolumn{{{width}}}{{c}}{{{escape_latex(group)}}}")
            rules.append(f"\\cmidrule(lr){{{place}-{place + width - 1}}}")
        else:
            cells += [""] * width
        place += width
    return [f"{' & '.join(cells)} \\\\", "".join(rules)]


def _csv(table: _Table) -> str:
    """Return CSV in percent, with the ends of intervals in columns of their own."""
    ends = ("", " low", " high") if table.intervals else ("",)
    head = [table.header[0], "Source", *(f"{head}{end}" for head in table.header[1:] for end in ends)]
    lines = [
        [spreadsheet_cell(name), source, *(text for one in cells for text in _csv_cells(one, len(ends)))]
        for source, rows in (("measured", table.rows), ("published", table.published))
        for name, cells in rows
    ]
    return csv_text(head, lines)


def _csv_cells(cell: _Cell, count: int) -> list[str]:
    one = cell.value
    values = [one.value, one.low, one.high] if isinstance(one, Estimate) else [one, None, None]
    return ["" if value is None else f"{100 * value:z.2f}" for value in values[:count]]


def _texts(cell: _Cell, intervals: bool) -> tuple[str, str]:
    """Return the value and the interval of a cell; empty if there is none."""
    if isinstance(cell.value, Estimate):
        value, bounds = value_and_bounds(cell.value, cell.digits)
        return value, bounds if intervals else ""
    return ("" if cell.value is None else f"{100 * cell.value:z.{cell.digits}f}"), ""


TABLE_FORMATS: Mapping[str, Callable[[_Table], str]] = {"md": _markdown, "latex": _latex, "csv": _csv}
"""Function that writes each format of a table."""
