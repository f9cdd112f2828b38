"""The tables of papers, made again from the data: trainings, evaluation, statistics and a page, resumable."""

from __future__ import annotations

from beaufort.studies.studies import STUDIES, reproduce
from beaufort.studies.tasks import StudyOutcome, Task, run_tasks

__all__ = ["STUDIES", "StudyOutcome", "Task", "reproduce", "run_tasks"]
