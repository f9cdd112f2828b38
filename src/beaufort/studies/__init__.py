"""Studies: the tables of papers made again from the data, by training, evaluation and statistics; resumable.

`engine` runs any study, `tasks` the pieces of work, and each subpackage holds what is specific to one study.
"""

from __future__ import annotations

from beaufort.studies.engine import STUDIES, Study, StudyOptions, reproduce
from beaufort.studies.tasks import StudyOutcome, Task, run_tasks

__all__ = ["STUDIES", "Study", "StudyOptions", "StudyOutcome", "Task", "reproduce", "run_tasks"]
