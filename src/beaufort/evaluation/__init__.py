"""Evaluation of models under conditions: plan, tasks, batches, predictions, and the engines that run them.

`plan` lists what is missing, and `execute` computes it: tasks go to an engine, and predictions to the store.
"""

from __future__ import annotations

from beaufort.evaluation.arguments import Conditions, Models
from beaufort.evaluation.backends import DeviceError
from beaufort.evaluation.costs import ModelCost, measure_costs
from beaufort.evaluation.engines import NodeSpeed, WorkerError
from beaufort.evaluation.execution import (
    CellResult,
    Progress,
    RunOutcome,
    common_outputs,
    execute,
    expected_costs,
    predict_gaps,
)
from beaufort.evaluation.lazy_models import LazyModel
from beaufort.evaluation.notes import notes_on
from beaufort.evaluation.options import (
    EngineOptions,
    LocalOptions,
    ProcessOptions,
    RayOptions,
    RunOptions,
    parse_engine,
)
from beaufort.evaluation.planning import Labels, Plan, PlannedCell, as_store, check_models, plan
from beaufort.evaluation.preflight import NotReadyError
from beaufort.evaluation.ray_engine import import_ray
from beaufort.evaluation.scoring import predictions
from beaufort.evaluation.sources import ImageSource

__all__ = [
    "CellResult",
    "Conditions",
    "DeviceError",
    "EngineOptions",
    "ImageSource",
    "Labels",
    "LazyModel",
    "LocalOptions",
    "ModelCost",
    "Models",
    "NodeSpeed",
    "NotReadyError",
    "Plan",
    "PlannedCell",
    "ProcessOptions",
    "Progress",
    "RayOptions",
    "RunOptions",
    "RunOutcome",
    "WorkerError",
    "as_store",
    "check_models",
    "common_outputs",
    "execute",
    "expected_costs",
    "import_ray",
    "measure_costs",
    "notes_on",
    "parse_engine",
    "plan",
    "predict_gaps",
    "predictions",
]
