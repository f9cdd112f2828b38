"""Architectures of recipes. They take values in 0..1 and normalize them themselves."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from beaufort._core.errors import BeaufortError, OptionError
from beaufort._core.registry import Registry
from beaufort.models.python import find_object
from beaufort.training.architectures import (
    capsule,
    condensenet,
    densenet,
    digits,
    msdnet,
    multigrid,
    resnet,
    resnext,
    shake_shake,
    synthesis,
    wide_resnet,
)
from beaufort.training.architectures._batch_norm import BatchNorm
from beaufort.training.architectures._layers import NetworkSize, Normalize, network_size
from beaufort.training.stylization import network as stylizer

__all__ = ["BatchNorm", "NetworkSize", "Normalize", "architectures", "build", "network_size"]

architectures: Registry[Callable[..., nn.Module]] = Registry("architecture")
"""Functions that return each network, by name."""

_MAKERS: dict[str, Callable[..., nn.Module]] = {
    "abs": synthesis.make,
    "capsule": capsule.make,
    "condensenet": condensenet.make,
    "conv1": digits.conv1,
    "conv2": digits.conv2,
    "conv3": digits.conv3,
    "densenet": densenet.make,
    "digits": digits.digits,
    "msdnet": msdnet.make,
    "multigrid-resnet": multigrid.make,
    "resnet": resnet.make,
    "resnext": resnext.make,
    "shake-shake": shake_shake.make,
    "stylizer": stylizer.make,
    "wide-resnet": wide_resnet.make,
}
for _name, _make in _MAKERS.items():
    architectures.register(_name, _make)


def build(name: str, options: Mapping[str, Any], *, classes: int | None = None) -> nn.Module:
    """Return a network with random weights.

    Args:
        name: name of the architecture, or `python:package.module:factory`.
        options: arguments of the function that returns the network.
        classes: number of classes, used if the function has such a parameter and `options` do not set it.
    """
    own_code = name.startswith("python:")
    make: Any = find_object(name.removeprefix("python:")) if own_code else architectures[name]
    given = dict(options)
    if classes is not None and "classes" in _parameters(make):
        given.setdefault("classes", classes)
    try:
        made = make(**given)
    except BeaufortError:
        raise
    except (IndexError, RuntimeError, TypeError, ValueError) as error:
        if own_code and not isinstance(error, TypeError):
            raise  # an error in the user's code
        raise OptionError(f"invalid options of the architecture {name!r}: {error}") from None
    if not isinstance(made, nn.Module):
        raise OptionError(f"{name} must return a torch module, got {type(made).__name__}")
    return made


def _parameters(make: Any) -> tuple[str, ...]:
    """Return the names of the parameters; empty if unknown."""
    try:
        return tuple(inspect.signature(make).parameters)
    except (TypeError, ValueError):
        return ()
