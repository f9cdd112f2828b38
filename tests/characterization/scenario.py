"""Scenarios: small programs of public use, each with the spelling of the past and the one of today."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from tests.characterization import renames


@dataclass(frozen=True)
class Scenario:
    """One use of the package: a command line or a piece of Python.

    If `now` is empty, today's spelling is `before` with the replacements of `renames.py`.
    """

    name: str
    before: str
    """Valid at the recorded commit: what follows `beaufort` on the command line, or code.

    Variables of the environment, as $PORT, are filled in on a command line.
    """
    now: str = ""
    """Valid today, written out."""
    python: bool = False
    """Whether the spellings are code."""
    stdout: str = "auto"
    """How to read the output: json, csv, numbers, table, names or nothing; auto is json with --json."""
    ignore: tuple[str, ...] = ()
    """Files that are not recorded, as patterns of `fnmatch`."""
    unordered: bool = False
    """Whether the order of lists does not count, as in a listing of what is registered."""

    def spelling(self, which: str) -> str:
        """Return the spelling `before` or `now`."""
        if which == "before":
            return self.before
        if self.now:
            return self.now
        return renames.code(self.before) if self.python else renames.command(self.before)

    def arguments(self, which: str) -> list[str]:
        """Return the words of a command line."""
        return shlex.split(self.spelling(which))


@dataclass(frozen=True)
class Group:
    """Scenarios that run one after the other in one process and one folder."""

    name: str
    scenarios: tuple[Scenario, ...]
    requires: tuple[str, ...] = ()
    """Modules without which it is skipped; `assets` stands for the published images of frost."""
    heavy: bool = False
    """Whether only `tools/characterize.py --all` runs it."""

    def __post_init__(self) -> None:
        names = [scenario.name for scenario in self.scenarios]
        assert len(set(names)) == len(names), f"{self.name} has a scenario twice"


def command(
    name: str,
    before: str,
    now: str = "",
    *,
    stdout: str = "auto",
    ignore: str = "",
    unordered: bool = False,
) -> Scenario:
    """Make a scenario of a command line, without the word `beaufort`."""
    return Scenario(name, before, now, stdout=stdout, ignore=tuple(ignore.split()), unordered=unordered)


def python(name: str, before: str, now: str = "", *, ignore: str = "") -> Scenario:
    """Make a scenario of code, which hands what counts to `record(name, value)`."""
    return Scenario(name, before, now, python=True, ignore=tuple(ignore.split()))
