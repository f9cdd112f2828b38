"""Write scores to a file of any format."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from beaufort._core.errors import OptionError
from beaufort._core.files import write_output
from beaufort._core.validation import validate_choice
from beaufort.report.examples import Examples
from beaufort.report.html_page import to_html
from beaufort.report.json_csv import to_csv, to_json
from beaufort.report.latex import to_latex
from beaufort.report.markdown import to_card, to_markdown
from beaufort.report.paper_table import TABLE_FORMATS, to_table
from beaufort.results import Scores

FORMATS: Mapping[str, Callable[[Scores], str]] = {
    "html": to_html,
    "md": to_markdown,
    "latex": to_latex,
    "csv": to_csv,
    "json": to_json,
    "card": to_card,
}
"""Function that writes each format."""

_ENDINGS: Mapping[str, tuple[str, ...]] = {
    ".html": ("html",),
    ".htm": ("html",),
    ".md": ("md", "card"),
    ".tex": ("latex",),
    ".csv": ("csv",),
    ".json": ("json",),
}
"""Formats of each file extension, the default first."""

MOST_BYTES = 8_000_000
"""Largest size of a page."""


def find_format(
    path: Path | str,
    format: str | None = None,  # noqa: A002  the option's name
    formats: Collection[str] = FORMATS,
) -> str:
    """Return the format of a file: `format`, or by default that of its extension.

    A format that contradicts the extension is an error; an unknown extension is compatible with every format.

    >>> find_format("report.md"), find_format("README.md", "card"), find_format("report.txt", "csv")
    ('md', 'card', 'csv')
    """
    target = Path(path)
    ending = target.suffix.lower()
    known = {
        one: fit for one, kinds in _ENDINGS.items() if (fit := [kind for kind in kinds if kind in formats])
    }
    if format is None:
        if ending not in known:
            other = "" if ending in _ENDINGS else ", or pass --format"
            raise OptionError(f"output must end in {', '.join(known)}, got {target}{other}")
        return known[ending][0]
    validate_choice("format", format, formats)
    if ending in _ENDINGS and format not in _ENDINGS[ending]:
        fitting = next(one for one, kinds in known.items() if format in kinds)
        raise OptionError(
            f"format {format} contradicts the extension of {target}; write to {target.with_suffix(fitting)}"
            + ", or omit the format" * (ending in known)
        )
    return format


def to_text(
    scores: Scores,
    format: str = "html",  # noqa: A002  the option's name
    *,
    examples: Examples | None = None,
    title: str | None = None,
) -> str:
    """Return a report as text; `examples` and `title` are for the format html only."""
    validate_choice("report format", format, FORMATS)
    return to_html(scores, examples=examples, title=title) if format == "html" else FORMATS[format](scores)


def write_report(
    scores: Scores,
    path: Path | str,
    *,
    format: str | None = None,  # noqa: A002  the option's name
    examples: Examples | None = None,
    title: str | None = None,
) -> Path:
    """Write a report atomically; an existing file is replaced.

    Args:
        scores: from `score`.
        path: output file.
        format: one of `FORMATS`; follows the file extension if None.
        examples: images for the page, from `examples_of_data` or `examples_of_images`.
        title: title of the page.
    """
    kind = find_format(check_output(path), format)
    return write_text(to_text(scores, kind, examples=examples, title=title), path, kind)


def write_text(text: str, path: Path | str, format: str = "html") -> Path:  # noqa: A002  the option's name
    """Write the text of a report atomically; raise an error if a page is too large."""
    target = check_output(path)
    content = text.encode()
    if format == "html" and len(content) >= MOST_BYTES:
        raise OptionError(
            f"the page has {len(content) / 1e6:.1f} MB, more than the {MOST_BYTES / 1e6:.0f} MB allowed; "
            "choose fewer models with --model, or omit the example images"
        )
    write_output(target, content)
    return target


def write_table(
    scores: Scores,
    path: Path | str,
    *,
    format: str | None = None,  # noqa: A002  the option's name
    **options: Any,
) -> Path:
    """Write a table for a paper atomically; the format follows the file extension if None.

    The options are those of `to_table`.
    """
    target = check_output(path)
    kind = find_format(target, format, TABLE_FORMATS)
    write_output(target, to_table(scores, kind, **options).encode())
    return target


def check_output(path: Path | str) -> Path:
    """Return the path of an output file; raise an error if it is a directory."""
    target = Path(path)
    if target.is_dir():
        raise OptionError(f"output must be a file, such as {target / 'report.html'}, got a directory")
    return target
