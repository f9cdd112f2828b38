"""Numbers and names in text: what is counted, how long or large things are, lists with commas, CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

__all__ = ["byte_size", "comma_list", "counted", "csv_text", "duration"]


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """A number and what it counts.

    >>> counted(1, "model"), counted(1000, "image")
    ('1 model', '1,000 images')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def duration(seconds: float) -> str:
    """A time that people can grasp.

    >>> duration(1), duration(300), duration(9000)
    ('1 second', '5 minutes', '2.5 hours')
    """
    if seconds < 90:
        return counted(round(seconds), "second")
    return counted(round(seconds / 60), "minute") if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def byte_size(size: float) -> str:
    """How large a file is.

    >>> byte_size(812), byte_size(20_400), byte_size(1_234_567), byte_size(147e9)
    ('812 bytes', '20.4 kB', '1.2 MB', '147.0 GB')
    """
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return counted(round(size), "byte")


def comma_list(text: str) -> list[str]:
    """Names separated by commas.

    >>> comma_list("fog, snow")
    ['fog', 'snow']
    """
    return [part.strip() for part in text.split(",") if part.strip()]


def csv_text(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table as CSV.

    >>> csv_text(["model", "error"], [("a, b", 0.5)]).splitlines()
    ['model,error', '"a, b",0.5']
    """
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([head, *rows])
    return file.getvalue()
