"""MNIST-C (Mu & Gilmer 2019, arXiv:1906.02337): every table of the paper, and what led to its choices."""

from __future__ import annotations

__all__: list[str] = []
