"""Results: stored answers as numbers with a name, a baseline and an interval."""

from __future__ import annotations

from beaufort.results.answers import Answers
from beaufort.results.baseline import Reference, find_reference
from beaufort.results.compare import Comparison, ConditionTest, Difference, compare
from beaufort.results.gate import Verdict, gate
from beaufort.results.join import join_results
from beaufort.results.open import Results, ResultsError, Setting, Source, open_results
from beaufort.results.scores import ModelScores, Scores, score
from beaufort.results.target import open_target

__all__ = [
    "Answers",
    "Comparison",
    "ConditionTest",
    "Difference",
    "ModelScores",
    "Reference",
    "Results",
    "ResultsError",
    "Scores",
    "Setting",
    "Source",
    "Verdict",
    "compare",
    "find_reference",
    "gate",
    "join_results",
    "open_results",
    "open_target",
    "score",
]
