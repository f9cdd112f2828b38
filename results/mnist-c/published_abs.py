"""What the published weights of ABS give under the corruptions, with digits as they are and binarized.

    python published_abs.py WEIGHTS MNIST [--only fog,stripe] [--digits 1000] [--output abs.csv]

WEIGHTS has the authors' files `ABS_0.net` to `ABS_9.net`, MNIST the four files of the data set. The authors
have a variant that sees every pixel as black or white. Brightness makes the background 127.5, which lies on
the border: we round it to 128, which is white, and 127 is black. So binarized digits are looked at twice, as
they are and one level darker.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

from beaufort._core.text import comma_list, csv_text
from beaufort.corruptions import corruptions
from beaufort.data import load_dataset
from beaufort.metrics import published_table
from beaufort.metrics.stats import clopper_pearson
from beaufort.models.torch import read_tensors
from beaufort.studies import StudySettings
from beaufort.studies.mnist_c import CLEAN
from beaufort.training.architectures import synthesis

COLUMNS = ("paper", "as it is", "binarized", "one level darker, binarized")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("weights", type=Path)
    parser.add_argument("mnist", type=Path)
    parser.add_argument("--only", help="corruptions, separated by commas; all 15 and none if not given")
    parser.add_argument("--digits", type=int, default=1000)
    parser.add_argument("--samples", type=int, default=8000)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--output", type=Path, default=Path("abs.csv"))
    chosen = parser.parse_args()
    states = [read_tensors(chosen.weights / f"ABS_{digit}.net") for digit in range(10)]
    model = synthesis.from_published(states, samples=chosen.samples, steps=chosen.steps)
    model.to(chosen.device).eval()
    test = load_dataset(f"mnist:{chosen.mnist}#test", limit=chosen.digits)
    digits = np.stack([test[place].image for place in range(len(test))])
    ids = [test[place].id for place in range(len(test))]
    labels = torch.from_numpy(np.asarray(test.labels)).to(chosen.device)
    paper = published_table("mnist-c-figure3")["ABS"]

    def score(values: torch.Tensor) -> list[str]:
        right = int((model(values.to(chosen.device)).argmax(1) == labels).sum())
        interval = clopper_pearson(right, len(labels))
        return [f"{100 * share:.1f}" for share in (right / len(labels), interval.low, interval.high)]

    lines = []
    for name in (
        comma_list(chosen.only) if chosen.only else (CLEAN, *StudySettings(study="mnist-c").corruptions)
    ):
        made = digits
        if name != CLEAN:
            made = corruptions[name](digits, ids=ids, scale="mnist")
        grey = torch.from_numpy(np.asarray(made)).reshape(-1, 1, 28, 28).float()
        seen = (grey / 255, (grey > 127.5).float(), (grey - 1 > 127.5).float())
        line = [name, f"{100 * paper['clean' if name == CLEAN else name]:.2f}"]
        for values in seen:
            line += score(values)
        print(", ".join(line), flush=True)
        lines.append(line)
    ends = [f"{column}{end}" for column in COLUMNS[1:] for end in ("", ", low", ", high")]
    chosen.output.write_text(csv_text(["corruption", "paper", *ends], lines), encoding="utf-8")


if __name__ == "__main__":
    main()
