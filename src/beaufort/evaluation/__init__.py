"""Evaluation: any model × any condition, answers kept so that nothing is run twice."""

from __future__ import annotations

from beaufort.evaluation.backends import DeviceError
from beaufort.evaluation.costs import cost
from beaufort.evaluation.engines import NodeSpeed, WorkerError
from beaufort.evaluation.lazy_models import LazyModel
from beaufort.evaluation.notes import notes_on
from beaufort.evaluation.planning import Plan, Setup, Work
from beaufort.evaluation.precision import Stop
from beaufort.evaluation.preflight import NotReadyError
from beaufort.evaluation.ray_engine import RayOptions
from beaufort.evaluation.run import Evaluation, Result, evaluate, plan
from beaufort.evaluation.schedule import Progress

__all__ = [
    "DeviceError",
    "Evaluation",
    "LazyModel",
    "NodeSpeed",
    "NotReadyError",
    "Plan",
    "Progress",
    "RayOptions",
    "Result",
    "Setup",
    "Stop",
    "Work",
    "WorkerError",
    "cost",
    "evaluate",
    "notes_on",
    "plan",
]
