"""Studies: tables of papers reproduced from data, and leave-one-group-out training.

`engine` runs any study, `tasks` the pieces of work, and each subpackage holds what is specific to one study.
"""

from __future__ import annotations

from beaufort.studies.engine import STUDIES, Study, StudyOptions, reproduce
from beaufort.studies.study_tasks import StudyOutcome, StudyTask, run_tasks

__all__ = ["STUDIES", "Study", "StudyOptions", "StudyOutcome", "StudyTask", "reproduce", "run_tasks"]
