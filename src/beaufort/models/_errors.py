"""What can be wrong with a model."""

from __future__ import annotations

from beaufort.errors import BeaufortError

__all__ = ["ModelError", "ModelFileError"]


class ModelError(BeaufortError, RuntimeError):
    """A model that cannot be opened as asked, or that answers with something other than logits."""


class ModelFileError(BeaufortError, OSError):
    """A file that cannot be read, or should not be, as the model it claims to be."""
