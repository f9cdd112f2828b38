"""The names of networks."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from beaufort.registry import Registry

__all__ = ["architectures"]

architectures: Registry[Callable[..., nn.Module]] = Registry("architecture")
"""What makes each network, by its name."""
