"""The studies that can be made again, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from beaufort.errors import UnknownNameError
from beaufort.registry import unknown
from beaufort.reproduce.tasks import StudyOutcome

__all__ = ["STUDIES", "KnownStudy", "reproduce"]


class KnownStudy(NamedTuple):
    """What carries a study out, and what it does if nothing else is said."""

    call: str
    folder: str
    """Below `results`."""
    seeds: int = 3


STUDIES = {
    "imagenet-c-enhancements": KnownStudy(
        "beaufort.reproduce.enhancements.study:run_study", "enhancements", seeds=5
    ),
    "icons-50": KnownStudy("beaufort.reproduce.icons_50.study:run_study", "icons-50"),
    "mined-digits": KnownStudy("beaufort.reproduce.mined_digits.study:run_study", "mined-digits"),
    "mnist-c": KnownStudy("beaufort.reproduce.mnist_c.study:run_study", "mnist-c"),
}
"""The studies by name."""


def reproduce(
    study: str,
    output: Path | str | None = None,
    *,
    only: Sequence[str] = (),
    data: Mapping[str, str] | None = None,
    device: str = "auto",
    seeds: int | None = None,
    jobs: int = 1,
    stop_after_s: float | None = None,
    rehearse: bool = False,
    tell: Callable[[str], None] | None = None,
) -> StudyOutcome:
    """Make a paper's tables again; what the folder has is not made again.

    Args:
        study: one of `STUDIES`.
        output: a folder; the study's own below `results` if not given.
        only: parts of the study; all if none is named.
        data: where data sets lie, by name; the catalog fetches those that are not named.
        device: `cpu`, `cuda`, `cuda:1`, or `auto`.
        seeds: how many trainings of each recipe; the study's own number if not given.
        jobs: processes that share the work.
        stop_after_s: seconds after which it stops; the same call goes on.
        rehearse: a dress rehearsal with few images and tiny trainings, whose numbers mean nothing.
        tell: called with a line for each piece of work.
    """
    if study not in STUDIES:
        raise UnknownNameError(unknown("study", study, STUDIES))
    known = STUDIES[study]
    module, _, name = known.call.partition(":")
    run: Callable[..., StudyOutcome] = getattr(import_module(module), name)
    return run(
        Path(output) if output is not None else Path("results") / known.folder,
        only=tuple(only),
        data=dict(data or {}),
        device=device,
        seeds=known.seeds if seeds is None else seeds,
        jobs=jobs,
        stop_after_s=stop_after_s,
        rehearse=rehearse,
        tell=tell,
    )
