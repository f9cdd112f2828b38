"""Results: stored answers as numbers with a name, a baseline and an interval."""

from __future__ import annotations

from beaufort.results._match import Scored, order_of
from beaufort.results.answers import Answers
from beaufort.results.baseline import Reference, find_reference
from beaufort.results.calibration import Calibration
from beaufort.results.columns import read_column
from beaufort.results.compare import CalibrationDifference, Comparison, ConditionTest, compare
from beaufort.results.gate import RULES, Answer, Check, Verdict, gate, worst_answer
from beaufort.results.groups import GroupScores
from beaufort.results.join import join_results, pair_parts
from beaufort.results.linear import Linear
from beaufort.results.open import Results, ResultsError, Setting, Source, open_parts, open_results
from beaufort.results.pairs import Difference, Pairs
from beaufort.results.power import ImagePlan, plan_images
from beaufort.results.scores import ModelScores, Scores, score
from beaufort.results.seeds import Seeds, SeedSpread
from beaufort.results.shifted import ShiftScore, shift_scores
from beaufort.results.spread import Spread, spread_of_accuracies, spread_of_results
from beaufort.results.target import open_target, open_target_parts

__all__ = [
    "RULES",
    "Answer",
    "Answers",
    "Calibration",
    "CalibrationDifference",
    "Check",
    "Comparison",
    "ConditionTest",
    "Difference",
    "GroupScores",
    "ImagePlan",
    "Linear",
    "ModelScores",
    "Pairs",
    "Reference",
    "Results",
    "ResultsError",
    "Scored",
    "Scores",
    "SeedSpread",
    "Seeds",
    "Setting",
    "ShiftScore",
    "Source",
    "Spread",
    "Verdict",
    "compare",
    "find_reference",
    "gate",
    "join_results",
    "open_parts",
    "open_results",
    "open_target",
    "open_target_parts",
    "order_of",
    "pair_parts",
    "plan_images",
    "read_column",
    "score",
    "shift_scores",
    "spread_of_accuracies",
    "spread_of_results",
    "worst_answer",
]
