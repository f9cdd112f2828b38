"""Options of the commands of `beaufort testbed`, and the texts that they accept."""

from __future__ import annotations

from typing import Annotated

import typer

from beaufort._core.errors import OptionError

GridName = Annotated[
    str,
    typer.Option(
        help="paper, latest, timm, robustbench-cifar10, robustbench-cifar100, robustbench-imagenet, a CSV "
        "file (model, then a column for each setting, in percent), a folder of timm's tables, or a store."
    ),
]
Shift = Annotated[
    str | None,
    typer.Option("--y", help="The shift: a setting of the grid, or imagenetv2, objectnet, sketch, …"),
]
ShiftOrV2 = Annotated[
    str | None,
    typer.Option(
        "--y",
        help="The shift: a setting of the grid, or objectnet, sketch, …; ImageNetV2 if not given.",
    ),
]
Clean = Annotated[
    str | None, typer.Option("--x", help="Setting of the standard accuracy; the shift's own if not given.")
]
Select = Annotated[
    list[str] | None,
    typer.Option(
        help="Which models: a name, a pattern, a type (LP_ADV) or a group (v1, resnet50-lp); a | b for "
        "either. Of several, all must hold."
    ),
]
Models = Annotated[
    list[str] | None,
    typer.Option("--model", help="A model, by name or pattern; may be repeated, and adds to the others."),
]
FitOn = Annotated[
    list[str] | None,
    typer.Option(help="Fit on these models, as --select takes them, or on all; the grid's own if not given."),
]
ScaleName = Annotated[str, typer.Option("--scale", help="Axes of the fit: logit, probit or linear.")]
Images = Annotated[
    list[str] | None,
    typer.Option("--n", help="SETTING=IMAGES, where the grid does not say what an accuracy rests on."),
]
KneeAt = Annotated[
    str, typer.Option("--knee", help="auto: where a model has filtered the images; none; or a percentage.")
]
Level = Annotated[float, typer.Option(help="Of the intervals.")]
Resamples = Annotated[int, typer.Option(min=100, help="Of the bootstrap.")]
DrawSeed = Annotated[
    int, typer.Option("--seed", help="Of the bootstrap; the paper's if not given.", min=0, max=2**32 - 1)
]


def images_of(texts: list[str] | None) -> dict[str, int]:
    """The numbers of images that `--n` gives, by setting."""
    found = {}
    for text in texts or []:
        setting, _, count = text.rpartition("=")
        if not setting or not count.isdigit() or int(count) < 1:
            raise OptionError(f"n must be SETTING=IMAGES with a positive integer, got {text!r}")
        found[setting] = int(count)
    return found


def chosen(models: list[str] | None, select: list[str] | None) -> list[str]:
    """`--model` and `--select` as `Grid.select` takes them: one of the models, and all of the selections."""
    return [*(["|".join(models)] if models else []), *(select or [])]


def knee_of(text: str) -> float | str | None:
    """Where `--knee` splits, as `fit_shift` takes it."""
    if text in {"auto", "none"}:
        return "auto" if text == "auto" else None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 100:
        raise OptionError(f"knee must be auto, none or a percentage between 0 and 100, got {text!r}")
    return value
