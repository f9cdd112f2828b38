"""Studies: tables of papers reproduced from data, and leave-one-group-out training.

`engine` runs every study. A study declares its networks, arms, published values and page texts in a YAML file
in `data`; its subpackage holds the tasks, tables and claims that only this study has.
"""

from __future__ import annotations

from beaufort.studies.engine import STUDIES, Study, StudyOptions, reproduce
from beaufort.studies.study_tasks import StudyOutcome, StudyTask, run_tasks

__all__ = ["STUDIES", "Study", "StudyOptions", "StudyOutcome", "StudyTask", "reproduce", "run_tasks"]
