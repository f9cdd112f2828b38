"""What the study of Icons-50 consists of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from beaufort._core.errors import OptionError
from beaufort.studies.icons_50.settings import VARIANTS, IconSettings
from beaufort.studies.icons_50.work import PARTS, plan
from beaufort.studies.study import PAGE, Study, StudyOptions
from beaufort.studies.tasks import Task


def _plan(options: StudyOptions) -> list[list[Task]]:
    if "icons-50" not in options.data:
        raise OptionError(
            "data must name the folder, archive or .npz file with Icons-50, which nobody may pass on; add "
            "--data icons-50=PATH"
        )
    place = f"icons-50:{options.data['icons-50']}"
    settings = IconSettings(data=place, device=options.device, seeds=options.seeds, rehearse=options.rehearse)
    return plan(settings, options.parts)


def _files(folder: Path, options: StudyOptions) -> Iterator[tuple[str, bytes]]:
    from beaufort.studies.icons_50.writing import study_files

    examples = Path(options.data["icons-open"]) if "icons-open" in options.data else None
    return study_files(folder, rehearse=options.rehearse, examples_from=examples)


STUDY = Study(
    name="icons-50",
    parts=(*PARTS, PAGE, *VARIANTS),
    data=("icons-50", "icons-open"),
    plan=_plan,
    files=_files,
)
