"""One small job, on every engine and into every kind of store, with parts of it killed while it runs.

After a kill everything that is stored is complete and is read once; the same command resumes. When it
has come to its end, and the house was kept, the store is that of a job that nobody disturbed: nothing is
lost, nothing is there twice, and no passing file is left.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from beaufort._core.files import is_leftover
from beaufort.store import FileStore
from tests.torture.commands import digits, rows_at, suite
from tests.torture.mortal import MORE
from tests.torture.mortals import Mortals, family, kill
from tests.torture.places import Places

__all__ = ["KINDS", "Campaign", "Field", "Kind"]

LONGEST_S = 900
MOST_KILLS = 12
"""In one campaign; then the job is left alone until it ends."""
LOOKED_AT = 0.4
"""Fraction of the kills after which all rows are read; at the end they always are."""


class Kind(NamedTuple):
    """An engine, and a kind of store."""

    engine: str
    store: str

    def __str__(self) -> str:
        return f"{_ENGINES[self.engine]}, {_STORES[self.store]}"


_ENGINES = {"local": "local engine", "processes": "process engine", "ray": "Ray engine"}
_STORES = {"files": "store of files", "s3": "store in S3"}
KINDS = tuple(Kind(engine, store) for engine in _ENGINES for store in _STORES)


@dataclass
class Campaign:
    """Kills of a job until it finished, and errors found."""

    killed: Counter[str] = field(default_factory=Counter)
    losses: list[str] = field(default_factory=list)
    doubles: list[str] = field(default_factory=list)
    uncaught: list[str] = field(default_factory=list)
    rows: int = 0
    """Number of predictions compared at the end."""

    @property
    def findings(self) -> list[str]:
        return [*self.losses, *self.doubles, *self.uncaught]


class Field:
    """Where jobs of one kind are begun, killed, resumed and looked at."""

    def __init__(self, kind: Kind, folder: Path, places: Places) -> None:
        self.kind, self.folder, self.places = kind, folder, places
        shutil.rmtree(folder, ignore_errors=True)
        digits(folder / "digits")
        suite(folder / "small.yaml")
        more = " ".join((["s3fs"] if kind.store == "s3" else []) + (["ray"] if kind.engine == "ray" else []))
        self._mortals = Mortals(
            {"BEAUFORT_CACHE": str(folder / "cache"), MORE: more, **places.environment(kind)}
        )
        self.data = folder
        """Directory of the suite and the images."""
        self.location = ""
        self.seconds = 1.0
        """What a job takes when nobody disturbs it."""

    def __enter__(self) -> Field:
        return self

    def __exit__(self, *_: object) -> None:
        self._mortals.close()

    def begin(self, name: str) -> None:
        """Choose a place for a new store."""
        self.location = self.places.store(self.kind, self.folder, name)

    def arguments(self) -> list[str]:
        run = ["run", "--model", "demo:digits", "--suite", f"{self.data}/small.yaml"]
        run += ["--data", f"{self.data}/digits", "--store", self.location]
        match self.kind.engine:
            case "processes":
                return [*run, "--engine", "processes:2"]
            case "ray":
                return [*run, "--engine", f"ray:address={self.places.cluster.address},workers=2"]
        return [*run, "--engine", "local:1"]

    # Running

    def run(
        self,
        strike: Callable[[int], None] | None = None,
        after: float = 0.0,
        *,
        again: bool = False,
        **requested: Any,
    ) -> int:
        """Carry out the job; `strike` is called with the number of its process after so many seconds.

        With `again`, it is called after as many seconds more, until the job is over.
        """
        child = self._mortals.start(self.arguments(), output=str(self.output_file), **requested)
        over = threading.Event()

        def wait_and_strike() -> None:
            while strike is not None and not over.wait(after):
                strike(child)
                if not again:
                    break
            if not over.wait(LONGEST_S):
                kill(child)

        watch = threading.Thread(target=wait_and_strike)
        watch.start()
        code = self._mortals.wait()
        over.set()
        watch.join()
        return code

    @property
    def output_file(self) -> Path:
        return self.folder / "said"

    def ended_badly(self, code: int) -> str:
        """Return what is wrong with the end of a job that must succeed; empty if nothing."""
        output = self.output_file.read_text(errors="replace")
        return "" if code == 0 and "Traceback" not in output else f"exit code {code}: {output[-1500:]}"

    # Looking

    def undisturbed(self) -> dict[Any, Any]:
        """Return the rows of an undisturbed job; its duration is kept."""
        for name in ("first", "undisturbed"):  # the second time kernels are compiled
            self.begin(name)
            begin = time.monotonic()
            if wrong := self.ended_badly(self.run()):
                raise AssertionError(f"{self.kind} without a kill: {wrong}")
            self.seconds = time.monotonic() - begin
        return dict(rows_at(self.location).things)

    def compare(self, campaign: Campaign, case: str, wanted: dict[Any, Any], *, whole: bool) -> None:
        """Check that all rows are expected, or some of them unless `whole`, each once."""
        with caught(campaign, case):
            seen = rows_at(self.location)
            wrong = [key for key, row in seen.things.items() if wanted.get(key) != row]
            wrong += [key for key in wanted.keys() - seen.things.keys() if whole]
            if wrong:
                campaign.losses.append(f"{case}: {len(wrong)} rows are missing or wrong, e.g. {wrong[0]}")
            if seen.doubles:
                campaign.doubles.append(f"{case}: {seen.doubles} duplicate rows")
            campaign.rows = len(seen.things)

    def tidy(self, campaign: Campaign, case: str) -> None:
        """Repair the store; it must be sound afterwards, without temporary files."""
        with caught(campaign, case):
            store = FileStore(self.location)
            store.collect(delete=True)
            if faults := store.verify():
                campaign.losses.append(f"{case}: {faults}")
            left = [path for path in store.disk.files(".") if not _belongs(path.removeprefix("./"))]
            if left:
                campaign.losses.append(f"{case}: {left[0]} was not removed")

    # Killing

    def campaign(self, number: int, seed: int, wanted: dict[Any, Any]) -> Campaign:
        """Kill parts of a job, one after the other, until it ends; the end is compared with `wanted`."""
        rng, campaign = random.Random(f"{seed}/{self.kind}/{number}"), Campaign()
        self.begin(f"{seed}-{number}")
        case = f"{self.kind}, seed {seed}, {number}"
        while campaign.killed.total() < MOST_KILLS and not campaign.findings:
            if self._killed(rng, campaign, case):
                break
            if rng.random() < LOOKED_AT:
                self.compare(campaign, f"{case}, after a kill", wanted, whole=False)
        else:
            if wrong := self.ended_badly(self.run()):
                campaign.uncaught.append(f"{case}, resumed: {wrong}")
        self.places.settle(self.kind)
        self.compare(campaign, f"{case}, at the end", wanted, whole=True)
        self.tidy(campaign, f"{case}, after the repair")
        self.compare(campaign, f"{case}, after the repair", wanted, whole=True)
        self.places.forget(self.location)
        return campaign

    def _killed(self, rng: random.Random, campaign: Campaign, case: str) -> bool:
        """Run the job until a part of it is killed; return whether it finished."""
        struck: list[str] = []
        after = rng.uniform(0, self.seconds)
        code = self.run(lambda child: struck.extend(self._strike(child, rng)), after, again=True)
        campaign.killed.update(struck)
        if not struck:  # it was quicker than it was at first
            self.seconds *= 0.8
        output = self.output_file.read_text(errors="replace")
        if "Traceback" in output or (code != 0 and set(struck) <= {"network"}):
            campaign.uncaught.append(f"{case}, {struck} killed: exit code {code}: {output[-1500:]}")
        return code == 0

    def _strike(self, child: int, rng: random.Random) -> Iterator[str]:
        """Kill a random part and return its name."""
        parts: list[tuple[str, Callable[[], object]]] = [("driver", lambda: kill(child))]
        for one in family(child)[1:]:
            parts.append(("worker", lambda one=one: kill(one)))  # type: ignore[misc]
        parts += self.places.parts(self.kind)
        name, strike = rng.choice(parts)
        strike()
        yield name


def _belongs(path: str) -> bool:
    name = path.rpartition("/")[2]
    return path.startswith(("predictions/", "runs/", "index.parquet")) and not is_leftover(name)


@contextlib.contextmanager
def caught(campaign: Campaign, case: str) -> Iterator[None]:
    """Count an error as a finding."""
    try:
        yield
    except Exception as error:
        campaign.uncaught.append(f"{case}: {type(error).__name__}: {error}")
