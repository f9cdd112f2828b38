"""The model kind `trained:`, registered as an entry point."""

from __future__ import annotations

from beaufort.models import Adapter

ADAPTER = Adapter(
    "trained",
    "beaufort.training.trained:load",
    ("torch", "safetensors"),
    "training",
    "trained:conv1-seed0",
    "a model trained by `beaufort train`, by folder or name",
)
