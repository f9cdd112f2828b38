"""The tables of papers, made again from the data: trainings, evaluation, statistics and a page, resumable."""

from __future__ import annotations

from beaufort.reproduce.studies import STUDIES, reproduce
from beaufort.reproduce.units import Outcome, Unit, run_units

__all__ = ["STUDIES", "Outcome", "Unit", "reproduce", "run_units"]
