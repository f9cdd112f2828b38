"""Write flips.csv: the predictions that differ between the float32 versions in a store and the others.

python results/quantization/tables.py STORE
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path

from beaufort.results import Results, compare_deployment, open_results

NUMBERS = ("first", "second", "flips", "broken", "fixed", "changed")


def rows(results: Results) -> Iterator[list[object]]:
    """Yield the numbers of each version and condition."""
    for model in results.models:
        network, _, version = model.rpartition("-")
        if version == "float32":
            continue
        for one in compare_deployment(results, [f"{network}-float32", model]).conditions:
            row: list[object] = [network, version, one.condition.done or "clean"]
            for name in NUMBERS:
                value = getattr(one, name)
                row += [f"{part:.4f}" for part in (value.value, value.low, value.high)]
            yield row


def main() -> None:
    """Write the table of the store on the command line."""
    ends = [f"{name}{end}" for name in NUMBERS for end in ("", "_low", "_high")]
    with (Path(__file__).parent / "flips.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["network", "version", "condition", *ends])
        writer.writerows(rows(open_results(sys.argv[1])))


if __name__ == "__main__":
    main()
