"""Studies: the tables of papers made again from the data, by training, evaluation and statistics; resumable.

`engine` runs any study, `tasks` the pieces of work, and each subpackage holds what is specific to one study.
"""

from __future__ import annotations

from beaufort.studies.engine import STUDIES, Study, StudyOptions, reproduce
from beaufort.studies.study_tasks import StudyOutcome, StudyTask, run_tasks

__all__ = ["STUDIES", "Study", "StudyOptions", "StudyOutcome", "StudyTask", "reproduce", "run_tasks"]
