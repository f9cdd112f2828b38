"""Options of a run, and of the engines."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from beaufort._core.errors import OptionError
from beaufort._core.validation import validate_count
from beaufort.data.labels import LabelSets, read_label_sets

if TYPE_CHECKING:
    from beaufort.data.objects import DataSource


@dataclass(frozen=True)
class RunOptions:
    """Less common options of `evaluate`.

    Args:
        clean: clean versions of stored images, if the suite has a clean condition.
        first: evaluate only the first N images of the dataset.
        prepare: `none` skips the resizing defined by the suite.
        convention: `restricted` (only outputs that belong to the dataset's classes compete) or `all`.
        label_sets: several valid labels per image, or a file such as ReaL's `real.json`.
        precision: stop when the 95 % intervals of all headline metrics are narrower than ± this number of
            percentage points. Images are evaluated in a random order.
        baseline: baseline of mCE while the precision is checked; that of the suite if None.
        batch_size: images per model call; chosen from the image size if None.
        keep_logits: store all logits, not only the five most probable classes.
        strict: stop at the first image that cannot be read.
        trackers: objects that are notified of the run, or texts such as `mlflow:experiment=robustness`; see
            `beaufort.results.tracking`.
        allow_batch_dependence: evaluate models whose predictions depend on the batch or on earlier calls,
            which are rejected otherwise. The batch size, 32 by default, becomes part of the fingerprint.
        time: measure the latency and the memory of the models at the end, as `measure_costs` does, with
            calls of one image, or of `batch_size` images.
    """

    clean: DataSource | None = None
    first: int | None = None
    prepare: str | None = None
    convention: str | None = None
    label_sets: str | Path | LabelSets | None = None
    precision: float | None = None
    baseline: str | None = None
    batch_size: int | None = None
    keep_logits: bool = False
    strict: bool = False
    trackers: Sequence[Any] = ()
    allow_batch_dependence: bool = False
    time: bool = False

    def __post_init__(self) -> None:
        for name in ("first", "batch_size"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, validate_count(name, value))
        if isinstance(self.trackers, str):
            object.__setattr__(self, "trackers", (self.trackers,))
        for name in ("keep_logits", "strict", "allow_batch_dependence", "time"):
            if not isinstance(getattr(self, name), bool):
                raise OptionError(f"{name} must be True or False, got {getattr(self, name)!r:.60}")
        if self.allow_batch_dependence and self.batch_size is None:
            object.__setattr__(self, "batch_size", 32)
        if self.prepare not in (None, "none"):
            raise OptionError(f"prepare must be 'none' or None, got {self.prepare!r:.60}")

    def with_label_sets(self) -> RunOptions:
        """Return the options with label sets read from their file."""
        if not isinstance(self.label_sets, str | os.PathLike):
            return self
        return replace(self, label_sets=read_label_sets(self.label_sets))


@dataclass(frozen=True)
class LocalOptions:
    """Run in this process.

    Args:
        threads: threads that decode and corrupt images; the number of processors minus one if None.
    """

    threads: int | None = None

    def __post_init__(self) -> None:
        if self.threads is not None:
            validate_count("threads", self.threads)

    @property
    def thread_count(self) -> int:
        """Number of threads."""
        return self.threads or max(1, (os.cpu_count() or 2) - 1)


@dataclass(frozen=True)
class ProcessOptions:
    """Run in worker processes with one thread each; every process loads the models.

    Args:
        count: number of processes; the number of processors if None.
    """

    count: int | None = None

    def __post_init__(self) -> None:
        count = (os.cpu_count() or 1) if self.count is None else self.count
        object.__setattr__(self, "count", validate_count("processes", count))


@dataclass(frozen=True)
class RayOptions:
    """Run on workers of a Ray cluster.

    Args:
        address: address of a running cluster, or `auto` for that of this machine; None starts Ray on this
            machine for the run.
        workers: number of workers; as many as fit beside one free processor if None.
        cpus: processors per worker.
        gpus: GPUs per worker; with 0.25, four workers share one.
    """

    address: str | None = None
    workers: int | None = None
    cpus: float = 1
    gpus: float = 0

    def __post_init__(self) -> None:
        if self.workers is not None:
            validate_count("workers", self.workers)
        for name, value, least in (("cpus", self.cpus, "above 0"), ("gpus", self.gpus, "from 0")):
            if not (value > 0 if least == "above 0" else value >= 0):
                raise OptionError(f"{name} must be a number {least}, got {value!r}")
            if value > 1 and value != int(value):
                raise OptionError(f"{name} must be an integer or a fraction below 1, got {value!r}")


EngineOptions = LocalOptions | ProcessOptions | RayOptions
"""Options of an engine."""

_ENGINES: Mapping[str, tuple[type[EngineOptions], str, Mapping[str, type]]] = {
    "local": (LocalOptions, "threads", {"threads": int}),
    "processes": (ProcessOptions, "count", {"count": int}),
    "ray": (RayOptions, "address", {"address": str, "workers": int, "cpus": float, "gpus": float}),
}
"""For each engine: its options, the one that needs no name, and their types."""


def parse_engine(engine: str | EngineOptions) -> EngineOptions:
    """Return the options of an engine given as a string.

    >>> parse_engine("processes:4")
    ProcessOptions(count=4)
    >>> parse_engine("ray:address=auto,gpus=1")
    RayOptions(address='auto', workers=None, cpus=1, gpus=1.0)
    """
    if not isinstance(engine, str):
        return engine
    kind, _, rest = engine.partition(":")
    if kind not in _ENGINES:
        raise OptionError(
            f"unknown engine {engine!r}; use local, local:THREADS, processes:N or "
            "ray:address=ADDRESS,workers=N,cpus=N,gpus=N"
        )
    make, unnamed, types = _ENGINES[kind]
    values: dict[str, Any] = {}
    for item in filter(None, rest.split(",")):
        name, equals, value = item.partition("=")
        name, value = (name, value) if equals else (unnamed, item)
        if name not in types or name in values:
            raise OptionError(
                f"invalid option {item!r} of engine {kind}; available (once each): {', '.join(types)}"
            )
        try:
            values[name] = types[name](value)
        except ValueError:
            raise OptionError(f"{name} of engine {kind} must be a number, got {value!r}") from None
    return make(**values)
