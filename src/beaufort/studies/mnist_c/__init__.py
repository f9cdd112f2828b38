"""MNIST-C (Mu & Gilmer 2019, arXiv:1906.02337): every table of the paper, and what led to its choices."""

from __future__ import annotations

from beaufort.studies.mnist_c.mnist_runs import STUDY

__all__ = ["STUDY"]
