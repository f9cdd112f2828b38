"""JPEG there and back."""

from __future__ import annotations

from typing import Protocol

from beaufort._core.arrays import Images

__all__ = ["JpegCompressionOps"]


class JpegCompressionOps(Protocol):
    """JPEG there and back."""

    def jpeg(self, images: Images, quality: int) -> Images:
        """Baseline JPEG, 4:2:0, standard tables; one channel stays one channel."""
