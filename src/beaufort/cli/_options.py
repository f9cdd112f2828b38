"""Options that several commands have, and the texts that they accept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from beaufort._core.errors import OptionError
from beaufort._core.text import comma_list

# An option name means the same in every command: one type, one help text. What is special to a command is
# explained in its own help.

Seed = Annotated[int, typer.Option("--seed", help="Seed of all randomness; equal seeds give equal bytes.")]
StoredSeed = Annotated[
    int | None,
    typer.Option("--stored-seed", help="Seed of the stored run to read; the latest run's by default."),
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", min=1, help="Number of parallel workers; results do not depend on it."),
]
Json = Annotated[bool, typer.Option("--json", help="Print a machine-readable summary as JSON.")]
Output = Annotated[Path, typer.Option("--output", "-o", help="Output file or directory.")]
OptionalOutput = Annotated[Path | None, typer.Option("--output", "-o", help="Output file or directory.")]
Format = Annotated[
    str | None, typer.Option("--format", help="Output format; by default it follows the file extension.")
]
Title = Annotated[str | None, typer.Option("--title", help="Title of the output.")]
Store = Annotated[str, typer.Option("--store", help="Directory or URL of the result store.")]
OptionalStore = Annotated[str | None, typer.Option("--store", help="Directory or URL of the result store.")]


def complete_suites(incomplete: str) -> list[str]:
    """Return the suites that a text may become, for shell completion."""
    from beaufort.suites import SUITE_NAMES, registered_suites

    return [name for name in (*SUITE_NAMES, *registered_suites) if name.startswith(incomplete)]


Suite = Annotated[
    str | None,
    typer.Option(
        "--suite",
        help="Suite: a name (`beaufort ls suites`) or a YAML file. Commands that read a store default to "
        "the suite of its latest run.",
        autocompletion=complete_suites,
    ),
]
_DATA_HELP = (
    "Dataset: a path, KIND:PATH or a name (`beaufort ls datasets`); NAME=DATASET if a suite has several."
)
Data = Annotated[str | None, typer.Option("--data", help=_DATA_HELP)]
SeveralData = Annotated[list[str] | None, typer.Option("--data", help=_DATA_HELP)]
RequiredData = Annotated[list[str], typer.Option("--data", help=_DATA_HELP)]
_MODEL_HELP = "Model to use (repeatable where several make sense); `beaufort ls models` lists the kinds."
RequiredModel = Annotated[str, typer.Option("--model", help=_MODEL_HELP)]
Model = Annotated[str | None, typer.Option("--model", help=_MODEL_HELP)]
Models = Annotated[list[str] | None, typer.Option("--model", help=_MODEL_HELP)]
RequiredModels = Annotated[list[str], typer.Option("--model", help=_MODEL_HELP)]
ModelOptions = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Set an option (repeatable).")
]
Device = Annotated[str | None, typer.Option("--device", help="Device to run on: auto, cpu, cuda or cuda:1.")]
Limit = Annotated[
    int | None, typer.Option("--limit", min=1, help="Use at most N images, spread evenly over the classes.")
]
First = Annotated[int | None, typer.Option("--first", min=1, help="Use only the first N images.")]
Side = Annotated[
    int | None, typer.Option("--side", min=1, help="Resize images to RGB squares of this many pixels.")
]
Subset = Annotated[
    str | None,
    typer.Option("--subset", help="Subset of corruptions (all, weather, mnist-c, …), or one corruption."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Report what would be done, without doing it.")]
Baseline = Annotated[
    str | None,
    typer.Option(
        "--baseline",
        help="What mCE divides by: alexnet, alexnet-paper, conv1, a stored model, a CSV file (sequences) "
        "or none; the suite's own by default.",
    ),
]
Metric = Annotated[
    str | None,
    typer.Option(
        "--metric",
        help="Metric to judge: mce, relative_mce, mean_accuracy, flip_probability, …; the suite's first by "
        "default.",
    ),
]
Reference = Annotated[
    str | None,
    typer.Option("--reference", help="Model to compare with: a MODEL of --store, a STORE or STORE::MODEL."),
]
MaxDrop = Annotated[
    float, typer.Option("--max-drop", min=0, help="Largest allowed drop of the metric, in points.")
]
Classes = Annotated[
    str | None,
    typer.Option(
        "--classes",
        help="Names of the model's outputs: a text file with one per line, imagenet-1k, cifar-10 or mnist.",
    ),
]
Labels = Annotated[
    str | None,
    typer.Option(
        "--labels",
        help="Which outputs count as which class: identity, imagenet-d or a JSON file; matched by name by "
        "default.",
    ),
]
Convention = Annotated[
    str | None,
    typer.Option(
        "--convention",
        help="Which outputs compete: restricted (only those of the dataset's classes) or all.",
    ),
]
LabelSets = Annotated[
    str | None,
    typer.Option("--label-sets", help="JSON file with all valid labels of each image, as in ReaL."),
]
ClusterBy = Annotated[
    str | None,
    typer.Option(
        "--cluster-by",
        metavar="FILE.csv:COLUMN",
        help="Column whose values (patient, video, photographer) group dependent images; intervals are over "
        "groups.",
    ),
]
GroupBy = Annotated[
    str | None,
    typer.Option(
        "--group-by",
        metavar="FILE.csv:COLUMN",
        help="Column (hospital, camera) to report accuracy by, with the worst group.",
    ),
]
TrainingRuns = Annotated[
    list[str] | None,
    typer.Option(
        "--training-runs",
        metavar="NAME=MODEL,MODEL,…",
        help="Models that are training runs of one recipe, reported by mean and spread (repeatable).",
    ),
]
Seeds = Annotated[int | None, typer.Option("--seeds", min=1, help="Number of training runs, one per seed.")]
Resamples = Annotated[int, typer.Option("--resamples", min=100, help="Number of bootstrap resamples.")]
Only = Annotated[
    str | None, typer.Option("--only", help="Restrict the command to these values, separated by commas.")
]
Unsafe = Annotated[
    bool, typer.Option("--unsafe", help="Allow SQL to read and write any file and to load extensions.")
]

Filter = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        metavar="NAME:OPTION=VALUE,…",
        help="Image filter applied before the model, such as clahe:clip=2,tiles=8 (repeatable, in order); "
        "`beaufort ls filters` lists all.",
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


Corruptions = Annotated[
    str | None,
    typer.Option(
        "--corruption",
        help="Corruptions, subsets and chains such as fog@2+jpeg_compression@3, separated by commas; "
        "`beaufort ls corruptions` lists them.",
        autocompletion=complete_corruptions,
    ),
]
Severities = Annotated[
    str | None,
    typer.Option(
        "--severity", help="Severities such as 3, 1-5, 1,3,5 or 2.5; 1-5 by default. Chains have their own."
    ),
]
