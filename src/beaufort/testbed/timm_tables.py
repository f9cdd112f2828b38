"""timm's result tables, and the training data of timm's models, inferred from their names.

In `resnet50.fb_swsl_ig1b_ft_in1k`, the word `ig1b` means training on a billion images of Instagram. The rule
uses such words, in the order of `KINDS`, so that data beyond ImageNet-1k decides first, and
`MORE_DATA_NAMES`. It knows neither the data of a teacher nor a teacher that the name omits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from beaufort.testbed.grid_files import parse_number, read_rows

KINDS: Mapping[str, frozenset[str]] = {
    "image-text": frozenset({"clip", "laion2b", "laiona", "openai", "webli"}),
    "web": frozenset({"ig1b", "jft", "m30m", "m38m", "seer", "swag", "yfcc100m"}),
    "imagenet-21k": frozenset({"6m", "in12k", "in21k", "in22k"}),
    "imagenet-1k, adversarial": frozenset({"adv", "ap"}),
    "imagenet-1k, distilled": frozenset({"dist", "distilled", "ssld", "teacher", "usi"}),
    "imagenet-1k": frozenset(),
}
"""Kinds of training data with the words in a name that indicate each; the last is for names without any."""

MORE_DATA_NAMES: Mapping[str, str] = dict.fromkeys(
    ("dpn68b.mx_in1k", "dpn92.mx_in1k", "dpn107.mx_in1k"), "imagenet-21k"
)
"""Models whose names do not show their data; the testbed states that these saw more than ImageNet-1k."""

TYPES: Mapping[str, str] = {
    "image-text": "MORE_DATA",
    "web": "MORE_DATA",
    "imagenet-21k": "MORE_DATA",
    "imagenet-1k, adversarial": "ROBUST_INTV",
    "imagenet-1k, distilled": "DISTILLED",
    "imagenet-1k": "STANDARD",
}
"""The testbed's type of each kind, which lacks one for models that learned from a teacher."""


def training_data(name: str) -> str:
    """Return the kind of data that a model was trained on, by its name.

    >>> training_data("vit_base_patch16_clip_224.laion2b_ft_in12k_in1k@224")
    'image-text'
    >>> training_data("resnet50.a1_in1k@288")
    'imagenet-1k'
    """
    model = name.rpartition("@")[0] or name
    if kind := MORE_DATA_NAMES.get(model):
        return kind
    words = set(re.split(r"[._]", model))
    return next(kind for kind, marks in KINDS.items() if words & marks or not marks)


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
"""Table of each setting."""


def read_timm(folder: Path) -> tuple[list[str], dict[str, NDArray[np.float64]]]:
    """Return entries and their accuracies by setting, from the tables in a folder.

    An entry is a model at one input size, `resnet50.a1_in1k@288`. The entries are those of the table of
    ImageNet's validation images; accuracies that another table lacks are NaN.
    """
    top1: dict[str, dict[str, float]] = {}
    for setting, file in FILES.items():
        if (folder / file).is_file():
            top1[setting] = {
                f"{row['model']}@{row['img_size']}": parse_number(
                    row["top1"], f"top1 of {row['model']!r} in {file}"
                )
                for row in read_rows(folder / file, ["model", "img_size", "top1"])
            }
    models = list(top1["val"])
    return models, {
        setting: np.array([values.get(model, np.nan) for model in models]) for setting, values in top1.items()
    }
