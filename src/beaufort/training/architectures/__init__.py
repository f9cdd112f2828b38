"""Networks that recipes name, one file each. They take values in 0..1 and normalize them themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from beaufort.errors import OptionError
from beaufort.models.python import find_object
from beaufort.training.architectures import capsule, conv1, conv2, conv3, digits, synthesis
from beaufort.training.architectures._normalize import Normalize
from beaufort.training.architectures._registry import architectures

__all__ = ["Normalize", "architectures", "build"]

architectures.register("abs", synthesis.make)
architectures.register("capsule", capsule.make)
architectures.register("conv1", conv1.make)
architectures.register("conv2", conv2.make)
architectures.register("conv3", conv3.make)
architectures.register("digits", digits.make)


def build(name: str, options: Mapping[str, Any]) -> nn.Module:
    """A network with random weights, by its name or as `python:package.module:factory`."""
    make: Any = (
        find_object(name.removeprefix("python:")) if name.startswith("python:") else architectures[name]
    )
    try:
        made = make(**options)
    except TypeError as error:
        raise OptionError(f"the options of the architecture {name!r} do not fit: {error}") from None
    if not isinstance(made, nn.Module):
        raise OptionError(f"{name} must make a torch module, got an object of type {type(made).__name__}")
    return made
