"""Predictions on disk: immutable Parquet files, queried with SQL."""

from __future__ import annotations

from beaufort.store._footer import Footer
from beaufort.store._maintenance import Merged, flat_origins
from beaufort.store.cells import Cell, folder_name
from beaufort.store.files import FileStore
from beaufort.store.findings import TO_SET_ASIDE, FaultyFileError, Finding, Kind, StoreError
from beaufort.store.pieces import Listing, Piece
from beaufort.store.prediction_tables import (
    PredictionsError,
    Summary,
    labeled,
    labels_of,
    summarize,
    table_of,
    with_label,
    with_prediction,
    without_prediction,
)
from beaufort.store.protocol import Store
from beaufort.store.sql import connect, query, to_bytes, to_json
from beaufort.store.states import read_state, remove_state, write_state

__all__ = [
    "TO_SET_ASIDE",
    "Cell",
    "FaultyFileError",
    "FileStore",
    "Finding",
    "Footer",
    "Kind",
    "Listing",
    "Merged",
    "Piece",
    "PredictionsError",
    "Store",
    "StoreError",
    "Summary",
    "connect",
    "flat_origins",
    "folder_name",
    "labeled",
    "labels_of",
    "query",
    "read_state",
    "remove_state",
    "summarize",
    "table_of",
    "to_bytes",
    "to_json",
    "with_label",
    "with_prediction",
    "without_prediction",
    "write_state",
]
