"""Options that several commands have, and the texts that they accept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from beaufort._core.errors import OptionError
from beaufort._core.text import comma_list

Seed = Annotated[int, typer.Option(help="Any whole number; the same seed gives the same bytes.")]
Jobs = Annotated[int | None, typer.Option(help="Threads; all processors if not given. It changes no result.")]
Json = Annotated[bool, typer.Option("--json", help="Print a summary for programs.")]
Store = Annotated[str, typer.Option(help="Folder or URL that keeps the answers.")]
SuiteOfStore = Annotated[
    str | None,
    typer.Option("--suite", help="Which suite's numbers; that of the store's last run if not given."),
]
Baseline = Annotated[
    str | None,
    typer.Option(
        help="What mCE divides by: alexnet, alexnet-paper, conv1, a stored model, or none; for sequences a "
        "stored model or a CSV file. The suite's own if not given."
    ),
]
ResultSeed = Annotated[
    int | None, typer.Option("--seed", help="Which seed's answers; those of the last run if not given.")
]

Classes = Annotated[
    str | None,
    typer.Option(
        help="Names of the model's outputs: a text file of one a line, or imagenet-1k, cifar-10 or mnist."
    ),
]
Labels = Annotated[
    str | None,
    typer.Option(
        help="identity if labels are numbers of outputs, or a JSON file with the outputs of each class; "
        "names decide if not given."
    ),
]
Convention = Annotated[
    str | None,
    typer.Option(help="restricted: only outputs that belong to the data's classes compete; all: every one."),
]
Truths = Annotated[
    str | None,
    typer.Option(help="JSON file with the labels of each image of which any is right, as ReaL's."),
]
Filter = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        metavar="NAME:OPTION=VALUE,…",
        help="What is done to images before the model, as clahe:clip=2,tiles=8; `beaufort ls filters` lists "
        "all. Several are applied in their order.",
    ),
]
ClusterBy = Annotated[
    str | None,
    typer.Option(
        metavar="FILE.csv:COLUMN",
        help="Images of one value (patient, video, photographer) are not independent: intervals are over "
        "values.",
    ),
]
GroupBy = Annotated[
    str | None,
    typer.Option(
        metavar="FILE.csv:COLUMN", help="Accuracy for each value (hospital, camera) and the worst of them."
    ),
]
Seeds = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=MODEL,MODEL,…",
        help="Trainings of one recipe: the mean and the spread over them; may be repeated.",
    ),
]

_RANGE = re.compile(r"([1-5])-([1-5])")


def as_share(percent: float | None) -> float | None:
    """A share of an option in percent; None if it is not given."""
    return None if percent is None else percent / 100


_NAMED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)=(.+)")


def data_by_name(texts: list[str]) -> str | dict[str, str]:
    """One data set, or several by name.

    >>> data_by_name(["a=photos", "b=cifar10-c:folder"])
    {'a': 'photos', 'b': 'cifar10-c:folder'}
    """
    if len(texts) == 1 and (Path(texts[0]).exists() or not _NAMED.fullmatch(texts[0])):
        return texts[0]
    found: dict[str, str] = {}
    for text in texts:
        match = _NAMED.fullmatch(text)
        if match is None or match[1] in found:
            raise OptionError(f"several data sets must be given as NAME=PATH, each once, got {text!r}")
        found[match[1]] = match[2]
    return found


def severities_for(names: Sequence[str], severity: str | None) -> list[int | float]:
    """The severities of `--severity` for some corruptions, 1 to 5 if not given; chains have their own.

    >>> severities_for(["fog", "fog@2+snow@3"], "3")
    [3]
    """
    from beaufort.corruptions import is_chain

    if severity is not None and names and all(map(is_chain, names)):
        raise OptionError(
            f"--severity must be given with single corruptions, got --severity {severity} with "
            f"{','.join(names)}; a chain has its own severities, so leave it out"
        )
    return severity_list("1-5" if severity is None else severity)


def severity_list(text: str) -> list[int | float]:
    """Severities: one, a range of whole ones, or several of both.

    >>> severity_list("1-3,4.5")
    [1, 2, 3, 4.5]
    """
    found: set[int | float] = set()
    for part in map(str.strip, text.split(",")):
        match = _RANGE.fullmatch(part)
        if match and match[1] <= match[2]:
            found.update(range(int(match[1]), int(match[2]) + 1))
        else:
            found.add(_severity(part, text))
    return sorted(found)


def _severity(part: str, text: str) -> int | float:
    from beaufort.corruptions import parse_severity

    try:
        return parse_severity(part)
    except OptionError:
        raise OptionError(
            f"--severity must be like 3, 1-5, 1,3,5 or 2.5, with numbers from 1 to 5, got {text!r}"
        ) from None


def complete_suites(incomplete: str) -> list[str]:
    """For a shell: the suites that a text may become."""
    from beaufort.suites import SUITE_NAMES, own_suites

    return [name for name in (*SUITE_NAMES, *own_suites) if name.startswith(incomplete)]


def complete_corruptions(incomplete: str) -> list[str]:
    """For a shell: the lists that a text may become, by its last name.

    >>> complete_corruptions("fog,sno")
    ['fog,snow']
    """
    from beaufort.corruptions import SUBSETS, corruptions

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in (*corruptions, *SUBSETS) if name.startswith(last)]


def model_options(texts: list[str] | None, **said: Any) -> dict[str, Any]:
    """What there is to know about a model: from `--set`, and from options of their own that are not None."""
    from beaufort.models import parse_options

    found = parse_options(texts or [])
    for name, value in said.items():
        if value is not None and name in found:
            raise OptionError(f"{name} must be given once, got --{name} and --set {name}=…; leave one out")
        if value is not None:
            found[name] = value
    return found


def column(text: str | None) -> dict[str, str] | None:
    """The values of `FILE.csv:COLUMN` by image id; None if no column is named."""
    from beaufort.results import read_column

    return None if text is None else read_column(text)


def seed_models(texts: list[str] | None) -> dict[str, list[str]]:
    """The models that are trainings of each recipe.

    >>> seed_models(["net=net_1,net_2"])
    {'net': ['net_1', 'net_2']}
    """
    found: dict[str, list[str]] = {}
    for text in texts or []:
        name, _, models = text.partition("=")
        if not name.strip() or not comma_list(models):
            raise OptionError(f"seeds must be given as NAME=MODEL,MODEL,…, got {text!r}")
        if name.strip() in found:
            raise OptionError(f"seeds must name each recipe once, got {name.strip()!r} again")
        found[name.strip()] = comma_list(models)
    return found
