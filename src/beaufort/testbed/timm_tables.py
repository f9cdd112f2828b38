"""timm's result tables, and what a timm model was trained on, as its name shows.

`resnet50.fb_swsl_ig1b_ft_in1k` has words between dots and underscores, of which `ig1b` means that the weights
were trained on a billion images of Instagram. The rule uses these words alone, in the order of `KINDS`: data
beyond ImageNet-1k decides first. It knows neither the data of a teacher nor a teacher that the name omits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import OptionError
from beaufort.testbed.grid_files import number, read_rows

KINDS: Mapping[str, frozenset[str]] = {
    "image-text": frozenset({"clip", "laion2b", "laiona", "openai", "webli"}),
    "web": frozenset({"ig1b", "jft", "m30m", "m38m", "seer", "swag", "yfcc100m"}),
    "imagenet-21k": frozenset({"6m", "in12k", "in21k", "in22k"}),
    "imagenet-1k, adversarial": frozenset({"adv", "ap"}),
    "imagenet-1k, distilled": frozenset({"dist", "distilled", "ssld", "teacher", "usi"}),
    "imagenet-1k": frozenset(),
}
"""Kinds of training data, and the words of a name that tell each; the last is what has none of them."""

TYPES: Mapping[str, str] = {
    "image-text": "MORE_DATA",
    "web": "MORE_DATA",
    "imagenet-21k": "MORE_DATA",
    "imagenet-1k, adversarial": "ROBUST_INTV",
    "imagenet-1k, distilled": "DISTILLED",
    "imagenet-1k": "STANDARD",
}
"""The testbed's type of each kind; it has none for models that learned from a teacher."""


def training_data(name: str) -> str:
    """The kind of data that a model was trained on, by its name.

    >>> training_data("vit_base_patch16_clip_224.laion2b_ft_in12k_in1k@224")
    'image-text'
    >>> training_data("resnet50.a1_in1k@288")
    'imagenet-1k'
    """
    words = set(re.split(r"[._]", name.rpartition("@")[0] or name))
    return next(kind for kind, telling in KINDS.items() if words & telling or not telling)


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
                raise OptionError(f"{folder} has no {file}")
            continue
        rows = read_rows(folder / file, ["model", "img_size", "top1"])
        tops = {
            f"{row['model']}@{row['img_size']}": number(row["top1"], f"top1 of {row['model']!r} in {file}")
            for row in rows
        }
        models = models or list(tops)
        columns[setting] = np.array([tops.get(model, np.nan) for model in models])
    return models, columns
