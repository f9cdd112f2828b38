"""Failures of the storage of a store while a job fills it: full, read-only, removed, shared.

Each disaster happens at a random time. The job ends with a message or continues; stored files are complete.
Afterwards the same command gives the result of an undisturbed job. Mounting needs root.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.torture.jobs import Campaign, Field, caught
from tests.torture.mortals import kill

__all__ = ["DISASTERS", "Disaster", "can_mount"]

Rows = dict[Any, Any]
Disaster = Callable[[Field, Field, random.Random, Rows], Campaign]


def can_mount() -> bool:
    """Whether this user may mount a file system in memory."""
    if os.name != "posix" or os.geteuid() != 0:
        return False
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.suppress(OSError, subprocess.CalledProcessError),
        _mounted(Path(folder) / "probe", 64),
    ):
        return True
    return False


@contextlib.contextmanager
def _mounted(place: Path, kilobytes: int) -> Iterator[None]:
    """A small file system in memory."""
    place.mkdir(parents=True, exist_ok=True)
    _mount(place, f"size={kilobytes}k", "-t", "tmpfs", "tmpfs")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True, capture_output=True)
        place.rmdir()


def _mount(place: Path, options: str, *kind: str) -> None:
    subprocess.run(["mount", "-o", options, *kind, str(place)], check=True, capture_output=True)


def disk_full(field: Field, second: Field, rng: random.Random, wanted: Rows) -> Campaign:
    """The disk is too small for all predictions; then it grows."""
    campaign, place = Campaign(), field.folder / "small disk"
    with _mounted(place, rng.randint(16, 120)):
        field.location = str(place / "store")
        _hit(field, campaign, "disk full", wanted, field.run(), ("No space left", "are free"))
        _mount(place, "remount,size=10m")
        _over(field, campaign, "disk full", wanted)
    return campaign


def read_only(field: Field, second: Field, rng: random.Random, wanted: Rows) -> Campaign:
    """The store's disk becomes read-only; then it can be written to again."""
    campaign, place = Campaign(), field.folder / "disk"
    with _mounted(place, 10_000):
        field.location = str(place / "store")

        def protect(child: int) -> None:
            for _ in range(200):  # not while a file is open for writing
                with contextlib.suppress(subprocess.CalledProcessError):
                    _mount(place, "remount,ro")
                    return
                time.sleep(0.005)

        code = field.run(protect, rng.uniform(0, field.seconds))
        case = ("Read-only", "cannot be written to", "not writable")
        _hit(field, campaign, "read-only", wanted, code, case)
        _mount(place, "remount,rw")
        _over(field, campaign, "read-only", wanted)
    return campaign


def removed(field: Field, second: Field, rng: random.Random, wanted: Rows) -> Campaign:
    """Somebody deletes the store."""
    campaign = Campaign()
    field.begin("removed")

    def remove(child: int) -> None:
        for _ in range(20):  # a file may come while the folder is emptied
            shutil.rmtree(field.location, ignore_errors=True)

    code = field.run(remove, rng.uniform(0, field.seconds))
    words = ("was not kept", "no answers", "lacks answers", "cannot be written")
    _hit(field, campaign, "removed", wanted, code, words)
    _over(field, campaign, "removed", wanted)
    return campaign


def clock_set_back(field: Field, second: Field, rng: random.Random, wanted: Rows) -> Campaign:
    """The clock jumps back again and again, and the job is killed; the next one has the right time."""
    campaign = Campaign()
    field.begin("clock")
    back = rng.choice((1, 3600, 10**6, 10**8))
    code = field.run(kill if rng.random() < 0.7 else None, rng.uniform(0, field.seconds), back=back)
    if code != -9 and (wrong := field.ended_badly(code)):
        campaign.uncaught.append(f"clock set back by {back} s: {wrong}")
    _hit(field, campaign, "clock set back", wanted, 0, ())
    _over(field, campaign, "clock set back", wanted)
    return campaign


def two_operators(field: Field, second: Field, rng: random.Random, wanted: Rows) -> Campaign:
    """Two people start the same job; one of the two may be killed, and the other one ends well."""
    campaign = Campaign()
    field.begin("shared")
    second.location = field.location
    victim = rng.choice((None, kill))
    codes: list[int] = []
    other = threading.Thread(target=lambda: codes.append(second.run()))
    other.start()
    time.sleep(rng.uniform(0, field.seconds / 2))
    mine = field.run(victim, rng.uniform(0, field.seconds))
    other.join()
    for one, code in ((field, mine), (second, codes[0])):
        killed = code == -9 and victim is not None and one is field
        if not killed and (wrong := one.ended_badly(code)):
            campaign.uncaught.append(f"two operators: {wrong}")
    _hit(field, campaign, "two operators", wanted, 0, ())
    _over(field, campaign, "two operators", wanted)
    return campaign


DISASTERS: dict[str, Disaster] = {
    "disk full, then enlarged": disk_full,
    "disk made read-only, then writable again": read_only,
    "store removed while it is filled": removed,
    "clock set back again and again": clock_set_back,
    "two operators start the same job": two_operators,
}


def _hit(
    field: Field, campaign: Campaign, what: str, wanted: Rows, code: int, words: tuple[str, ...]
) -> None:
    """The job reports the failure or succeeds; stored files are complete."""
    output = field.output_file.read_text(errors="replace")
    campaign.killed[what] += 1
    if "Traceback" in output or (code != 0 and not any(word in output for word in words)):
        campaign.uncaught.append(f"{what}: exit code {code}: {output[-1500:]}")
    if Path(field.location).is_dir():
        field.compare(campaign, what, wanted, whole=False)


def _over(field: Field, campaign: Campaign, what: str, wanted: Rows) -> None:
    """The same command completes the results."""
    with caught(campaign, what):
        if wrong := field.ended_badly(field.run()):
            campaign.uncaught.append(f"{what}, resumed: {wrong}")
        field.compare(campaign, f"{what}, resumed", wanted, whole=True)
        field.tidy(campaign, f"{what}, after the repair")
        field.compare(campaign, f"{what}, after the repair", wanted, whole=True)
