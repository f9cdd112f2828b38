"""timm's result tables, as its repository has them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import OptionError
from beaufort.testbed._csv import number, read_rows

FILES = {
    "val": "results-imagenet.csv",
    "imagenet-real": "results-imagenet-real.csv",
    "imagenetv2-matched-frequency": "results-imagenetv2-matched-frequency.csv",
    "imagenet-sketch": "results-sketch.csv",
    "val-on-imagenet-a-classes": "results-imagenet-a-clean.csv",
    "imagenet-a": "results-imagenet-a.csv",
    "val-on-imagenet-r-classes": "results-imagenet-r-clean.csv",
    "imagenet-r": "results-imagenet-r.csv",
}
"""The table of each setting."""


def read_timm(folder: Path) -> tuple[list[str], dict[str, NDArray[np.float64]]]:
    """Entries and their accuracies by setting, for the tables that a folder has.

    An entry is a model at one input size, `resnet50.a1_in1k@288`. The entries are those of the table of
    ImageNet's validation images; one that another table lacks is NaN there.
    """
    models: list[str] = []
    columns = {}
    for setting, file in FILES.items():
        if not (folder / file).is_file():
            if setting == "val":
                raise OptionError(f"{folder} must have {file}")
            continue
        rows = read_rows(folder / file, ["model", "img_size", "top1"])
        tops = {
            f"{row['model']}@{row['img_size']}": number(row["top1"], f"top1 of {row['model']!r} in {file}")
            for row in rows
        }
        models = models or list(tops)
        columns[setting] = np.array([tops.get(model, np.nan) for model in models])
    return models, columns
