"""Run all torture tests and print a table: `python -m tests.torture`, or `make torture`."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from tests.torture.parts import PARTS, Task
from tests.torture.table import Row, as_json, as_markdown


def main() -> int:
    """Run part by part, and stop at the first finding."""
    given = _options()
    begin, rows = time.monotonic(), list[Row]()
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        os.environ["BEAUFORT_CACHE"] = f"{folder}/cache"
        for number, part in enumerate(given.parts):
            left = begin + 60 * given.minutes - time.monotonic()
            weights = [PARTS[name][1] for name in given.parts[number:]]
            until = time.monotonic() + left * weights[0] / sum(weights)
            for row in PARTS[part][0](Task(Path(folder), given.seed, given.fraction, until)):
                rows.append(row)
                print(*row.cells()[:1], row.count, f"{row.seconds:.0f} s", flush=True)
                if row.findings:
                    break
            if rows[-1].findings:
                break
    _print_table(rows, given, time.monotonic() - begin)
    return int(any(row.findings for row in rows))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20, help="time limit; parts are cut short")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random choices")
    parser.add_argument("--fraction", type=float, default=1.0, help="fraction of all counts to run")
    parser.add_argument("--output", type=Path, help="file for the table, .json or .md")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="default: all")
    given = parser.parse_args()
    if not 0 < given.fraction <= 1:
        parser.error(f"--fraction must be above 0 and at most 1, got {given.fraction}")
    return given


def _print_table(rows: list[Row], given: argparse.Namespace, seconds: float) -> None:
    table = as_markdown(rows)
    print(f"\n{table}\n\nseed {given.seed}, fraction {given.fraction:g}, {seconds / 60:.1f} minutes")
    for finding in (finding for row in rows for finding in row.findings[:3]):
        print(f"\nFOUND {finding}")
    if any(row.findings for row in rows):
        parts = " ".join(given.parts)
        print(
            f"\nreproduce with: python -m tests.torture --seed {given.seed} "
            f"--fraction {given.fraction:g} --parts {parts}"
        )
    if given.output is not None:
        facts = {"seed": given.seed, "fraction": given.fraction, "wall_seconds": round(seconds)}
        text = as_json(rows, **facts) if given.output.suffix == ".json" else table
        given.output.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
