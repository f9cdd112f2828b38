"""Measure the errors of a reference model that drifting streams are calibrated with.

    python tools/difficulty.py cifar DATA torch:resnet20.th arch=python:cifar_resnet:resnet20 mean=… std=…

Writes `src/beaufort/suites/data/difficulty/SCALE.json`: errors in percent under each corruption, and under
each pair at the severities of `difficulty.PAIRED`, on a few images spread over the classes.
"""

from __future__ import annotations

import argparse
import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from beaufort.data import load_dataset
from beaufort.models import load_model, parse_options
from beaufort.suites.conditions import Condition
from beaufort.suites.difficulty import PAIRED, SINGLE

CORRUPTIONS = (
    *("gaussian_noise", "shot_noise", "impulse_noise", "motion_blur"),
    *("frost", "contrast", "pixelate"),
)
"""Corruptions under which a small network reaches an error of 40 % on CIFAR-10 at some severity."""
FOLDER = Path(__file__).parents[1] / "src/beaufort/suites/data/difficulty"


def main() -> None:
    """Measure the errors and write them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scale")
    parser.add_argument("data")
    parser.add_argument("model")
    parser.add_argument("options", nargs="*", help="options of the model, as NAME=VALUE")
    parser.add_argument("--corruptions", nargs="+", default=CORRUPTIONS)
    parser.add_argument("--images", type=int, nargs=2, default=(200, 100), help="for single ones, for pairs")
    given = parser.parse_args()
    model = load_model(given.model, **parse_options(given.options))
    dataset = load_dataset(given.data).balanced(0)
    count = max(given.images)
    images = np.stack([dataset[place].image for place in range(count)])

    def error(done: str, first: int) -> float:
        condition, ids = Condition.parse(f"x/{done}"), dataset.ids[:first]
        corrupted = condition.apply(images[:first], ids=ids, scale=given.scale)
        predicted = np.concatenate([model(some) for some in np.array_split(corrupted, -(-first // 200))])
        return round(100 * float((predicted.argmax(axis=1) != dataset.labels[:first]).mean()), 1)

    names, (singly, paired) = given.corruptions, given.images
    values: dict[str, Any] = {
        "reference": f"{model.spec.name}, {singly} and {paired} images of {dataset.name}",
        "single": {name: [error(f"{name}@{level}", singly) for level in SINGLE] for name in names},
        "pair": {
            f"{a}+{b}": [[error(f"{a}@{i}+{b}@{j}", paired) for j in PAIRED] for i in PAIRED]
            for a, b in combinations(names, 2)
        },
    }
    FOLDER.mkdir(exist_ok=True)
    lines = [f'"reference": {json.dumps(values["reference"])}']
    for kind in ("single", "pair"):
        rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in values[kind].items())
        lines.append(f'"{kind}": {{\n{rows}\n}}')
    (FOLDER / f"{given.scale}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
