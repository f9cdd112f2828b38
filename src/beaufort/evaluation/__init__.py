"""Evaluation: any model × any condition, answers kept so that nothing is run twice."""

from __future__ import annotations

from beaufort.evaluation.plan import Plan, Setup, Work
from beaufort.evaluation.precision import Stop
from beaufort.evaluation.run import Evaluation, Progress, Result, cost, evaluate, plan

__all__ = ["Evaluation", "Plan", "Progress", "Result", "Setup", "Stop", "Work", "cost", "evaluate", "plan"]
