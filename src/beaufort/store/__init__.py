"""Predictions on disk: written once, never changed, asked in SQL."""

from __future__ import annotations

from beaufort.models.scoring import (
    AnswerScores,
    correct,
    join_scores,
    look_like_shares,
    score_logits,
    score_tensor,
    unpack,
)
from beaufort.store._gather import flat_origins
from beaufort.store._housekeeping import Merged
from beaufort.store.cells import Cell
from beaufort.store.export import to_bytes, to_json
from beaufort.store.files import FileStore
from beaufort.store.findings import TO_SET_ASIDE, FaultyFileError, Finding, Kind, StoreError
from beaufort.store.pieces import Listing, Piece
from beaufort.store.prediction_tables import (
    PredictionsError,
    Summary,
    answered,
    labeled,
    predictions,
    summarize,
    table_of,
    truth_of,
    unanswered,
    with_truth,
)
from beaufort.store.protocol import Store
from beaufort.store.sql import connect, query

__all__ = [
    "TO_SET_ASIDE",
    "AnswerScores",
    "Cell",
    "FaultyFileError",
    "FileStore",
    "Finding",
    "Kind",
    "Listing",
    "Merged",
    "Piece",
    "PredictionsError",
    "Store",
    "StoreError",
    "Summary",
    "answered",
    "connect",
    "correct",
    "flat_origins",
    "join_scores",
    "labeled",
    "look_like_shares",
    "predictions",
    "query",
    "score_logits",
    "score_tensor",
    "summarize",
    "table_of",
    "to_bytes",
    "to_json",
    "truth_of",
    "unanswered",
    "unpack",
    "with_truth",
]
