"""The names of networks."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from beaufort._core.registry import Registry

architectures: Registry[Callable[..., nn.Module]] = Registry("architecture")
"""What makes each network, by its name."""
