"""A copy of a network that a method changes: trained parameters, an optimizer, and further tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from beaufort._core.errors import OptionError
from beaufort._core.registry import unknown_message
from beaufort.models.spec import ModelError

Arrays = dict[str, NDArray[Any]]
Forward = Callable[[nn.Module, Tensor], Tensor]
"""Function from a module and values in [0, 1], `(n, c, h, w)`, to logits."""


class Learner:
    """A module and all that a method changes; `state` and `load_state` save and restore it.

    All layers stay in evaluation mode, so that nothing but the method is random.
    """

    def __init__(self, module: nn.Module, forward: Forward, passes: list[int]) -> None:
        self.module = module.eval().requires_grad_(False)
        self.parameters: dict[str, Tensor] = {}
        """Trained parameters by name."""
        self.extra: dict[str, Tensor] = {}
        """Other tensors that change, such as a moving average."""
        self.constants: Mapping[str, Tensor] = {}
        """Tensors made from clean images, which do not change."""
        self.others: dict[str, nn.Module] = {}
        """Further copies of the module, such as a teacher."""
        self._forward = forward
        self._optimizer: Any = None
        self._passes = passes

    def logits(self, pixels: Tensor, module: nn.Module | None = None) -> Tensor:
        """Return the logits of the module, or of another one; counts the images."""
        self._passes[0] += len(pixels)
        return self._forward(self.module if module is None else module, pixels)

    def use_batch_statistics(self) -> None:
        """Let batch normalization use the statistics of the batch."""
        for layer in batch_norms(self.module):
            layer.track_running_stats = False
            layer.running_mean = layer.running_var = None

    def train_normalization(self, skip: Callable[[str], bool] = lambda name: False) -> None:  # noqa: ARG005
        """Train scale and shift of the normalization layers, except those whose name is skipped."""
        kinds = (nn.modules.batchnorm._BatchNorm, nn.LayerNorm, nn.GroupNorm)
        layers = {name: layer for name, layer in self.module.named_modules() if isinstance(layer, kinds)}
        self.train(
            {
                f"{name}.{key}": parameter
                for name, layer in layers.items()
                if not skip(name)
                for key, parameter in layer.named_parameters(recurse=False)
            }
        )

    def train(self, parameters: Mapping[str, Tensor]) -> None:
        """Train these parameters."""
        if not parameters:
            raise ModelError("the network has no normalization layer with parameters to adapt")
        self.parameters = dict(parameters)
        for parameter in self.parameters.values():
            parameter.requires_grad_(True)

    def optimize(self, optimizer: str, lr: float) -> None:
        """Set the optimizer: `adam` with betas 0.9 and 0.999, or `sgd` with momentum 0.9."""
        if optimizer not in ("adam", "sgd"):
            raise OptionError(unknown_message("optimizer", optimizer, ("adam", "sgd")))
        some = list(self.parameters.values())
        self._optimizer = (
            torch.optim.Adam(some, lr) if optimizer == "adam" else torch.optim.SGD(some, lr, 0.9)
        )

    def backward(self, loss: Tensor, images: int) -> None:
        """Compute the gradients of a loss of some images."""
        self._passes[1] += images
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]

    def step(self) -> None:
        """Update the parameters by their gradients."""
        self._optimizer.step()

    def state(self) -> Arrays:
        """Return copies of everything that changes."""
        tensors = {f"parameter.{name}": value for name, value in self.parameters.items()}
        tensors |= {f"extra.{name}": value for name, value in self.extra.items()}
        if self._optimizer is not None:
            for number, kept in self._optimizer.state_dict()["state"].items():
                found = {key: value for key, value in kept.items() if value is not None}
                tensors |= {f"optimizer.{number}.{key}": torch.as_tensor(v) for key, v in found.items()}
        return {name: _array(value) for name, value in tensors.items()}

    def load_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the state of another learner of the same method and network."""
        kept: dict[int, dict[str, Tensor]] = {}
        with torch.no_grad():
            for name, array in state.items():
                kind, _, rest = name.partition(".")
                tensor = torch.from_numpy(np.array(array))
                if kind == "parameter":
                    self.parameters[rest].copy_(tensor)
                elif kind == "extra" and rest in self.extra:
                    self.extra[rest].copy_(tensor)
                elif kind == "extra":
                    self.extra[rest] = tensor.to(next(iter(self.module.parameters())).device)
                elif kind == "optimizer":
                    number, _, key = rest.partition(".")
                    kept.setdefault(int(number), {})[key] = tensor
        if self._optimizer is not None:
            self._optimizer.load_state_dict({**self._optimizer.state_dict(), "state": kept})


def _array(tensor: Tensor) -> NDArray[Any]:
    known = tensor.float() if tensor.dtype is torch.bfloat16 else tensor  # exact; NumPy has no bfloat16
    return np.array(known.detach().cpu().numpy())


def batch_norms(module: nn.Module) -> list[Any]:
    """Return the layers of batch normalization with stored statistics."""
    kind = nn.modules.batchnorm._BatchNorm
    return [one for one in module.modules() if isinstance(one, kind) and one.running_mean is not None]


def entropy(logits: Tensor) -> Tensor:
    """Return the entropy of the predicted distribution of each image, in nats."""
    return -(logits.softmax(1) * logits.log_softmax(1)).sum(1)
