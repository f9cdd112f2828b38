"""Networks that recipes name, one file each. They take values in 0..1 and normalize them themselves."""

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
    conv1,
    conv2,
    conv3,
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
"""What makes each network, by its name."""

for _name, _module in {
    "abs": synthesis,
    "capsule": capsule,
    "condensenet": condensenet,
    "conv1": conv1,
    "conv2": conv2,
    "conv3": conv3,
    "densenet": densenet,
    "digits": digits,
    "msdnet": msdnet,
    "multigrid-resnet": multigrid,
    "resnet": resnet,
    "resnext": resnext,
    "shake-shake": shake_shake,
    "stylizer": stylizer,
    "wide-resnet": wide_resnet,
}.items():
    architectures.register(_name, _module.make)


def build(name: str, options: Mapping[str, Any], *, classes: int | None = None) -> nn.Module:
    """A network with random weights, by its name or as `python:package.module:factory`.

    Args:
        name: of the architecture.
        options: for whatever makes it.
        classes: of the data; given to a network that has a parameter `classes`, unless the options name it.
    """
    of_the_house = not name.startswith("python:")
    make: Any = architectures[name] if of_the_house else find_object(name.removeprefix("python:"))
    given = dict(options)
    if classes is not None and "classes" in _parameters(make):
        given.setdefault("classes", classes)
    try:
        made = make(**given)
    except BeaufortError:
        raise
    except (IndexError, RuntimeError, TypeError, ValueError) as error:
        if not of_the_house and not isinstance(error, TypeError):
            raise  # a fault in code of somebody's own is found where it is
        raise OptionError(f"the options of the architecture {name!r} do not fit: {error}") from None
    if not isinstance(made, nn.Module):
        raise OptionError(f"{name} must make a torch module, got an object of type {type(made).__name__}")
    return made


def _parameters(make: Any) -> tuple[str, ...]:
    """The names that can be given; none where Python cannot tell."""
    try:
        return tuple(inspect.signature(make).parameters)
    except (TypeError, ValueError):
        return ()
