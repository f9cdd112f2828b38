"""What the study of mined digits consists of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from beaufort.models.torch import choose_device
from beaufort.studies.mined_digits.work import PARTS, DigitSettings, plan
from beaufort.studies.mined_digits.writing import study_files
from beaufort.studies.study import Study, StudyOptions
from beaufort.studies.tasks import Task


def _plan(options: StudyOptions) -> list[list[Task]]:
    train = f"mnist:{options.data['mnist']}#train" if "mnist" in options.data else "mnist-train"
    settings = DigitSettings(train=train, device=choose_device(options.device), rehearse=options.rehearse)
    return plan(settings, options.parts)


def _files(folder: Path, options: StudyOptions) -> Iterator[tuple[str, bytes]]:
    return study_files(folder)


STUDY = Study(name="mined-digits", parts=PARTS, data=("mnist",), plan=_plan, files=_files)
