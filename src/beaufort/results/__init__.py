"""Results: stored answers as numbers with a name, a baseline and an interval."""

from __future__ import annotations

from beaufort.results._match import ResultsError, ResultSetting, Scored, order_of
from beaufort.results.answers import Answers
from beaufort.results.baseline import ResultBaseline, find_baseline
from beaufort.results.calibration import Calibration
from beaufort.results.columns import read_column
from beaufort.results.comparison import CalibrationDifference, Comparison, ConditionTest, compare
from beaufort.results.frames import PmScore, pm_scores
from beaufort.results.groups import GroupScores
from beaufort.results.join import join_results, pair_parts
from beaufort.results.linear import Linear
from beaufort.results.open import ListedStore, Results, open_parts, open_results
from beaufort.results.pairs import Difference, Pairs
from beaufort.results.power import ImagePlan, plan_images
from beaufort.results.scores import ModelScores, Scores, score
from beaufort.results.seeds import Seeds, SeedSpread
from beaufort.results.shifted import ShiftScore, shift_scores
from beaufort.results.spread import Spread, spread_of_accuracies, spread_of_results
from beaufort.results.target import open_target, open_target_parts
from beaufort.results.verdict import RULES, Check, Decision, Verdict, gate, worst_decision

__all__ = [
    "RULES",
    "Answers",
    "Calibration",
    "CalibrationDifference",
    "Check",
    "Comparison",
    "ConditionTest",
    "Decision",
    "Difference",
    "GroupScores",
    "ImagePlan",
    "Linear",
    "ListedStore",
    "ModelScores",
    "Pairs",
    "PmScore",
    "ResultBaseline",
    "ResultSetting",
    "Results",
    "ResultsError",
    "Scored",
    "Scores",
    "SeedSpread",
    "Seeds",
    "ShiftScore",
    "Spread",
    "Verdict",
    "compare",
    "find_baseline",
    "gate",
    "join_results",
    "open_parts",
    "open_results",
    "open_target",
    "open_target_parts",
    "order_of",
    "pair_parts",
    "plan_images",
    "pm_scores",
    "read_column",
    "score",
    "shift_scores",
    "spread_of_accuracies",
    "spread_of_results",
    "worst_decision",
]
