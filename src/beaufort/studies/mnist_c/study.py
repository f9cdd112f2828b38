"""What the study of MNIST-C consists of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from beaufort.studies.mnist_c.settings import Settings
from beaufort.studies.mnist_c.work import PARTS, plan
from beaufort.studies.study import PAGE, Study, StudyOptions
from beaufort.studies.tasks import Task


def _settings(options: StudyOptions) -> Settings:
    place = options.data.get("mnist")
    places = {} if place is None else {"train": f"mnist:{place}#train", "test": f"mnist:{place}#test"}
    return Settings(device=options.device, seeds=options.seeds, rehearse=options.rehearse, **places)


def _plan(options: StudyOptions) -> list[list[Task]]:
    return plan(_settings(options), options.parts)


def _files(folder: Path, options: StudyOptions) -> Iterator[tuple[str, bytes]]:
    from beaufort.studies.mnist_c.writing import study_files

    return study_files(folder, _settings(options))


STUDY = Study(name="mnist-c", parts=(*PARTS, PAGE), data=("mnist",), plan=_plan, files=_files)
