"""Provenance of the numbers: what a reader needs to reproduce them, without paths of the author's disk."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from beaufort import __version__
from beaufort._core.text import command_without_secrets, counted, without_folders
from beaufort.results import Scores

_SHOWN = 6
"""Largest number of commands or machines that are listed."""


class Fact(NamedTuple):
    """One line of the provenance."""

    name: str
    values: tuple[str, ...]


def provenance_facts(scores: Scores) -> list[Fact]:
    """Return versions, seeds, digests, commands, machines and times, in a fixed order."""
    results = scores.results
    setting, seed, origins = results.setting, results.setting.seed, results.origins
    suite, baseline, order = scores.suite, scores.baseline, setting.order
    way = f"shuffled with the seed {order}"
    if isinstance(order, str):
        way = f"balanced over classes, with the seed {order.removeprefix('spread ')}"
    unread = {one.model: one.unread for one in scores.models if one.unread}
    lost = (f"{name}: {counted(count, 'image')}" for name, count in unread.items())
    lacking = (f"{name} lacks {counted(n, 'condition')}" for name, n in sorted(results.incomplete.items()))
    facts = [
        Fact("Suite", (f"{suite.name}, version {suite.version}", f"sha256:{suite.digest}")),
        Fact("Data", (f"{results.dataset}, {counted(scores.images, 'image')}", f"sha256:{setting.data}")),
        Fact("Order of the images", () if order is None else (way,)),
        Fact("Labels", results.spaces),
        Fact("Seed of the corruptions", (str("none (no corruption is random)" if seed is None else seed),)),
        Fact("Models", tuple(f"{one.model} {one.digest or '(no digest)'}" for one in scores.models)),
        Fact("Baseline", (f"{baseline.name}: {baseline.title}", baseline.source) if baseline else ("none",)),
        Fact("Intervals", _intervals(scores)),
        Fact("Images without a prediction", tuple(lost)),
        Fact("Incomplete models", tuple(lacking)),
        *_runs(origins),
        Fact("Report", (f"beaufort {__version__}",)),
    ]
    return [fact for fact in facts if fact.values]


def _intervals(scores: Scores) -> tuple[str, ...]:
    level = f"{100 * scores.level:g} %"
    over = counted(scores.images, "base image")
    if scores.clusters != scores.images:
        over = f"{counted(scores.clusters, 'cluster')} of {over}"
    return (
        f"{level}, over {over} with all versions of each; accuracies under one condition: Clopper-Pearson; "
        "other means: Gaffke's interval for means of bounded values, which generalizes the former; "
        "calibration error: bootstrap for the lower end",
        "they cover the sampling of images, but not the training run, the seed of the corruptions, errors "
        "of a published baseline, or wrong labels",
    )


def _runs(origins: Iterable[Mapping[str, Any]]) -> list[Fact]:
    known = list(origins)
    times = sorted(str(one["time"]) for one in known if one.get("time"))
    span = " to ".join(dict.fromkeys(_time(time) for time in (times[:1] + times[-1:])))
    return [
        Fact("Predictions computed", (span,) if span else ()),
        Fact("Commands", _cut(_distinct(_command(one.get("command")) for one in known))),
        Fact("Versions", _versions(known)),
        Fact("Machines", _cut(_distinct(_machine(one.get("machine")) for one in known))),
        Fact("Commits", _distinct(str(one.get("git") or "") for one in known)),
    ]


def _command(words: object) -> str:
    if not isinstance(words, list) or not words:
        return ""
    program, *rest = map(str, words)
    return shlex.join([PurePosixPath(program).name, *map(without_folders, command_without_secrets(rest))])


def _time(text: str) -> str:
    """Return a time as `2026-11-15 11:30 UTC`."""
    return re.sub(r"^(\S{10})T(\d\d:\d\d)\S*\+00:00$", r"\1 \2 UTC", text)


def _machine(facts: object) -> str:
    if not isinstance(facts, Mapping):
        return ""
    system, processor, cores = (facts.get(key) for key in ("system", "processor", "cores"))
    parts = [str(part) for part in (system, processor) if part]
    return ", ".join([*parts, *([counted(int(cores), "core")] if isinstance(cores, int) else [])])


def _versions(origins: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return each package with the versions that were used."""
    found: dict[str, dict[str, None]] = {}
    for one in origins:
        if one.get("python"):
            found.setdefault("python", {})[str(one["python"])] = None
        versions = one.get("versions")
        for name, version in sorted(versions.items()) if isinstance(versions, Mapping) else ():
            found.setdefault(str(name), {})[str(version)] = None
    found_texts = (f"{name} {' and '.join(sorted(versions))}" for name, versions in sorted(found.items()))
    return (", ".join(found_texts),) if found else ()


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({text for text in texts if text}))


def _cut(texts: tuple[str, ...]) -> tuple[str, ...]:
    more = len(texts) - _SHOWN
    return (*texts[:_SHOWN], f"and {more} more") if more > 0 else texts
