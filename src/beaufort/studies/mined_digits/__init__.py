"""Mined digits: a diffusion model trained from scratch, and the whole loop of mining on what it makes."""

from __future__ import annotations

from beaufort.studies.mined_digits.mining_steps import STUDY

__all__ = ["STUDY"]
