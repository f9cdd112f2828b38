"""Record what the package does, and compare a later version with it.

    python tools/characterize.py record --source OLD/src
    python tools/characterize.py compare

`record` runs the `before` spellings of tests/characterization twice and keeps the facts that are stable;
`compare` runs the `now` spellings on this checkout and prints every difference.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tests.characterization import harness  # noqa: E402
from tests.characterization.scenarios import GROUPS  # noqa: E402


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="run the spellings of the past and write their facts")
    recording.add_argument("--source", type=Path, required=True, help="folder that holds the old `beaufort`")
    recording.add_argument("--output", type=Path, default=harness.RECORDED, help="file to write")
    comparing = commands.add_parser("compare", help="run the spellings of today and print differences")
    comparing.add_argument("--source", type=Path, default=ROOT / "src", help="folder that holds `beaufort`")
    for one in (recording, comparing):
        one.add_argument("--groups", default="", help="only these groups, separated by commas")
    comparing.add_argument("--all", action="store_true", help="also the groups that take long")
    options = parser.parse_args()
    if options.command == "record":
        record(options.source.resolve(), options.output, options.groups)
    else:
        sys.exit(compare(options.source.resolve(), options.groups, every=options.all))


def _chosen(groups: str, *, every: bool) -> list[str]:
    if groups:
        return groups.split(",")
    return [name for name, group in GROUPS.items() if every or not group.heavy]


def record(source: Path, output: Path, groups: str) -> None:
    """Run every group twice, and write the facts that both runs agree on."""
    found = json.loads(output.read_text(encoding="utf-8")) if groups and output.is_file() else {}
    for name in _chosen(groups, every=True):
        if lacking := harness.missing(GROUPS[name]):
            sys.exit(f"{name} cannot be recorded without {lacking}")
        start, used = time.monotonic(), _cpu()
        first, second = (harness.run_groups([name], "before", source)[name] for _ in range(2))
        found[name] = {}
        for scenario, facts in first.items():
            kept = harness.stable(facts, second[scenario])
            found[name][scenario] = kept
            if "message" in facts:
                print(f"{name}/{scenario} exits with {facts['exit']}: {facts['message'].strip()}")
            lost = harness.flattened(facts).keys() - harness.flattened(kept).keys()
            for fact in sorted(lost - {"message", "error"}):
                print(f"{name}/{scenario}: {fact} is not stable")
            if "error" in facts:
                print(f"{name}/{scenario} raised {facts['error']}")
        wall = time.monotonic() - start
        print(f"{name}: {len(first)} scenarios, {wall:.1f} s, {_cpu() - used:.1f} s of CPU for two runs")
        _write(found, output)


def _write(found: dict[str, object], output: Path) -> None:
    known = {name: found[name] for name in GROUPS if name in found}
    text = json.dumps(known, indent=0, sort_keys=True, ensure_ascii=False)
    output.write_text(text + "\n", encoding="utf-8")


def compare(source: Path, groups: str, *, every: bool) -> int:
    """Print differences; return 1 if there are any."""
    recorded, wrong = harness.load_recorded(), 0
    for name in _chosen(groups, every=every):
        if lacking := harness.missing(GROUPS[name]):
            print(f"{name}: skipped, {lacking} is missing")
            continue
        found = harness.run_groups([name], "now", source)[name]
        for scenario in GROUPS[name].scenarios:
            lines = harness.differences(scenario, recorded[name][scenario.name], found.get(scenario.name, {}))
            wrong += bool(lines)
            for line in lines:
                print(f"{name}/{scenario.name}: {line}")
        print(f"{name}: {len(found)} scenarios")
    print(f"{wrong} scenarios differ")
    return 1 if wrong else 0


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
