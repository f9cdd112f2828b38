"""The studies that can be made again, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path

from beaufort._core.errors import UnknownNameError
from beaufort._core.registry import unknown
from beaufort.studies.study import Study, StudyOptions, carry_out
from beaufort.studies.tasks import StudyOutcome

STUDIES = {
    "imagenet-c-enhancements": "beaufort.studies.enhancements.study:STUDY",
    "icons-50": "beaufort.studies.icons_50.study:STUDY",
    "mined-digits": "beaufort.studies.mined_digits.study:STUDY",
    "mnist-c": "beaufort.studies.mnist_c.study:STUDY",
}
"""Where each study stands."""


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
        data: where data sets lie, by name; of those that are not named, the catalog fetches what it has, and
            questions about photos are left out.
        device: `cpu`, `cuda`, `cuda:1`, or `auto`.
        seeds: how many trainings of each recipe; the study's own number if not given.
        jobs: processes that share the work.
        stop_after_s: seconds after which it stops; the same call goes on.
        rehearse: a dress rehearsal with few images and tiny trainings, whose numbers mean nothing.
        tell: called with a line for each piece of work.
    """
    if study not in STUDIES:
        raise UnknownNameError(unknown("study", study, STUDIES))
    module, _, name = STUDIES[study].partition(":")
    known: Study = getattr(import_module(module), name)
    options = StudyOptions(
        only=tuple(only),
        data=dict(data or {}),
        device=device,
        seeds=known.seeds if seeds is None else seeds,
        jobs=jobs,
        stop_after_s=stop_after_s,
        rehearse=rehearse,
        tell=tell,
    )
    folder = Path(output) if output is not None else Path("results") / (known.folder or known.name)
    return carry_out(known, folder, options)
