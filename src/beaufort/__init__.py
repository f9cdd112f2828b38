"""Beaufort: how well image classifiers hold up when their input stops looking like their training data."""

from __future__ import annotations

from beaufort.corruptions import Corruption, corrupt, corruptions, get_corruption_names
from beaufort.errors import BeaufortError

__all__ = ["BeaufortError", "Corruption", "__version__", "corrupt", "corruptions", "get_corruption_names"]

__version__ = "0.1.0"
