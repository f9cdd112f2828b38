"""All of the torture, with a table at the end: `python -m tests.torture`, or `make torture`."""

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
    """Do it, part by part; stop at the first finding."""
    given = _options()
    begin, rows = time.monotonic(), list[Row]()
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        os.environ["BEAUFORT_CACHE"] = f"{folder}/cache"
        for number, part in enumerate(given.parts):
            left = begin + 60 * given.minutes - time.monotonic()
            weights = [PARTS[name][1] for name in given.parts[number:]]
            until = time.monotonic() + left * weights[0] / sum(weights)
            for row in PARTS[part][0](Task(Path(folder), given.seed, given.share, until)):
                rows.append(row)
                print(*row.cells()[:1], row.count, f"{row.seconds:.0f} s", flush=True)
                if row.findings:
                    break
            if rows[-1].findings:
                break
    _tell(rows, given, time.monotonic() - begin)
    return int(any(row.findings for row in rows))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20, help="the most it may take; parts are cut short")
    parser.add_argument("--seed", type=int, default=0, help="the same seed does the same")
    parser.add_argument("--share", type=float, default=1.0, help="of all counts, above 0 and at most 1")
    parser.add_argument("--output", type=Path, help="write the table here, as .json or .md")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="only these")
    given = parser.parse_args()
    if not 0 < given.share <= 1:
        parser.error(f"--share must be above 0 and at most 1, got {given.share}")
    return given


def _tell(rows: list[Row], given: argparse.Namespace, seconds: float) -> None:
    table = as_markdown(rows)
    print(f"\n{table}\n\nseed {given.seed}, share {given.share:g}, {seconds / 60:.1f} minutes by the clock")
    for finding in (finding for row in rows for finding in row.findings[:3]):
        print(f"\nFOUND {finding}")
    if any(row.findings for row in rows):
        parts = " ".join(given.parts)
        print(f"\nagain: python -m tests.torture --seed {given.seed} --share {given.share:g} --parts {parts}")
    if given.output is not None:
        facts = {"seed": given.seed, "share": given.share, "wall_seconds": round(seconds)}
        text = as_json(rows, **facts) if given.output.suffix == ".json" else table
        given.output.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
