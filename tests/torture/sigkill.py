"""SIGKILL for every command that writes: at each step that the disk can see, and at random times.

After a kill nothing that was there is gone, nothing is half there, and no row is read twice. Then the same
command, undisturbed, gives what it would have given without the kill.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from beaufort._core.files import is_leftover
from beaufort.store import FileStore
from tests.torture.commands import COMMANDS, Command, Seen
from tests.torture.mortals import Mortals, kill
from tests.torture.table import Row

__all__ = ["Bench"]

LONGEST_S = 900


class Bench:
    """A command to be killed again and again, from the same beginning."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.command: Command = COMMANDS[name]
        self.output = folder / "said"
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "begin").mkdir(parents=True)
        self.command.prepare(folder / "begin")
        self._mortals = Mortals({"BEAUFORT_CACHE": str(folder / "cache")})
        self.work = folder / "work"
        self._begin()
        self.before = self.command.look(self.work)
        self.seconds = 0.0
        for _ in range(2):  # the second time kernels are compiled
            self._begin()
            begin = time.monotonic()
            if wrong := self._ends_well(self._run()):
                raise AssertionError(f"{name} without a kill: {wrong}")
            self.seconds = time.monotonic() - begin
        self.after = self.command.look(self.work)

    def close(self) -> None:
        """Let the process go."""
        self._mortals.close()

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Killing

    def every_step(self, row: Row, *, stride: int = 1, first: int = 1) -> None:
        """Kill the command before its first step, its second, and so on, until it finishes."""
        step = first
        while row.has_time():
            self._begin()
            code = self._run(step=step)
            if code != -signal.SIGKILL:
                if wrong := self._ends_well(code):
                    row.uncaught(f"{self.name}, not killed: {wrong}")
                return
            at = (self.folder / "said.step").read_text().replace(str(self.work), "")
            row.count += 1
            self._judge(row, f"{self.name} --step {step} ({at})")
            step += stride

    def at_random(self, row: Row, count: int, *, seed: int) -> None:
        """Kill the command up to three times in a row, each at any moment."""
        for number in range(count):
            if not row.has_time():
                return
            rng = random.Random(f"{seed}/{self.name}/{number}")
            self._begin()
            for _ in range(rng.randint(1, 3)):
                if self._run(after=rng.uniform(0, self.seconds)) == -signal.SIGKILL:
                    row.count += 1
                else:  # it was quicker than it was at first
                    self.seconds *= 0.9
                self._whole(row, f"{self.name} --seed {seed}, {number}")
            self._resumed(row, f"{self.name} --seed {seed}, {number}")

    def _begin(self) -> None:
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(self.folder / "begin", self.work)

    def _run(self, *, step: int = 0, after: float | None = None) -> int:
        arguments = self.command.given(self.work)
        child = self._mortals.start(arguments, folder=f"{self.work}/", step=step, output=str(self.output))
        timer = threading.Timer(LONGEST_S if after is None else after, kill, (child,))
        timer.start()
        code = self._mortals.wait()
        timer.cancel()
        return code

    # Judging

    def _judge(self, row: Row, case: str) -> None:
        self._whole(row, case)
        self._resumed(row, case)

    def _whole(self, row: Row, case: str) -> None:
        """Earlier or new files exist, and nothing else."""
        with self._caught(row, f"{case}, after the kill"):
            seen = self.command.look(self.work)
            things = seen.things
            lost = [
                key for key, was in self.before.things.items() if things.get(key) not in self._may(key, was)
            ]
            lost = [key for key in lost if key in self.after.things or key in things]
            odd = [
                key for key in things.keys() - self.before.things.keys() if things[key] not in self._may(key)
            ]
            self._count(row, f"{case}, after the kill", [*lost, *odd], seen)

    def _may(self, key: object, *others: object) -> tuple[object, ...]:
        """The allowed states of an output: as before, or as after."""
        return (*others, self.after.things[key]) if key in self.after.things else others

    def _resumed(self, row: Row, case: str) -> None:
        """The same command again gives what it gives without a kill."""
        case = f"{case}, resumed"
        if wrong := self._ends_well(self._run()):
            row.uncaught(f"{case}: {wrong}")
            return
        with self._caught(row, case):
            seen = self.command.look(self.work)
            keys = seen.things.keys() | self.after.things.keys()
            self._count(row, case, [k for k in keys if seen.things.get(k) != self.after.things.get(k)], seen)
            if self.command.store is not None:
                self._tidied(row, case)
            elif left := [path.name for path in self.work.rglob(".*") if is_leftover(path.name)]:
                row.loss(f"{case}: {left} was not removed")

    def _tidied(self, row: Row, case: str) -> None:
        store = FileStore(self.work / str(self.command.store))
        store.collect()
        if faults := store.verify():
            row.loss(f"{case}, after the repair: {faults}")
        if self.command.look(self.work).things != self.after.things:
            row.loss(f"{case}, after the repair: different rows")

    def _count(self, row: Row, case: str, wrong: list[object], seen: Seen) -> None:
        if wrong:
            row.loss(f"{case}: {len(wrong)} are missing or wrong, e.g. {wrong[0]}")
        if seen.doubles:
            row.double(f"{case}: {seen.doubles} duplicates")

    @contextlib.contextmanager
    def _caught(self, row: Row, case: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            row.uncaught(f"{case}: {type(error).__name__}: {error}")

    def _ends_well(self, code: int) -> str:
        output = self.output.read_text(errors="replace")
        return "" if code == 0 and "Traceback" not in output else f"exit code {code}: {output[-1500:]}"
