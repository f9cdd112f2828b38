"""A thousand kills: `make torture KILLS=1000`, or `python -m tests.torture.thousand --kills 1000`.

Each campaign is recorded when it ends. The same command resumes; the report is rewritten each time.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.torture.disasters import DISASTERS, can_mount
from tests.torture.jobs import KINDS, Campaign, Field, Kind
from tests.torture.places import Places
from tests.torture.report_of_kills import write_report

__all__ = ["Ledger", "main"]

FRACTIONS = {
    Kind("local", "files"): 0.48,
    Kind("local", "s3"): 0.32,
    Kind("processes", "files"): 0.10,
    Kind("processes", "s3"): 0.07,
    Kind("ray", "files"): 0.015,
    Kind("ray", "s3"): 0.015,
}
"""Of all kills; processes that start anew, and a cluster, take much longer."""
REPORT_EVERY = 10
"""Campaigns after which the report is written anew."""
DISASTERS_PER_KILL = 0.02
"""Of each kind: twenty for a thousand kills."""


class Ledger:
    """The finished campaigns, one line of JSON each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self.lines: list[dict[str, Any]] = []
        if path.exists():  # its last line may be half, if this was killed too
            kept = [line for line in path.read_text().splitlines() if line.endswith("}")]
            self.lines = [json.loads(line) for line in kept]
            path.write_text("".join(f"{line}\n" for line in kept))

    def add(self, what: str, campaign: Campaign, seconds: float) -> None:
        line = {
            "what": what,
            "killed": dict(campaign.killed),
            "rows": campaign.rows,
            "losses": campaign.losses,
            "doubles": campaign.doubles,
            "uncaught": campaign.uncaught,
            "seconds": round(seconds, 2),
        }
        with self._lock:
            self.lines.append(line)
            with self.path.open("a") as file:
                file.write(json.dumps(line) + "\n")

    def campaigns(self, what: str) -> int:
        return sum(line["what"] == what for line in self.lines)

    def kills(self, what: str) -> int:
        return sum(sum(line["killed"].values()) for line in self.lines if line["what"] == what)

    @property
    def findings(self) -> list[str]:
        return [one for line in self.lines for key in ("losses", "doubles", "uncaught") for one in line[key]]


def main() -> int:
    """Do what is left to do, and report."""
    given = _options()
    given.output.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(given.state)
    with tempfile.TemporaryDirectory(prefix="torture-") as folder, Places() as places, ExitStack() as stack:
        os.environ["BEAUFORT_CACHE"] = f"{folder}/cache"
        task = _Task(given, ledger, Path(folder), places, stack)
        if given.disasters:
            task.disasters()
        task.kills()
        task.report()
    for finding in ledger.findings[:5]:
        print(f"\nFOUND {finding}")
    return int(bool(ledger.findings))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.torture.thousand", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000, help="number of kills over all engines and stores")
    parser.add_argument("--kinds", nargs="+", choices=[f"{e}-{s}" for e, s in KINDS], help="default: all")
    parser.add_argument("--no-disasters", dest="disasters", action="store_false", help="skip the disasters")
    parser.add_argument("--seed", type=int, default=0, help="seed of the killed parts and times")
    parser.add_argument("--at-once", type=int, default=2, help="number of concurrent jobs")
    parser.add_argument(
        "--output", type=Path, default=Path("results/reliability"), help="directory for the report"
    )
    parser.add_argument(
        "--state", type=Path, default=Path("torture-kills.jsonl"), help="file with finished campaigns"
    )
    given = parser.parse_args()
    given.kinds = [Kind(*one.split("-")) for one in given.kinds or [f"{e}-{s}" for e, s in KINDS]]
    return given


class _Task:
    """The campaigns that are left, each on a field that is free."""

    def __init__(
        self, given: argparse.Namespace, ledger: Ledger, folder: Path, places: Places, stack: ExitStack
    ) -> None:
        self.given, self.ledger, self.folder, self.places, self.stack = given, ledger, folder, places, stack
        self.wanted: dict[Any, Any] = {}
        self._fields: dict[Kind, Field] = {}
        self._busy: set[Kind] = set()
        self._lock = threading.Lock()
        whole = sum(FRACTIONS[kind] for kind in given.kinds)
        self._quotas = {kind: round(given.kills * FRACTIONS[kind] / whole) for kind in given.kinds}
        self.wanted = self._field(Kind("local", "files")).undisturbed()

    def kills(self) -> None:
        """Run campaigns until there are enough kills of each kind."""
        with ThreadPoolExecutor(self.given.at_once) as pool:
            for done in [pool.submit(self._work) for _ in range(self.given.at_once)]:
                done.result()

    def _work(self) -> None:
        while (kind := self._take()) is not None:
            begin = time.monotonic()
            field = self._field(kind)
            campaign = field.campaign(self.ledger.campaigns(str(kind)), self.given.seed, self.wanted)
            self.ledger.add(str(kind), campaign, time.monotonic() - begin)
            with self._lock:
                self._busy.discard(kind)
                if len(self.ledger.lines) % REPORT_EVERY == 0:
                    self.report()
            print(
                kind,
                dict(campaign.killed),
                f"{time.monotonic() - begin:.1f} s",
                *campaign.findings,
                flush=True,
            )

    def report(self) -> None:
        """Write the report of the progress so far."""
        write_report(self.given.output, self.ledger.lines, kills=self.given.kills, seed=self.given.seed)

    def _take(self) -> Kind | None:
        """Return the idle kind with the fewest kills; None if nothing is left for this thread."""
        with self._lock:
            behind = {
                kind: self.ledger.kills(str(kind)) / quota
                for kind, quota in self._quotas.items()
                if kind not in self._busy and quota
            }
            left = [kind for kind in behind if behind[kind] < 1]
            if not left or len(self.ledger.findings) >= 5:
                return None
            kind: Kind = min(left, key=behind.__getitem__)
            self._busy.add(kind)
            return kind

    def _field(self, kind: Kind) -> Field:
        if kind not in self._fields:
            field = self.stack.enter_context(Field(kind, self.folder / "-".join(kind), self.places))
            self._fields[kind] = field
            if self.wanted and field.undisturbed() != self.wanted:
                raise AssertionError(
                    f"{kind}: the rows of an undisturbed job differ from those of the local engine"
                )
        return self._fields[kind]

    def disasters(self) -> None:
        """Each disaster as often as it is due."""
        if not can_mount():
            print("skipping disasters: mounting a file system needs root", flush=True)
            return
        kind = Kind("local", "files")
        first, second = self._field(kind), Field(kind, self.folder / "second operator", self.places)
        with second:
            second.data = first.data
            for what, happens in DISASTERS.items():
                while self.ledger.campaigns(what) < max(1, round(self.given.kills * DISASTERS_PER_KILL)):
                    begin = time.monotonic()
                    rng = random.Random(f"{self.given.seed}/{what}/{self.ledger.campaigns(what)}")
                    campaign = happens(first, second, rng, self.wanted)
                    self.ledger.add(what, campaign, time.monotonic() - begin)
                    print(what, f"{time.monotonic() - begin:.1f} s", *campaign.findings, flush=True)


if __name__ == "__main__":
    sys.exit(main())
