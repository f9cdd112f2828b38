"""Options that several commands share, and how their values are parsed.

An option name means the same in every command: one type and one help text. A command explains in its own help
what is special to it. Settings that travel together are one option with the value `KEY=VALUE,…`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from beaufort._core.errors import OptionError
from beaufort._core.text import comma_list
from beaufort._core.validation import validate_integer


def complete_suites(incomplete: str) -> list[str]:
    """Return the suites that a text can become, for shell completion."""
    from beaufort.suites import SUITE_NAMES, registered_suites

    return [name for name in (*SUITE_NAMES, *registered_suites) if name.startswith(incomplete)]


def complete_corruptions(incomplete: str) -> list[str]:
    """Return the lists that a text can become by completing its last name, for shell completion.

    >>> complete_corruptions("fog,sno")
    ['fog,snow']
    """
    from beaufort.corruptions import SUBSETS, corruptions

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in (*corruptions, *SUBSETS) if name.startswith(last)]


Seed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        help="Seed of the random numbers (default: 0). Commands that read a store default to its latest run.",
    ),
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
DryRun = Annotated[bool, typer.Option("--dry-run", help="Report what would be done, without doing it.")]
Delete = Annotated[bool, typer.Option("--delete", help="Delete damaged files.")]

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
Limit = Annotated[
    int | None,
    typer.Option("--limit", min=1, help="Use at most N images; evaluations spread them over the classes."),
]
Side = Annotated[
    int | None, typer.Option("--side", min=1, help="Resize images to RGB squares of this many pixels.")
]

_MODEL_HELP = "Model to use (repeatable where several make sense); `beaufort ls models` lists the kinds."
RequiredModel = Annotated[str, typer.Option("--model", help=_MODEL_HELP)]
Model = Annotated[str | None, typer.Option("--model", help=_MODEL_HELP)]
Models = Annotated[list[str] | None, typer.Option("--model", help=_MODEL_HELP)]
RequiredModels = Annotated[list[str], typer.Option("--model", help=_MODEL_HELP)]
ModelOptions = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Set an option (repeatable).")
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
Device = Annotated[str | None, typer.Option("--device", help="Device to run on: auto, cpu, cuda or cuda:1.")]
Classes = Annotated[
    str | None,
    typer.Option(
        "--classes",
        help="Names of the model's outputs: a text file with one per line, imagenet-1k, cifar-10 or mnist.",
    ),
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--labels",
        metavar="NAME|FILE,KEY=VALUE,…",
        help="Which outputs count as which class: identity, imagenet-d or a JSON file; matched by name by "
        "default. Keys: convention=restricted (predict only the dataset's classes) or all; sets=FILE.json "
        "(all valid labels of each image, as in ReaL).",
    ),
]
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
MaxFlips = Annotated[
    float | None,
    typer.Option(
        "--max-flips",
        min=0,
        max=100,
        metavar="PERCENT",
        help="Largest allowed percentage of predictions that differ from those of --reference, under every "
        "condition.",
    ),
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
Intervals = Annotated[
    list[str] | None,
    typer.Option(
        "--intervals",
        metavar="KEY=VALUE,…",
        help="Settings of the intervals: level=0.95, and resamples=1000 and seed=N where the command uses a "
        "bootstrap.",
    ),
]
Seeds = Annotated[int | None, typer.Option("--seeds", min=1, help="Number of training runs, one per seed.")]
Only = Annotated[
    str | None, typer.Option("--only", help="Restrict the command to these values, separated by commas.")
]

Grid = Annotated[
    str,
    typer.Option(
        "--grid",
        help="Reference models: paper, latest, timm, robustbench-cifar10, robustbench-cifar100, "
        "robustbench-imagenet, a CSV file (columns model and one per setting, in percent; or model, setting, "
        "accuracy, n, …), a directory of timm's tables, or a result store; several joined with +.",
    ),
]
Shift = Annotated[
    str | None,
    typer.Argument(metavar="[SHIFT]", help="Setting of the grid, or imagenetv2, objectnet, sketch, …"),
]
Select = Annotated[
    list[str] | None,
    typer.Option(
        "--select",
        help="Models, by name, pattern, type (LP_ADV) or group (v1, resnet50-lp); a|b selects both. If "
        "repeated, a model must match all.",
    ),
]
Trend = Annotated[
    list[str] | None,
    typer.Option(
        "--trend",
        metavar="KEY=VALUE,…",
        help="How the trend is fitted: x=SETTING of the standard accuracy; fit=MODELS, as for --select, or "
        "all; axis=logit, probit or linear; knee=auto, none or the percentage where the fit is split.",
    ),
]
Scores = Annotated[
    Path | None,
    typer.Option(
        "--scores", help="CSV file with the accuracies of a model: setting, accuracy (percent), n, …"
    ),
]


def parse_keys(
    option: str,
    texts: Iterable[str] | None,
    keys: Collection[str],
    *,
    unnamed: str = "",
    lists: Collection[str] = (),
) -> dict[str, Any]:
    """Return the values of an option `VALUE,KEY=VALUE,…`, which may be repeated, by key.

    >>> parse_keys("--labels", ["space.json,convention=all"], ["convention", "sets"], unnamed="labels")
    {'labels': 'space.json', 'convention': 'all'}

    Args:
        option: name of the option, for error messages.
        texts: the values that were passed.
        keys: the valid keys.
        unnamed: key of a value without a key; empty if every value needs one.
        lists: keys that may be repeated; their values are lists.
    """
    found: dict[str, Any] = {}
    for part in (part for text in texts or () for part in comma_list(text)):
        key, equals, value = part.partition("=")
        if not equals and unnamed:
            key, value = unnamed, part
        elif key not in (*keys, unnamed) or not value:
            known = ", ".join(f"{key}=…" for key in keys)
            wanted = f"valid keys: {known}" if known else "it has no keys in this command"
            raise OptionError(f"cannot use {part!r} in {option}; {wanted}")
        if key in lists:
            found.setdefault(key, []).append(value)
        elif key in found:
            raise OptionError(f"{option} has two values for {key}: {found[key]!r} and {value!r}")
        else:
            found[key] = value
    return found


def parse_number(option: str, key: str, text: str, kind: Callable[[str], Any] = float) -> Any:
    """Return the number that a key of an option has."""
    try:
        return kind(text)
    except ValueError:
        what = "an integer" if kind is int else "a number"
        raise OptionError(f"{key} in {option} must be {what}, got {text!r}") from None


def parse_labels(texts: list[str] | None, keys: Collection[str] = ("convention", "sets")) -> dict[str, Any]:
    """Return the arguments `labels`, `convention` and `label_sets` of `--labels`; None where not given."""
    values = parse_keys("--labels", texts, keys, unnamed="labels")
    names = {"labels": "labels", "convention": "convention", "label_sets": "sets"}
    return {name: values.get(key) for name, key in names.items() if key in (*keys, "labels")}


def parse_intervals(texts: list[str] | None, **defaults: float) -> dict[str, Any]:
    """Return the settings of `--intervals`; the keys and types are those of the defaults.

    >>> parse_intervals(["level=0.9"], level=0.95, seed=0)
    {'level': 0.9, 'seed': 0}
    """
    values = dict(defaults)
    for key, text in parse_keys("--intervals", texts, defaults).items():
        values[key] = parse_number("--intervals", key, text, type(defaults[key]))
    if "resamples" in values:
        validate_integer("resamples in --intervals", values["resamples"], 100)
    if "seed" in values:
        validate_integer("seed in --intervals", values["seed"], 0, 2**32 - 1)
    return values


def parse_trend(
    texts: list[str] | None, *, knee: bool = False, several: bool = False
) -> tuple[list[str] | None, dict[str, Any]]:
    """Return the models that `--trend` fits on, and the arguments `x`, `scale` and `knee` of the fit.

    Args:
        texts: the values that were passed.
        knee: whether the command has the key `knee`.
        several: whether `x` may be repeated; then it is a list if it is.
    """
    keys = ["x", "fit", "axis", *(["knee"] if knee else [])]
    values = parse_keys("--trend", texts, keys, lists=["fit", *(["x"] if several else [])])
    x = values.get("x")
    arguments = {"x": x[0] if several and x and len(x) == 1 else x, "scale": values.get("axis", "logit")}
    if knee:
        arguments["knee"] = _knee(values.get("knee", "auto"))
    return values.get("fit"), arguments


def _knee(text: str) -> float | str | None:
    if text in {"auto", "none"}:
        return "auto" if text == "auto" else None
    value = parse_number("--trend", "knee", text)
    if not 0 < value < 100:
        raise OptionError(f"knee in --trend must be auto, none or between 0 and 100 percent, got {text!r}")
    return float(value)


_DATASET_NAME = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)=(.+)")


def data_by_name(texts: list[str]) -> str | dict[str, str]:
    """Return one dataset, or several by name.

    >>> data_by_name(["a=photos", "b=cifar10-c:folder"])
    {'a': 'photos', 'b': 'cifar10-c:folder'}
    """
    if len(texts) == 1 and (Path(texts[0]).exists() or not _DATASET_NAME.fullmatch(texts[0])):
        return texts[0]
    found: dict[str, str] = {}
    for text in texts:
        match = _DATASET_NAME.fullmatch(text)
        if match is None or match[1] in found:
            raise OptionError(f"pass each of several datasets once, as --data NAME=DATASET, got {text!r}")
        found[match[1]] = match[2]
    return found


def severities_for(names: Sequence[str], severity: str | None) -> list[int | float]:
    """Return the severities of `--severity` (default 1 to 5); chains have their own.

    >>> severities_for(["fog", "fog@2+snow@3"], "3")
    [3]
    """
    from beaufort.corruptions import is_chain

    if severity is not None and names and all(map(is_chain, names)):
        raise OptionError(
            f"--severity {severity} cannot be used with {','.join(names)}: chains have their own severities"
        )
    return severity_list("1-5" if severity is None else severity)


_RANGE = re.compile(r"([1-5])-([1-5])")


def severity_list(text: str) -> list[int | float]:
    """Return severities: numbers and ranges of integers, separated by commas.

    >>> severity_list("1-3,4.5")
    [1, 2, 3, 4.5]
    """
    from beaufort.corruptions import parse_severity

    found: set[int | float] = set()
    for part in map(str.strip, text.split(",")):
        match = _RANGE.fullmatch(part)
        if match and match[1] <= match[2]:
            found.update(range(int(match[1]), int(match[2]) + 1))
            continue
        try:
            found.add(parse_severity(part))
        except OptionError:
            raise OptionError(
                f"--severity must be like 3, 1-5, 1,3,5 or 2.5, with numbers from 1 to 5, got {text!r}"
            ) from None
    return sorted(found)


def model_options(texts: list[str] | None, **arguments: Any) -> dict[str, Any]:
    """Return the options of `--set`, and those of other options that are not None."""
    from beaufort.models import parse_options

    found = parse_options(texts or [])
    given = {name: value for name, value in arguments.items() if value is not None}
    if twice := [name for name in given if name in found]:
        raise OptionError(f"--{twice[0]} and --set {twice[0]}=… cannot be used together")
    return found | given


def read_column(text: str | None) -> dict[str, str] | None:
    """Return the values of `FILE.csv:COLUMN` by image id; None if no column is named."""
    from beaufort.results import read_column as read

    return None if text is None else read(text)


def training_run_models(texts: list[str] | None) -> dict[str, list[str]]:
    """Return the models that are training runs of each recipe.

    >>> training_run_models(["net=net_1,net_2"])
    {'net': ['net_1', 'net_2']}
    """
    found: dict[str, list[str]] = {}
    for text in texts or []:
        name, _, models = text.partition("=")
        if not name.strip() or not comma_list(models):
            raise OptionError(f"--training-runs must be NAME=MODEL,MODEL,…, got {text!r}")
        if name.strip() in found:
            raise OptionError(f"--training-runs names {name.strip()!r} twice")
        found[name.strip()] = comma_list(models)
    return found
