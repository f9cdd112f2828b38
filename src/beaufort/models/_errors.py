"""What can be wrong with a model."""

from __future__ import annotations

from beaufort._core.errors import BeaufortError


class ModelError(BeaufortError, RuntimeError):
    """A model that cannot be opened as asked, or that answers with something other than logits."""


class ModelFileError(BeaufortError, OSError):
    """A file that cannot be read, or should not be, as the model it claims to be."""
