"""Studies: tables of papers reproduced from data, and leave-one-group-out training.

A study is a YAML file in `data`, or one of your own: its arms, questions, rules of verdicts and texts.
`engine` runs every study; a module of the same name has the tables and tasks that only one study has.
"""

from __future__ import annotations

from beaufort.studies.engine import reproduce
from beaufort.studies.study_file import STUDIES, StudySettings, new_study
from beaufort.studies.study_tasks import StudyOutcome, StudyTask, run_tasks

__all__ = ["STUDIES", "StudyOutcome", "StudySettings", "StudyTask", "new_study", "reproduce", "run_tasks"]
