"""Options of the commands of `beaufort testbed` and of `beaufort place`, and the texts that they accept."""

from __future__ import annotations

from typing import Annotated

import typer

from beaufort._core.errors import OptionError

GridName = Annotated[
    str,
    typer.Option(
        "--grid",
        help="Reference models: paper, latest, timm, robustbench-cifar10, robustbench-cifar100, "
        "robustbench-imagenet, a CSV file (model, then a column for each setting, in percent), a folder of "
        "timm's tables, or a result store.",
    ),
]
Shift = Annotated[
    str | None, typer.Option("--y", help="Shift: a setting of the grid, or imagenetv2, objectnet, sketch, …")
]
Clean = Annotated[
    str | None, typer.Option("--x", help="Setting of the standard accuracy; the shift's own by default.")
]
Select = Annotated[
    list[str] | None,
    typer.Option(
        "--select",
        help="Models: a name, a pattern, a type (LP_ADV) or a group (v1, resnet50-lp); a|b for either. Of "
        "several, all must hold.",
    ),
]
FitOn = Annotated[
    list[str] | None,
    typer.Option("--fit-on", help="Models to fit on, as for --select, or all; the grid's own by default."),
]
Axis = Annotated[str, typer.Option("--axis", help="Axes of the fit: logit, probit or linear.")]
Images = Annotated[
    list[str] | None,
    typer.Option("--n", help="Number of images of a setting as SETTING=IMAGES (repeatable)."),
]
KneeAt = Annotated[
    str,
    typer.Option("--knee", help="Split of the fit: auto (where a model filtered the images), none, or a %."),
]
Level = Annotated[float, typer.Option("--level", help="Confidence level of the intervals.")]
BootstrapSeed = Annotated[
    int, typer.Option("--bootstrap-seed", min=0, max=2**32 - 1, help="Seed of the bootstrap.")
]
ScoresFile = "CSV file with the accuracies of a model: setting, accuracy (percent), n, …"


def images_of(texts: list[str] | None) -> dict[str, int]:
    """Return the numbers of images that `--n` gives, by setting."""
    found = {}
    for text in texts or []:
        setting, _, count = text.rpartition("=")
        if not setting or not count.isdigit() or int(count) < 1:
            raise OptionError(f"n must be SETTING=IMAGES with a positive integer, got {text!r}")
        found[setting] = int(count)
    return found


def knee_of(text: str) -> float | str | None:
    """Return where `--knee` splits, as `fit_shift` takes it."""
    if text in {"auto", "none"}:
        return "auto" if text == "auto" else None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 100:
        raise OptionError(f"knee must be auto, none or a percentage between 0 and 100, got {text!r}")
    return value
