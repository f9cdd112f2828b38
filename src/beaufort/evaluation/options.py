"""Options of a run: how much is evaluated, how predictions are scored, and where the work is done."""

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
        clean: the clean images that stored images were made from, if the suite has a clean condition.
        first: evaluate only the first N images of the dataset.
        prepare: `none` keeps images as they are instead of resizing them as the suite says.
        convention: `restricted` (only outputs that belong to the dataset's classes compete) or `all`.
        label_sets: several valid labels per image, or a file of them such as ReaL's `real.json`.
        precision: stop when the 95 % intervals of all headline metrics are narrower than ± this many
            percentage points; images then come in a random order.
        baseline: the baseline of mCE while a precision is checked; the suite's own if None.
        batch_size: images per model call; chosen by image size if None.
        keep_logits: store all logits, not only the five best classes.
        strict: stop at the first image that cannot be read.
        trackers: objects that are notified of the run, or texts such as `mlflow:experiment=robustness`; see
            `beaufort.results.tracking`.
        allow_batch_dependence: evaluate models whose predictions depend on the batch or on earlier calls,
            which are rejected otherwise. The batch size, 32 by default, becomes part of the fingerprint.
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

    def __post_init__(self) -> None:
        for name in ("first", "batch_size"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, validate_count(name, value))
        if isinstance(self.trackers, str):
            object.__setattr__(self, "trackers", (self.trackers,))
        for name in ("keep_logits", "strict", "allow_batch_dependence"):
            if not isinstance(getattr(self, name), bool):
                raise OptionError(f"{name} must be true or false, got {getattr(self, name)!r:.60}")
        if self.allow_batch_dependence and self.batch_size is None:
            object.__setattr__(self, "batch_size", 32)
        if self.prepare not in (None, "none"):
            raise OptionError(f"prepare must be 'none' or not given, got {self.prepare!r:.60}")

    def with_label_sets(self) -> RunOptions:
        """The same options with the label sets read from their file."""
        if not isinstance(self.label_sets, str | os.PathLike):
            return self
        return replace(self, label_sets=read_label_sets(self.label_sets))


@dataclass(frozen=True)
class LocalOptions:
    """Run in this process.

    Args:
        threads: threads that decode and corrupt images; one less than there are processors if None.
    """

    threads: int | None = None

    def __post_init__(self) -> None:
        if self.threads is not None:
            validate_count("threads", self.threads)

    @property
    def thread_count(self) -> int:
        """The number of threads."""
        return self.threads or max(1, (os.cpu_count() or 2) - 1)


@dataclass(frozen=True)
class ProcessOptions:
    """Run in worker processes with one thread each, which load the models themselves.

    Args:
        count: number of processes; as many as there are processors if None.
    """

    count: int | None = None

    def __post_init__(self) -> None:
        count = (os.cpu_count() or 1) if self.count is None else self.count
        object.__setattr__(self, "count", validate_count("processes", count))


@dataclass(frozen=True)
class RayOptions:
    """Run on workers of a Ray cluster.

    Args:
        address: of a running cluster, `auto` for the one that this machine belongs to; None starts one on
            this machine, for the run alone.
        workers: how many; as many as fit, with one processor left free, if None.
        cpus: processors per worker.
        gpus: GPUs per worker; a fraction such as 0.25 lets four of them use one.
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
"""Where a run is done."""

_ENGINES: Mapping[str, tuple[type[EngineOptions], str, Mapping[str, type]]] = {
    "local": (LocalOptions, "threads", {"threads": int}),
    "processes": (ProcessOptions, "count", {"count": int}),
    "ray": (RayOptions, "address", {"address": str, "workers": int, "cpus": float, "gpus": float}),
}
"""The options of each engine, which of them may be given without a name, and their types."""


def parse_engine(engine: str | EngineOptions) -> EngineOptions:
    """The options of an engine that is given as text.

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
            raise OptionError(f"engine {kind} takes {', '.join(types)}, each once, got {item!r}")
        try:
            values[name] = types[name](value)
        except ValueError:
            raise OptionError(f"{name} of engine {kind} must be a number, got {value!r}") from None
    return make(**values)
