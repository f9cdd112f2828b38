"""Several processes on one store: writers that gather, readers, and maintenance."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from beaufort.store import FileStore, query
from tests.torture.stores import cell, make_predictions

__all__ = ["CELLS", "ROWS", "Crowd", "crowd"]

CELLS, ROWS, BLOCK = 3, 600, 20
ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass
class Crowd:
    """Findings of the processes."""

    written: int = 0
    gathered: int = 0
    read: int = 0
    requests: int = 0
    collected: int = 0
    wrong: list[str] = field(default_factory=list)


def crowd(root: Path, *, seconds: float, writers: int = 4, readers: int = 2, keepers: int = 1) -> Crowd:
    """Run the processes for a while; return the total counts and all errors."""
    roles = ["write"] * writers + ["read"] * readers + ["keep"] * keepers
    command = [sys.executable, "-m", "tests.torture.crowd"]
    running = [
        subprocess.Popen(
            [*command, role, str(root), str(seconds), str(number)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number, role in enumerate(roles)
    ]
    for one in running:
        assert one.stdout
        one.stdout.readline()  # it is ready
    for one in running:
        assert one.stdin
        one.stdin.write("go\n")
        one.stdin.flush()
    whole = Crowd()
    for role, one in zip(roles, running, strict=True):
        out, err = one.communicate(timeout=seconds + 900)
        if one.returncode:
            whole.wrong.append(f"{role} ended with {one.returncode}: {err}")
            continue
        for name, count in json.loads(out).items():
            setattr(whole, name, getattr(whole, name) + count)
    return whole


def cells() -> list:  # type: ignore[type-arg]
    return [cell(f"net{i}") for i in range(CELLS)]


def write(store: FileStore, until: float, rng: random.Random) -> dict[str, int]:
    """Write blocks in any order, and gather again and again."""
    counts = {"written": 0, "gathered": 0}
    while time.monotonic() < until or not counts["gathered"]:
        one = rng.choice(cells())
        start = BLOCK * rng.randrange(ROWS // BLOCK)
        stop = start + BLOCK * rng.randint(1, 2)
        store.write(one, start, make_predictions(start, min(stop, ROWS)))
        counts["written"] += 1
        if rng.random() < 0.5:
            counts["gathered"] += store.gather(one) is not None
    return counts


def read(store: FileStore, until: float, rng: random.Random) -> dict[str, int]:
    """Rows are correct, each exists once, and none is ever missing."""
    counts, seen = {"read": 0, "requests": 0}, dict[str, set[int]]()
    while time.monotonic() < until or not counts["read"]:
        listing = store.listing()
        for one in cells():
            if one.fingerprint in listing:
                table = store.read(one, listing)
                places = table["place"].to_numpy().tolist()
                assert places == sorted(set(places)), "a row twice"
                assert table["id"].to_pylist() == [f"test/{place}" for place in places], "a wrong row"
                assert seen.get(one.fingerprint, set()) <= set(places), "rows are missing"
                seen[one.fingerprint] = set(places)
                counts["read"] += 1
        if listing and rng.random() < 0.3:
            sql = "select model, count(*) as n, count(distinct id) as ids from predictions group by model"
            assert all(row["n"] == row["ids"] for row in query(store, sql).to_pylist()), "a row twice in SQL"
            sums = query(store, "select max(images) as n from cells").to_pylist()
            assert sums[0]["n"] <= ROWS, "too many rows in SQL"
            counts["requests"] += 1
    return counts


def keep(store: FileStore, until: float, rng: random.Random) -> dict[str, int]:
    """Nothing is damaged, and no partial file of a living process is removed."""
    counts = {"collected": 0}
    while time.monotonic() < until or not counts["collected"]:
        findings = store.collect(delete=rng.random() < 0.5)
        kinds = {finding.kind.value for finding in findings}
        assert kinds <= {"twice", "overlap"}, f"{findings}"
        counts["collected"] += 1
        time.sleep(0.05)
    return counts


if __name__ == "__main__":
    role, root, seconds, number = sys.argv[1:]
    action = {"write": write, "read": read, "keep": keep}[role]
    rng = random.Random(int(number))
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps(action(FileStore(root), time.monotonic() + float(seconds), rng)))
