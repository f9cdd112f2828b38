"""Results: stored predictions as metrics with intervals, comparisons, gates and power."""

from __future__ import annotations

from beaufort.results._match import ResultsError, ResultSetting, Scored, order_of
from beaufort.results.abstention import (
    Abstention,
    ConditionAbstention,
    PredictionSetScore,
    SelectiveScores,
    SetsBySeverity,
    TemperatureScaling,
    score_abstention,
    selective_by_severity,
    sets_by_severity,
)
from beaufort.results.adaptation import AdaptationScore, StreamScores, stream_scores
from beaufort.results.baseline import ResultBaseline, check_baseline, find_baseline, published_baseline
from beaufort.results.bundle import Bundle, BundleError, is_bundle
from beaufort.results.calibration import BINS, Calibration
from beaufort.results.comparison import CalibrationDifference, Comparison, ConditionTest, compare
from beaufort.results.counterparts import ShiftScore, shift_scores
from beaufort.results.csv_columns import read_column
from beaufort.results.deployment import (
    ConditionFlips,
    Deployment,
    Flip,
    FlippedImage,
    LargestFlips,
    compare_deployment,
    largest_flips,
)
from beaufort.results.differences import Difference, Pairs, Seeds, SeedSpread
from beaufort.results.linear import Linear
from beaufort.results.monitoring import robustness
from beaufort.results.open import (
    open_parts,
    open_results,
    open_targets,
    stored_suites,
)
from beaufort.results.other_models import ListedStore
from beaufort.results.power import ImagePlan, Spread, plan_images, spread_of_accuracies, spread_of_results
from beaufort.results.predictions import Predictions, SharedPredictions
from beaufort.results.publishing import publish
from beaufort.results.replies import ReplyScores, output_name, score_replies
from beaufort.results.results import Results, join_results, pair_parts
from beaufort.results.run import Run, Stop, evaluate, plan_run
from beaufort.results.scores import GroupScores, ModelScores, Scores
from beaufort.results.scoring import score
from beaufort.results.tracking import scalars, trackers
from beaufort.results.verdict import (
    RULES,
    Check,
    Decision,
    Verdict,
    gate,
    gate_parts,
    worst_decision,
)
from beaufort.results.verdict_details import ErrorChange, ModelVersion, VerdictDetails
from beaufort.results.verification import Rerun, UnconfirmedPrediction, Verification, rerun
from beaufort.results.verification import verify as verify_bundle
from beaufort.results.video_frames import PmScore, pm_scores

__all__ = [
    "BINS",
    "RULES",
    "Abstention",
    "AdaptationScore",
    "Bundle",
    "BundleError",
    "Calibration",
    "CalibrationDifference",
    "Check",
    "Comparison",
    "ConditionAbstention",
    "ConditionFlips",
    "ConditionTest",
    "Decision",
    "Deployment",
    "Difference",
    "ErrorChange",
    "Flip",
    "FlippedImage",
    "GroupScores",
    "ImagePlan",
    "LargestFlips",
    "Linear",
    "ListedStore",
    "ModelScores",
    "ModelVersion",
    "Pairs",
    "PmScore",
    "PredictionSetScore",
    "Predictions",
    "ReplyScores",
    "Rerun",
    "ResultBaseline",
    "ResultSetting",
    "Results",
    "ResultsError",
    "Run",
    "Scored",
    "Scores",
    "SeedSpread",
    "Seeds",
    "SelectiveScores",
    "SetsBySeverity",
    "SharedPredictions",
    "ShiftScore",
    "Spread",
    "Stop",
    "StreamScores",
    "TemperatureScaling",
    "UnconfirmedPrediction",
    "Verdict",
    "VerdictDetails",
    "Verification",
    "check_baseline",
    "compare",
    "compare_deployment",
    "evaluate",
    "find_baseline",
    "gate",
    "gate_parts",
    "is_bundle",
    "join_results",
    "largest_flips",
    "open_parts",
    "open_results",
    "open_targets",
    "order_of",
    "output_name",
    "pair_parts",
    "plan_images",
    "plan_run",
    "pm_scores",
    "publish",
    "published_baseline",
    "read_column",
    "rerun",
    "robustness",
    "scalars",
    "score",
    "score_abstention",
    "score_replies",
    "selective_by_severity",
    "sets_by_severity",
    "shift_scores",
    "spread_of_accuracies",
    "spread_of_results",
    "stored_suites",
    "stream_scores",
    "trackers",
    "verify_bundle",
    "worst_decision",
]
