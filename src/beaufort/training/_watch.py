"""Recording the operations of a training step, to compare two steps."""

from __future__ import annotations

import hashlib
import random
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

_PLAIN = (
    *(bool, int, float, complex, str, type(None)),
    *(torch.dtype, torch.device, torch.layout, torch.memory_format),
)
"""Types of arguments that are compared by value."""


class StepWatch(TorchDispatchMode):
    """Records every torch operation in its context: name, sizes, numbers, and the values of CPU tensors.

    Values of tensors on the device are left out, because they may differ between replays of a recorded step.
    Everything else is part of the recording, so it must be the same in every step.
    """

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.device = device
        self.operations: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        self.operations.append(f"{func}{self._text((args, kwargs))}")
        return func(*args, **kwargs)

    def difference(self, other: StepWatch) -> str:
        """Return the name of the first operation that differs; empty if none does."""
        for one, two in zip(self.operations, other.operations, strict=False):
            if one != two:
                return two.partition("(")[0]
        longer = max(self.operations, other.operations, key=len)
        common = min(len(self.operations), len(other.operations))
        return longer[common].partition("(")[0] if len(longer) > common else ""

    def _text(self, value: Any) -> str:
        if isinstance(value, Tensor):
            return self._tensor(value)
        if isinstance(value, dict):
            return self._text([*value.items()])
        if isinstance(value, list | tuple):
            return f"({', '.join(map(self._text, value))})"
        return repr(value) if isinstance(value, _PLAIN) else type(value).__name__

    def _tensor(self, tensor: Tensor) -> str:
        about = f"{tensor.dtype}{tuple(tensor.shape)}"
        if tensor.device == self.device or tensor.device.type != "cpu":
            return about
        content = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        return f"{about} {hashlib.blake2b(content, digest_size=8).hexdigest()}"


class HostDraws:
    """State of the CPU random generators of NumPy, Python and, when training on a GPU, torch."""

    def __init__(self, device: torch.device) -> None:
        self.torch = torch.get_rng_state() if device.type != "cpu" else None
        self.numpy: Any = np.random.get_state()  # noqa: NPY002  third-party code uses it
        self.python = random.getstate()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HostDraws) and self._bytes() == other._bytes()

    __hash__ = None  # type: ignore[assignment]

    def _bytes(self) -> tuple[Any, ...]:
        kind, words, *rest = self.numpy
        own = b"" if self.torch is None else self.torch.numpy().tobytes()
        return own, kind, words.tobytes(), *rest, self.python

    def restore(self) -> None:
        """Restore the recorded state."""
        if self.torch is not None:
            torch.set_rng_state(self.torch)
        np.random.set_state(self.numpy)  # noqa: NPY002
        random.setstate(self.python)
