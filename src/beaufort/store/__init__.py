"""Predictions on disk: written once, never changed, asked in SQL."""

from __future__ import annotations

from beaufort.store.cells import Cell
from beaufort.store.files import FileStore, Finding, Listing, Piece, StoreError
from beaufort.store.predictions import PredictionsError, Summary, predictions, summarize, unanswered
from beaufort.store.sql import connect, query, to_bytes

__all__ = [
    "Cell",
    "FileStore",
    "Finding",
    "Listing",
    "Piece",
    "PredictionsError",
    "StoreError",
    "Summary",
    "connect",
    "predictions",
    "query",
    "summarize",
    "to_bytes",
    "unanswered",
]
