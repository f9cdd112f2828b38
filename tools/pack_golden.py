"""Pack outputs of the published programs for the repository, and record how much ours differ.

    python tools/pack_golden.py --golden DIRECTORY

DIRECTORY contains `imagenet_c_224.npz` and so on, each with a `.json` file. `tests/golden/reference.zip`
gets the outputs of redistributable images; `tests/golden/gate.csv` gets the number of values that differ
and the largest difference, for all outputs in the directory and for those in the pack.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from golden_data import GATE, PACK, Entry, Row, from_folder, from_pack, measure, write_gate, write_pack

from beaufort.corruptions import corruptions

HALF = 112
"""Rows kept of photos of 224 pixels, except the first, which is complete and has every severity."""

DIGITS = 16

ABOUT = {
    "outputs": "made by the published programs of ImageNet-C, CIFAR-10-C, Tiny-ImageNet-C (Hendrycks and "
    "Dietterich, 2019) and MNIST-C (Mu and Gilmer, 2019), one call an output after numpy.random.seed",
    "origins": {
        "astronaut": "Eileen Collins, by NASA, public domain; from scikit-image",
        "coffee": "a cup of coffee, by Rachel Michetti (Pikolo Espresso Bar), CC0; from scikit-image",
        "chelsea": "a cat, by Stefan van der Walt, CC0; from scikit-image",
        "digits": "from MNIST, Y. LeCun, C. Cortes and C. J. C. Burges, CC BY-SA 3.0; training set",
    },
}


def kept(entry: Entry) -> Entry | None:
    """Return the part of an output for the pack; None if the license of the image may not allow it.

    Outputs of C-bar are too large for the pack; they are compared where the directory is available.
    """
    if entry.picture not in ABOUT["origins"] or corruptions[entry.corruption].group == "unseen":
        return None
    if entry.picture == "digits":
        return replace(
            entry, images=entry.images[:DIGITS], wanted=entry.wanted[:DIGITS], seeds=entry.seeds[:DIGITS]
        )
    if entry.scale == "imagenet" and entry.picture != "astronaut":
        return replace(entry, wanted=entry.wanted[:, :HALF])
    return entry


def rows(golden: Path) -> Iterator[Row]:
    """Yield the lines of the gate."""
    for entry in from_folder(golden):
        yield Row(entry.key, "full", measure(entry))
    for entry in from_pack():
        yield Row(entry.key, "packed", measure(entry))


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--golden", type=Path, required=True)
    golden = parser.parse_args().golden
    write_pack((part for entry in from_folder(golden) if (part := kept(entry))), ABOUT)
    write_gate(rows(golden))
    print(f"{PACK}: {PACK.stat().st_size:,} bytes; {GATE}: {len(GATE.read_text().splitlines()) - 1} lines")


if __name__ == "__main__":
    main()
