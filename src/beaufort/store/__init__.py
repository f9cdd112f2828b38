"""Predictions on disk: written once, never changed, asked in SQL."""

from __future__ import annotations

from beaufort.store.cells import Cell
from beaufort.store.files import FileStore, Finding, Listing, Piece, StoreError
from beaufort.store.predictions import (
    PredictionsError,
    Summary,
    labeled,
    predictions,
    summarize,
    table_of,
    truth_of,
    unanswered,
)
from beaufort.store.protocol import Store
from beaufort.store.scores import (
    Scores,
    correct,
    join_scores,
    look_like_shares,
    score_logits,
    score_tensor,
    unpack,
)
from beaufort.store.sql import connect, query, to_bytes

__all__ = [
    "Cell",
    "FileStore",
    "Finding",
    "Listing",
    "Piece",
    "PredictionsError",
    "Scores",
    "Store",
    "StoreError",
    "Summary",
    "connect",
    "correct",
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
    "truth_of",
    "unanswered",
    "unpack",
]
